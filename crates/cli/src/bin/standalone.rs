//! The program `spacetimedb-standalone`: it starts `spacetime` beside it as the server.
//!
//! Command and server share nearly all of their code, so there is one large program, and this small one for those who call the
//! server by its name (07 §11). It uses nothing of this crate, so that it stays small.

use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

fn main() -> ExitCode {
    let server = match beside_this_program() {
        Ok(server) => server,
        Err(error) => return fail("cannot find out where this program is", &error),
    };
    let mut command = Command::new(&server);
    command
        .arg("spacetimedb-standalone")
        .args(std::env::args_os().skip(1));
    // Becomes the server: the same process, so that signals reach it.
    #[cfg(unix)]
    let ended: std::io::Result<ExitStatus> =
        Err(std::os::unix::process::CommandExt::exec(&mut command));
    #[cfg(not(unix))]
    let ended = command.status();
    let server = server.display();
    let ended = ended.map(|status| status.code().and_then(|code| u8::try_from(code).ok()));
    match ended {
        Ok(code) => ExitCode::from(code.unwrap_or(1)),
        Err(error) => fail(
            &format!("cannot run {server}, which belongs beside this program; install both"),
            &error,
        ),
    }
}

fn beside_this_program() -> std::io::Result<PathBuf> {
    let this = std::fs::canonicalize(std::env::current_exe()?)?;
    Ok(this.with_file_name(format!("spacetime{}", std::env::consts::EXE_SUFFIX)))
}

fn fail(what: &str, error: &std::io::Error) -> ExitCode {
    eprintln!("Error: {what}: {error} [LC0620]");
    ExitCode::FAILURE
}
