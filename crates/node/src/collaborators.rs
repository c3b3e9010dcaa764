//! `SHOW COLLABORATORS`: the identities with a role in a database, as a table, over HTTP and PostgreSQL's protocol.

use lightcone_control::{DatabaseRecord, Role};
use lightcone_types::{AlgebraicType, Identity};

use crate::node::Node;
use crate::permissions::Action;

/// The columns of the answer.
pub const COLUMNS: [(&str, AlgebraicType); 2] = [
    ("identity", AlgebraicType::String),
    ("role", AlgebraicType::String),
];

/// Is this the statement?
pub fn is_asked(text: &str) -> bool {
    let text = text.trim();
    let mut words = text.strip_suffix(';').unwrap_or(text).split_whitespace();
    let mut is = |word: &str| words.next().is_some_and(|w| w.eq_ignore_ascii_case(word));
    is("show") && is("collaborators") && words.next().is_none()
}

/// Its rows: the one that the database belongs to first. None: the caller may not see them.
pub fn rows(node: &Node, record: &DatabaseRecord, caller: &Identity) -> Option<Vec<[String; 2]>> {
    node.check(record, caller, Action::ListCollaborators).ok()?;
    let owner = (record.owner, Role::Owner);
    let others = node.control.collaborators(&record.identity);
    let all = [owner].into_iter().chain(others);
    let rows = all.map(|(identity, role)| [identity.to_hex(), role.name().to_owned()]);
    Some(rows.collect())
}

/// Why there are no rows.
pub fn refusal(record: &DatabaseRecord, caller: &Identity) -> String {
    format!(
        "{caller} is not authorized to view the collaborators of database {}",
        record.identity
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        for text in ["SHOW COLLABORATORS", " show\n collaborators ; "] {
            assert!(is_asked(text), "{text:?}");
        }
        for text in [
            "",
            "SHOW",
            "SHOW collaborators now",
            "SHOWCOLLABORATORS",
            "SELECT * FROM collaborators",
        ] {
            assert!(!is_asked(text), "{text:?}");
        }
    }
}
