//! `spacetime version` (07 §5.12): the versions that are installed, each in a directory of its own, and which of them is used.
//!
//! Nothing is ever downloaded: a version is installed from programs that are on this machine.

mod install;
mod installed;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use self::installed::{current, directory_of, installed, linked_to};
use super::Context;
use crate::error::{FileResult as _, Result};
use crate::output::{print_json, remark, result, FormatOption};
use crate::prompt;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the installed versions
    List {
        /// Also those that could be downloaded; there are none
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: FormatOption,
    },
    /// Use another installed version
    Use {
        /// Its name, as `list` shows it
        #[arg(value_name = "VERSION")]
        version: String,
    },
    /// Explain how to get a newer version
    Upgrade,
    /// Install this program, or the programs in a directory, as a version
    Install {
        /// The name to install it under: three numbers, and what you like, such as 2.10.1-mine
        #[arg(value_name = "VERSION")]
        version: String,
        /// The directory with the programs; that of this program if it is left out
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        #[arg(long, hide = true, default_value = "standalone", value_parser = ["standalone"])]
        edition: String,
        /// Use it from now on
        #[arg(long = "use")]
        use_it: bool,
        /// Replace a version of that name without asking
        #[arg(short, long)]
        yes: bool,
    },
    /// Let a version be the programs in a directory, as they are there: for those who build them
    Link {
        /// The name to use it by: three numbers, and what you like, such as 2.10.1-mine
        #[arg(value_name = "VERSION")]
        version: String,
        /// The directory with both programs
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Use it from now on
        #[arg(long = "use")]
        use_it: bool,
        /// Lead a link of that name elsewhere without asking
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove an installed version; of a linked one the link
    Uninstall {
        /// Its name, as `list` shows it
        #[arg(value_name = "VERSION")]
        version: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Install this program and use it, for installers
    #[command(hide = true)]
    SelfInstall {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

pub fn run(context: &mut Context, args: Args) -> Result<()> {
    let paths = &context.paths;
    let own = env!("CARGO_PKG_VERSION");
    let chosen = match args.command {
        None => {
            result!("{}", crate::long_version());
            None
        }
        Some(Command::List { all, output }) => {
            list(&paths.bin_dir, all, output);
            None
        }
        Some(Command::Use { version }) => Some(version),
        Some(Command::Upgrade) => bail!(
            "LC0883",
            "there is no place that versions are downloaded from. Get or build the two programs \
             of the one that you want, then `spacetime version install VERSION --from DIR --use`.",
        ),
        Some(Command::Install {
            version,
            from,
            use_it,
            yes,
            ..
        }) => {
            install::install(paths, &version, from.as_deref(), yes)?;
            use_it.then_some(version)
        }
        Some(Command::Link {
            version,
            directory,
            use_it,
            yes,
        }) => {
            install::link_to(paths, &version, &directory, yes)?;
            use_it.then_some(version)
        }
        Some(Command::Uninstall { version, yes }) => {
            uninstall(&paths.bin_dir, &version, yes)?;
            None
        }
        Some(Command::SelfInstall { yes }) => {
            install::install(paths, own, None, yes)?;
            Some(own.to_owned())
        }
    };
    chosen.map_or(Ok(()), |version| install::choose(paths, &version))
}

fn list(bin_dir: &Path, all: bool, output: FormatOption) {
    let mut versions = installed(bin_dir);
    let is_placed_by_hand = versions.is_empty();
    if is_placed_by_hand {
        versions.push((env!("CARGO_PKG_VERSION").to_owned(), true));
    }
    if output.is_json() {
        let versions = versions.iter().map(|(version, is_current)| {
            let mut shown = json!({ "version": version, "is_current": is_current });
            if let Some(place) = linked_to(bin_dir, version) {
                shown["linked_to"] = place.to_string_lossy().into();
            }
            shown
        });
        return print_json(&json!({ "versions": versions.collect::<Vec<_>>() }));
    }
    for (version, is_current) in versions {
        let place = linked_to(bin_dir, &version);
        let place = place.map_or_else(String::new, |place| format!(" -> {}", place.display()));
        let mark = if is_current { " (current)" } else { "" };
        result!("{version}{mark}{place}");
    }
    if is_placed_by_hand {
        remark!("This program was not installed by `spacetime version install`; none was.");
    }
    if all {
        remark!("These are all: there is no place that versions are downloaded from.");
    }
}

fn uninstall(bin_dir: &Path, version: &str, yes: bool) -> Result<()> {
    let directory = directory_of(bin_dir, version)?;
    if current(bin_dir).as_deref() == Some(version) {
        bail!(
            "LC0882",
            "{version} is in use. Choose another one first: `spacetime version use VERSION`."
        );
    }
    let question = format!("Remove version {version} ({})?", directory.display());
    if !prompt::goes_on(&question, yes) {
        return Ok(());
    }
    // What is somewhere else stays.
    let removed = match linked_to(bin_dir, version) {
        Some(_) => std::fs::remove_file(&directory),
        None => std::fs::remove_dir_all(&directory),
    };
    removed.or_cannot("delete", &directory)?;
    result!("Removed version {version}.");
    Ok(())
}
