//! Structures that version 9 and version 10 share (02 §4.1, §5).

use lightcone_types::{
    AlgebraicType, ColId, ProductType, ProductTypeElement, SumType, SumTypeVariant, Typespace,
};

use super::codec::{raw_product, raw_product_codec_json, raw_sum_codec, raw_sum_json};
use crate::table::{IndexAlgorithm, TableAccess, TableKind};

raw_sum_json!(
    AlgebraicType as "AlgebraicType",
    units {
        4 => String, 5 => Bool, 6 => I8, 7 => U8, 8 => I16, 9 => U16, 10 => I32, 11 => U32, 12 => I64, 13 => U64,
        14 => I128, 15 => U128, 16 => I256, 17 => U256, 18 => F32, 19 => F64,
    },
    payloads { 0 => Ref, 1 => Sum, 2 => Product, 3 => Array }
);
raw_product_codec_json!(Typespace { types });
raw_product_codec_json!(ProductType { elements });
raw_product_codec_json!(ProductTypeElement {
    name,
    algebraic_type
});
raw_product_codec_json!(SumType { variants });
raw_product_codec_json!(SumTypeVariant {
    name,
    algebraic_type
});

raw_sum_codec!(IndexAlgorithm as "RawIndexAlgorithm", units {}, payloads { 0 => BTree, 1 => Hash, 2 => Direct });
raw_sum_codec!(TableKind as "TableType", units { 0 => System, 1 => User }, payloads {});
raw_sum_codec!(TableAccess as "TableAccess", units { 0 => Public, 1 => Private }, payloads {});

/// An event of the database's or a connection's life for which a reducer can be declared (02 §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lifecycle {
    Init,
    OnConnect,
    OnDisconnect,
}

impl Lifecycle {
    /// The variant's name, as it stands in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Lifecycle::Init => "Init",
            Lifecycle::OnConnect => "OnConnect",
            Lifecycle::OnDisconnect => "OnDisconnect",
        }
    }
}

raw_sum_codec!(
    Lifecycle as "Lifecycle",
    units { 0 => Init, 1 => OnConnect, 2 => OnDisconnect },
    payloads {}
);

/// Unique is the only kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawConstraintData {
    Unique(RawUniqueConstraintData),
}
raw_sum_codec!(RawConstraintData as "RawConstraintDataV9", units {}, payloads { 0 => Unique });

raw_product! {
    /// The columns whose values together are unique.
    pub struct RawUniqueConstraintData {
        pub columns: Vec<ColId>,
    }
}

raw_product! {
    /// A row-level security rule.
    pub struct RawRowLevelSecurityDef {
        pub sql: String,
    }
}
