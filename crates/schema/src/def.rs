//! The validated module definition: everything the host derives from the raw one (02 §8, §9, §10).

use std::collections::BTreeMap;
use std::sync::Arc;

use lightcone_types::bsatn::DecodeError;
use lightcone_types::{AlgebraicType, ColId, Hash, ProductType, TypeRef, Typespace};
use rustc_hash::FxHashMap;

use crate::args::ArgsLayout;
use crate::case;
use crate::environment::EnvironmentVariableDef;
use crate::raw::{CaseConversionPolicy, HttpMethod, Lifecycle, MethodOrAny, RawVersion};
use crate::signature;
use crate::table::{IndexAlgorithm, OutboxDef, TableAccess};

pub use crate::raw::FunctionVisibility as Visibility;

/// A validated module: its own objects and those of all submodules, with namespaced names.
#[derive(Clone, Debug)]
pub struct ModuleDef {
    pub version: RawVersion,
    /// The root's types, names converted.
    pub typespace: Arc<Typespace>,
    /// All levels, sorted bytewise by name: the order in which they are created (02 §13).
    pub tables: Vec<TableDef>,
    /// All levels; the position is the id passed to the module (02 §9.1).
    pub reducers: Vec<ReducerDef>,
    /// All levels; the position is the id.
    pub procedures: Vec<ProcedureDef>,
    /// All levels, in definition order.
    pub views: Vec<ViewDef>,
    /// Only the root's; the position is the id.
    pub http_handlers: Vec<HttpHandlerDef>,
    /// Only the root's, in order of dispatch.
    pub http_routes: Vec<HttpRouteDef>,
    /// Only the root's rules, each once, in definition order.
    pub row_level_security: Vec<String>,
    /// Only the root's.
    pub types: Vec<TypeDef>,
    /// Ids of the lifecycle reducers.
    pub init: Option<usize>,
    pub on_connect: Option<usize>,
    pub on_disconnect: Option<usize>,
    /// The migration function and its old tables.
    pub migration: Option<MigrationDef>,
    /// By module level, with local names, for the schema endpoint.
    pub root: ModuleLevel,
    // The names are the module's: a module with colliding ones slows down its own callers only.
    pub(crate) tables_by_name: FxHashMap<String, usize>,
    pub(crate) reducers_by_name: FxHashMap<String, usize>,
    pub(crate) procedures_by_name: FxHashMap<String, usize>,
    pub(crate) views_by_name: FxHashMap<String, usize>,
}

/// The root module or one submodule, with names as they are inside it.
#[derive(Clone, Debug, Default)]
pub struct ModuleLevel {
    /// Canonical; empty for the root.
    pub namespace: String,
    /// As the module that it is mounted in has it in its code.
    pub source_namespace: String,
    pub policy: CaseConversionPolicy,
    /// Names converted.
    pub typespace: Arc<Typespace>,
    pub types: Vec<TypeDef>,
    pub tables: Vec<TableDef>,
    pub reducers: Vec<ReducerDef>,
    pub procedures: Vec<ProcedureDef>,
    pub views: Vec<ViewDef>,
    pub http_handlers: Vec<HttpHandlerDef>,
    pub http_routes: Vec<HttpRouteDef>,
    pub row_level_security: Vec<String>,
    /// Variables by key, only of the root. None: the module does not say that it has any, or none.
    pub environment: Option<BTreeMap<String, EnvironmentVariableDef>>,
    /// Only of the root. Its reducer stands among those of the level, as its position is its id; its tables do not.
    pub migration: Option<MigrationDef>,
    pub submodules: Vec<ModuleLevel>,
}

/// A migration function, or row functions, and the tables that they are for (02 §14.8, §14.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationDef {
    pub functions: MigrationFunctions,
    /// Tables as they were, under names that begin with `__old_`: there while the migration function runs.
    pub old_tables: Vec<TableDef>,
}

/// Reducers that only an update calls, by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationFunctions {
    /// `__migrate`, which sees all rows at once.
    Whole(usize),
    /// `__migrate_X`, which gets the rows of X one by one, for each old table `__old_X`, in their order. Without one, the rows of
    /// a table that is gone go.
    Rows(Vec<Option<usize>>),
}

impl MigrationDef {
    /// Whether this reducer is a function of the migration.
    pub fn is_function(&self, reducer: usize) -> bool {
        match &self.functions {
            MigrationFunctions::Whole(function) => *function == reducer,
            MigrationFunctions::Rows(functions) => functions.contains(&Some(reducer)),
        }
    }

    /// The function that gets the rows of an old table, by the name of that.
    pub fn row_function(&self, old: &str) -> Option<usize> {
        let MigrationFunctions::Rows(functions) = &self.functions else {
            return None;
        };
        let position = self.old_tables.iter().position(|table| table.name == old)?;
        functions.get(position).copied().flatten()
    }

    /// Whether rows are migrated one by one, behind the running module.
    pub fn is_by_rows(&self) -> bool {
        matches!(self.functions, MigrationFunctions::Rows(_))
    }
}

impl ModuleLevel {
    /// The reducers that clients may hear of: all but those of a migration.
    pub fn shown_reducers(&self) -> impl Iterator<Item = &ReducerDef> {
        let migration = self.migration.as_ref();
        let is_hidden = move |id| migration.is_some_and(|migration| migration.is_function(id));
        let reducers = self.reducers.iter().enumerate();
        reducers.filter_map(move |(id, reducer)| (!is_hidden(id)).then_some(reducer))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDef {
    pub scope: Vec<String>,
    pub name: String,
    pub ty: TypeRef,
    pub custom_ordering: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDef {
    pub name: String,
    /// The name the module's code uses.
    pub source_name: String,
    pub row_type: TypeRef,
    pub columns: Vec<ColumnDef>,
    pub primary_key: Option<ColId>,
    pub indexes: Vec<IndexDef>,
    pub constraints: Vec<UniqueConstraintDef>,
    pub sequences: Vec<SequenceDef>,
    pub schedule: Option<ScheduleDef>,
    pub outbox: Option<OutboxDef>,
    pub access: TableAccess,
    pub is_event: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDef {
    pub name: String,
    pub source_name: String,
    /// Free of refs.
    pub ty: AlgebraicType,
    /// BSATN of the value that existing rows get when the column is added by a migration.
    pub default: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDef {
    pub name: String,
    /// The name by which module code looks the index up.
    pub source_name: String,
    /// The name of the accessor in generated client code.
    pub accessor_name: Option<String>,
    pub algorithm: IndexAlgorithm,
    /// A unique constraint covers the same column set.
    pub unique: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueConstraintDef {
    pub name: String,
    /// Ascending.
    pub columns: Vec<ColId>,
}

/// An auto-increment column. It counts from 1 by 1 (02 §8.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDef {
    pub name: String,
    pub column: ColId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleDef {
    /// Never carries a namespace (02 §8.11).
    pub name: String,
    pub function_name: String,
    pub function_kind: ScheduledFunctionKind,
    pub at_column: ColId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduledFunctionKind {
    Reducer,
    Procedure,
}

#[derive(Clone, Debug)]
pub struct ReducerDef {
    pub name: String,
    pub source_name: String,
    /// As sent by the module: parameter names are not converted.
    pub params: ProductType,
    /// The canonical names of the parameters.
    pub param_names: Vec<String>,
    /// The typespace of the module level that owns the reducer.
    pub params_typespace: Arc<Typespace>,
    pub lifecycle: Option<Lifecycle>,
    pub visibility: Visibility,
    pub(crate) args: ArgsLayout,
    /// How the names of parameters become canonical.
    pub(crate) policy: CaseConversionPolicy,
}

impl ReducerDef {
    /// A reducer that clients may call.
    pub fn new(
        name: impl Into<String>,
        params: ProductType,
        params_typespace: Arc<Typespace>,
    ) -> Self {
        let name = name.into();
        let args = ArgsLayout::new(&params_typespace, &params);
        ReducerDef {
            source_name: name.clone(),
            name,
            param_names: {
                let names = params.elements.iter().map(|param| param.name());
                names
                    .map(|name| name.unwrap_or_default().to_owned())
                    .collect()
            },
            params,
            params_typespace,
            lifecycle: None,
            visibility: Visibility::ClientCallable,
            args,
            policy: CaseConversionPolicy::None,
        }
    }

    /// What senders of other databases know its parameters by (02 §8.7a). Looks at all types that they use.
    pub fn signature_hash(&self) -> Hash {
        let mut params = self.params.clone();
        if self.policy == CaseConversionPolicy::SnakeCase {
            for name in params
                .elements
                .iter_mut()
                .filter_map(|param| param.name.as_mut())
            {
                *name = case::to_snake(name).into();
            }
        }
        signature::hash(&self.params_typespace, params)
    }

    /// Checks that `bytes` begin with arguments for this reducer and says how many bytes they take.
    /// Bytes after them are not an error (01 §1.5.2).
    #[inline]
    pub fn validate_args(&self, bytes: &[u8]) -> Result<usize, DecodeError> {
        self.args
            .validate(&self.params_typespace, &self.params, bytes)
    }
}

#[derive(Clone, Debug)]
pub struct ProcedureDef {
    pub name: String,
    pub source_name: String,
    /// As sent by the module.
    pub params: ProductType,
    /// The canonical names of the parameters.
    pub param_names: Vec<String>,
    pub params_typespace: Arc<Typespace>,
    pub return_type: AlgebraicType,
    pub visibility: Visibility,
    pub(crate) args: ArgsLayout,
}

impl ProcedureDef {
    /// As [`ReducerDef::validate_args`].
    #[inline]
    pub fn validate_args(&self, bytes: &[u8]) -> Result<usize, DecodeError> {
        self.args
            .validate(&self.params_typespace, &self.params, bytes)
    }
}

#[derive(Clone, Debug)]
pub struct ViewDef {
    pub name: String,
    pub source_name: String,
    /// The position the module declared among its own views of this kind.
    pub index: u32,
    /// The id passed to the module; views of each kind are numbered on their own (02 §9.3).
    pub id: u32,
    pub is_public: bool,
    pub is_anonymous: bool,
    /// As sent by the module.
    pub params: ProductType,
    pub params_typespace: Arc<Typespace>,
    /// As sent by the module.
    pub return_type: AlgebraicType,
    /// The view returns a query instead of rows.
    pub is_query: bool,
    pub row_type: TypeRef,
    pub columns: Vec<ColumnDef>,
    pub primary_key: Option<ColId>,
}

impl ViewDef {
    pub fn has_parameters(&self) -> bool {
        !self.params.elements.is_empty()
    }

    /// That of the table that holds its rows.
    pub fn access(&self) -> TableAccess {
        match self.is_public {
            true => TableAccess::Public,
            false => TableAccess::Private,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHandlerDef {
    pub name: String,
    pub source_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRouteDef {
    /// Position in the handlers of the same level.
    pub handler: usize,
    pub method: MethodOrAny,
    pub path: String,
}

impl ModuleDef {
    /// The position of the HTTP handler for a request: the first route in the order of the definition whose path is equal
    /// and whose method is this one or any (06 §5.16).
    pub fn http_handler(&self, method: &HttpMethod, path: &str) -> Option<usize> {
        let route = self.http_routes.iter().find(|route| {
            route.path == path
                && match &route.method {
                    MethodOrAny::Any => true,
                    MethodOrAny::Method(served) => served == method,
                }
        });
        route.map(|route| route.handler)
    }

    /// The declared variables of the environment, in order of their keys.
    pub fn environment(&self) -> impl Iterator<Item = (&String, &EnvironmentVariableDef)> {
        self.root.environment.iter().flatten()
    }

    /// The table with this canonical, namespaced name.
    pub fn table(&self, name: &str) -> Option<&TableDef> {
        let id = *self.tables_by_name.get(name)?;
        Some(&self.tables[id])
    }

    /// Id and definition of the reducer with this canonical, namespaced name.
    pub fn reducer(&self, name: &str) -> Option<(usize, &ReducerDef)> {
        let id = *self.reducers_by_name.get(name)?;
        Some((id, &self.reducers[id]))
    }

    /// Id and definition of the procedure with this canonical, namespaced name.
    pub fn procedure(&self, name: &str) -> Option<(usize, &ProcedureDef)> {
        let id = *self.procedures_by_name.get(name)?;
        Some((id, &self.procedures[id]))
    }

    /// The view with this canonical, namespaced name.
    pub fn view(&self, name: &str) -> Option<&ViewDef> {
        let id = *self.views_by_name.get(name)?;
        Some(&self.views[id])
    }
}
