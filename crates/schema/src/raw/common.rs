//! Structures that version 9 and version 10 share (02 §4.1, §5).

use lightcone_types::ColId;

use super::codec::{raw_products, raw_sum_codec};
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
