//! `spacetime publish` (07 §5.1): the arguments, and which targets they mean. `upload` does the work for one.

pub(super) mod backfill;
mod check;
mod environment;
mod plan;
mod rows;
mod upload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ArgAction;

use super::generate::write_dependencies;
use super::Context;
use crate::build::{self, Built};
use crate::env_file;
use crate::error::{Error, Result};
use crate::output::remark;
use crate::project::{Project, Target};
use crate::targets::chosen;
use environment::Given;
use plan::{Plan, Source, Yes};

pub use plan::DeleteData;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database; a new one gets a random identity if it is left out
    #[arg(value_name = "NAME|IDENTITY")]
    name: Option<String>,
    /// Delete the database's data: always, or only if the module cannot take it over
    #[arg(
        short = 'c', long = "delete-data", alias = "clear-database", value_enum, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_value = "never", default_missing_value = "always"
    )]
    delete_data: DeleteData,
    /// The directory of the module
    #[arg(short = 'p', long, value_name = "DIR", conflicts_with_all = ["bin_path", "js_path"])]
    module_path: Option<PathBuf>,
    /// Publish this WebAssembly file without building anything
    #[arg(short = 'b', long, value_name = "FILE", conflicts_with = "js_path")]
    bin_path: Option<PathBuf>,
    /// Publish this JavaScript file without building anything
    #[arg(short = 'j', long, value_name = "FILE")]
    js_path: Option<PathBuf>,
    /// Options for the build, as one text
    #[arg(
        long,
        alias = "build-opts",
        value_name = "OPTIONS",
        allow_hyphen_values = true
    )]
    build_options: Option<String>,
    /// Show what would change, tried on a copy of the data, and publish nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before clients with old bindings are broken
    #[arg(long)]
    break_clients: bool,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    /// The database that the new one belongs under
    #[arg(long, value_name = "NAME|IDENTITY")]
    parent: Option<String>,
    /// The organization that the database belongs to
    #[arg(long, alias = "org", value_name = "NAME|IDENTITY")]
    organization: Option<String>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Answer questions beforehand: all of them, or the named ones
    #[arg(
        short, long, value_enum, value_name = "QUESTIONS", action = ArgAction::Append,
        num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "all"
    )]
    yes: Vec<Yes>,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
    /// The environment layer of spacetime.json
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    /// Set variables of the module's environment from a file with lines KEY=VALUE; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// The value of this variable of the environment is a secret: the module reads it, and it is never shown
    #[arg(long, value_name = "KEY", action = ArgAction::Append)]
    secret: Vec<String>,
    /// Change the environment of the running module and nothing else
    #[arg(long, conflicts_with_all = ["delete_data", "dry_run"])]
    env_only: bool,
    /// Remove a variable of the environment
    #[arg(long, value_name = "KEY", action = ArgAction::Append)]
    unset_env: Vec<String>,
    /// Remove all variables of the environment that get no new value
    #[arg(long, conflicts_with = "unset_env")]
    replace_env: bool,
    /// C# only: compile ahead of time
    #[arg(long)]
    native_aot: bool,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    dotnet_version: Option<String>,
    /// How many replicas to run
    #[arg(long, hide = true, value_name = "N")]
    num_replicas: Option<u8>,
}

/// Publishes for `spacetime dev`. The session's start has been agreed to, so little is asked; but whether data are deleted
/// for good is asked each time, unless the user has said so on the command line.
pub async fn publish_for_dev(
    context: &mut Context,
    database: &str,
    server: Option<&str>,
    module: Built,
    consent: DevConsent,
) -> Result<()> {
    let mut yes = vec![Yes::Remote, Yes::BreakClients, Yes::SkipLogin];
    if consent.yes {
        yes.push(Yes::Migrate);
    }
    if consent.yes || consent.delete_data.is_some() {
        yes.push(Yes::DeleteData);
    }
    let plan = Plan {
        name: Some(database.to_owned()),
        server: server.map(str::to_owned),
        source: Source::Built(module),
        build_options: None,
        num_replicas: None,
        break_clients: true,
        anonymous: false,
        parent: None,
        organization: None,
        delete_data: consent.delete_data.unwrap_or(DeleteData::OnConflict),
        yes,
        dry_run: false,
        environment: Given {
            values: of_project(database)?,
            ..Given::default()
        },
        terminal_only: true,
    };
    upload::publish(context, &plan).await
}

/// What the command line of `spacetime dev` has agreed to.
#[derive(Clone, Copy, Debug)]
pub struct DevConsent {
    pub yes: bool,
    /// When to delete data, if the user has said so.
    pub delete_data: Option<DeleteData>,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    if args.num_replicas.is_some() {
        remark!("WARNING: --num-replicas is UNSTABLE and subject to change.\n");
    }
    let Some(project) = find_project(&args)? else {
        let target = Target {
            database: args.name.clone(),
            ..Target::default()
        };
        return upload::publish(context, &plan(&args, target)?).await;
    };
    project.announce();
    for target in select(&args, project.targets()?)? {
        let database = target.database.clone().ok_or_else(|| {
            let file = project.directory.join("spacetime.json");
            let message = "Required key 'database' is missing from the config file or CLI";
            Error::coded("LC0607", message).said_at(Some(&file.display().to_string()))
        })?;
        check_values(context, &args, &project, &target)?;
        let dependencies = target.dependencies.clone();
        let plan = plan(&args, target)?;
        if let (Source::Project(module), false) = (&plan.source, args.env_only) {
            let server = plan.server.as_deref();
            write_dependencies(context, server, module, &dependencies).await?;
        }
        let module = match &plan.source {
            Source::Project(path) => format!("module {}", path.display()),
            _ => "precompiled module".to_owned(),
        };
        remark!("Publishing {module} to database '{database}'");
        upload::publish(context, &plan).await?;
    }
    Ok(())
}

/// What the files say and cannot be is told with its place, before anything is built.
fn check_values(context: &Context, args: &Args, project: &Project, target: &Target) -> Result<()> {
    let place = |key| project.place_of(target, key);
    if let (None, Some(server)) = (&args.server, &target.server) {
        let config = &context.config;
        config.server_url_at(Some(server), place("server").as_deref())?;
    }
    if let (None, Some(name)) = (&args.name, &target.database) {
        let checked = upload::check_full_name(name);
        checked.map_err(|error| error.said_at(place("database").as_deref()))?;
    }
    if args.module_path.is_some() || args.bin_path.is_some() || args.js_path.is_some() {
        return Ok(());
    }
    project.check_module(target)
}

/// The project around the current directory, or around the module.
fn find_project(args: &Args) -> Result<Option<Project>> {
    let find = |path| Project::find_unless(args.no_config, path, args.env.as_deref());
    match (find(Path::new("."))?, &args.module_path) {
        (None, Some(path)) => find(path),
        (found, _) => Ok(found),
    }
}

/// The targets that the command line picks. Options that describe one module make no sense for several.
fn select(args: &Args, mut targets: Vec<Target>) -> Result<Vec<Target>> {
    if let Some(wanted) = &args.name {
        targets = chosen(wanted, targets)?;
    }
    let given = [
        ("--module-path", args.module_path.is_some()),
        ("--bin-path", args.bin_path.is_some()),
        ("--js-path", args.js_path.is_some()),
        ("--build-options", args.build_options.is_some()),
        ("--num-replicas", args.num_replicas.is_some()),
        ("--native-aot", args.native_aot),
        ("--dotnet-version", args.dotnet_version.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) if targets.len() > 1 => Err(coded!(
            "LC0608",
            "{option} cannot be used for several databases at once. Name the one you mean, or pass --no-config.",
        )),
        _ => Ok(targets),
    }
}

/// The command line over the target's settings over the defaults.
fn plan(args: &Args, target: Target) -> Result<Plan> {
    let named = |wasm: &Option<PathBuf>, js: &Option<PathBuf>, directory: &Option<PathBuf>| {
        let (wasm, js) = (wasm.clone().map(Source::Wasm), js.clone().map(Source::Js));
        wasm.or(js).or(directory.clone().map(Source::Project))
    };
    let source = named(&args.bin_path, &args.js_path, &args.module_path)
        .or_else(|| named(&target.bin_path, &target.js_path, &target.module_path));
    let csharp = build::csharp_options(args.native_aot, args.dotnet_version.as_deref());
    let build_options = args.build_options.clone().or(target.build_options);
    let mut values = from_config(target.env);
    if let Some(file) = &args.env_file {
        let of_file = env_file::read(file)?.into_iter();
        values.extend(of_file.map(|(key, value)| (key, (value, "file"))));
    }
    values.retain(|key, _| !args.unset_env.contains(key));
    Ok(Plan {
        name: target.database,
        server: args.server.clone().or(target.server),
        source: source.unwrap_or_else(|| Source::Project(build::default_module_path())),
        build_options: build::with_options(build_options, &csharp),
        num_replicas: args.num_replicas.or(target.num_replicas),
        break_clients: args.break_clients || target.break_clients.unwrap_or(false),
        anonymous: args.anonymous || target.anonymous.unwrap_or(false),
        parent: args.parent.clone().or(target.parent),
        organization: args.organization.clone().or(target.organization),
        delete_data: args.delete_data,
        yes: args.yes.clone(),
        dry_run: args.dry_run,
        environment: Given {
            values,
            unset: args.unset_env.clone(),
            secret: args.secret.clone(),
            replaces: args.replace_env,
            only: args.env_only,
        },
        terminal_only: false,
    })
}

type Values = BTreeMap<String, (String, &'static str)>;

fn from_config(variables: BTreeMap<String, String>) -> Values {
    let variables = variables.into_iter();
    let from_config = variables.map(|(key, value)| (key, (value, "config")));
    from_config.collect()
}

/// What the project here says of the environment of this database.
fn of_project(database: &str) -> Result<Values> {
    let project = Project::find(Path::new("."), Some("dev"))?;
    let targets = project.map_or(Ok(Vec::new()), |project| project.targets())?;
    let is_meant = |target: &Target| target.database.as_deref() == Some(database);
    let meant = targets.into_iter().find(is_meant);
    Ok(from_config(meant.unwrap_or_default().env))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Wrapper::try_parse_from(["publish"].iter().chain(args)).map(|w| w.args)
    }

    #[test]
    fn delete_data_and_yes_take_values_only_with_an_equals_sign() {
        let args = parse(&["-c", "name"]).expect("valid");
        assert_eq!(
            (args.delete_data, args.name.as_deref()),
            (DeleteData::Always, Some("name"))
        );
        assert_eq!(
            parse(&["name"]).expect("valid").delete_data,
            DeleteData::Never
        );
        assert_eq!(
            parse(&["--clear-database=on-conflict"])
                .expect("valid")
                .delete_data,
            DeleteData::OnConflict
        );
        assert_eq!(parse(&["-y", "name"]).expect("valid").yes, [Yes::All]);
        let args = parse(&[
            "--yes=remote,migrate,break-clients,delete-data",
            "--yes=skip-login",
        ])
        .expect("valid");
        assert_eq!(
            args.yes,
            [
                Yes::Remote,
                Yes::Migrate,
                Yes::BreakClients,
                Yes::DeleteData,
                Yes::SkipLogin
            ]
        );
        assert!(
            parse(&["-b", "x", "-j", "y"]).is_err() && parse(&["--delete-data=sometimes"]).is_err()
        );
    }

    fn target(name: &str) -> Target {
        Target {
            database: Some(name.into()),
            ..Target::default()
        }
    }

    fn names(targets: Result<Vec<Target>>) -> Result<Vec<String>> {
        Ok(targets?.into_iter().filter_map(|t| t.database).collect())
    }

    #[test]
    fn targets_are_picked_by_pattern() {
        let all = || vec![target("shop-a"), target("shop-b"), target("bank")];
        let pick = |args: &[&str], targets| names(select(&parse(args).expect("valid"), targets));
        assert_eq!(pick(&["shop-*"], all()).expect("two"), ["shop-a", "shop-b"]);
        assert_eq!(pick(&[], all()).expect("all").len(), 3);
        assert_eq!(
            pick(&["new"], vec![target("only")]).expect("renamed"),
            ["new"]
        );
        let error = pick(&["new"], all()).expect_err("none").to_string();
        assert!(
            error.starts_with(
                "No database target matches 'new'. Available databases: shop-a, shop-b, bank"
            ),
            "{error}"
        );
        assert!(pick(&["-b", "x.wasm"], all()).is_err());
        assert!(pick(&["-b", "x.wasm", "bank"], all()).is_ok());
    }

    #[test]
    fn the_command_line_beats_the_project() {
        let target = Target {
            server: Some("a".into()),
            js_path: Some("x.js".into()),
            ..target("d")
        };
        let plan = plan(
            &parse(&["-s", "b", "-b", "y.wasm"]).expect("valid"),
            target.clone(),
        )
        .expect("a plan");
        assert_eq!(
            (plan.server.as_deref(), plan.source),
            (Some("b"), Source::Wasm("y.wasm".into()))
        );
        let plan = super::plan(&parse(&[]).expect("valid"), target).expect("a plan");
        assert_eq!(
            (plan.server.as_deref(), plan.source),
            (Some("a"), Source::Js("x.js".into()))
        );
    }
}
