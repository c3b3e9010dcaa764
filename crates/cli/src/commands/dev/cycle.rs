//! One round: build, environment, bindings, publish.

use std::path::Path;

use super::session::{DevTarget, Session};
use crate::build::{self, typescript, Built, Language};
use crate::commands::init::environment_variables;
use crate::commands::{generate, publish, Context};
use crate::error::{FileResult as _, Result};
use crate::output::remark;
use crate::paths::text_if_there;

pub async fn run(context: &mut Context, session: &Session) -> Result<()> {
    let mut modules: Vec<(&Path, Built)> = Vec::new();
    for target in &session.targets {
        let known = modules.iter().find(|(module, _)| *module == target.module);
        let built = match known {
            Some((_, built)) => built.clone(),
            None => {
                let built = build_target(target).await?;
                modules.push((target.module.as_path(), built.clone()));
                built
            }
        };
        if session.writes_environment {
            let path = session.directory.join(".env.local");
            write_environment(&path, &target.database, &session.server_url)?;
        }
        // Reading the schema out of the module and publishing it have nothing to do with each other.
        let (jobs, of_bindings) = (target.bindings.clone(), built.clone());
        let bindings = tokio::task::spawn_blocking(move || {
            let mut jobs = jobs.iter();
            jobs.try_for_each(|job| generate::run_for_built(job, &of_bindings))
        });
        if !session.skip_publish {
            let (database, server) = (&target.database, target.server.as_deref());
            publish::publish_for_dev(context, database, server, built, session.consent).await?;
        }
        bindings
            .await
            .map_err(caused!("LC0620", "writing the bindings broke off"))??;
    }
    Ok(())
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
        let module = target.module.clone();
        tokio::task::spawn_blocking(move || check_types(&module));
    }
    Ok(built)
}

fn check_types(module: &Path) -> Option<()> {
    let output = std::process::Command::new(typescript::tsc(module)?)
        .args(["--noEmit", "--pretty", "false"])
        .current_dir(module)
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.trim().is_empty() {
        let said = said.trim_end();
        remark!("\nThe module runs, but its types do not fit:\n{said}");
    }
    Some(())
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
