//! `spacetime version` (07 §5.12).

use std::path::Path;

use clap::Subcommand;

use super::Context;
use crate::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the installed versions
    List {
        /// Also those that could be installed
        #[arg(long)]
        all: bool,
    },
    /// Use another installed version (not supported yet)
    Use { version: String },
    /// Install the newest version (not supported yet)
    Upgrade,
    /// Install a version (not supported yet)
    Install {
        version: String,
        #[arg(long, default_value = "standalone")]
        edition: String,
        #[arg(long = "use")]
        use_it: bool,
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove an installed version (not supported yet)
    Uninstall {
        version: String,
        #[arg(short, long)]
        yes: bool,
    },
}

pub fn run(context: &mut Context, args: Args) -> Result<()> {
    match args.command {
        None => println!("{}", crate::long_version()),
        Some(Command::List { all: false }) => {
            let installed = installed(&context.paths.bin_dir);
            if installed.is_empty() {
                println!("{} (current)", env!("CARGO_PKG_VERSION"));
            }
            for (version, is_current) in installed {
                println!("{version}{}", if is_current { " (current)" } else { "" });
            }
        }
        Some(_) => {
            return Err(Error::later(
                "Installing and choosing versions with this command",
                "Replace the two programs by those of the version you want.",
            ))
        }
    }
    Ok(())
}

/// The version directories, newest first, and which of them `current` points to.
fn installed(bin_dir: &Path) -> Vec<(String, bool)> {
    let current = std::fs::read_link(bin_dir.join("current")).ok();
    let current = current
        .as_deref()
        .and_then(Path::file_name)
        .map(|n| n.to_string_lossy().into_owned());
    let entries = std::fs::read_dir(bin_dir).into_iter().flatten().flatten();
    let mut versions: Vec<(Vec<u64>, String)> = entries
        .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| {
            (
                name.split(['.', '-', '+'])
                    .map_while(|part| part.parse().ok())
                    .collect::<Vec<u64>>(),
                name,
            )
        })
        .filter(|(numbers, _)| numbers.len() >= 3)
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|(_, name)| (current.as_deref() == Some(name.as_str()), name))
        .map(|(c, n)| (n, c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::installed;

    #[test]
    fn newest_first_with_the_current_one_marked() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for name in ["2.9.0", "2.10.1", "notes"] {
            std::fs::create_dir(directory.path().join(name)).expect("created");
        }
        std::os::unix::fs::symlink("2.9.0", directory.path().join("current")).expect("linked");
        assert_eq!(
            installed(directory.path()),
            [("2.10.1".to_owned(), false), ("2.9.0".to_owned(), true)]
        );
    }
}
