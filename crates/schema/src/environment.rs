//! Variables of the environment, which a module declares and a publisher sets (2.11).

pub use crate::raw::RawEnvVarTypeV10 as EnvironmentType;

/// A module may declare so many variables, and a database may have so many. A union has as many values at the most.
pub const ENVIRONMENT_KEYS_MAX: usize = 256;
/// Bytes of a key.
pub const ENVIRONMENT_KEY_BYTES_MAX: usize = 256;
/// Bytes of a value.
pub const ENVIRONMENT_VALUE_BYTES_MAX: usize = 8192;
/// Bytes of all keys and literals of the declarations of a module.
pub const ENVIRONMENT_BYTES_MAX: usize = 2 << 20;

/// What the value of a secret variable begins with as it is kept; base64 of what is sealed follows.
pub const SEALED_PREFIX: &str = "lightcone-sealed-1:";

/// Whether this is the value of a secret variable, as it is kept.
pub fn is_sealed(value: &str) -> bool {
    value.starts_with(SEALED_PREFIX)
}

/// What a module declares of a variable, whose key it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentVariableDef {
    /// The values of a union are sorted, each once.
    pub ty: EnvironmentType,
    /// It may have no value.
    pub optional: bool,
}

/// Whether a text has the form of a key: `[A-Za-z_][A-Za-z0-9_]*`, whatever its length.
pub fn is_environment_key(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_word)
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.is_empty()
}

impl EnvironmentType {
    /// The values that it names; none if all are allowed.
    pub fn literals(&self) -> &[String] {
        match self {
            EnvironmentType::String => &[],
            EnvironmentType::StringLiteral(value) => std::slice::from_ref(value),
            EnvironmentType::Union(values) => values,
        }
    }

    /// Whether a variable may have this value.
    pub fn permits(&self, value: &str) -> bool {
        match self {
            EnvironmentType::String => true,
            named => named.literals().iter().any(|literal| literal == value),
        }
    }
}
