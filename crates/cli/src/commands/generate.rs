//! `spacetime generate` (07 §8): which bindings are wanted. `schema` gets the module's definition, `write` the files.

mod jobs;
mod schema;
mod write;

use std::path::{Path, PathBuf};

use clap::{ArgAction, ValueEnum};
use lightcone_codegen as codegen;

use super::Context;
use crate::error::{Error, Result};
use crate::output::{remark, result};
use crate::project::Project;
pub use jobs::{detect_language, jobs_of_target};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The databases of spacetime.json whose bindings to generate; a pattern with `*` and `?`
    #[arg(value_name = "DATABASE")]
    database: Option<String>,
    /// The language; found out from the project's files if it is left out
    #[arg(short, long, value_enum, value_name = "LANGUAGE")]
    lang: Option<Lang>,
    /// Where the files go
    #[arg(short, long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// The directory of the module
    #[arg(short = 'p', long, value_name = "DIR", conflicts_with_all = ["bin_path", "js_path", "module_def"])]
    module_path: Option<PathBuf>,
    /// Use this WebAssembly file without building anything
    #[arg(short = 'b', long, value_name = "FILE", conflicts_with_all = ["js_path", "module_def"])]
    bin_path: Option<PathBuf>,
    /// Use this JavaScript file without building anything
    #[arg(short = 'j', long, value_name = "FILE", conflicts_with = "module_def")]
    js_path: Option<PathBuf>,
    /// Use the definition in this JSON file, or on stdin, instead of a module
    #[arg(long, hide = true, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    module_def: Option<PathBuf>,
    /// TypeScript: the npm package to import from; what package.json depends on if it is left out
    #[arg(long, value_name = "PACKAGE", value_parser = ["spacetimedb", "lightcone"])]
    client_package: Option<String>,
    /// Private tables and functions too
    #[arg(long)]
    include_private: bool,
    /// C# only: the namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Unreal only: the directory of the .uproject file
    #[arg(long, value_name = "DIR")]
    uproject_dir: Option<PathBuf>,
    /// Unreal only: the module to write to
    #[arg(long, alias = "module-name", value_name = "NAME")]
    unreal_module_name: Option<String>,
    /// Unreal only: a prefix for types
    #[arg(long, value_name = "PREFIX")]
    module_prefix: Option<String>,
    /// Options for the build, as one text
    #[arg(
        long,
        alias = "build-opts",
        value_name = "OPTIONS",
        allow_hyphen_values = true
    )]
    build_options: Option<String>,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    dotnet_version: Option<String>,
    /// Delete files that are generated no more without asking
    #[arg(short, long, action = ArgAction::SetTrue)]
    yes: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
    /// The environment layer of spacetime.json
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
}

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

/// Bindings to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub lang: Lang,
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

/// The namespace of C# bindings if nobody says another.
const DEFAULT_NAMESPACE: &str = "SpacetimeDB.Types";

pub fn run(_context: &mut Context, args: Args) -> Result<()> {
    let project = if args.no_config {
        None
    } else {
        Project::find(Path::new("."), args.env.as_deref())?
    };
    if let Some(project) = &project {
        for file in &project.files {
            remark!("Using configuration from {}", file.display());
        }
    }
    check_languages_options(&args)?;
    for job in jobs::jobs(&args, project.as_ref())? {
        run_job(&job)?;
    }
    result!("Generate finished successfully.");
    Ok(())
}

/// Writes the bindings of one job.
pub fn run_job(job: &Job) -> Result<()> {
    let def = schema::load(&job.source)?;
    write_bindings(job, &def)
}

/// The same for a module that was built already.
pub fn run_for_built(job: &Job, built: &crate::build::Built) -> Result<()> {
    let def = crate::definition::of_program(&built.path, built.host_type)?;
    write_bindings(job, &def)
}

fn write_bindings(job: &Job, def: &lightcone_schema::ModuleDef) -> Result<()> {
    let language = match job.lang {
        Lang::Typescript => codegen::Language::TypeScript {
            package: match &job.client_package {
                Some(package) => package.clone(),
                None => client_package(&job.out_dir),
            },
        },
        Lang::Rust => codegen::Language::Rust,
        Lang::Csharp => codegen::Language::Csharp {
            namespace: job
                .namespace
                .clone()
                .unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
        },
        Lang::Unrealcpp => return Err(unsupported_language()),
    };
    let options = codegen::Options {
        language,
        include_private: job.include_private,
        cli_version: crate::COMPATIBLE_VERSION.to_owned(),
        commit: crate::COMMIT.to_owned(),
    };
    let bindings = codegen::generate(def, &options)
        .map_err(|e| Error::caused("LC0634", "no bindings can be generated for this module", e))?;
    if !bindings.skipped_tables.is_empty() {
        remark!(
            "Skipping private tables during codegen: {}.",
            bindings.skipped_tables.join(", ")
        );
    }
    write::write(&job.out_dir, &bindings.files, job)
}

fn unsupported_language() -> Error {
    Error::later(
        "Generating Unreal bindings",
        "The reference's generator can: give it `spacetimedb-standalone extract-schema` of this installation in SPACETIMEDB_SCHEMA_EXTRACTOR.",
    )
}

fn check_languages_options(args: &Args) -> Result<()> {
    let unless = |given: bool, option: &str, wanted: Lang, language: &str| {
        if given && args.lang.is_some_and(|lang| lang != wanted) {
            return Err(Error::Usage(format!("{option} is for {language} only")));
        }
        Ok(())
    };
    unless(
        args.namespace.is_some(),
        "--namespace",
        Lang::Csharp,
        "csharp",
    )?;
    unless(
        args.uproject_dir.is_some(),
        "--uproject-dir",
        Lang::Unrealcpp,
        "unrealcpp",
    )?;
    unless(
        args.unreal_module_name.is_some(),
        "--unreal-module-name",
        Lang::Unrealcpp,
        "unrealcpp",
    )?;
    unless(
        args.module_prefix.is_some(),
        "--module-prefix",
        Lang::Unrealcpp,
        "unrealcpp",
    )?;
    unless(
        args.client_package.is_some(),
        "--client-package",
        Lang::Typescript,
        "typescript",
    )
}

/// The npm package that the project around `out_dir` depends on; the published one if it cannot be told.
fn client_package(out_dir: &Path) -> String {
    let published = "spacetimedb".to_owned();
    let Ok(out_dir) = std::path::absolute(out_dir) else {
        return published;
    };
    for directory in out_dir.ancestors() {
        let Ok(text) = std::fs::read_to_string(directory.join("package.json")) else {
            continue;
        };
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let depends_on = |name: &str| {
            ["dependencies", "devDependencies", "peerDependencies"]
                .iter()
                .any(|kind| manifest[kind].get(name).is_some())
        };
        return if depends_on("lightcone") && !depends_on("spacetimedb") {
            "lightcone".to_owned()
        } else {
            published
        };
    }
    published
}
