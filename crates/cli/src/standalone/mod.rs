//! The server program `spacetimedb-standalone` (07 §11): its command line.

mod extract_schema;
mod log_rate;
mod logging;
mod ports;
mod repair;
mod scheduling;
mod start;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::{exit_code, with_version};

/// The name of the server program, and the word by which `spacetime` becomes it.
pub const PROGRAM: &str = "spacetimedb-standalone";

/// The database server.
#[derive(Debug, Parser)]
#[command(
    name = PROGRAM,
    bin_name = PROGRAM,
    arg_required_else_help = true,
    subcommand_required = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    // Scripts put their own options before the user's: the last one counts.
    #[command(args_override_self = true)]
    Start(start::Args),
    /// Print the definition of a module as JSON
    ExtractSchema(extract_schema::Args),
    /// Cut a damaged log before the damage (LC0503, LC0504); the server must not be running
    Repair(repair::Args),
}

/// Parses the arguments, of which the first is the program's name, runs the command, and reports how it went.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let matches = with_version(Cli::command()).get_matches_from(args);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    exit_code(match cli.command {
        Command::Start(args) => start::run(args),
        Command::ExtractSchema(args) => extract_schema::run(&args),
        Command::Repair(args) => repair::run(&args),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn repeated_options_are_allowed_and_the_last_one_wins() {
        let line = "x start --data-dir a --listen-addr 127.0.0.1:1 --data-dir=b -l 127.0.0.1:2 --in-memory --in-memory \
                    --page_pool_max_size 1GiB --non-interactive";
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("valid");
        let Command::Start(args) = cli.command else {
            panic!("start")
        };
        assert_eq!(args.listen_addr, "127.0.0.1:2");
        assert_eq!(args.data_dir, std::path::Path::new("b"));
        assert!(
            Cli::try_parse_from(["x", "start"]).is_err(),
            "--data-dir is required"
        );
        assert!(
            Cli::try_parse_from("x start --data-dir a --jwt-pub-key-path k".split_whitespace())
                .is_err(),
            "the key paths belong together"
        );
    }
}
