//! What is decided before anything is written.

use std::path::PathBuf;

use super::template::Template;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) directory: PathBuf,
    pub(super) database: String,
    /// The nickname in cli.toml.
    pub(super) server: String,
    pub(super) server_url: String,
    pub(super) source: Source,
    /// Only `spacetimedb/`.
    pub(super) server_only: bool,
    pub(super) npm_sdk: Option<String>,
    /// Said in spacetime.json, for every build.
    pub(super) native_aot: bool,
}

#[derive(Debug)]
pub(super) enum Source {
    Template(&'static Template),
    Git(String),
}

/// `My App 2` → `my-app-2`: fit for directories, packages and databases.
pub(super) fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}
