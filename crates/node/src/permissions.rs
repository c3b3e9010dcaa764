//! Who may do what with a database (`docs/operations.md`, "Who may do what").
//!
//! [`TABLE`] says which standing each action needs, and the table of routes which action each route is. What happens inside of a
//! database is decided by the [`Rights`] that [`Node::rights`] gives.

use std::sync::Arc;

use lightcone_types::Identity;

use crate::node::Node;

use lightcone_control::{DatabaseRecord, Role};
use lightcone_database::Rights;

/// What a caller is to a database. Each may do what those before may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Also without a token.
    Anyone,
    Reader,
    Publisher,
    /// Whom the one it belongs to has made one.
    Owner,
    /// The identity that has created it, and that it belongs to.
    Founder,
}

impl Standing {
    pub const ALL: [Standing; 5] = [
        Standing::Anyone,
        Standing::Reader,
        Standing::Publisher,
        Standing::Owner,
        Standing::Founder,
    ];
}

impl From<Role> for Standing {
    fn from(role: Role) -> Standing {
        match role {
            Role::Reader => Standing::Reader,
            Role::Publisher => Standing::Publisher,
            Role::Owner => Standing::Owner,
        }
    }
}

macro_rules! actions {
    ($($(#[$attribute:meta])* $action:ident: $standing:ident, $phrase:literal;)*) => {
        /// What can be done with a database that is there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action {
            $($(#[$attribute])* $action,)*
        }

        /// Each action, what it needs, and how a refusal calls it.
        const TABLE: &[(Action, Standing, &str)] =
            &[$((Action::$action, Standing::$standing, $phrase),)*];
    };
}

actions! {
    /// Info, schema, names, public functions, HTTP handlers, and public tables as the rules show them.
    Use: Anyone, "use database";
    /// All rows of all tables, with SQL and in subscriptions.
    ReadAll: Reader, "read private tables";
    ViewLogs: Reader, "view module logs";
    /// How often functions are called, how long they take, how much is in tables.
    ViewMetrics: Reader, "view metrics";
    ListCollaborators: Reader, "view collaborators";
    /// Another program, with the data that is there.
    Update: Publisher, "update database";
    CallPrivate: Publisher, "call private functions";
    /// Changing rows with SQL.
    Write: Publisher, "change rows with SQL";
    /// All changes of all tables, also those of the past, and with SQL what the tables were then.
    FollowChanges: Owner, "follow changes";
    /// All that it holds, with the values of its variables and what was deleted not long ago.
    BackUp: Owner, "back up database";
    /// Without its data, from the beginning.
    Reset: Owner, "reset database";
    /// A deleted database does not come back: so only the one that it belongs to may delete it.
    Delete: Founder, "delete database";
    /// Refused in the words of the reference.
    Lock: Owner, "delete database";
    /// To other names; see also [`Action::LeaveNameless`].
    Rename: Owner, "rename database";
    /// Then only its identity finds it.
    LeaveNameless: Founder, "take all names away";
    ChangeCollaborators: Owner, "change collaborators";
}

/// May a caller of this standing do it?
pub fn allows(standing: Standing, action: Action) -> bool {
    standing >= row(action).1
}

fn row(action: Action) -> &'static (Action, Standing, &'static str) {
    &TABLE[action as usize]
}

/// The standing of an identity with this role.
pub fn standing_with(record: &DatabaseRecord, identity: &Identity, role: Option<Role>) -> Standing {
    if record.owner == *identity {
        return Standing::Founder;
    }
    role.map_or(Standing::Anyone, Standing::from)
}

/// What a caller of this standing may do inside of a database.
pub fn rights_of(standing: Standing) -> Rights {
    if allows(standing, Action::FollowChanges) {
        return Rights::All;
    }
    if allows(standing, Action::Write) && allows(standing, Action::CallPrivate) {
        return Rights::Writes;
    }
    match allows(standing, Action::ReadAll) {
        true => Rights::Reads,
        false => Rights::Public,
    }
}

/// A caller may not do something. The text is that of 06 §3.7.
#[derive(Debug, thiserror::Error)]
#[error("{caller} is not authorized to perform action on database {database}: {phrase}")]
pub struct NotAuthorized {
    caller: Identity,
    database: Identity,
    phrase: &'static str,
}

impl Node {
    fn standing(&self, record: &DatabaseRecord, identity: &Identity) -> Standing {
        let role = self.control.role(&record.identity, identity);
        standing_with(record, identity, role)
    }

    /// Has databases ask again what a caller may do who had to wait. To do before one is open.
    pub fn tell_rights(&self) {
        let control = self.control.clone();
        let rights = move |database: &Identity, identity: &Identity| {
            let record = control.database(database);
            record.map_or(Rights::Public, |record| {
                let role = control.role(database, identity);
                rights_of(standing_with(&record, identity, role))
            })
        };
        self.databases.ask_rights_of(Arc::new(rights));
    }

    /// What an identity may do now inside of a database.
    pub fn rights(&self, record: &DatabaseRecord, identity: &Identity) -> Rights {
        rights_of(self.standing(record, identity))
    }

    /// May an identity do this with a database now?
    ///
    /// # Errors
    /// It may not.
    pub fn check(
        &self,
        record: &DatabaseRecord,
        identity: &Identity,
        action: Action,
    ) -> Result<(), NotAuthorized> {
        match allows(self.standing(record, identity), action) {
            true => Ok(()),
            false => Err(refusal(record, identity, action)),
        }
    }
}

/// That an identity may not do this.
pub fn refusal(record: &DatabaseRecord, identity: &Identity, action: Action) -> NotAuthorized {
    NotAuthorized {
        caller: *identity,
        database: record.identity,
        phrase: row(action).2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `docs/operations.md` says: a right that moves must be moved there, and here.
    #[test]
    fn what_each_standing_may() {
        let first = |standing: Standing| {
            let rows = TABLE.iter().filter(move |(_, least, _)| *least == standing);
            rows.map(|(action, ..)| *action).collect::<Vec<_>>()
        };
        use Action::*;
        assert_eq!(first(Standing::Anyone), [Use]);
        assert_eq!(
            first(Standing::Reader),
            [ReadAll, ViewLogs, ViewMetrics, ListCollaborators]
        );
        assert_eq!(first(Standing::Publisher), [Update, CallPrivate, Write]);
        assert_eq!(
            first(Standing::Owner),
            [
                FollowChanges,
                BackUp,
                Reset,
                Lock,
                Rename,
                ChangeCollaborators
            ]
        );
        assert_eq!(first(Standing::Founder), [Delete, LeaveNameless]);
    }

    /// The rights inside of a database are a ladder: a table that is none cannot be carried out.
    #[test]
    fn rights_are_a_ladder() {
        for standing in Standing::ALL {
            let writes = allows(standing, Action::Write);
            assert_eq!(writes, allows(standing, Action::CallPrivate));
            assert!(!writes || allows(standing, Action::ReadAll));
        }
    }
}
