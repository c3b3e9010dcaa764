//! `RawModuleDefV10` (02 §4): what every 2.x module emits.

use lightcone_types::bsatn::{Decode, DecodeError, Encode, Reader};
use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

use super::codec::{invalid_tag, raw_product, raw_product_codec, raw_sum_codec, raw_sum_json};
use super::common::{Lifecycle, RawConstraintData, RawRowLevelSecurityDef};
use crate::table::{IndexAlgorithm, TableAccess, TableKind};

/// Submodules may nest this deep. The reference has no limit; ours keeps decoding within the stack.
pub const SUBMODULE_DEPTH_MAX: usize = 16;

/// A definition is a list of sections in any order, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawModuleDefV10 {
    pub sections: Vec<RawModuleDefV10Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawModuleDefV10Section {
    Typespace(Typespace),
    Types(Vec<RawTypeDefV10>),
    Tables(Vec<RawTableDefV10>),
    /// Positions are the reducer ids.
    Reducers(Vec<RawReducerDefV10>),
    Procedures(Vec<RawProcedureDefV10>),
    Views(Vec<RawViewDefV10>),
    Schedules(Vec<RawScheduleDefV10>),
    LifeCycleReducers(Vec<RawLifeCycleReducerDefV10>),
    RowLevelSecurity(Vec<RawRowLevelSecurityDef>),
    CaseConversionPolicy(CaseConversionPolicy),
    ExplicitNames(ExplicitNames),
    HttpHandlers(Vec<RawHttpHandlerDefV10>),
    HttpRoutes(Vec<RawHttpRouteDefV10>),
    ViewPrimaryKeys(Vec<RawViewPrimaryKeyDefV10>),
    Submodules(Vec<RawSubmoduleV10>),
}

// Decoding is written out because submodules nest: the depth has to be carried along.
impl RawModuleDefV10 {
    fn decode_at(r: &mut Reader<'_>, depth: usize) -> Result<Self, DecodeError> {
        if depth > SUBMODULE_DEPTH_MAX {
            return Err(DecodeError::Other(
                format!("submodules are nested more than {SUBMODULE_DEPTH_MAX} levels deep; flatten them [LC0203]")
                    .into(),
            ));
        }
        // A section is at least its tag and a one-byte payload.
        let count = r.read_count(2)?;
        let mut sections = Vec::new();
        for _ in 0..count {
            sections.push(RawModuleDefV10Section::decode_at(r, depth)?);
        }
        Ok(RawModuleDefV10 { sections })
    }
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

impl RawModuleDefV10Section {
    fn decode_at(r: &mut Reader<'_>, depth: usize) -> Result<Self, DecodeError> {
        use RawModuleDefV10Section as S;
        Ok(match r.read_u8()? {
            0 => S::Typespace(Decode::decode(r)?),
            1 => S::Types(Decode::decode(r)?),
            2 => S::Tables(Decode::decode(r)?),
            3 => S::Reducers(Decode::decode(r)?),
            4 => S::Procedures(Decode::decode(r)?),
            5 => S::Views(Decode::decode(r)?),
            6 => S::Schedules(Decode::decode(r)?),
            7 => S::LifeCycleReducers(Decode::decode(r)?),
            8 => S::RowLevelSecurity(Decode::decode(r)?),
            9 => S::CaseConversionPolicy(Decode::decode(r)?),
            10 => S::ExplicitNames(Decode::decode(r)?),
            11 => S::HttpHandlers(Decode::decode(r)?),
            12 => S::HttpRoutes(Decode::decode(r)?),
            13 => S::ViewPrimaryKeys(Decode::decode(r)?),
            14 => {
                // A submodule is at least the length of its name and its section count.
                let count = r.read_count(8)?;
                let mut submodules = Vec::new();
                for _ in 0..count {
                    let namespace = Decode::decode(r)?;
                    let module = RawModuleDefV10::decode_at(r, depth + 1)?;
                    submodules.push(RawSubmoduleV10 { namespace, module });
                }
                S::Submodules(submodules)
            }
            tag => return Err(invalid_tag(tag, "RawModuleDefV10Section")),
        })
    }
}

impl RawModuleDefV10Section {
    fn parts(&self) -> (u8, &dyn Payload) {
        use RawModuleDefV10Section as S;
        match self {
            S::Typespace(v) => (0, v),
            S::Types(v) => (1, v),
            S::Tables(v) => (2, v),
            S::Reducers(v) => (3, v),
            S::Procedures(v) => (4, v),
            S::Views(v) => (5, v),
            S::Schedules(v) => (6, v),
            S::LifeCycleReducers(v) => (7, v),
            S::RowLevelSecurity(v) => (8, v),
            S::CaseConversionPolicy(v) => (9, v),
            S::ExplicitNames(v) => (10, v),
            S::HttpHandlers(v) => (11, v),
            S::HttpRoutes(v) => (12, v),
            S::ViewPrimaryKeys(v) => (13, v),
            S::Submodules(v) => (14, v),
        }
    }
}

impl Encode for RawModuleDefV10Section {
    fn encode(&self, out: &mut Vec<u8>) {
        let (tag, payload) = self.parts();
        out.push(tag);
        payload.encode_payload(out);
    }
}

impl RawModuleDefV10Section {
    /// The BSATN tag.
    pub fn tag(&self) -> u8 {
        self.parts().0
    }

    /// The variant's name.
    pub fn name(&self) -> &'static str {
        SECTION_NAMES[usize::from(self.tag())]
    }
}

/// In tag order.
const SECTION_NAMES: [&str; 15] = [
    "Typespace",
    "Types",
    "Tables",
    "Reducers",
    "Procedures",
    "Views",
    "Schedules",
    "LifeCycleReducers",
    "RowLevelSecurity",
    "CaseConversionPolicy",
    "ExplicitNames",
    "HttpHandlers",
    "HttpRoutes",
    "ViewPrimaryKeys",
    "Submodules",
];

/// Object-safe face of [`Encode`].
trait Payload {
    fn encode_payload(&self, out: &mut Vec<u8>);
}

impl<T: Encode> Payload for T {
    fn encode_payload(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

raw_sum_json!(
    RawModuleDefV10Section as "RawModuleDefV10Section",
    units {},
    payloads {
        0 => Typespace, 1 => Types, 2 => Tables, 3 => Reducers, 4 => Procedures, 5 => Views, 6 => Schedules,
        7 => LifeCycleReducers, 8 => RowLevelSecurity, 9 => CaseConversionPolicy, 10 => ExplicitNames,
        11 => HttpHandlers, 12 => HttpRoutes, 13 => ViewPrimaryKeys, 14 => Submodules,
    }
);

impl super::json::ToJson for RawModuleDefV10 {
    fn to_json(&self, out: &mut String) {
        super::json::write_object(out, &[("sections", &self.sections)]);
    }
}

impl super::json::FromJson for RawModuleDefV10 {
    fn from_json(value: &super::json::Node<'_>) -> Result<Self, super::json::JsonError> {
        let mut fields = super::json::product_fields(value, &["sections"])?.into_iter();
        Ok(RawModuleDefV10 {
            sections: super::json::next_field(value, &mut fields, "sections")?,
        })
    }
}

raw_product! {
    pub struct RawTypeDefV10 {
        pub source_name: RawScopedTypeNameV10,
        pub ty: TypeRef,
        pub custom_ordering: bool,
    }
}

raw_product! {
    pub struct RawScopedTypeNameV10 {
        pub scope: Vec<String>,
        pub source_name: String,
    }
}

raw_product! {
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
}

raw_product! {
    pub struct RawColumnDefaultValueV10 {
        pub col_id: ColId,
        /// BSATN of a value of the column's type.
        pub value: Vec<u8>,
    }
}

raw_product! {
    pub struct RawIndexDefV10 {
        /// Must be some.
        pub source_name: Option<String>,
        pub accessor_name: Option<String>,
        pub algorithm: IndexAlgorithm,
    }
}

raw_product! {
    pub struct RawConstraintDefV10 {
        pub source_name: Option<String>,
        pub data: RawConstraintData,
    }
}

raw_product! {
    pub struct RawSequenceDefV10 {
        pub source_name: Option<String>,
        pub column: ColId,
        pub start: Option<i128>,
        pub min_value: Option<i128>,
        pub max_value: Option<i128>,
        pub increment: i128,
    }
}

raw_product! {
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

raw_product! {
    pub struct RawProcedureDefV10 {
        pub source_name: String,
        pub params: ProductType,
        pub return_type: AlgebraicType,
        pub visibility: FunctionVisibility,
    }
}

raw_product! {
    pub struct RawViewDefV10 {
        pub source_name: String,
        /// Position among the module's own views of the same kind.
        pub index: u32,
        pub is_public: bool,
        pub is_anonymous: bool,
        pub params: ProductType,
        /// `Option<Ref r>`, `Array<Ref r>` or `{ __query__: Ref r }`.
        pub return_type: AlgebraicType,
    }
}

raw_product! {
    pub struct RawScheduleDefV10 {
        pub source_name: Option<String>,
        pub table_name: String,
        pub schedule_at_col: ColId,
        pub function_name: String,
    }
}

raw_product! {
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

raw_product! {
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
}
raw_sum_codec!(ExplicitNameEntry as "ExplicitNameEntry", units {}, payloads { 0 => Table, 1 => Function, 2 => Index });

raw_product! {
    pub struct NameMapping {
        pub source_name: String,
        pub canonical_name: String,
    }
}

raw_product! {
    pub struct RawHttpHandlerDefV10 {
        pub source_name: String,
    }
}

raw_product! {
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
raw_sum_codec!(MethodOrAny as "MethodOrAny", units { 0 => Any }, payloads { 1 => Method });

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
    payloads { 9 => Extension }
);

raw_product! {
    pub struct RawViewPrimaryKeyDefV10 {
        pub view_source_name: String,
        /// Source names of columns.
        pub columns: Vec<String>,
    }
}

/// A module below another one; everything it owns is addressed as `namespace.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSubmoduleV10 {
    pub namespace: String,
    pub module: RawModuleDefV10,
}
raw_product_codec!(RawSubmoduleV10 { namespace, module });

/// What a view's answer starts with (02 §9.3); used at call time, not inside a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewResultHeader {
    /// Rows follow as a BSATN array.
    RowData,
    /// The rows of this query are the answer.
    RawSql(String),
}
raw_sum_codec!(ViewResultHeader as "ViewResultHeader", units { 0 => RowData }, payloads { 1 => RawSql });
