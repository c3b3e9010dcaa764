//! How a module is built, and what comes of it.

use std::path::PathBuf;

use clap::{Args as _, FromArgMatches as _, ValueEnum};

use crate::error::{Error, Result};

/// How to build; `publish --build-options` takes the same.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The directory below the module whose sources are checked for prints; empty for none
    #[arg(long, value_name = "DIR", default_value = "src")]
    pub lint_dir: String,
    /// Build without optimisation
    #[arg(short, long)]
    pub debug: bool,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    pub dotnet_version: Option<String>,
    /// C# only: compile ahead of time
    #[arg(long, hide = true)]
    pub native_aot: bool,
    /// Rust only: features to enable
    #[arg(long, hide = true, value_name = "LIST")]
    pub features: Option<String>,
    /// Rust only: build also with a compiler that is older than a crate says it needs
    #[arg(long)]
    pub ignore_rust_version: bool,
}

impl Options {
    /// Splits a text at white space and parses it.
    pub fn parse(text: Option<&str>) -> Result<Self> {
        let words = text.unwrap_or_default().split_whitespace();
        let command = clap::Command::new("build").no_binary_name(true);
        let command = command.disable_help_flag(true).args_override_self(true);
        let matches = Self::augment_args(command).try_get_matches_from(words);
        let parsed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| Error::Usage(format!("in --build-options: {error}")))
    }
}

/// The options of C# as they stand in a text of options; each begins with a space.
pub fn csharp_options(native_aot: bool, dotnet_version: Option<&str>) -> String {
    let ahead_of_time = if native_aot { " --native-aot" } else { "" };
    let version = dotnet_version.map(|version| format!(" --dotnet-version={version}"));
    ahead_of_time.to_owned() + &version.unwrap_or_default()
}

/// A text of options with more behind it. What stands there already and is said again counts as it is said last.
pub fn with_options(text: Option<String>, more: &str) -> Option<String> {
    match more {
        "" => text,
        more => Some(text.unwrap_or_default() + more),
    }
}

/// How the server runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostType {
    Wasm,
    Js,
}

impl HostType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wasm => "Wasm",
            Self::Js => "Js",
        }
    }
}

/// A compiled module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    pub path: PathBuf,
    pub host_type: HostType,
}

impl Built {
    pub fn new(path: PathBuf, host_type: HostType) -> Self {
        Self { path, host_type }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_options_are_a_command_line() {
        let options = Options::parse(Some("--debug --lint-dir=")).expect("valid");
        assert!(options.debug && options.lint_dir.is_empty());
        assert_eq!(
            Options::parse(Some("--nonsense"))
                .expect_err("unknown")
                .exit_code(),
            2
        );
    }
}
