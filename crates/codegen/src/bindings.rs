//! What is asked for, and what comes out.

/// The languages that bindings can be written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Language {
    TypeScript {
        /// The npm package that the bindings import from: `spacetimedb` or `lightcone`.
        package: String,
    },
    Rust,
    Csharp {
        /// Of all types.
        namespace: String,
    },
}

/// What to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub language: Language,
    /// Private tables and functions too.
    pub include_private: bool,
    /// The version of the command line, which the bindings carry.
    pub cli_version: String,
    /// The commit it was built from.
    pub commit: String,
}

/// A file, relative to the output directory, with `/` between directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    pub path: String,
    pub text: String,
}

/// The bindings, and what was left out of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bindings {
    /// Sorted by path.
    pub files: Vec<GeneratedFile>,
    /// Private tables that are not shown.
    pub skipped_tables: Vec<String>,
}
