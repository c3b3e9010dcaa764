//! What is developed, where it is published, and what is asked before the first round.

use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use super::session::{Args, DevTarget, Session};
use crate::address::{origin, ACCOUNT_SERVER};
use crate::build;
use crate::commands::generate::{self, BindingsFor, Job, Lang, Source};
use crate::commands::publish::DevConsent;
use crate::commands::{init, list, Auth, Context};
use crate::error::{Error, FileResult as _, Result};
use crate::http::Client;
use crate::npm;
use crate::output::remark;
use crate::paths::text_if_there;
use crate::project::{edit, parse_json5, Project, Target};
use crate::targets::chosen;
use crate::{credentials, prompt};

pub async fn session(context: &mut Context, args: Args) -> Result<Session> {
    let find = |path: &Path| Project::find_unless(args.no_config, path, Some(&args.env));
    let wanted_directory = args.project_path.as_deref().unwrap_or(Path::new("."));
    let mut project = find(wanted_directory)?;
    let directory = match &project {
        Some(project) => project.directory.clone(),
        None => std::path::absolute(wanted_directory).or_cannot("find", wanted_directory)?,
    };
    if let Some(project) = &project {
        check_paths(&args, project)?;
    }
    if !has_module(&args, project.as_ref(), &directory)? {
        match &project {
            Some(project) => ask_for_module(&args, project)?,
            None => offer_project(context, &args, &directory)?,
        }
        project = find(&directory)?;
    }
    if project.is_none() && !args.no_config {
        let mut settings = json!({ "server": server_name(context, &args) });
        if directory.join("spacetimedb").is_dir() {
            settings["module-path"] = "./spacetimedb".into();
        }
        let path = directory.join("spacetime.json");
        std::fs::write(&path, format!("{settings:#}\n")).or_cannot("write", &path)?;
        project = find(&directory)?;
    }
    if let Some(project) = &project {
        project.announce();
    }

    let mut targets = match &project {
        Some(project) => project.targets()?,
        None => vec![Target::default()],
    };
    if let Some(wanted) = args.database.as_ref().or(args.database_option.as_ref()) {
        targets = chosen(wanted, targets)?;
    }
    for target in &mut targets {
        if target.database.is_none() {
            target.database =
                Some(new_database(context, &args, target, &directory, project.is_some()).await?);
        }
    }
    confirm_shared_names(&args, &directory, &targets)?;
    let mut server = args
        .server
        .clone()
        .or(targets.first().and_then(|t| t.server.clone()));
    let place = match (&args.server, &project, targets.first()) {
        (None, Some(project), Some(target)) => project.place_of(target, "server"),
        _ => None,
    };
    let config = &context.config;
    let mut server_url = config.server_url_at(server.as_deref(), place.as_deref())?;
    if needs_account(context, &args, &server_url) {
        if credentials::wants_web_login() {
            credentials::account_login(&mut context.config, &server_url).await?;
        } else if args.server.is_some() {
            bail!(
                "LC0866",
                "{server_url} needs a login: `spacetime login`. To develop on this machine, leave out --server, or use --server \
                 local.",
            );
        } else {
            remark!("Developing on the server of this machine instead (`local`).");
            server = Some("local".to_owned());
            server_url = context.config.server_url(server.as_deref())?;
            targets.iter_mut().for_each(|t| t.server = server.clone());
        }
    }
    let mut started = None;
    if !args.skip_publish {
        let server_name = server.as_deref().or(context.config.default_server());
        if server_name == Some("local") && crate::http::is_local(&server_url) {
            started = super::server::start_if_absent(context, &server_url).await?;
        }
        // A login that is missing is better asked for before the build than after it.
        let auth = Auth::new(false, args.yes || crate::http::is_local(&server_url));
        context.client(server.as_deref(), auth).await?;
    }
    let client_command = client_command(&args, project.as_ref(), &directory)?;
    let client_lang = args
        .client_lang
        .or_else(|| generate::detect_language(&directory));
    let (of, here) = (project.as_ref(), &directory);
    let dev_targets = targets.into_iter();
    let dev_targets = dev_targets.map(|target| dev_target(&args, of, here, target, client_lang));
    let dev_targets = dev_targets.collect::<Result<_>>()?;
    Ok(Session {
        writes_environment: client_lang == Some(Lang::Typescript)
            && directory.join("package.json").is_file(),
        directory,
        targets: dev_targets,
        server_url,
        client_command,
        consent: DevConsent {
            yes: args.yes,
            delete_data: args.delete_data,
        },
        skip_publish: args.skip_publish,
        _server: started,
    })
}

/// Is the server that of the account web site, and is there no login for it? With `--yes`, no question is asked (07 §9).
fn needs_account(context: &Context, args: &Args, url: &str) -> bool {
    let is_account_server = origin(url) == ACCOUNT_SERVER;
    is_account_server && !args.skip_publish && !args.yes && context.config.token(url).is_none()
}

/// What the files say stands; options that say something else about it would be forgotten with the next command.
fn check_paths(args: &Args, project: &Project) -> Result<()> {
    let contradiction = |option: &str, key: &str| {
        let file = project.directory.join("spacetime.json");
        coded!(
            "LC0884",
            "{option} contradicts `{key}` in {}. Change it there, leave out the option, or pass --no-config to do without the \
             file.",
            file.display(),
        )
    };
    if args.module_path.is_some() && project.names_a_module()? {
        return Err(contradiction("--module-path", "module-path"));
    }
    let mut targets = project.targets()?.into_iter();
    if targets.all(|target| target.generate.is_empty()) {
        return Ok(());
    }
    // The directory of the file itself is what its paths mean.
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let is_elsewhere = |path: &PathBuf| real(path) != real(&project.directory);
    let given = [
        (args.module_path.is_some(), "--module-path"),
        (
            args.module_bindings_path.is_some(),
            "--module-bindings-path",
        ),
        (
            args.project_path.as_ref().is_some_and(is_elsewhere),
            "--project-path",
        ),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(contradiction(option, "generate")),
        None => Ok(()),
    }
}

/// A project whose file does not say where its module is.
fn ask_for_module(args: &Args, project: &Project) -> Result<()> {
    let below = project.directory.join("spacetimedb");
    if args.yes || !prompt::is_interactive() {
        return Err(no_module(&below));
    }
    let file = project.directory.join("spacetime.json");
    remark!("{} does not say where the module is.", file.display());
    let answer = prompt::ask("Directory of the module: ");
    let path = project.directory.join(&answer);
    if answer.is_empty() || build::language(&path).is_none() {
        return Err(no_module(if answer.is_empty() { &below } else { &path }));
    }
    edit::set(&file, "module-path", answer.into())
}

fn has_module(args: &Args, project: Option<&Project>, directory: &Path) -> Result<bool> {
    let is_module = |path: &Path| path.is_dir() && build::language(path).is_some();
    let targets = project.map_or(Ok(Vec::new()), Project::targets)?;
    let mut named = targets.into_iter().filter_map(|target| target.module_path);
    match args.module_path.clone().or_else(|| named.next()) {
        Some(path) if is_module(&path) => Ok(true),
        Some(path) => Err(no_module(&path)),
        None => Ok(is_module(&directory.join("spacetimedb"))),
    }
}

fn no_module(path: &Path) -> Error {
    coded!(
        "LC0610",
        "{} holds no module: none of Cargo.toml, *.csproj, package.json, CMakeLists.txt. Point --module-path at it, or start a \
         project with `spacetime init`.",
        path.display(),
    )
}

/// Starts a project where there is none.
fn offer_project(context: &Context, args: &Args, directory: &Path) -> Result<()> {
    let template = match &args.template {
        Some(template) => template.clone(),
        None => {
            remark!("There is no module in {}.", directory.display());
            if args.yes || !prompt::confirm("Would you like to start a project here?", false) {
                return Err(no_module(&directory.join("spacetimedb")));
            }
            prompt::ask_or("Template", "basic-ts")
        }
    };
    init::create_for_dev(context, directory, &template, server_name(context, args))
}

/// The server that a new project names.
fn server_name<'a>(context: &'a Context, args: &'a Args) -> &'a str {
    let server = args.server.as_deref().or(context.config.default_server());
    server.unwrap_or("local")
}

/// A name for the database, kept for the next time in spacetime.local.json: a new one on this machine, elsewhere what the
/// user wants.
async fn new_database(
    context: &mut Context,
    args: &Args,
    target: &Target,
    directory: &Path,
    save: bool,
) -> Result<String> {
    let project = directory.file_name().unwrap_or_default();
    let mut name = init::database_name(&project.to_string_lossy());
    let server = args.server.as_deref().or(target.server.as_deref());
    let url = context.config.server_url(server)?;
    if !args.yes && !crate::http::is_local(&url) {
        let own = databases_there(context, &url).await;
        for (number, name) in own.iter().enumerate() {
            remark!("  {}  {name}", number + 1);
        }
        let question = match own.is_empty() {
            true => "Database name",
            false => "Database name, or number of one of yours",
        };
        name = prompt::ask_or(question, &name);
        if let (Ok(number), false) = (name.parse::<usize>(), own.is_empty()) {
            let chosen = number.checked_sub(1).and_then(|n| own.get(n));
            let Some(chosen) = chosen else {
                bail!(
                    "LC0608",
                    "{number} is not a number of the list above. Start again."
                );
            };
            name.clone_from(chosen);
        }
    }
    if save {
        let file = directory.join("spacetime.local.json");
        edit::set(&file, "database", name.as_str().into())?;
    }
    remark!("The database is called {name}.");
    Ok(name)
}

/// The names of the user's databases on a server that knows them. This only helps to choose: whatever goes wrong, there are none.
async fn databases_there(context: &mut Context, url: &str) -> Vec<String> {
    /// A longer list would not be read.
    const SHOWN_MAX: usize = 20;
    let find = async {
        if !context.config.may_send_login(url) {
            return Ok(Vec::new());
        }
        let token = credentials::current(&mut context.config, url).await?;
        let client = Client::new(url.to_owned(), token)?;
        match client.token() {
            Some(_) => list::databases(&client, SHOWN_MAX).await,
            None => Ok(Vec::new()),
        }
    };
    let databases = find.await.unwrap_or_default().into_iter();
    let names = databases.map(|one| one.names.into_iter().next().unwrap_or(one.identity));
    names.collect()
}

/// A name that stands in the shared file may be the one that others use: publishing there is worth a question.
fn confirm_shared_names(args: &Args, directory: &Path, targets: &[Target]) -> Result<()> {
    if args.no_config || args.yes {
        return Ok(());
    }
    let read = |layer: &str| -> Result<Value> {
        let path = directory.join(format!("spacetime.{layer}json"));
        let text = text_if_there(&path)?;
        text.map_or_else(|| Ok(json!({})), |text| parse_json5(&path, &text))
    };
    let shared = read("")?;
    let env = &args.env;
    for layer in ["local.", &format!("{env}."), &format!("{env}.local.")] {
        if read(layer)?.get("database").is_some() {
            return Ok(());
        }
    }
    let shared = shared["database"].as_str();
    let is_shared = |target: &Target| shared.is_some() && target.database.as_deref() == shared;
    if !targets.iter().any(is_shared) {
        return Ok(());
    }
    let name = shared.unwrap_or_default();
    remark!("The database '{name}' is named in spacetime.json, which is shared with others.");
    if prompt::confirm("Do you want to develop against it?", false) {
        return Ok(());
    }
    let text = "Aborted. Name your own in spacetime.local.json, or on the command line.";
    Err(Error::plain(text))
}

fn client_command(
    args: &Args,
    project: Option<&Project>,
    directory: &Path,
) -> Result<Option<String>> {
    if args.server_only {
        return Ok(None);
    }
    let said = args.run.as_deref().or(project.and_then(Project::dev_run));
    if let Some(command) = said {
        return Ok(Some(command.to_owned()));
    }
    let Some(command) = detect_client(directory)? else {
        return Ok(None);
    };
    remark!("The client is started with `{command}`.");
    if project.is_some() {
        let file = directory.join("spacetime.json");
        edit::set(&file, "dev", json!({ "run": command }))?;
    }
    Ok(Some(command))
}

fn detect_client(directory: &Path) -> Result<Option<String>> {
    let has = |name: &str| directory.join(name).is_file();
    let package = npm::manifest(directory)?.unwrap_or_default();
    if package["scripts"]["dev"].is_string() {
        return Ok(Some(match npm::manager(directory) {
            "yarn" => "yarn dev".to_owned(),
            manager => format!("{manager} run dev"),
        }));
    }
    Ok(match generate::detect_language(directory) {
        _ if has("Cargo.toml") => Some("cargo run".to_owned()),
        Some(Lang::Csharp) => Some("dotnet run".to_owned()),
        _ => None,
    })
}

fn dev_target(
    args: &Args,
    project: Option<&Project>,
    directory: &Path,
    target: Target,
    client_lang: Option<Lang>,
) -> Result<DevTarget> {
    let module = args.module_path.clone().or(target.module_path.clone());
    let module = module.unwrap_or_else(|| directory.join("spacetimedb"));
    let bindings_path = args.module_bindings_path.as_deref();
    let bindings_path = bindings_path.unwrap_or(Path::new("src/module_bindings"));
    let mut bindings = Vec::new();
    if !args.skip_generate {
        if let Some(project) = project.filter(|_| !target.generate.is_empty()) {
            bindings = generate::jobs_of_target(project, &target)?;
        } else if let Some(lang @ (Lang::Typescript | Lang::Rust | Lang::Csharp)) = client_lang {
            bindings.push(Job {
                lang,
                bindings: BindingsFor::Client,
                source: Source::Project {
                    directory: module.clone(),
                    build_options: None,
                },
                out_dir: directory.join(bindings_path),
                include_private: false,
                client_package: None,
                namespace: None,
                yes: true,
            });
        }
    }
    Ok(DevTarget {
        database: target.database.unwrap_or_default(),
        server: args.server.clone().or(target.server),
        module: std::path::absolute(&module).or_cannot("find", &module)?,
        build_options: target.build_options,
        bindings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_found_out() {
        for (files, want) in [
            (
                &[("package.json", r#"{"scripts":{"dev":"vite"}}"#)][..],
                Some("npm run dev"),
            ),
            (
                &[
                    ("package.json", r#"{"scripts":{"dev":"vite"}}"#),
                    ("pnpm-lock.yaml", ""),
                ],
                Some("pnpm run dev"),
            ),
            (&[("package.json", r#"{"scripts":{"start":"x"}}"#)], None),
            (&[("Cargo.toml", "")], Some("cargo run")),
            (&[], None),
        ] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            for (name, text) in files {
                std::fs::write(directory.path().join(name), text).expect("written");
            }
            assert_eq!(
                detect_client(directory.path())
                    .expect("readable")
                    .as_deref(),
                want,
                "{files:?}"
            );
        }
    }
}
