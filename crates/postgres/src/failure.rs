//! Errors with their SQLSTATE.

use lightcone_types::error_code;

use lightcone_database::SqlError;

/// What a client is told that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub state: &'static str,
    pub message: String,
}

pub(super) mod state {
    pub const PROTOCOL_VIOLATION: &str = "08P01";
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    pub const OUT_OF_RANGE: &str = "22003";
    pub const DIVISION_BY_ZERO: &str = "22012";
    pub const NULL_NOT_ALLOWED: &str = "22004";
    pub const INVALID_TEXT: &str = "22P02";
    pub const INVALID_BINARY: &str = "22P03";
    pub const SYNTAX_ERROR: &str = "42601";
    pub const GROUPING: &str = "42803";
    pub const NO_SUCH_COLUMN: &str = "42703";
    pub const AMBIGUOUS_COLUMN: &str = "42702";
    pub const NO_SUCH_TABLE: &str = "42P01";
    pub const NO_SUCH_FUNCTION: &str = "42883";
    pub const READ_ONLY_TRANSACTION: &str = "25006";
    pub const FAILED_TRANSACTION: &str = "25P02";
    pub const NO_SUCH_STATEMENT: &str = "26000";
    pub const INVALID_AUTHORIZATION: &str = "28000";
    pub const INVALID_PASSWORD: &str = "28P01";
    pub const NO_SUCH_CURSOR: &str = "34000";
    pub const NO_SUCH_DATABASE: &str = "3D000";
    pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
    pub const DUPLICATE_STATEMENT: &str = "42P05";
    pub const NOT_IN_PREREQUISITE_STATE: &str = "55000";
    pub const TOO_MANY_CONNECTIONS: &str = "53300";
    pub const LIMIT_REACHED: &str = "54000";
    pub const QUERY_CANCELED: &str = "57014";
    pub const SHUTDOWN: &str = "57P01";
    pub const IDLE_TOO_LONG: &str = "57P05";
    pub const INTERNAL: &str = "XX000";
}

impl Failure {
    pub fn new(state: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            state,
            message: message.into(),
        }
    }

    /// The statement needs what is not there.
    pub fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(state::FEATURE_NOT_SUPPORTED, message)
    }

    /// A number that is no integer of 64 bits.
    pub fn out_of_range() -> Failure {
        Failure::new(state::OUT_OF_RANGE, "integer out of range")
    }

    /// The client does not want the rest.
    pub fn cancelled() -> Failure {
        Failure::new(
            state::QUERY_CANCELED,
            "canceling statement due to user request",
        )
    }

    /// Of a statement (08 §7.1), with the state of the class that its text shows.
    pub fn of_statement(error: SqlError) -> Failure {
        match error {
            SqlError::Query(text) | SqlError::NotCompiled(text) => {
                Failure::new(state_of(&text), format!("(Sql) {text}"))
            }
            SqlError::ConnectRejected(text) => Failure::new(state::INTERNAL, text),
            SqlError::Writes => Failure::new(state::READ_ONLY_TRANSACTION, "the statement writes"),
            SqlError::Busy(text) => Failure::new("53000", text),
            SqlError::ModuleGone => Failure::new(state::SHUTDOWN, "no such module"),
            SqlError::Database(text) => Failure::new(state::INTERNAL, text),
        }
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
