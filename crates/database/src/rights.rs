//! What a caller may do in a database beyond what all callers may.

use lightcone_types::Identity;

/// Each includes what stands before it. Who has which, the server decides; the owner of the database has all in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Public tables, as the rules show them to him; public functions.
    #[default]
    Public,
    /// All rows of all tables.
    Reads,
    /// Private functions, and changing rows with SQL.
    Writes,
    /// What the rows were in the past.
    All,
}

/// What a caller may do now in a database: the first identity is the database's, the second the caller's.
pub type RightsNow = dyn Fn(&Identity, &Identity) -> Rights + Send + Sync;

impl Rights {
    /// Private tables, rows that row-level security hides, and queries beyond the row limit.
    pub fn sees_all_rows(self) -> bool {
        self >= Rights::Reads
    }

    pub fn calls_private_functions(self) -> bool {
        self >= Rights::Writes
    }

    pub fn writes_rows(self) -> bool {
        self >= Rights::Writes
    }

    pub fn reads_past(self) -> bool {
        self == Rights::All
    }

    /// As whom queries are compiled.
    pub(crate) fn caller(self, identity: Identity) -> lightcone_query::Caller {
        lightcone_query::Caller {
            identity,
            is_owner: self.sees_all_rows(),
        }
    }
}
