//! `spacetime init` (07 §10): what the user wants. `template` has the templates, `files` writes them and what is beside them.

mod files;
mod plan;
mod template;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::Context;
use crate::build::Language;
use crate::error::{Error, Result};
use crate::output::{print_json, remark, remark_text, result, result_text, FormatOption};
use crate::paths::entries_if_there;
use crate::{credentials, npm, prompt};
pub use files::environment as environment_variables;
use plan::{kebab, Plan, Source};
use template::Template;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the project is called
    #[arg(value_name = "PROJECT_NAME")]
    name: Option<String>,
    /// Where the project goes; a directory of its name if that is left out
    #[arg(long, value_name = "DIR")]
    project_path: Option<PathBuf>,
    /// Write only the module, below spacetimedb/
    #[arg(long)]
    server_only: bool,
    /// A module in this language, without a client
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with = "template")]
    lang: Option<Lang>,
    /// The template: a name, a GitHub repository (owner/name) or a git URL; without a value, lists the names
    #[arg(short, long, value_name = "TEMPLATE", num_args = 0..=1, default_missing_value = "")]
    template: Option<String>,
    /// Use the server on this machine
    #[arg(long)]
    local: bool,
    /// Ask nothing
    #[arg(long)]
    non_interactive: bool,
    /// C# only: compile ahead of time, which .NET 10 does in any case
    #[arg(long)]
    native_aot: bool,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    dotnet_version: Option<String>,
    /// What npm dependencies on the SDK say, for example npm:lightcone@0.1.0 or file:../sdk
    #[arg(long, value_name = "SPECIFIER")]
    npm_sdk: Option<String>,
    #[command(flatten)]
    output: FormatOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lang {
    #[value(alias = "rs")]
    Rust,
    #[value(alias = "ts")]
    Typescript,
    #[value(alias = "c#", alias = "cs")]
    Csharp,
    #[value(alias = "c++")]
    Cpp,
}

/// What a project is called if the user does not say.
const DEFAULT_NAME: &str = "my-spacetime-app";

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    if args.template.as_deref() == Some("") {
        match args.output.is_json() {
            true => print_json(&template::list_json()),
            false => result_text!("{}", template::list()),
        }
        return Ok(());
    }
    let interactive = !args.non_interactive;
    // What cannot be is refused before anything is asked.
    source(args.template.as_deref(), args.lang)?;
    let is_module_only = args.server_only || args.lang.is_some();
    if let Some(directory) = &args.project_path {
        check_empty(&taken(directory, is_module_only))?;
    }
    if interactive {
        offer_login(context, &args).await?;
    }
    let plan = decide(context, args, interactive)?;
    create(&plan)?;
    let installed = interactive && offer_install(&plan);
    print_next_steps(&plan, installed);
    Ok(())
}

/// Makes the project of a template without asking anything: what `spacetime dev` does in an empty directory.
pub fn create_for_dev(
    context: &Context,
    directory: &Path,
    template: &str,
    server: &str,
) -> Result<()> {
    let name = directory.file_name().map(|name| name.to_string_lossy());
    let name = name.map_or_else(|| DEFAULT_NAME.to_owned(), String::from);
    let plan = Plan {
        database: database_name(&name),
        directory: directory.to_owned(),
        server: server.to_owned(),
        server_url: context.config.server_url(Some(server))?,
        source: source(Some(template), None)?,
        server_only: false,
        npm_sdk: None,
        native_aot: false,
        name,
    };
    create(&plan)
}

async fn offer_login(context: &mut Context, args: &Args) -> Result<()> {
    let is_maincloud = !args.local && context.config.default_server() == Some("maincloud");
    let url = context.config.server_url(None).unwrap_or_default();
    if is_maincloud && context.config.token(&url).is_none() && credentials::wants_web_login() {
        credentials::account_login(&mut context.config, &url).await?;
    }
    Ok(())
}

fn decide(context: &Context, args: Args, interactive: bool) -> Result<Plan> {
    let missing = |what: &str| Error::Usage(format!("--non-interactive needs {what}"));
    let name = match args.name {
        Some(name) => name,
        None if interactive => prompt::ask_or("Project name", DEFAULT_NAME),
        None => return Err(missing("the name of the project")),
    };
    if kebab(&name).is_empty() {
        bail!(
            "LC0637",
            "`{name}` cannot be the name of a project: it has no letter and no digit"
        );
    }
    let server_only = args.server_only || args.lang.is_some();
    let directory = match args.project_path {
        Some(path) => path,
        // A user who is asked sees another path; a script would not.
        None if interactive => {
            let free = free_path(&kebab(&name), server_only);
            prompt::ask_or("Project path", &free).into()
        }
        None => format!("./{}", kebab(&name)).into(),
    };
    let mut database = database_name(&name);
    if interactive {
        database = prompt::ask_or("Database name", &database);
    }
    let mut wanted = args.template;
    if wanted.is_none() && args.lang.is_none() {
        if !interactive {
            return Err(missing("one of --template and --lang"));
        }
        remark_text!("{}", template::list());
        wanted = Some(prompt::ask_or("Template", "basic-ts"));
    }
    let is_template = |name: &str| name == CSHARP || name == CSHARP_AHEAD_OF_TIME;
    let is_csharp = args.lang == Some(Lang::Csharp) || wanted.as_deref().is_some_and(is_template);
    if ahead_of_time(args.native_aot, args.dotnet_version.as_deref(), is_csharp)? {
        wanted = Some(CSHARP_AHEAD_OF_TIME.to_owned());
    }
    let default = context.config.default_server().filter(|_| !args.local);
    let server = default.unwrap_or("local");
    Ok(Plan {
        name,
        directory,
        database,
        server: server.to_owned(),
        server_url: context.config.server_url(Some(server))?,
        source: source(wanted.as_deref(), args.lang)?,
        server_only,
        npm_sdk: args.npm_sdk,
        native_aot: args.native_aot,
    })
}

const CSHARP: &str = "basic-csharp";
const CSHARP_AHEAD_OF_TIME: &str = "basic-csharp-net10";

/// Is a module in C# to be compiled ahead of time? One for .NET 10 always is, as there is no other compiler.
fn ahead_of_time(native_aot: bool, version: Option<&str>, is_csharp: bool) -> Result<bool> {
    if !native_aot && version != Some("10") {
        return Ok(false);
    }
    if !is_csharp {
        let text = "--native-aot and --dotnet-version are for modules in C#: `--lang csharp`";
        return Err(Error::coded("LC0637", text));
    }
    if version == Some("8") {
        return Err(Error::later(
            "Starting a C# module for .NET 8 that is compiled ahead of time",
            "Its compiler runs on Windows only; `--dotnet-version 10` makes one whose compiler runs on Linux too.",
        ));
    }
    Ok(true)
}

/// A directory of the project's name, or of that with a number, where nothing is yet.
fn free_path(name: &str, is_module_only: bool) -> String {
    let is_free = |path: &String| check_empty(&taken(Path::new(path), is_module_only)).is_ok();
    let numbered = (2..100).map(|number| format!("./{name}-{number}"));
    let mut paths = std::iter::once(format!("./{name}")).chain(numbered);
    paths.find(is_free).unwrap_or_else(|| format!("./{name}"))
}

fn source(wanted: Option<&str>, lang: Option<Lang>) -> Result<Source> {
    let name = match (wanted, lang) {
        (Some(name), _) => name,
        (None, Some(Lang::Typescript)) => "basic-ts",
        (None, Some(Lang::Rust)) => "basic-rs",
        (None, Some(Lang::Cpp)) => "basic-cpp",
        (None, Some(Lang::Csharp)) => CSHARP,
        (None, None) => "basic-ts",
    };
    if let Some(template) = Template::find(name) {
        return Ok(Source::Template(template));
    }
    if name.contains("://") || name.starts_with("git@") {
        return Ok(Source::Git(name.to_owned()));
    }
    let mut parts = name.split('/');
    if parts.clone().count() == 2 && parts.all(|part| !part.is_empty()) {
        return Ok(Source::Git(format!("https://github.com/{name}")));
    }
    let known = template::list();
    bail!(
        "LC0637",
        "There is no template `{name}`.\n{}",
        known.trim_end()
    )
}

fn create(plan: &Plan) -> Result<()> {
    check_empty(&taken(&plan.directory, plan.server_only))?;
    files::write(plan)?;
    let directory = plan.directory.display();
    result!("Project '{}' created in {directory}", plan.name);
    Ok(())
}

/// The directory that must be empty.
fn taken(project: &Path, is_module_only: bool) -> PathBuf {
    match is_module_only {
        true => project.join("spacetimedb"),
        false => project.to_owned(),
    }
}

fn check_empty(directory: &Path) -> Result<()> {
    if entries_if_there(directory)?.is_none_or(|mut entries| entries.next().is_none()) {
        return Ok(());
    }
    let directory = directory.display();
    bail!(
        "LC0637",
        "{directory} is not empty. Name another place with --project-path."
    )
}

/// The directories of the project that npm packages are to be installed in.
fn npm_directories(plan: &Plan) -> Vec<PathBuf> {
    let places = [plan.directory.clone(), plan.directory.join("spacetimedb")];
    let has_package = |directory: &PathBuf| directory.join("package.json").is_file();
    places.into_iter().filter(has_package).collect()
}

/// Asks for a package manager and lets it install; true if it did.
fn offer_install(plan: &Plan) -> bool {
    let directories = npm_directories(plan);
    if directories.is_empty() {
        return false;
    }
    let answer = prompt::ask(
        "Package manager to install the dependencies with (npm, pnpm, yarn, bun, none) [none]: ",
    );
    npm::MANAGERS.contains(&answer.as_str())
        && directories.iter().all(|place| npm::install(&answer, place))
}

fn print_next_steps(plan: &Plan, installed: bool) {
    remark!("\nNext:");
    remark!("  cd {}", plan.directory.display());
    // `spacetime dev` installs by itself.
    if plan.server_only && !installed && !npm_directories(plan).is_empty() {
        remark!("  npm install --prefix spacetimedb");
    }
    if let Some(needs) = needs(&plan.directory.join("spacetimedb")) {
        remark!("  # {needs}");
    }
    if plan.server_only {
        if plan.server == "local" {
            remark!("  spacetime start                 # in a terminal of its own");
        }
        remark!("  spacetime publish");
    } else {
        remark!("  spacetime dev");
    }
}

/// What the user must have for a module whose tools are not those of most.
fn needs(module: &Path) -> Option<&'static str> {
    match crate::build::language(module)? {
        Language::CSharp if module.join("NuGet.Config").is_file() => Some(
            "C#: the .NET SDK 10, which fetches its experimental compiler to WebAssembly; `spacetime doctor` looks for it",
        ),
        Language::CSharp => Some(
            "C#: the .NET SDK 8, and `dotnet workload install wasi-experimental`; `spacetime doctor` looks for it",
        ),
        Language::Cpp => Some(crate::build::cpp::packages(module)),
        Language::Rust | Language::TypeScript => None,
    }
}

/// A name that no other database has.
pub fn database_name(project: &str) -> String {
    use rand::RngExt;
    const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = rand::rng();
    let mut character = || char::from(CHARACTERS[random.random_range(0..CHARACTERS.len())]);
    let suffix: String = (0..5).map(|_| character()).collect();
    match kebab(project) {
        base if base.is_empty() => suffix,
        base => format!("{base}-{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_fit() {
        for (name, want) in [
            ("My App 2", "my-app-2"),
            ("--a__b--", "a-b"),
            ("ä", ""),
            ("x", "x"),
        ] {
            assert_eq!(kebab(name), want);
        }
        let name = database_name("My App");
        assert!(name.len() == 12 && name.starts_with("my-app-"), "{name}");
    }

    #[test]
    fn sources() {
        assert!(matches!(
            source(Some("chat-react-ts"), None),
            Ok(Source::Template(_))
        ));
        assert!(matches!(
            source(None, Some(Lang::Rust)),
            Ok(Source::Template(_))
        ));
        assert!(
            matches!(source(Some("o/r"), None), Ok(Source::Git(url)) if url == "https://github.com/o/r")
        );
        assert!(matches!(
            source(Some("file:///x"), None),
            Ok(Source::Git(_))
        ));
        let error = source(Some("elm"), None).expect_err("unknown").to_string();
        assert!(
            error.starts_with("There is no template `elm`.") && error.contains("basic-ts"),
            "{error}"
        );
    }
}
