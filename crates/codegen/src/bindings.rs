//! Options and results of a generation.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Language {
    TypeScript {
        /// The npm package that the bindings import from: `spacetimedb` or `lightcone`.
        package: String,
    },
    /// For modules that send messages to this one by outbox tables.
    TypeScriptModule {
        package: String,
    },
    Rust,
    /// For modules that send messages to this one by outbox tables.
    RustModule,
    Csharp {
        namespace: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub language: Language,
    /// Also private tables and functions.
    pub include_private: bool,
    /// The version of the command line, which bindings carry.
    pub cli_version: String,
    pub commit: String,
}

/// A file, relative to the output directory, with `/` between directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    pub path: String,
    pub text: String,
}

impl GeneratedFile {
    pub(crate) fn new(path: String, text: String) -> Self {
        Self { path, text }
    }
}

/// The bindings, and the private tables that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bindings {
    /// Sorted by path.
    pub files: Vec<GeneratedFile>,
    pub skipped_tables: Vec<String>,
}
