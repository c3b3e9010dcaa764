//! A server of this workspace.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};

use super::Home;

/// A server on a free port; killed at the end.
pub struct Server {
    process: Child,
    pub url: String,
    /// Keeps reading, so that the server never waits for us.
    _output: std::thread::JoinHandle<()>,
}

impl Server {
    pub fn start(home: &Home) -> Self {
        Self::start_at(home, "127.0.0.1:0")
    }

    pub fn start_at(home: &Home, address: &str) -> Self {
        Self::start_with(home, address, |_| {})
    }

    /// With another command than the usual one.
    pub fn start_with(home: &Home, address: &str, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"));
        command
            .args([
                "start",
                "--non-interactive",
                "--listen-addr",
                address,
                "--data-dir",
            ])
            .arg(home.path("server/data"))
            .arg("--jwt-key-dir")
            .arg(home.path("server/keys"))
            .stdout(Stdio::piped());
        change(&mut command);
        let mut process = command.spawn().expect("the server runs");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let url = loop {
            let line = lines
                .next()
                .expect("the server says where it listens")
                .expect("text");
            if let Some((_, address)) = line.split_once("Starting SpacetimeDB listening on ") {
                break format!("http://{}", address.trim());
            }
        };
        let output = std::thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            url,
            _output: output,
        }
    }

    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.process);
        kill_process(id, signal).expect("it lives");
    }

    /// Asks it to stop and returns its status.
    pub fn stop(mut self) -> i32 {
        self.signal(Signal::TERM);
        self.process.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
