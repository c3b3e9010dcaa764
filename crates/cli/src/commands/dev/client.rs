//! The client's own development command.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use super::session::Session;
use crate::error::{Error, Result};

/// A command that fails so soon was mistyped, or is not installed.
const AT_ONCE: Duration = Duration::from_millis(200);

/// The running client, if there is one.
pub struct Client {
    child: Option<Child>,
}

impl Client {
    pub async fn start(session: &Session) -> Result<Self> {
        let Some(text) = &session.client_command else {
            return Ok(Self { child: None });
        };
        let cannot = |e: std::io::Error| {
            Error::caused("LC0638", format!("cannot start the client: `{text}`"), e)
        };
        let (shell, option) = match cfg!(windows) {
            true => ("cmd", "/C"),
            false => ("sh", "-c"),
        };
        let mut command = Command::new(shell);
        // A group of its own, so that ending it ends what it started too.
        #[cfg(unix)]
        command.process_group(0);
        let database = session.targets.first().map_or("", |t| &t.database);
        command
            .args([option, text])
            .current_dir(&session.directory)
            .env("SPACETIMEDB_HOST", &session.server_url)
            .env("SPACETIMEDB_DB_NAME", database)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(cannot)?;
        if let Ok(status) = tokio::time::timeout(AT_ONCE, child.wait()).await {
            let status = status.map_err(cannot)?;
            if !status.success() {
                bail!(
                    "LC0638",
                    "the client ended at once ({status}): `{text}`. Change the command with --run, or start none with \
                     --server-only.",
                );
            }
            return Ok(Self { child: None });
        }
        Ok(Self { child: Some(child) })
    }

    /// Resolves once, when the client ends by itself.
    pub async fn ended(&mut self) -> String {
        let Some(child) = &mut self.child else {
            return std::future::pending().await;
        };
        let status: std::io::Result<ExitStatus> = child.wait().await;
        self.child = None;
        status.map_or_else(|e| e.to_string(), |s| s.to_string())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.child.as_ref().and_then(super::server::pid) {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
        }
    }
}
