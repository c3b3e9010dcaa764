//! `spacetime start` (07 §5.11).

use std::path::Path;
use std::process::Command;

use super::Context;
use crate::error::{Error, Result};
use crate::output::result;
use crate::paths::beside_this_program;

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Which server program to start
    #[arg(long, value_parser = ["standalone", "cloud"], default_value = "standalone")]
    edition: String,
    /// Passed on to the server program; `--help` lists what it takes
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<String>,
}

pub fn run(context: &mut Context, args: Args) -> Result<()> {
    let program = beside_this_program(&format!("spacetimedb-{}", args.edition))?;
    let mut command = command(context, &program);
    if let Some(address) = context.config.listen_addr() {
        command.args(["--listen-addr", address]);
    }
    command.args(&args.args);
    if args.args.iter().any(|arg| arg == "--help" || arg == "-h") {
        result!(
            "`spacetime start` runs the server program with --data-dir {} and the keys in {}, unless you say otherwise. Its help:\n",
            context.paths.data_dir.display(),
            context.paths.config_dir.display()
        );
    }
    Err(replace(command, &program))
}

/// `start` of the server program, with the data and keys of this installation.
pub fn command(context: &Context, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("start")
        .arg("--data-dir")
        .arg(&context.paths.data_dir)
        .arg("--jwt-key-dir")
        .arg(&context.paths.config_dir);
    command
}

/// Becomes the program, where a process can; elsewhere waits for its end.
fn replace(mut command: Command, program: &Path) -> Error {
    #[cfg(unix)]
    let ended = Err(std::os::unix::process::CommandExt::exec(&mut command));
    #[cfg(not(unix))]
    let ended = command.status();
    match ended {
        Ok(status) => Error::of_status(status),
        Err(error) => Error::caused("LC0620", format!("cannot run {}", program.display()), error),
    }
}
