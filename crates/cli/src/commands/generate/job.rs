//! Bindings to write: in which language, of which module, and where.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lightcone_schema::ModuleDef;

use crate::build::{self, HostType};
use crate::definition::{of_program, parse};
use crate::error::{Error, FileResult as _, Result};

/// The languages of the reference's generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    #[value(alias = "ts")]
    Typescript,
    #[value(alias = "c#", alias = "cs")]
    Csharp,
    #[value(alias = "rs")]
    Rust,
    /// Not supported (LC0601)
    #[value(alias = "uecpp", alias = "ue5cpp", alias = "unreal")]
    Unrealcpp,
}

/// Where a module's definition comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Project {
        directory: PathBuf,
        build_options: Option<String>,
    },
    Wasm(PathBuf),
    Js(PathBuf),
    /// JSON in a file; `-` is stdin.
    Definition(PathBuf),
}

impl Source {
    pub fn definition(&self) -> Result<ModuleDef> {
        match self {
            Self::Project {
                directory,
                build_options,
            } => {
                let options = build::Options::parse(build_options.as_deref())?;
                let built = build::build(directory, &options)?;
                of_program(&built.path, built.host_type)
            }
            Self::Wasm(path) => of_program(path, HostType::Wasm),
            Self::Js(path) => of_program(path, HostType::Js),
            Self::Definition(path) => {
                let text = match path == Path::new("-") {
                    true => std::io::read_to_string(std::io::stdin()),
                    false => std::fs::read_to_string(path),
                };
                let text = text.or_cannot("read", path)?;
                parse(&text, &path.display().to_string())
            }
        }
    }
}

/// Who uses the bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BindingsFor {
    #[default]
    Client,
    /// Another module, whose outbox tables have messages for this one
    Module,
}

/// Bindings to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub lang: Lang,
    pub bindings: BindingsFor,
    pub source: Source,
    pub out_dir: PathBuf,
    pub include_private: bool,
    /// The npm package, if the user says which.
    pub client_package: Option<String>,
    /// C#: the namespace, if the user says which.
    pub namespace: Option<String>,
    /// Delete without asking.
    pub yes: bool,
}

pub(super) fn unsupported_language() -> Error {
    Error::later(
        "Generating Unreal bindings",
        "The reference's generator can: give it `spacetimedb-standalone extract-schema` of this installation in SPACETIMEDB_SCHEMA_EXTRACTOR.",
    )
}
