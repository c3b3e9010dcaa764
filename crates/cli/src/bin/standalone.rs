//! The program `spacetimedb-standalone`: it starts `spacetime` beside it as the server.
//!
//! Command and server share nearly all of their code, so there is one large program, and this small one for those who call the
//! server by its name (07 §11). It uses nothing of this crate, so that it stays small.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let server = match beside_this_program() {
        Ok(server) => server,
        Err(error) => return fail("cannot find out where this program is", &error),
    };
    let mut command = Command::new(&server);
    command
        .arg("spacetimedb-standalone")
        .args(std::env::args_os().skip(1));
    run(command, &server)
}

fn beside_this_program() -> std::io::Result<PathBuf> {
    let this = std::fs::canonicalize(std::env::current_exe()?)?;
    Ok(this.with_file_name(format!("spacetime{}", std::env::consts::EXE_SUFFIX)))
}

/// Becomes the server: the same process, so that signals reach it.
#[cfg(unix)]
fn run(mut command: Command, server: &std::path::Path) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    fail(
        &format!(
            "cannot run {}, which belongs beside this program; install both",
            server.display()
        ),
        &error,
    )
}

#[cfg(not(unix))]
fn run(mut command: Command, server: &std::path::Path) -> ExitCode {
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            ExitCode::from(code.unwrap_or(1))
        }
        Err(error) => fail(
            &format!(
                "cannot run {}, which belongs beside this program; install both",
                server.display()
            ),
            &error,
        ),
    }
}

fn fail(what: &str, error: &std::io::Error) -> ExitCode {
    eprintln!("Error: {what}: {error} [LC0620]");
    ExitCode::FAILURE
}
