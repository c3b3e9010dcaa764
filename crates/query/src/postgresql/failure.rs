//! Errors with their SQLSTATE.

/// What a client is told that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub state: &'static str,
    pub message: String,
}

pub type Done<T> = Result<T, Failure>;

pub mod state {
    pub const CARDINALITY: &str = "21000";
    pub const NOT_NULL: &str = "23502";
    pub const NOT_UNIQUE: &str = "23505";
    pub const SERIALIZATION: &str = "40001";
    pub const NO_SUCH_OBJECT: &str = "42704";
    pub const NO_SUCH_CONSTRAINT: &str = "42P10";
    pub const DUPLICATE_COLUMN: &str = "42701";
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
    pub const DATATYPE_MISMATCH: &str = "42804";
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

/// A refusal of what is not supported, for a reason.
impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::unsupported(reason)
    }
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Failure {
        Failure::unsupported(reason)
    }
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
}
