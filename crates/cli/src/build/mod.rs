//! `spacetime build` (07 §7): finds out what a module is written in, and compiles it.

mod advice;
pub mod cpp;
mod csharp;
mod dependencies;
pub mod rust;
pub mod typescript;
mod wasm;

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::error::{Error, Result};
use crate::output::{remark, result};
use crate::paths::absolute;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory of the module
    #[arg(short = 'p', long, alias = "project-path", value_name = "DIR")]
    module_path: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

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
}

#[derive(Debug, Parser)]
#[command(
    name = "build",
    no_binary_name = true,
    disable_help_flag = true,
    args_override_self = true
)]
struct OptionsOnly {
    #[command(flatten)]
    options: Options,
}

impl Options {
    /// Splits a text at white space and parses it.
    pub fn parse(text: &str) -> Result<Self> {
        match OptionsOnly::try_parse_from(text.split_whitespace()) {
            Ok(parsed) => Ok(parsed.options),
            Err(error) => Err(Error::Usage(format!("in --build-options: {error}"))),
        }
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
    match (text, more) {
        (text, "") => text,
        (text, more) => Some(text.unwrap_or_default() + more),
    }
}

/// How the server runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Debug)]
pub struct Built {
    pub path: PathBuf,
    pub host_type: HostType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    CSharp,
    TypeScript,
    Cpp,
}

pub fn run(args: Args) -> Result<()> {
    let directory = match args.module_path {
        Some(path) => path,
        None => default_module_path()?,
    };
    let built = build(&directory, &args.options)?;
    advise(&built);
    result!("Build finished successfully.");
    Ok(())
}

/// Says what in the definition of a TypeScript module is allowed and probably not meant. What cannot be read is told by whoever needs it.
pub fn advise(built: &Built) {
    if built.host_type != HostType::Js {
        return;
    }
    let Ok(def) = crate::definition::of_program(&built.path, built.host_type) else {
        return;
    };
    for advice in advice::of(&def) {
        remark!("warning: {advice}");
    }
}

/// Where the module is if nobody says.
pub fn default_module_path() -> Result<PathBuf> {
    let below = Path::new("spacetimedb");
    if below.is_dir() && language(below).is_some() {
        return Ok(below.to_owned());
    }
    Ok(PathBuf::from("."))
}

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    if !directory.is_dir() {
        return Err(Error::coded(
            "LC0610",
            format!(
                "{} is not a directory. Point --module-path at the module.",
                directory.display()
            ),
        ));
    }
    match language(directory) {
        Some(Language::Rust) => rust::build(directory, options),
        Some(Language::TypeScript) => typescript::build(directory, options),
        Some(Language::Cpp) => cpp::build(directory, options),
        Some(Language::CSharp) => csharp::build(directory, options),
        None => {
            let below = directory.join("spacetimedb");
            let hint = match language(&below) {
                Some(_) => format!(" There is one in {}.", below.display()),
                None => String::new(),
            };
            Err(Error::coded(
                "LC0610",
                format!(
                    "Could not detect the language of the module. {} holds none of Cargo.toml (Rust), *.csproj (C#), package.json \
                     (TypeScript), CMakeLists.txt (C++). Point --module-path at the module.{hint}",
                    absolute(directory).display()
                ),
            ))
        }
    }
}

pub fn language(directory: &Path) -> Option<Language> {
    let has = |name: &str| directory.join(name).is_file();
    let has_csproj = || {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .into_iter()
            .any(|e| e.path().extension().is_some_and(|x| x == "csproj"))
    };
    if has("Cargo.toml") {
        Some(Language::Rust)
    } else if has_csproj() {
        Some(Language::CSharp)
    } else if has("package.json") {
        Some(Language::TypeScript)
    } else if has("CMakeLists.txt") {
        Some(Language::Cpp)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_by_their_files() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path();
        assert_eq!(language(path), None);
        let error = build(path, &Options::parse("").expect("valid"))
            .expect_err("nothing there")
            .to_string();
        assert!(
            error.starts_with("Could not detect the language of the module."),
            "{error}"
        );
        for (file, want) in [
            ("CMakeLists.txt", Language::Cpp),
            ("package.json", Language::TypeScript),
            ("x.csproj", Language::CSharp),
            ("Cargo.toml", Language::Rust),
        ] {
            std::fs::write(path.join(file), "").expect("written");
            assert_eq!(language(path), Some(want));
        }
    }

    #[test]
    fn build_options_are_a_command_line() {
        let options = Options::parse("--debug --lint-dir=").expect("valid");
        assert!(options.debug && options.lint_dir.is_empty());
        assert_eq!(
            Options::parse("--nonsense")
                .expect_err("unknown")
                .exit_code(),
            2
        );
    }
}
