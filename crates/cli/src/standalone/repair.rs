//! `spacetimedb-standalone repair`: gives up the damaged end of a log, on purpose only (docs/errors/LC0503.md).

use std::path::PathBuf;

use lightcone_log::LogOptions;
use lightcone_types::Identity;

use crate::error::{Error, Result};
use crate::output::{remark, result};
use crate::prompt;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The log: `<data directory>/replicas/<number>/log`, which the error about the damage names
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Identity of the database, for when no segment tells it
    #[arg(long, value_name = "IDENTITY")]
    database: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let directory = match args.directory.join("log") {
        inner if inner.is_dir() => inner,
        _ => args.directory.clone(),
    };
    let shown = directory.display();
    let no_owner = || {
        plain!(
            "{shown} holds no log segment whose header can be read. Is it the directory of a log (<data \
             directory>/replicas/<number>/log)? If it is, name the database with --database <identity>.",
        )
    };
    let database = match &args.database {
        Some(text) => Identity::parse_text(text)
            .map_err(|error| Error::Usage(format!("--database {text}: {error}")))?
            .to_le_bytes(),
        None => lightcone_log::owner_of(&directory)
            .map_err(|error| Error::plain(error.to_string()))?
            .ok_or_else(no_owner)?,
    };
    let identity = Identity::from_le_bytes(database);
    remark!(
        "This cuts the log of database {identity} at the first damage. Transactions behind it are lost to the database; what is \
         removed is kept beside the log as `*.removed*`. Copy the directory first: {shown}"
    );
    if !prompt::confirm("Do you want to continue?", args.yes) {
        remark!("Aborting: nothing was changed.");
        return Ok(());
    }
    let options = LogOptions {
        database,
        ..LogOptions::default()
    };
    let report = lightcone_log::repair(&directory, &options)
        .map_err(|error| Error::plain(error.to_string()))?;
    let Some(damage) = report.damage else {
        result!("The log is whole; nothing was changed.");
        return Ok(());
    };
    // The rest of the text is for a server that refuses the log.
    let found = damage.split(" Nothing was changed.").next();
    result!("Found: {}", found.unwrap_or_default());
    match report.next_offset {
        Some(next_offset) => result!("The log now ends before transaction {next_offset}."),
        None => result!("No segment is left."),
    }
    result!("Removed {} bytes, kept in:", report.removed_bytes);
    for path in &report.saved {
        result!("  {}", path.display());
    }
    Ok(())
}
