//! Why bindings cannot be written.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Only special products and sums have no name.
    #[error("{place} has a structured type without a name; give the type a name in the module")]
    Unnamed { place: String },
    #[error("{place} refers to a type that the module does not define")]
    MissingType { place: String },
    #[error("{place} has a field or variant without a name")]
    UnnamedField { place: String },
    #[error("two things of the module would both be written to {0}; rename one of them")]
    SameFile(String),
    /// Names clash when all levels are one.
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

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn unnamed(place: impl Into<String>) -> Self {
        let place = place.into();
        Self::Unnamed { place }
    }

    pub(crate) fn missing_type(place: impl Into<String>) -> Self {
        let place = place.into();
        Self::MissingType { place }
    }

    pub(crate) fn name(name: &str, language: &'static str) -> Self {
        let name = name.to_owned();
        Self::Name { name, language }
    }

    pub(crate) fn unnamed_field(place: impl Into<String>) -> Self {
        let place = place.into();
        Self::UnnamedField { place }
    }
}
