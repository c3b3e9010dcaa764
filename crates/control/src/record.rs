//! What is kept of a database without opening it, and of its collaborators.

use lightcone_types::{Hash, Identity};
use serde::{Deserialize, Serialize};

/// Most collaborators of one database.
pub const COLLABORATORS_MAX: usize = 256;

/// The language of a module (06 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostType {
    #[default]
    Wasm,
    Js,
}

/// What is known about a database without opening it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseRecord {
    /// Ascending in order of creation.
    pub id: u64,
    pub identity: Identity,
    pub owner: Identity,
    pub host_type: HostType,
    /// The program at creation or at the last reset.
    pub initial_program: Hash,
    /// Its directory below `replicas/`.
    pub replica_id: u64,
}

/// The role that the owner of a database has given another identity, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Reader,
    Publisher,
    Owner,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Reader, Role::Publisher, Role::Owner];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Publisher => "publisher",
            Role::Owner => "owner",
        }
    }
}
