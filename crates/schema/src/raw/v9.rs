//! `RawModuleDefV9` (02 §5): what 1.x modules emit, and a form of the schema endpoint's output.

use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

use super::codec::{raw_products, raw_sum_codec};
use super::common::*;
use crate::table::{TableAccess, TableKind};

raw_products! {
    #[derive(Default)]
    pub struct RawModuleDefV9 {
        pub typespace: Typespace,
        pub tables: Vec<RawTableDefV9>,
        /// Positions are the reducer ids.
        pub reducers: Vec<RawReducerDefV9>,
        pub types: Vec<RawTypeDefV9>,
        pub misc_exports: Vec<RawMiscModuleExportV9>,
        pub row_level_security: Vec<RawRowLevelSecurityDef>,
    }

    pub struct RawTableDefV9 {
        pub name: String,
        pub product_type_ref: TypeRef,
        pub primary_key: Vec<ColId>,
        pub indexes: Vec<RawIndexDefV9>,
        pub constraints: Vec<RawConstraintDefV9>,
        pub sequences: Vec<RawSequenceDefV9>,
        pub schedule: Option<RawScheduleDefV9>,
        pub table_type: TableKind,
        pub table_access: TableAccess,
    }

    pub struct RawScheduleDefV9 {
        pub name: Option<String>,
        /// A reducer or a procedure.
        pub reducer_name: String,
        pub scheduled_at_column: ColId,
    }

    pub struct RawReducerDefV9 {
        pub name: String,
        pub params: ProductType,
        pub lifecycle: Option<Lifecycle>,
    }

    pub struct RawTypeDefV9 {
        pub name: RawScopedTypeNameV9,
        pub ty: TypeRef,
        pub custom_ordering: bool,
    }

    pub struct RawScopedTypeNameV9 {
        pub scope: Vec<String>,
        pub name: String,
    }
}

/// Added to version 9 after its layout was fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawMiscModuleExportV9 {
    ColumnDefaultValue(RawColumnDefaultValueV9),
    Procedure(RawProcedureDefV9),
    View(RawViewDefV9),
}
raw_sum_codec!(
    RawMiscModuleExportV9 as "RawMiscModuleExportV9",
    units {},
    payloads { 0 => ColumnDefaultValue(RawColumnDefaultValueV9), 1 => Procedure(RawProcedureDefV9), 2 => View(RawViewDefV9) }
);

raw_products! {
    pub struct RawColumnDefaultValueV9 {
        pub table: String,
        pub col_id: ColId,
        /// BSATN of a value of the column's type.
        pub value: Vec<u8>,
    }

    pub struct RawProcedureDefV9 {
        pub name: String,
        pub params: ProductType,
        pub return_type: AlgebraicType,
    }

}
