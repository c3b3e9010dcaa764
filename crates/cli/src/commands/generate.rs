//! `spacetime generate` (07 §8): `jobs` says which bindings are wanted, `job` of which module, and `write` writes the files.

mod job;
mod jobs;
mod write;

use std::path::Path;

use lightcone_codegen as codegen;

use super::{Auth, Context};
use crate::build::{default_module_path, language, Language};
use crate::error::Result;
use crate::output::{remark, result};
use crate::paths::nearest;
use crate::project::{Database, Dependency, Project};
use crate::schema::Schema;
use job::unsupported_language;

pub use job::{BindingsFor, Job, Lang, Source};
pub use jobs::{detect_language, jobs_of_target, Args};

/// The namespace of C# bindings if no option says another.
const DEFAULT_NAMESPACE: &str = "SpacetimeDB.Types";

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let project = Project::find_unless(args.no_config, Path::new("."), args.env.as_deref())?;
    if let Some(project) = &project {
        project.announce();
    }
    // Before the jobs, which build modules that use these.
    for target in jobs::with_dependencies(&args, project.as_ref())? {
        let module = target.module_path.unwrap_or_else(default_module_path);
        let server = target.server.as_deref();
        write_dependencies(context, server, &module, &target.dependencies).await?;
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

/// Writes bindings of the databases that a module sends messages to, beside its sources (07 §8.3).
///
/// Asks `server` for the modules that the databases run now, and writes `src/remote_bindings/<name>/` below `module`.
pub async fn write_dependencies(
    context: &mut Context,
    server: Option<&str>,
    module: &Path,
    dependencies: &[Dependency],
) -> Result<()> {
    let lang = match language(module) {
        Some(Language::Rust) => Lang::Rust,
        Some(Language::TypeScript) => Lang::Typescript,
        _ if dependencies.is_empty() => return Ok(()),
        _ => {
            bail!(
                "LC0607",
                "`dependencies` are for Rust and TypeScript modules, which {} is not.",
                module.display()
            )
        }
    };
    for Dependency { name, database } in dependencies {
        let of = Database {
            name: database.clone(),
            server: server.map(str::to_owned),
            ..Database::default()
        };
        remark!("Generating bindings of the database '{database}' as `{name}`");
        let (client, identity) = context.reach(&of, Auth::Anonymous).await?;
        let schema = Schema::fetch(&client, &identity).await?;
        let job = Job {
            lang,
            bindings: BindingsFor::Module,
            source: Source::Definition(database.into()),
            out_dir: module.join("src/remote_bindings").join(name),
            include_private: false,
            client_package: None,
            namespace: None,
            yes: true,
        };
        write_bindings(&job, &crate::definition::parse(&schema.json, database)?)?;
    }
    Ok(())
}

fn write_bindings(job: &Job, def: &lightcone_schema::ModuleDef) -> Result<()> {
    let language = match job.lang {
        Lang::Typescript => {
            let given = job.client_package.clone();
            let package = given.unwrap_or_else(|| client_package(&job.out_dir));
            match job.bindings {
                BindingsFor::Module => codegen::Language::TypeScriptModule { package },
                BindingsFor::Client => codegen::Language::TypeScript { package },
            }
        }
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
