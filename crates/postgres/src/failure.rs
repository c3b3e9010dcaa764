//! What a client is told that went wrong, of what the database says.

use lightcone_types::error_code;

pub(super) use lightcone_query::postgresql::{state, Failure};

use lightcone_database::SqlError;

/// Of a statement (08 §7.1), with the state of the class that its text shows.
pub(super) fn of_statement(error: SqlError) -> Failure {
    match error {
        SqlError::Query(text) | SqlError::NotCompiled(text) => {
            Failure::new(state_of(&text), format!("(Sql) {text}"))
        }
        SqlError::Failed(failure) => failure,
        SqlError::ConnectRejected(text) => Failure::new(state::INTERNAL, text),
        SqlError::Writes => Failure::new(state::READ_ONLY_TRANSACTION, "the statement writes"),
        SqlError::Busy(text) => Failure::new("53000", text),
        SqlError::ModuleGone => Failure::new(state::SHUTDOWN, "no such module"),
        SqlError::Database(text) => Failure::new(state::INTERNAL, text),
    }
}

/// Parts of texts (08 §7.2) and the states of their classes; the first that occurs counts.
const STATES: [(&str, &str); 22] = [
    ("sql parser error", "42601"),
    ("Empty SQL query", "42601"),
    ("Multiple SQL statements", "42601"),
    ("no such table", "42P01"),
    ("is not in scope", "42703"),
    ("does not have a field", "42703"),
    ("Names must be qualified", "42702"),
    ("Duplicate name", "42701"),
    ("is not authorized", "42501"),
    ("is a view; DML", "42809"),
    ("is a system table", "42809"),
    ("Unique constraint violation", "23505"),
    ("cannot be parsed as type", state::INVALID_TEXT),
    ("Unexpected type", "42804"),
    ("Cannot resolve type", "42804"),
    ("Invalid binary operator", "42883"),
    ("does not match the number of columns", "42601"),
    ("Inserting a row with", "42601"),
    ("is not a valid system variable", "42704"),
    ("nsupported", state::FEATURE_NOT_SUPPORTED),
    ("not supported", state::FEATURE_NOT_SUPPORTED),
    ("exceeds", state::LIMIT_REACHED),
];

fn state_of(text: &str) -> &'static str {
    if matches!(error_code(text), Some(700..800)) {
        return state::LIMIT_REACHED;
    }
    let found = STATES.iter().find(|(part, _)| text.contains(part));
    found.map_or(state::INTERNAL, |(_, state)| state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_states() {
        for (text, expected) in [
            (
                "sql parser error: Expected an expression:, found: EOF",
                "42601",
            ),
            (
                "no such table: `x`. If the table exists, it may be marked private.",
                "42P01",
            ),
            ("`x` is not in scope", "42703"),
            ("Unsupported literal expression: NULL", "0A000"),
            (
                "Estimated cardinality (5 rows) exceeds limit (4 rows)",
                "54000",
            ),
            ("finding the rows took longer than … [LC0708]", "54000"),
            ("something else", "XX000"),
        ] {
            assert_eq!(state_of(text), expected, "{text}");
        }
    }
}
