//! What is developed, and how the command line says so.

use std::path::{Path, PathBuf};

use clap::ArgAction;

use super::server::Server;
use crate::commands::generate::{Job, Lang};
use crate::commands::publish::{DeleteData, DevConsent};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database to publish to
    #[arg(value_name = "DATABASE")]
    pub(super) database: Option<String>,
    #[arg(
        long = "database",
        hide = true,
        value_name = "DATABASE",
        conflicts_with = "database"
    )]
    pub(super) database_option: Option<String>,
    /// The directory of the project; the current one if it is left out
    #[arg(long, value_name = "DIR")]
    pub(super) project_path: Option<PathBuf>,
    /// Where bindings go, below the project; src/module_bindings if it is left out
    #[arg(long, value_name = "DIR")]
    pub(super) module_bindings_path: Option<PathBuf>,
    /// The directory of the module; spacetimedb/ of the project if it is left out
    #[arg(short = 'p', long, value_name = "DIR")]
    pub(super) module_path: Option<PathBuf>,
    /// The language of the client
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(super) client_lang: Option<Lang>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    pub(super) server: Option<String>,
    /// Ask nothing: answer yes to every question
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub(super) yes: bool,
    /// Delete the database's data without asking: always, or only if the module cannot take it over. Without this option,
    /// the question is asked whenever the module cannot take the data over
    #[arg(
        short = 'c', long = "delete-data", alias = "clear-database", value_enum, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always"
    )]
    pub(super) delete_data: Option<DeleteData>,
    /// The template for a new project, if there is none here
    #[arg(short, long, value_name = "TEMPLATE")]
    pub(super) template: Option<String>,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    pub(super) dotnet_version: Option<String>,
    /// The command that starts the client
    #[arg(long, value_name = "COMMAND", conflicts_with = "server_only")]
    pub(super) run: Option<String>,
    /// Start no client
    #[arg(long)]
    pub(super) server_only: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    pub(super) no_config: bool,
    /// The environment layer of spacetime.json
    #[arg(long, value_name = "ENV", default_value = "dev")]
    pub(super) env: String,
    /// Do not publish
    #[arg(long)]
    pub(super) skip_publish: bool,
    /// Do not generate bindings
    #[arg(long)]
    pub(super) skip_generate: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) directory: PathBuf,
    pub(super) targets: Vec<DevTarget>,
    pub(super) server_url: String,
    pub(super) client_command: Option<String>,
    pub(super) writes_environment: bool,
    pub(super) consent: DevConsent,
    pub(super) skip_publish: bool,
    /// Ends with the session.
    pub(super) _server: Option<Server>,
}

impl Session {
    /// Where npm packages may be needed: in the client's directory and in those of modules.
    pub(super) fn package_directories(&self) -> impl Iterator<Item = &Path> {
        let client = self.client_command.is_some();
        let client = client.then_some(self.directory.as_path());
        let modules = self.targets.iter().map(|target| target.module.as_path());
        client.into_iter().chain(modules)
    }
}

#[derive(Debug)]
pub(super) struct DevTarget {
    pub(super) database: String,
    pub(super) server: Option<String>,
    pub(super) module: PathBuf,
    pub(super) build_options: Option<String>,
    pub(super) bindings: Vec<Job>,
}
