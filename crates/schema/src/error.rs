//! Errors in a module definition (02 §8.12).

use std::collections::BTreeSet;
use std::fmt;

use lightcone_types::bsatn::DecodeError;
use lightcone_types::{ColId, TypeError, TypeRef};

use crate::name::{IdentifierError, NAMESPACE_BYTES_MAX};
use crate::raw::Lifecycle;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("invalid bsatn module def: {0}")]
    Decode(#[from] DecodeError),
    /// They are one, but an invalid one.
    #[error("{0}")]
    Invalid(#[from] ValidationErrors),
}

/// All errors found in one definition, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ValidationErrors {
    pub errors: Vec<ValidationError>,
    /// Errors beyond the limit.
    pub not_shown: usize,
}

/// More errors are dropped; a hostile definition could have millions.
pub(crate) const ERRORS_MAX: usize = 256;

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_errors(f, &self.errors, self.not_shown)
    }
}

/// A list of errors, and how many there are beyond it.
pub(crate) fn write_errors(
    f: &mut fmt::Formatter<'_>,
    errors: &[impl fmt::Display],
    not_shown: usize,
) -> fmt::Result {
    writeln!(f, "Errors occurred:")?;
    for error in errors {
        writeln!(f, "{error}\n")?;
    }
    match not_shown {
        0 => Ok(()),
        more => writeln!(f, "... and {more} more\n"),
    }
}

/// One error. Names from unchecked input are cut to a readable length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    #[error("module contains invalid identifier: {0}")]
    Identifier(IdentifierError),
    #[error("name `{name}` is used for multiple entities")]
    DuplicateName { name: String },
    #[error("Name {name} is used for multiple reducers, procedures and/or views")]
    DuplicateFunctionName { name: String },
    #[error("name `{name}` is used for multiple types")]
    DuplicateTypeName { name: String },
    #[error("name `{name}` is used for multiple HTTP handlers")]
    DuplicateHttpHandlerName { name: String },

    #[error("{entity} {name} has invalid product_type_ref {ty}")]
    InvalidProductTypeRef {
        entity: &'static str,
        name: String,
        ty: TypeRef,
    },
    #[error("{entity} `{name}` has an unnamed column at position {position}")]
    UnnamedColumn {
        entity: &'static str,
        name: String,
        position: usize,
    },
    #[error("{entity} `{name}` has more than one column named `{column}` (after case conversion); rename one [LC0209]")]
    DuplicateColumnName {
        entity: &'static str,
        name: String,
        column: String,
    },
    #[error("{entity} `{name}` column `{column}` cannot be stored: {reason}; a column's type must be finite, \
             so break the recursion with a table of its own, or use bytes [LC0206]")]
    ColumnType {
        entity: &'static str,
        name: String,
        column: String,
        reason: TypeError,
    },
    #[error("Table name is reserved for system use: {name}")]
    TableNameReserved { name: String },
    #[error("table `{table}` is declared as a system table, which modules cannot define; make it a user table [LC0212]")]
    SystemTable { table: String },
    #[error("table `{table}` has more than one primary key column")]
    RepeatedPrimaryKey { table: String },
    #[error("table `{table}` column `{column}` is primary key but has no unique constraint")]
    MissingPrimaryKeyUniqueConstraint { table: String, column: String },
    #[error("column `{column}` referenced by def {def} not found in table `{table}`")]
    ColumnNotFound {
        table: String,
        def: String,
        column: ColId,
    },
    #[error("def {def} in table `{table}` lists column `{column}` more than once")]
    DuplicateColumns {
        table: String,
        def: String,
        column: ColId,
    },
    #[error("def {def} in table `{table}` lists no columns; name at least one [LC0208]")]
    EmptyColumnList { table: String, def: String },
    #[error("index at position {position} of table `{table}` has no source name; rebuild the module with a \
             current version of its library [LC0202]")]
    IndexWithoutSourceName { table: String, position: usize },
    #[error(
        "No index found to support unique constraint `{constraint}` for columns `{columns:?}`"
    )]
    UniqueConstraintWithoutIndex {
        constraint: String,
        columns: BTreeSet<ColId>,
    },
    #[error("direct index `{index}` is on column `{column}`, whose type {ty} is not u8, u16, u32, u64 or an enum without data")]
    DirectIndexOnBadType {
        index: String,
        column: String,
        ty: String,
    },
    #[error("sequence `{sequence}` is on column `{column}` of table `{table}`, whose type {ty} is not an integer")]
    InvalidSequenceColumnType {
        sequence: String,
        table: String,
        column: String,
        ty: String,
    },
    #[error("table `{table}` column `{column}` has more than one auto-increment sequence")]
    OneAutoInc { table: String, column: String },
    #[error("sequence definition `{sequence}` specifies unsupported option `{option}` with value {value}, should be {supported} [LC0204]")]
    UnsupportedSequenceOption {
        sequence: String,
        option: &'static str,
        value: i128,
        supported: &'static str,
    },
    #[error("default value of column `{column}` of table `{table}` is malformed: {reason}")]
    ColumnDefaultValueMalformed {
        table: String,
        column: String,
        reason: DecodeError,
    },
    #[error("column `{column}` of table `{table}` has more than one default value")]
    MultipleColumnDefaultValues { table: String, column: ColId },

    #[error("{entity} `{name}` has an unnamed parameter at position {position}")]
    UnnamedParameter {
        entity: &'static str,
        name: String,
        position: usize,
    },
    #[error("reducer `{name}` must return unit and fail with String, but declares {ok} and {err}")]
    InvalidReducerReturnType {
        name: String,
        ok: String,
        err: String,
    },
    #[error("lifecycle event {0:?} without reducer")]
    LifecycleWithoutReducer(Lifecycle),
    #[error("Multiple reducers defined for lifecycle event {0:?}")]
    DuplicateLifecycle(Lifecycle),
    #[error("submodule declares a reducer for lifecycle event {0:?}; only the root module can have lifecycle reducers")]
    LifecycleInSubmodule(Lifecycle),
    #[error("table `{name}` not found")]
    TableNotFound { name: String },
    #[error(
        "scheduled table `{table}` needs a ScheduleAt column for its times and a u64 primary key"
    )]
    ScheduledIncorrectColumns { table: String },
    #[error("scheduled table `{table}` cannot be an event table, whose rows are not kept")]
    ScheduledEventTable { table: String },
    #[error("function `{function}`, scheduled by table `{table}`, not found")]
    MissingScheduledFunction { table: String, function: String },
    #[error("function `{function}`, scheduled by table `{table}`, must take exactly one argument: a row of that table")]
    IncorrectScheduledFunctionParams { table: String, function: String },

    #[error("outbox table {name} not found")]
    OutboxTableNotFound { name: String },
    #[error("outbox table `{table}` {problem}")]
    Outbox { table: String, problem: String },
    #[error("on_result reducer `{name}` must be an unqualified name in the same module; cross-module callbacks are not supported")]
    OutboxCallbackElsewhere { name: String },

    #[error("view `{view}` has invalid return type {ty}; it must be an option, an array or a query of a named row type")]
    InvalidViewReturnType { view: String, ty: String },
    #[error("primary key is declared for view `{view}`, which does not exist")]
    ViewPrimaryKeyViewNotFound { view: String },
    #[error("view `{view}` has more than one primary key declaration")]
    RepeatedViewPrimaryKey { view: String },
    #[error("View {view} has a float parameter `{parameter}`, which views can't take yet")]
    FloatViewParameter { view: String, parameter: String },
    #[error("View {view} has parameters and cannot have a primary key")]
    ViewPrimaryKeyWithParameters { view: String },
    #[error("view `{view}` has more than one primary key column")]
    MultipleViewPrimaryKeyColumns { view: String },
    #[error("primary key column `{column}` not found in view `{view}`")]
    ViewPrimaryKeyColumnNotFound { view: String, column: String },

    #[error("HTTP route path `{path}` must be empty or start with `/` and consist of a-z, 0-9, `-`, `_`, `~` and `/`")]
    InvalidHttpRoutePath { path: String },
    #[error("HTTP route `{path}` names handler `{handler}`, which does not exist")]
    MissingHttpHandler { path: String, handler: String },
    #[error("HTTP route `{path}` is declared more than once for the same method")]
    DuplicateHttpRoute { path: String },

    #[error("error at {location}: internal codegen error: {reason}")]
    TypeUse {
        location: TypeLocation,
        reason: TypeUseError,
    },
    #[error("type `{name}` ({ty}) must be a product or a sum that is not a special type")]
    InvalidTypeDef { name: String, ty: TypeRef },
    #[error("type `{name}` has an unnamed element at position {position}")]
    UnnamedTypeElement { name: String, position: usize },
    #[error(
        "type `{name}` ({ty}) is not in default order although it declares no custom ordering"
    )]
    TypeHasIncorrectOrdering { name: String, ty: TypeRef },

    #[error("invalid environment declaration: {reason}")]
    Environment { reason: String },
    #[error("submodule {namespace:?} cannot declare environment variables")]
    EnvironmentInSubmodule { namespace: String },

    #[error("the migration function `{function}` {problem} [LC0235]")]
    Migration { function: String, problem: String },

    #[error("namespace of {bytes} bytes is longer than the limit of {NAMESPACE_BYTES_MAX} bytes")]
    NamespaceTooLong { bytes: usize },
    #[error("naming conflict between {kind} `{name}` and submodule namespace `{name}`; rename one of them")]
    NamespaceConflict { kind: &'static str, name: String },
    #[error("section {section} occurs more than once [LC0211]")]
    RepeatedSection { section: &'static str },
    #[error("the definition is too large: {what} exceed the limit of {limit}; make the module smaller [LC0207]")]
    TooLarge { what: &'static str, limit: usize },
}

/// Where a type is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeLocation {
    Typespace(TypeRef),
    Column {
        entity: &'static str,
        name: String,
        column: String,
    },
    Parameter {
        entity: &'static str,
        name: String,
        position: usize,
        parameter: String,
    },
    Return {
        entity: &'static str,
        name: String,
    },
}

impl fmt::Display for TypeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeLocation::Typespace(ty) => write!(f, "typespace ref `{ty}`"),
            TypeLocation::Column {
                entity,
                name,
                column,
            } => write!(f, "{entity} `{name}` column `{column}`"),
            TypeLocation::Parameter {
                entity,
                name,
                position,
                parameter,
            } => {
                write!(f, "{entity} `{name}` argument {position} (`{parameter}`)")
            }
            TypeLocation::Return { entity, name } => write!(f, "{entity} `{name}` return type"),
        }
    }
}

/// Why a type cannot be used in its place (02 §8.5).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeUseError {
    #[error("type {0} must be declared as a named type and referenced")]
    Inline(String),
    #[error("Type reference {0} out of bounds")]
    InvalidRef(TypeRef),
    #[error("Found recursive type reference {0} that passes through no named type")]
    Cycle(TypeRef),
    #[error("type reference {0} leads to a type that cannot be used")]
    Unusable(TypeRef),
    #[error("type is nested too deeply")]
    TooDeep,
    #[error("sum type has {0} variants; at most 256 can be told apart, so split it [LC0210]")]
    TooManyVariants(usize),
}

/// A name for a message, cut to a readable length.
pub(crate) fn clip(name: &str) -> String {
    const BYTES_MAX: usize = 200;
    if name.len() <= BYTES_MAX {
        return name.to_owned();
    }
    format!("{}...", &name[..name.floor_char_boundary(BYTES_MAX)])
}
