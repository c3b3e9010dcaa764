//! `spacetime generate` (07 §8): which bindings are wanted. `schema` gets the module's definition, `write` the files.

mod job;
mod jobs;
mod schema;
mod write;

use std::path::Path;

use lightcone_codegen as codegen;

use super::Context;
use crate::error::Result;
use crate::output::{remark, result};
use crate::project::Project;
use job::unsupported_language;

pub use job::{Job, Lang, Source};
pub use jobs::{detect_language, jobs_of_target, Args};

/// The namespace of C# bindings if no option says another.
const DEFAULT_NAMESPACE: &str = "SpacetimeDB.Types";

pub fn run(_context: &mut Context, args: Args) -> Result<()> {
    let project = Project::find_unless(args.no_config, Path::new("."), args.env.as_deref())?;
    if let Some(project) = &project {
        project.announce();
    }
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
    let bindings = codegen::generate(def, &options).map_err(caused!(
        "LC0634",
        "no bindings can be generated for this module"
    ))?;
    if !bindings.skipped_tables.is_empty() {
        remark!(
            "Skipping private tables during codegen: {}.",
            bindings.skipped_tables.join(", ")
        );
    }
    write::write(&job.out_dir, &bindings.files, job)
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
