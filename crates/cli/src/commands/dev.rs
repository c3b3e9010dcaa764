//! `spacetime dev` (07 §9): builds, publishes and generates at every change, shows the logs, and runs the client.
//!
//! `setup` finds out what is developed, `cycle` is one round, `watch` waits for changes, `follow` shows logs, and
//! `client` runs the client's own development command.

mod client;
mod cycle;
mod follow;
mod setup;
mod watch;

use std::path::{Path, PathBuf};

use clap::ArgAction;

use super::generate::Lang;
use super::publish::{DeleteData, DevConsent};
use super::Context;
use crate::error::{Error, Result};
use crate::output::{remark, remark_text};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database to publish to
    #[arg(value_name = "DATABASE")]
    database: Option<String>,
    #[arg(
        long = "database",
        hide = true,
        value_name = "DATABASE",
        conflicts_with = "database"
    )]
    database_option: Option<String>,
    /// The directory of the project; the current one if it is left out
    #[arg(long, value_name = "DIR")]
    project_path: Option<PathBuf>,
    /// Where bindings go, below the project; src/module_bindings if it is left out
    #[arg(long, value_name = "DIR")]
    module_bindings_path: Option<PathBuf>,
    /// The directory of the module; spacetimedb/ of the project if it is left out
    #[arg(short = 'p', long, value_name = "DIR")]
    module_path: Option<PathBuf>,
    /// The language of the client
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    client_lang: Option<Lang>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing: answer yes to every question
    #[arg(short, long, action = ArgAction::SetTrue)]
    yes: bool,
    /// Delete the database's data without asking: always, or only if the module cannot take it over. Without this option,
    /// the question is asked whenever the module cannot take the data over
    #[arg(
        short = 'c', long = "delete-data", alias = "clear-database", value_enum, value_name = "WHEN",
        num_args = 0..=1, require_equals = true, default_missing_value = "always"
    )]
    delete_data: Option<DeleteData>,
    /// The template for a new project, if there is none here
    #[arg(short, long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    dotnet_version: Option<String>,
    /// The command that starts the client
    #[arg(long, value_name = "COMMAND", conflicts_with = "server_only")]
    run: Option<String>,
    /// Start no client
    #[arg(long)]
    server_only: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
    /// The environment layer of spacetime.json
    #[arg(long, value_name = "ENV", default_value = "dev")]
    env: String,
    /// Do not publish
    #[arg(long)]
    skip_publish: bool,
    /// Do not generate bindings
    #[arg(long)]
    skip_generate: bool,
}

/// What is developed.
#[derive(Debug)]
struct Session {
    directory: PathBuf,
    targets: Vec<DevTarget>,
    server_url: String,
    client_command: Option<String>,
    writes_environment: bool,
    consent: DevConsent,
    skip_publish: bool,
}

/// One database with its module.
#[derive(Debug)]
struct DevTarget {
    database: String,
    server: Option<String>,
    module: PathBuf,
    build_options: Option<String>,
    bindings: Vec<super::generate::Job>,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let bindings = args.module_bindings_path.as_deref();
    if bindings.is_some_and(Path::is_absolute) {
        return Err(Error::Usage(
            "--module-bindings-path must be relative to the project".into(),
        ));
    }
    // Logs, the client and rounds print at any time.
    crate::progress::off();
    let session = setup::session(context, args).await?;
    let mut changes = watch::watch(&session)?;
    cycle::run(context, &session).await?;
    // Whoever reads along wants to see the outcome before the logs begin to scroll.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let mut client = client::Client::start(&session).await?;
    if !session.skip_publish {
        follow::start(context, &session).await?;
    }
    remark!("Watching for changes. Press Ctrl-C to stop.");
    let mut stop = std::pin::pin!(stop_signal());
    loop {
        tokio::select! {
            _ = &mut stop => break,
            status = client.ended() => remark!("The client has ended ({status}); save a file or press Ctrl-C."),
            change = changes.next() => {
                let Some(change) = change else { break };
                remark!("\n{} changed.", change.display());
                let started = std::time::Instant::now();
                let outcome = tokio::select! {
                    _ = &mut stop => break,
                    outcome = cycle::run(context, &session) => outcome,
                };
                match outcome {
                    Ok(()) => remark!("Ready after {} ms.", started.elapsed().as_millis()),
                    Err(error) => {
                        remark_text!("{}", error.report());
                        remark!("Waiting for the next change.");
                    }
                }
            }
        }
    }
    client.stop();
    Ok(())
}

/// Resolves when the user or the system wants us to end.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{signal, SignalKind};
        let (Ok(mut terminate), Ok(mut hang_up)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) else {
            let _ = tokio::signal::ctrl_c().await;
            return;
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
}
