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
    /// Where all levels of a module share their names.
    #[error(
        "two things of the module and its submodules would both be called `{0}`; rename one of them"
    )]
    SameName(String),
    #[error("`{name}` cannot be a name in {language}; rename it in the module")]
    Name {
        name: String,
        language: &'static str,
    },
    #[error(
        "{place} has {what}, which {language} cannot say; the module needs another type there"
    )]
    Unsupported {
        place: String,
        what: &'static str,
        language: &'static str,
    },
    #[error("`{0}` is no namespace; it must be names with dots between them")]
    CsharpNamespace(String),
}

/// The result of generating.
pub type Result<T, E = Error> = std::result::Result<T, E>;
