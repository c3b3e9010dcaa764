//! The command `spacetime` and the server program `spacetimedb-standalone` (07).
//!
//! One file per command in `commands`; what they share stands beside it: [`config`] (`cli.toml`), [`project`]
//! (`spacetime.json`), [`targets`] (which database is meant), [`http`] and [`credentials`] (talking to a server).

#![forbid(unsafe_code)]
// Results and remarks have one way out: `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// Its macros are for all modules.
#[macro_use]
pub mod error;

pub mod address;
pub mod build;
pub mod claims;
pub mod cli;
pub mod commands;
pub mod config;
pub mod credentials;
pub mod definition;
pub mod env_file;
pub mod http;
pub mod json_text;
pub mod npm;
pub mod oidc;
pub mod output;
pub mod page;
pub mod paths;
pub mod progress;
pub mod project;
pub mod prompt;
pub mod schema;
pub mod signals;
pub mod standalone;
pub mod table;
pub mod targets;

pub use error::{Error, Result};

/// The release of the reference tools whose commands, flags and protocols these programs follow.
pub const COMPATIBLE_VERSION: &str = "2.14.0";

/// The commit that the programs were built from, or `unknown` (see `build.rs`).
pub const COMMIT: &str = env!("LIGHTCONE_COMMIT");

/// The version text of both programs.
pub fn long_version() -> String {
    let path =
        std::env::current_exe().map_or_else(|_| "unknown".into(), |p| p.display().to_string());
    format!(
        "Path: {path}\nCommit: {COMMIT}\nspacetimedb tool version {COMPATIBLE_VERSION}; spacetimedb-lib version {COMPATIBLE_VERSION};\nlightcone version {}; JavaScript modules run on {}",
        env!("CARGO_PKG_VERSION"),
        javascript_engine(),
    )
}

/// The engine of this build that runs JavaScript modules.
pub(crate) fn javascript_engine() -> String {
    lightcone_host_js::engine_name().unwrap_or_else(|| "no engine".to_owned())
}
