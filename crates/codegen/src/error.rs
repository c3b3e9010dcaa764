//! Why bindings cannot be written.

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A product or sum that is not special must have a name before a client can speak of it.
    #[error("{place} has a structured type without a name; give the type a name in the module")]
    Unnamed { place: String },
    #[error("{place} refers to a type that the module does not define")]
    MissingType { place: String },
    #[error("{place} has a field or variant without a name")]
    UnnamedField { place: String },
    #[error("two things of the module would both be written to {0}; rename one of them")]
    SameFile(String),
    #[error(
        "bindings for {language} cannot show submodules yet, and the module has `{namespace}`"
    )]
    Submodules {
        language: &'static str,
        namespace: String,
    },
    #[error("`{0}` cannot be a name in Rust; rename it in the module")]
    RustName(String),
}

/// The result of generating.
pub type Result<T, E = Error> = std::result::Result<T, E>;
