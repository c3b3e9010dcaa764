//! Who may do what with a database (`docs/operations.md`, "Who may do what").
//!
//! [`TABLE`] says which standing each action needs, and the table of routes which action each route is. What happens inside of a
//! database is decided by the [`Rights`] that [`rights`] gives.

use axum::http::StatusCode;
use lightcone_types::Identity;

use crate::control::{ControlDb, DatabaseRecord, Role};
use crate::database::Rights;
use crate::reply::Failure;

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
        pub const TABLE: &[(Action, Standing, &str)] =
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

/// The standing of an identity in a database now.
pub(crate) fn standing(
    control: &ControlDb,
    record: &DatabaseRecord,
    identity: &Identity,
) -> Standing {
    standing_with(record, identity, control.role(&record.identity, identity))
}

/// The standing of an identity with this role.
pub(crate) fn standing_with(
    record: &DatabaseRecord,
    identity: &Identity,
    role: Option<Role>,
) -> Standing {
    if record.owner == *identity {
        return Standing::Founder;
    }
    role.map_or(Standing::Anyone, Standing::from)
}

/// What an identity may do now inside of a database.
pub(crate) fn rights(control: &ControlDb, record: &DatabaseRecord, identity: &Identity) -> Rights {
    rights_of(standing(control, record, identity))
}

/// What a caller of this standing may do inside of a database.
pub(crate) fn rights_of(standing: Standing) -> Rights {
    if allows(standing, Action::Write) && allows(standing, Action::CallPrivate) {
        return Rights::All;
    }
    match allows(standing, Action::ReadAll) {
        true => Rights::Reads,
        false => Rights::Public,
    }
}

/// May an identity do this with a database now?
///
/// # Errors
/// 403, in the words of 06 §3.7.
pub(crate) fn check(
    control: &ControlDb,
    record: &DatabaseRecord,
    identity: &Identity,
    action: Action,
) -> Result<(), Failure> {
    if allows(standing(control, record, identity), action) {
        return Ok(());
    }
    Err(refusal(record, identity, action))
}

/// 403, in the words of 06 §3.7.
pub(crate) fn refusal(record: &DatabaseRecord, identity: &Identity, action: Action) -> Failure {
    let (_, _, phrase) = row(action);
    let text = format!(
        "{identity} is not authorized to perform action on database {}: {phrase}",
        record.identity
    );
    Failure::text(StatusCode::FORBIDDEN, text)
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
            [Reset, Lock, Rename, ChangeCollaborators]
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
