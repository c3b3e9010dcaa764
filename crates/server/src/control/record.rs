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
    #[serde(with = "hex_form")]
    pub identity: Identity,
    #[serde(with = "hex_form")]
    pub owner: Identity,
    pub host_type: HostType,
    /// The program at creation or at the last reset.
    #[serde(with = "hex_form")]
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

/// Identities and hashes as hexadecimal text.
pub(super) mod hex_form {
    use serde::{de::Error as _, Deserialize as _, Deserializer, Serializer};

    pub trait HexForm: Sized {
        fn write(&self) -> String;
        fn read(text: &str) -> Option<Self>;
    }

    impl HexForm for lightcone_types::Identity {
        fn write(&self) -> String {
            self.to_hex()
        }
        fn read(text: &str) -> Option<Self> {
            Self::from_hex(text).ok()
        }
    }

    impl HexForm for lightcone_types::Hash {
        fn write(&self) -> String {
            self.to_hex()
        }
        fn read(text: &str) -> Option<Self> {
            Self::from_hex(text).ok()
        }
    }

    pub fn serialize<T: HexForm, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.write())
    }

    pub fn deserialize<'de, T: HexForm, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text)
            .ok_or_else(|| D::Error::custom("not a hexadecimal value of the right length"))
    }
}
