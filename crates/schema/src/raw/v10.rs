//! `RawModuleDefV10` (02 §4): what every 2.x module emits.

use lightcone_types::bsatn::{Decode, DecodeError, Encode, Reader};
use lightcone_types::json::META_TYPES;
use lightcone_types::{AlgebraicType, ColId, Hash, ProductType, TypeRef, Typespace};

use super::codec::{raw_products, raw_sum_codec};
use super::common::*;
use super::typed::Typed;
use crate::table::{TableAccess, TableKind};

/// Submodules may nest this deep. The reference has no limit; ours keeps decoding within the stack.
pub const SUBMODULE_DEPTH_MAX: usize = 16;

/// A definition is a list of sections in any order, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawModuleDefV10 {
    pub sections: Vec<RawModuleDefV10Section>,
}

/// A module below another one; everything it owns is addressed as `namespace.name`, with the canonical form of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSubmoduleV10 {
    pub namespace: String,
    pub module: RawModuleDefV10,
}

// Decoding is written out because submodules nest: the depth has to be carried along.
impl RawModuleDefV10 {
    fn decode_at(r: &mut Reader<'_>, depth: usize) -> Result<Self, DecodeError> {
        if depth > SUBMODULE_DEPTH_MAX {
            return Err(DecodeError::other(format!(
                "submodules are nested more than {SUBMODULE_DEPTH_MAX} levels deep; flatten them [LC0203]"
            )));
        }
        // A section is at least its tag and a one-byte payload.
        let count = r.read_count(2)?;
        let sections = (0..count).map(|_| RawModuleDefV10Section::decode_at(r, depth));
        let sections = sections.collect::<Result<_, DecodeError>>()?;
        Ok(RawModuleDefV10 { sections })
    }
}

fn decode_submodules(
    r: &mut Reader<'_>,
    depth: usize,
) -> Result<Vec<RawSubmoduleV10>, DecodeError> {
    // A submodule is at least the length of its name and its section count.
    let count = r.read_count(8)?;
    let submodules = (0..count).map(|_| {
        Ok(RawSubmoduleV10 {
            namespace: Decode::decode(r)?,
            module: RawModuleDefV10::decode_at(r, depth)?,
        })
    });
    submodules.collect()
}

impl Decode for RawModuleDefV10 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_at(r, 0)
    }
}

impl Encode for RawModuleDefV10 {
    fn encode(&self, out: &mut Vec<u8>) {
        self.sections.encode(out);
    }
}

impl Encode for RawSubmoduleV10 {
    fn encode(&self, out: &mut Vec<u8>) {
        self.namespace.encode(out);
        self.module.encode(out);
    }
}

impl Typed for RawModuleDefV10 {
    fn ty() -> AlgebraicType {
        // The first one behind the types that describe types: it can hold itself.
        AlgebraicType::reference(META_TYPES.types.len() as u32)
    }
}

impl Typed for RawSubmoduleV10 {
    fn ty() -> AlgebraicType {
        let module = RawModuleDefV10::ty();
        AlgebraicType::product([("namespace", AlgebraicType::String), ("module", module)])
    }
}

/// The sections in tag order, all but [`Submodules`](RawModuleDefV10Section::Submodules), which nests and is written out; and what
/// their contents are called together. The variants in the type of a section are in this order too, so those of later versions
/// follow. A module need not know these.
macro_rules! sections {
    (
        $($(#[$doc:meta])* $tag:literal => $section:ident($payload:ty) $field:ident,)*
        ; $submodules_tag:literal => Submodules;
        $($(#[$later_doc:meta])* $later_tag:literal => $later:ident($later_payload:ty) $later_field:ident,)*
    ) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum RawModuleDefV10Section {
            $( $(#[$doc])* $section($payload), )*
            Submodules(Vec<RawSubmoduleV10>),
            $( $(#[$later_doc])* $later($later_payload), )*
        }

        impl RawModuleDefV10Section {
            /// How many there are.
            pub const COUNT: usize = [$($tag,)* $submodules_tag, $($later_tag),*].len();

            /// The BSATN tag.
            pub fn tag(&self) -> u8 {
                match self {
                    $( Self::$section(_) => $tag, )*
                    Self::Submodules(_) => $submodules_tag,
                    $( Self::$later(_) => $later_tag, )*
                }
            }

            /// The variant's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Self::$section(_) => stringify!($section), )*
                    Self::Submodules(_) => "Submodules",
                    $( Self::$later(_) => stringify!($later), )*
                }
            }

            fn decode_at(r: &mut Reader<'_>, depth: usize) -> Result<Self, DecodeError> {
                match r.read_u8()? {
                    $( $tag => Decode::decode(r).map(Self::$section), )*
                    $submodules_tag => decode_submodules(r, depth + 1).map(Self::Submodules),
                    $( $later_tag => Decode::decode(r).map(Self::$later), )*
                    tag => Err(DecodeError::invalid_tag(tag, "RawModuleDefV10Section")),
                }
            }
        }

        impl Encode for RawModuleDefV10Section {
            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.tag());
                match self {
                    $( Self::$section(payload) => payload.encode(out), )*
                    Self::Submodules(submodules) => submodules.encode(out),
                    $( Self::$later(payload) => payload.encode(out), )*
                }
            }
        }

        /// The contents of the sections of a module level.
        #[derive(Default)]
        pub(crate) struct Sections {
            $( pub $field: $payload, )*
            pub submodules: Vec<RawSubmoduleV10>,
            $( pub $later_field: Option<$later_payload>, )*
        }

        impl Sections {
            pub(crate) fn set(&mut self, section: RawModuleDefV10Section) {
                match section {
                    $( RawModuleDefV10Section::$section(payload) => self.$field = payload, )*
                    RawModuleDefV10Section::Submodules(submodules) => self.submodules = submodules,
                    $( RawModuleDefV10Section::$later(payload) => self.$later_field = Some(payload), )*
                }
            }
        }

        impl Typed for RawModuleDefV10Section {
            fn ty() -> AlgebraicType {
                AlgebraicType::sum([
                    $( (stringify!($section), <$payload>::ty()), )*
                    ("Submodules", Vec::<RawSubmoduleV10>::ty()),
                    $( (stringify!($later), <$later_payload>::ty()), )*
                ])
            }
        }
    };
}

sections! {
    0 => Typespace(Typespace) typespace,
    1 => Types(Vec<RawTypeDefV10>) types,
    2 => Tables(Vec<RawTableDefV10>) tables,
    /// Positions are the reducer ids.
    3 => Reducers(Vec<RawReducerDefV10>) reducers,
    4 => Procedures(Vec<RawProcedureDefV10>) procedures,
    5 => Views(Vec<RawViewDefV10>) views,
    6 => Schedules(Vec<RawScheduleDefV10>) schedules,
    7 => LifeCycleReducers(Vec<RawLifeCycleReducerDefV10>) lifecycles,
    8 => RowLevelSecurity(Vec<RawRowLevelSecurityDef>) row_level_security,
    9 => CaseConversionPolicy(CaseConversionPolicy) policy,
    10 => ExplicitNames(ExplicitNames) explicit_names,
    11 => HttpHandlers(Vec<RawHttpHandlerDefV10>) http_handlers,
    12 => HttpRoutes(Vec<RawHttpRouteDefV10>) http_routes,
    13 => ViewPrimaryKeys(Vec<RawViewPrimaryKeyDefV10>) view_primary_keys,
    ; 14 => Submodules;
    /// Since 2.11.
    15 => Environment(Vec<RawEnvironmentDeclarationV10>) environment,
    /// Since 2.12; modules send it since 2.14.
    16 => Outboxes(Vec<RawOutboxDefV10>) outboxes,
}

raw_products! {
    pub struct RawTypeDefV10 {
        pub source_name: RawScopedTypeNameV10,
        pub ty: TypeRef,
        pub custom_ordering: bool,
    }

    pub struct RawScopedTypeNameV10 {
        pub scope: Vec<String>,
        pub source_name: String,
    }

    pub struct RawTableDefV10 {
        /// The name the module's code uses.
        pub source_name: String,
        /// The row type, sole source of the columns.
        pub product_type_ref: TypeRef,
        pub primary_key: Vec<ColId>,
        pub indexes: Vec<RawIndexDefV10>,
        pub constraints: Vec<RawConstraintDefV10>,
        pub sequences: Vec<RawSequenceDefV10>,
        pub table_type: TableKind,
        pub table_access: TableAccess,
        pub default_values: Vec<RawColumnDefaultValueV10>,
        pub is_event: bool,
    }

    pub struct RawColumnDefaultValueV10 {
        pub col_id: ColId,
        /// BSATN of a value of the column's type.
        pub value: Vec<u8>,
    }

    pub struct RawReducerDefV10 {
        pub source_name: String,
        /// Without the context argument.
        pub params: ProductType,
        pub visibility: FunctionVisibility,
        /// Must be unit.
        pub ok_return_type: AlgebraicType,
        /// Must be `String`.
        pub err_return_type: AlgebraicType,
    }
}

/// Who may call a function. Spelled [`Visibility`](crate::Visibility) outside this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionVisibility {
    Private,
    ClientCallable,
}
raw_sum_codec!(
    FunctionVisibility as "FunctionVisibility",
    units { 0 => Private, 1 => ClientCallable },
    payloads {}
);

raw_products! {
    pub struct RawProcedureDefV10 {
        pub source_name: String,
        pub params: ProductType,
        pub return_type: AlgebraicType,
        pub visibility: FunctionVisibility,
    }

    pub struct RawScheduleDefV10 {
        pub source_name: Option<String>,
        pub table_name: String,
        pub schedule_at_col: ColId,
        pub function_name: String,
    }

    pub struct RawLifeCycleReducerDefV10 {
        pub lifecycle_spec: Lifecycle,
        pub function_name: String,
    }
}

/// How source names become canonical names (02 §8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CaseConversionPolicy {
    None,
    #[default]
    SnakeCase,
}
raw_sum_codec!(CaseConversionPolicy as "CaseConversionPolicy", units { 0 => None, 1 => SnakeCase }, payloads {});

raw_products! {
    /// Canonical names the user chose; the last entry for a source name wins.
    #[derive(Default)]
    pub struct ExplicitNames {
        pub entries: Vec<ExplicitNameEntry>,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplicitNameEntry {
    Table(NameMapping),
    Function(NameMapping),
    Index(NameMapping),
    /// Of a submodule (2.10.2).
    Namespace(NameMapping),
}
raw_sum_codec!(ExplicitNameEntry as "ExplicitNameEntry", units {}, payloads { 0 => Table(NameMapping), 1 => Function(NameMapping), 2 => Index(NameMapping), 3 => Namespace(NameMapping) });

raw_products! {
    pub struct NameMapping {
        pub source_name: String,
        pub canonical_name: String,
    }

    pub struct RawHttpHandlerDefV10 {
        pub source_name: String,
    }

    pub struct RawHttpRouteDefV10 {
        pub handler_function: String,
        pub method: MethodOrAny,
        pub path: String,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MethodOrAny {
    Any,
    Method(HttpMethod),
}
raw_sum_codec!(MethodOrAny as "MethodOrAny", units { 0 => Any }, payloads { 1 => Method(HttpMethod) });

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    Extension(String),
}
raw_sum_codec!(
    HttpMethod as "HttpMethod",
    units {
        0 => Get, 1 => Head, 2 => Post, 3 => Put, 4 => Delete, 5 => Connect, 6 => Options, 7 => Trace, 8 => Patch,
    },
    payloads { 9 => Extension(String) }
);

raw_products! {
    pub struct RawViewPrimaryKeyDefV10 {
        pub view_source_name: String,
        /// Source names of columns.
        pub columns: Vec<String>,
    }
}

raw_products! {
    /// A variable of the environment that the module reads (2.11).
    pub struct RawEnvironmentDeclarationV10 {
        pub name: String,
        pub ty: RawEnvVarTypeV10,
        pub optional: bool,
    }
}

/// Which values a variable of the environment may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEnvVarTypeV10 {
    String,
    StringLiteral(String),
    Union(Vec<String>),
}
raw_sum_codec!(
    RawEnvVarTypeV10 as "RawEnvVarTypeV10",
    units { 0 => String },
    payloads { 1 => StringLiteral(String), 2 => Union(Vec<String>) }
);

raw_products! {
    /// A table whose rows are messages to a reducer of another database (2.12).
    pub struct RawOutboxDefV10 {
        /// Source name.
        pub table_name: String,
        /// In the target database.
        pub remote_reducer: String,
        pub target_column: ColId,
        /// In the order of the receiver's parameters.
        pub arg_columns: Vec<ColId>,
        /// Source name of a reducer of the same module.
        pub on_result_reducer: Option<String>,
        pub signature_hash: Hash,
    }
}

/// What a view's answer starts with (02 §9.3); used at call time, not inside a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewResultHeader {
    /// Rows follow as a BSATN array.
    RowData,
    /// The rows of this query are the answer.
    RawSql(String),
}
raw_sum_codec!(ViewResultHeader as "ViewResultHeader", units { 0 => RowData }, payloads { 1 => RawSql(String) });
