//! Structures that version 9 and version 10 share (02 §4.1, §5).

use lightcone_types::{AlgebraicType, ColId, ProductType};

use super::codec::{raw_products, raw_sum_codec, raw_twins};
use crate::table::{IndexAlgorithm, TableAccess, TableKind};

raw_sum_codec!(
    IndexAlgorithm as "RawIndexAlgorithm",
    units {},
    payloads { 0 => BTree(Vec<ColId>), 1 => Hash(Vec<ColId>), 2 => Direct(ColId) }
);
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
raw_sum_codec!(RawConstraintData as "RawConstraintDataV9", units {}, payloads { 0 => Unique(RawUniqueConstraintData) });

raw_products! {
    /// The columns whose values together are unique.
    pub struct RawUniqueConstraintData {
        pub columns: Vec<ColId>,
    }

    /// A row-level security rule.
    pub struct RawRowLevelSecurityDef {
        pub sql: String,
    }
}

raw_twins! {
    RawIndexDefV9.name, RawIndexDefV10.
    /// Must be some.
    source_name: Option<String> {
        accessor_name: Option<String>,
        algorithm: IndexAlgorithm,
    }

    RawConstraintDefV9.name, RawConstraintDefV10.source_name: Option<String> {
        data: RawConstraintData,
    }

    RawSequenceDefV9.name, RawSequenceDefV10.source_name: Option<String> {
        column: ColId,
        start: Option<i128>,
        min_value: Option<i128>,
        max_value: Option<i128>,
        increment: i128,
    }

    RawViewDefV9.name, RawViewDefV10.source_name: String {
        /// Position among the module's own views of the same kind.
        index: u32,
        is_public: bool,
        is_anonymous: bool,
        params: ProductType,
        /// `Option<Ref r>`, `Array<Ref r>` or `{ __query__: Ref r }`.
        return_type: AlgebraicType,
    }
}
