//! One round: build, environment, bindings, publish.

use std::path::{Path, PathBuf};

use super::session::{DevTarget, Session};
use crate::build::{self, typescript, Built, Language};
use crate::commands::init::environment_variables;
use crate::commands::{generate, publish, Context};
use crate::error::{FileResult as _, Result};
use crate::output::remark;
use crate::paths::text_if_there;

pub async fn run(context: &mut Context, session: &Session) -> Result<()> {
    let mut built: Vec<(PathBuf, PathBuf, build::HostType)> = Vec::new();
    for target in &session.targets {
        let known = built.iter().find(|(module, ..)| *module == target.module);
        let (path, host_type) = match known {
            Some((_, path, host_type)) => (path.clone(), *host_type),
            None => {
                let Built { path, host_type } = build_target(target).await?;
                built.push((target.module.clone(), path.clone(), host_type));
                (path, host_type)
            }
        };
        if session.writes_environment {
            let path = session.directory.join(".env.local");
            write_environment(&path, &target.database, &session.server_url)?;
        }
        // Reading the schema out of the module and publishing it have nothing to do with each other.
        let bindings = write_bindings(target, &path, host_type);
        if !session.skip_publish {
            let source = Built { path, host_type };
            publish::publish_for_dev(
                context,
                &target.database,
                target.server.as_deref(),
                source,
                session.consent,
            )
            .await?;
        }
        bindings
            .await
            .map_err(caused!("LC0620", "writing the bindings broke off"))??;
    }
    Ok(())
}

/// Writes the bindings of a target in a thread of their own.
fn write_bindings(
    target: &DevTarget,
    path: &Path,
    host_type: build::HostType,
) -> tokio::task::JoinHandle<Result<()>> {
    let jobs = target.bindings.clone();
    let built = Built::new(path.to_owned(), host_type);
    tokio::task::spawn_blocking(move || {
        jobs.iter()
            .try_for_each(|job| generate::run_for_built(job, &built))
    })
}

/// Builds in a thread of its own, so that logs flow meanwhile. The types of TypeScript modules are checked beside it:
/// the compiler takes longer than everything else together, and what it finds is as useful a second later.
async fn build_target(target: &DevTarget) -> Result<Built> {
    let options = build::Options::parse(target.build_options.as_deref())?;
    let module = target.module.clone();
    let is_typescript = build::language(&module) == Some(Language::TypeScript);
    let built = tokio::task::spawn_blocking(move || match is_typescript {
        true => typescript::bundle(&module, &options),
        false => build::build(&module, &options),
    });
    let built = built
        .await
        .map_err(caused!("LC0620", "the build broke off"))??;
    if is_typescript {
        check_types_beside(&target.module);
    }
    Ok(built)
}

fn check_types_beside(module: &Path) {
    let Some(tsc) = typescript::tsc(module) else {
        return;
    };
    let module = module.to_owned();
    tokio::task::spawn_blocking(move || {
        let output = std::process::Command::new(tsc)
            .args(["--noEmit", "--pretty", "false"])
            .current_dir(&module)
            .stdin(std::process::Stdio::null())
            .output();
        if let Ok(output) = output.as_ref().map(|o| String::from_utf8_lossy(&o.stdout)) {
            if !output.trim().is_empty() {
                remark!(
                    "\nThe module runs, but its types do not fit:\n{}",
                    output.trim_end()
                );
            }
        }
    });
}

/// Sets our twelve variables and leaves everything else in the file as it is.
fn write_environment(path: &Path, database: &str, host: &str) -> Result<()> {
    let old = text_if_there(path)?.unwrap_or_default();
    let new = upsert(&old, &environment_variables(database, host));
    if new == old {
        return Ok(());
    }
    std::fs::write(path, new).or_cannot("write", path)
}

fn upsert(old: &str, variables: &str) -> String {
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    for variable in variables.lines() {
        let key = variable.split('=').next().unwrap_or_default();
        let is_it = |line: &String| line.split('=').next().is_some_and(|k| k.trim() == key);
        match lines.iter_mut().find(|line| is_it(line)) {
            Some(line) => *line = variable.to_owned(),
            None => lines.push(variable.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::upsert;

    #[test]
    fn variables_of_others_stay() {
        let old = "# mine\nA=1\nVITE_X=old\n";
        assert_eq!(
            upsert(old, "VITE_X=new\nY=2\n"),
            "# mine\nA=1\nVITE_X=new\nY=2\n"
        );
        assert_eq!(upsert("", "Y=2\n"), "Y=2\n");
    }
}
