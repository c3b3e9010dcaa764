//! The command line of `spacetime` (07 §2, §5).

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{self, Context};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::output::remark_text;
use crate::paths::Paths;

/// Where the help has what every command takes: behind its own options.
const OF_ALL: &str = "Options of every command";

/// Databases that run your code: publish modules, call them, watch them.
#[derive(Debug, Parser)]
#[command(
    name = "spacetime",
    bin_name = "spacetime",
    arg_required_else_help = true,
    subcommand_required = true
)]
pub struct Cli {
    /// Keep configuration, binaries and data below this directory
    #[arg(long, global = true, value_name = "DIR", help_heading = OF_ALL)]
    root_dir: Option<PathBuf>,
    /// Use this file instead of the usual cli.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = OF_ALL)]
    config_path: Option<PathBuf>,
    /// Send your login to a server over plain HTTP without asking
    #[arg(long, global = true, help_heading = OF_ALL)]
    allow_insecure: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create or update a database from a module
    Publish(Box<commands::publish::Args>),
    /// Delete a database
    Delete(commands::delete::Args),
    /// Show what a module has logged
    Logs(commands::logs::Args),
    /// Call a reducer or procedure
    Call(commands::call::Args),
    /// Describe a module: its tables, types and functions
    Describe(commands::describe::Args),
    /// Develop: rebuild, publish and regenerate at every change
    Dev(Box<commands::dev::Args>),
    /// Run an SQL query
    Sql(commands::sql::Args),
    /// Show and change the variables of a module's environment
    #[command(subcommand)]
    Env(commands::env::Command),
    /// Serve the Model Context Protocol on stdin and stdout, for assistants
    Mcp(commands::mcp::Args),
    /// Show or end the migration of a database
    #[command(subcommand)]
    Migrate(commands::migrate::Command),
    /// Give a database another name
    Rename(commands::rename::Args),
    /// Generate client code for a module
    Generate(Box<commands::generate::Args>),
    /// List your databases
    List(commands::list::Args),
    /// Log in
    Login(commands::login::Args),
    /// Forget the login
    Logout(commands::login::LogoutArgs),
    /// Start a project from a template
    Init(Box<commands::init::Args>),
    /// Compile a module
    Build(crate::build::Args),
    /// Manage the saved servers
    #[command(subcommand)]
    Server(commands::server::Command),
    /// Watch the rows of queries
    Subscribe(commands::subscribe::Args),
    /// Start a server on this machine
    Start(commands::start::Args),
    /// Protect a database from deletion
    Lock(commands::OneDatabase),
    /// Allow a database to be deleted again
    Unlock(commands::OneDatabase),
    /// Show and change who else may do what with a database
    #[command(subcommand)]
    Collaborators(commands::collaborators::Command),
    /// Show and manage installed versions
    Version(commands::version::Args),
    /// Follow the changes of a database
    Changes(commands::changes::Args),
    /// Back up a database while it runs, and restore it as it was at any moment
    Backup(commands::backup::Args),
    /// Write the rows and the module of a database into files that other programs read
    Export(commands::export::Args),
    /// Make a new database out of such files
    Import(commands::import::Args),
    /// Watch what databases do: calls, times, rows, queues
    Top(commands::top::Args),
    /// Check toolchains, server, files and this machine, and say what to do
    Doctor(commands::doctor::Args),
    /// Print completions for a shell
    Completions(commands::completions::Args),
}

impl Command {
    async fn run(self, context: &mut Context) -> Result<()> {
        match self {
            Self::Publish(args) => commands::publish::run(context, *args).await,
            Self::Delete(args) => commands::delete::run(context, args).await,
            Self::Logs(args) => commands::logs::run(context, args).await,
            Self::Call(args) => commands::call::run(context, args).await,
            Self::Describe(args) => commands::describe::run(context, args).await,
            Self::Sql(args) => commands::sql::run(context, args).await,
            Self::Env(command) => commands::env::run(context, command).await,
            Self::Migrate(command) => commands::migrate::run(context, command).await,
            Self::Rename(args) => commands::rename::run(context, args).await,
            Self::List(args) => commands::list::run(context, args).await,
            Self::Login(args) => commands::login::run(context, args).await,
            Self::Logout(args) => commands::login::logout(context, args).await,
            Self::Generate(args) => commands::generate::run(context, *args).await,
            Self::Init(args) => commands::init::run(context, *args).await,
            Self::Dev(args) => commands::dev::run(context, *args).await,
            Self::Build(args) => crate::build::run(args),
            Self::Server(command) => commands::server::run(context, command).await,
            Self::Subscribe(args) => commands::subscribe::run(context, args).await,
            Self::Start(args) => commands::start::run(context, args),
            Self::Lock(args) => commands::lock::run(context, args, true).await,
            Self::Unlock(args) => commands::lock::run(context, args, false).await,
            Self::Collaborators(command) => commands::collaborators::run(context, command).await,
            Self::Version(args) => commands::version::run(context, args),
            Self::Changes(args) => commands::changes::run(context, args).await,
            Self::Backup(args) => commands::backup::run(context, args).await,
            Self::Export(args) => commands::export::run(context, args).await,
            Self::Import(args) => commands::import::run(context, args).await,
            Self::Top(args) => commands::top::run(context, args).await,
            Self::Mcp(args) => commands::mcp::run(context, args).await,
            Self::Doctor(_) | Self::Completions(_) => {
                unreachable!("they run without a configuration")
            }
        }
    }
}

/// Parses the process's arguments, runs the command, and reports how it went.
pub fn main() -> ExitCode {
    let mut command = with_version(Cli::command());
    let matches = command.get_matches_mut();
    let ended = Cli::from_arg_matches(&matches).map_or_else(|error| error.exit(), run);
    let is_usage = matches!(ended, Err(Error::Usage(_)));
    let code = exit_code(ended);
    if is_usage {
        let usage = usage(command, &matches);
        remark_text!("\n{usage}\n\nFor more information, try '--help'.\n");
    }
    code
}

pub(crate) fn with_version(command: clap::Command) -> clap::Command {
    // The parser wants texts that live as long as the program; this one is made once.
    let long_version: &'static str = Box::leak(crate::long_version().into_boxed_str());
    let command = command.version(env!("CARGO_PKG_VERSION"));
    command.long_version(long_version)
}

/// Reports how a command went.
pub(crate) fn exit_code(ended: Result<()>) -> ExitCode {
    let Err(error) = ended else {
        return ExitCode::SUCCESS;
    };
    remark_text!("{}", error.report());
    ExitCode::from(error.exit_code())
}

fn usage(mut command: clap::Command, matches: &clap::ArgMatches) -> String {
    let mut matches = matches;
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name).cloned() else {
            break;
        };
        (command, matches) = (found, below);
    }
    command.render_usage().to_string()
}

fn run(cli: Cli) -> Result<()> {
    let paths = Paths::new(cli.root_dir.as_deref(), |name| std::env::var_os(name));
    let config_path = cli.config_path.unwrap_or_else(|| paths.cli_toml());
    // These work, and write nothing, where the configuration is missing or broken.
    match cli.command {
        Command::Completions(args) => {
            commands::completions::run(&args, Cli::command());
            Ok(())
        }
        Command::Doctor(args) => in_runtime(commands::doctor::run(&paths, &config_path, args)),
        command => {
            let config = Config::load(&config_path)?;
            let mut context = Context::new(paths, config, cli.allow_insecure);
            in_runtime(command.run(&mut context))
        }
    }
}

fn in_runtime(command: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(caused!("LC0620", "cannot start the asynchronous runtime"))?;
    let outcome = runtime.block_on(command);
    // A question without an answer must not keep a command that was told to stop.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_argument_is_explained() {
        fn look(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            for arg in shown {
                assert!(arg.get_help().is_some(), "{path}: {}", arg.get_id());
            }
            for below in command.get_subcommands() {
                assert!(below.get_about().is_some(), "{path} {}", below.get_name());
                look(below, &path);
            }
        }
        look(&Cli::command(), "");
    }

    #[test]
    fn wrong_arguments_are_told_how_it_is_used() {
        let mut command = Cli::command();
        let matches = command.try_get_matches_from_mut(["spacetime", "collaborators", "list"]);
        let text = usage(command, &matches.expect("matches"));
        assert!(
            text.starts_with("Usage: spacetime collaborators list [OPTIONS] [DATABASE]"),
            "{text}"
        );
    }

    #[test]
    fn commands_stand_in_the_documented_order() {
        let names: Vec<_> = Cli::command()
            .get_subcommands()
            .map(|c| c.get_name().to_owned())
            .collect();
        assert_eq!(
            names.join(" "),
            "publish delete logs call describe dev sql env mcp migrate rename generate list login logout init build server subscribe start lock unlock collaborators version changes backup export import top doctor completions"
        );
    }
}
