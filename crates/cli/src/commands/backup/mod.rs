//! `spacetime backup`: backups of a database, and new databases out of them (07 §5.19). The layout of a backup and what may interrupt it:
//! `docs/design/backup.md`.

mod create;
mod list;
mod lock;
pub(super) mod place;
mod prune;
mod restore;
mod verify;

use clap::Subcommand;

use super::Context;
use crate::error::Result;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Back up a database while it runs, and write what the place does not have yet
    Create(create::Args),
    /// List the backups in a place
    List(list::Args),
    /// Read all backups in a place, and check every byte
    Verify(verify::Args),
    /// Remove old backups, and the files that no other one needs
    Prune(prune::Args),
    /// Make a new database out of a backup, as it was at the end of it or at an earlier moment
    Restore(restore::Args),
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    match args.command {
        Command::Create(args) => create::run(context, args).await,
        Command::List(args) => list::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Prune(args) => prune::run(args).await,
        Command::Restore(args) => restore::run(context, args).await,
    }
}
