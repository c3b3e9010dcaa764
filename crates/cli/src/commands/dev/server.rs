//! The server of this machine, if none runs yet.

use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::Child;

use crate::commands::{start, Context};
use crate::error::Result;
use crate::output::remark;
use crate::paths::beside_this_program;

/// A server that does not listen by then has a problem of its own, which its log tells.
const SERVER_START_MAX: Duration = Duration::from_secs(30);
/// Between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(50);

/// A server that was started, and ends with this.
#[derive(Debug)]
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // In order, as Ctrl-C at the terminal would, which reaches it too.
        #[cfg(unix)]
        if let Some(pid) = pid(&self.0) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        #[cfg(not(unix))]
        let _ = self.0.start_kill();
    }
}

/// Starts the server of this machine if none listens there.
pub async fn start_if_absent(context: &Context, url: &str) -> Result<Option<Server>> {
    let Some(address) = address(url) else {
        return Ok(None);
    };
    let listens = || async { TcpStream::connect(&address).await.is_ok() };
    if listens().await {
        return Ok(None);
    }
    let program = beside_this_program("spacetimedb-standalone")?;
    let mut command = start::command(context, &program);
    command
        .args(["--listen-addr", &address, "--non-interactive"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = tokio::process::Command::from(command)
        .spawn()
        .map_err(caused!("LC0620", "cannot run the server program"))?;
    let mut server = Server(child);
    let until = tokio::time::Instant::now() + SERVER_START_MAX;
    while !listens().await {
        let ended = server.0.try_wait().ok().flatten();
        if ended.is_some() || tokio::time::Instant::now() > until {
            bail!(
                "LC0620",
                "the server does not listen on {address}; `spacetime start` shows what is wrong"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
    remark!(
        "Started a server on {address}, with data in {}. It ends with this command.",
        context.paths.data_dir.display()
    );
    Ok(Some(server))
}

fn address(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    Some(format!("{host}:{port}"))
}

#[cfg(unix)]
pub fn pid(child: &Child) -> Option<rustix::process::Pid> {
    let id = i32::try_from(child.id()?).ok()?;
    rustix::process::Pid::from_raw(id)
}
