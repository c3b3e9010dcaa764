//! `spacetime build` (07 §7): finds out what a module is written in, and compiles it.

mod advice;
pub mod cpp;
pub mod csharp;
mod dependencies;
mod options;
mod rust;
pub mod rust_toolchain;
pub mod typescript;
mod wasm;

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::output::{remark, result};
use crate::paths::absolute;

pub use options::{csharp_options, with_options, Built, HostType, Options};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory of the module
    #[arg(short = 'p', long, alias = "project-path", value_name = "DIR")]
    module_path: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    CSharp,
    TypeScript,
    Cpp,
}

pub fn run(args: Args) -> Result<()> {
    let directory = args.module_path.unwrap_or_else(default_module_path);
    let built = build(&directory, &args.options)?;
    advise(&built);
    result!("Build finished successfully.");
    Ok(())
}

/// Says what in the definition of a TypeScript module is allowed and probably not meant. Of a definition that cannot be read nothing is said here.
pub fn advise(built: &Built) {
    if built.host_type != HostType::Js {
        return;
    }
    if let Ok(def) = crate::definition::of_program(&built.path, built.host_type) {
        for advice in advice::of(&def) {
            remark!("warning: {advice}");
        }
    }
}

/// Where the module is if no option says so.
pub fn default_module_path() -> PathBuf {
    let below = Path::new("spacetimedb");
    let is_there = below.is_dir() && language(below).is_some();
    PathBuf::from(if is_there { "spacetimedb" } else { "." })
}

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    if !directory.is_dir() {
        let directory = directory.display();
        bail!(
            "LC0610",
            "{directory} is not a directory. Point --module-path at the module."
        );
    }
    match language(directory) {
        Some(Language::Rust) => rust::build(directory, options),
        Some(Language::TypeScript) => typescript::build(directory, options),
        Some(Language::Cpp) => cpp::build(directory, options),
        Some(Language::CSharp) => csharp::build(directory, options),
        None => {
            let below = directory.join("spacetimedb");
            let hint = language(&below).map(|_| format!(" There is one in {}.", below.display()));
            bail!(
                "LC0610",
                "Could not detect the language of the module. {} holds none of Cargo.toml (Rust), *.csproj (C#), package.json \
                 (TypeScript), CMakeLists.txt (C++). Point --module-path at the module.{}",
                absolute(directory).display(),
                hint.unwrap_or_default(),
            )
        }
    }
}

pub fn language(directory: &Path) -> Option<Language> {
    let has = |name: &str| directory.join(name).is_file();
    if has("Cargo.toml") {
        Some(Language::Rust)
    } else if csharp::projects(directory).next().is_some() {
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
        let error = build(path, &Options::parse(None).expect("valid"))
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
}
