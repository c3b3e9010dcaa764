//! `spacetime generate` (07 §8): `jobs` says which bindings are wanted, `job` of which module, and `write` writes the files.

mod job;
mod jobs;
mod write;

use std::path::Path;

use lightcone_codegen as codegen;

use super::Context;
use crate::error::Result;
use crate::output::{remark, result};
use crate::paths::nearest;
use crate::project::Project;
use job::unsupported_language;

pub use job::{BindingsFor, Job, Lang, Source};
pub use jobs::{detect_language, jobs_of_target, Args};

/// The namespace of C# bindings if no option says another.
const DEFAULT_NAMESPACE: &str = "SpacetimeDB.Types";

pub fn run(_context: &mut Context, args: Args) -> Result<()> {
    let project = Project::find_unless(args.no_config, Path::new("."), args.env.as_deref())?;
    if let Some(project) = &project {
        project.announce();
    }
    for job in jobs::jobs(&args, project.as_ref())? {
        write_bindings(&job, &job.source.definition()?)?;
    }
    result!("Generate finished successfully.");
    Ok(())
}

/// Writes the bindings of one job, whose module was built already.
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
        Lang::Rust if job.bindings == BindingsFor::Module => codegen::Language::RustModule,
        Lang::Rust => codegen::Language::Rust,
        Lang::Csharp => codegen::Language::Csharp {
            namespace: job.namespace.clone().unwrap_or(DEFAULT_NAMESPACE.into()),
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
        let skipped = bindings.skipped_tables.join(", ");
        remark!("Skipping private tables during codegen: {skipped}.");
    }
    write::write(&job.out_dir, &bindings.files, job)
}

/// The npm package that the project around `out_dir` depends on; the published one if it cannot be told.
fn client_package(out_dir: &Path) -> String {
    let text = nearest(out_dir, "package.json").and_then(|path| std::fs::read(path).ok());
    let manifest: serde_json::Value =
        serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default();
    let kinds = ["dependencies", "devDependencies", "peerDependencies"];
    let depends_on = |name: &str| kinds.iter().any(|kind| manifest[kind].get(name).is_some());
    match depends_on("lightcone") && !depends_on("spacetimedb") {
        true => "lightcone".to_owned(),
        false => "spacetimedb".to_owned(),
    }
}
