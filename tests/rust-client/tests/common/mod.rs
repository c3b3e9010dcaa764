//! A server of the build under test, and connections that report what happens to them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use lightcone_rust_client_test::module_bindings::*;
use spacetimedb_sdk::{
    Compression, DbContext, Event, Identity, SubscriptionHandle as _, Table, TableWithPrimaryKey,
};

/// How long a test waits for what must happen. Generous: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(180);

fn cache() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache")
        })
        .join("lightcone")
}

/// The `spacetime` under test.
fn binary() -> PathBuf {
    let path = match std::env::var_os("LIGHTCONE_BIN") {
        Some(path) => PathBuf::from(path),
        None => cache().join("target/release/spacetime"),
    };
    assert!(
        path.is_file(),
        "{} is missing: run tests/rust-client/run.sh, which builds it",
        path.display()
    );
    path
}

fn module() -> PathBuf {
    let directory = match std::env::var_os("LIGHTCONE_MODULES_WASM_DIR") {
        Some(path) => PathBuf::from(path),
        None => cache().join("wasm"),
    };
    let path = directory.join("transfer.wasm");
    assert!(
        path.is_file(),
        "{} is missing: build the modules with `make modules`",
        path.display()
    );
    path
}

/// A server with a directory of its own and one database, `transfers`. Gone when dropped.
pub struct Server {
    directory: tempfile::TempDir,
    process: Child,
    pub url: String,
}

impl Server {
    pub fn start() -> Server {
        let directory = tempfile::Builder::new()
            .prefix("lightcone-rust-client-")
            .tempdir()
            .expect("a directory");
        let log = std::fs::File::create(directory.path().join("server.log")).expect("a log file");
        let mut process = command(directory.path())
            .args(["start", "--non-interactive", "--listen-addr", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let deadline = Instant::now() + PATIENCE;
        let address = loop {
            let log =
                std::fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
            let found = log
                .split_once("Starting SpacetimeDB listening on ")
                .and_then(|(_, rest)| {
                    // The whole line must be there, or the port may be cut.
                    rest.split_once(char::is_whitespace)
                        .map(|(address, _)| address.to_owned())
                });
            if let Some(address) = found {
                break address;
            }
            let ended = process.try_wait().expect("the server's state");
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "the server does not start ({ended:?}):\n{log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        let server = Server {
            directory,
            process,
            url: format!("http://{address}"),
        };
        server.cli(&["login", "--server-issued-login", &server.url]);
        let wasm = module();
        let wasm = wasm.to_str().expect("a path in UTF-8");
        server.cli(&[
            "publish",
            "--server",
            &server.url,
            "--bin-path",
            wasm,
            "--yes",
            "transfers",
        ]);
        server
    }

    /// Runs the command line, which must succeed.
    pub fn cli(&self, args: &[&str]) -> String {
        let output = command(self.directory.path())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("the command runs");
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            output.status.success(),
            "spacetime {args:?}: {}\n{out}\n{err}",
            output.status
        );
        out.into_owned()
    }

    /// Connects and waits until the server has said who we are.
    pub fn connect(&self, token: Option<&str>) -> Client {
        self.connect_with(token, Compression::None)
    }

    pub fn connect_with(&self, token: Option<&str>, compression: Compression) -> Client {
        let (sender, happened) = channel();
        let (on_connect, on_error, on_end) = (sender.clone(), sender.clone(), sender.clone());
        let connection = DbConnection::builder()
            .with_uri(self.url.as_str())
            .with_database_name("transfers")
            .with_token(token)
            .with_compression(compression)
            .on_connect(move |_, identity, token| {
                send(&on_connect, Happened::Connected(identity, token.to_owned()))
            })
            .on_connect_error(move |_, error| {
                send(&on_error, Happened::ConnectError(error.to_string()))
            })
            .on_disconnect(move |_, error| {
                send(
                    &on_end,
                    Happened::Disconnected(error.map(|e| e.to_string())),
                )
            })
            .build()
            .expect("the server takes connections");
        connection.run_threaded();
        let mut client = Client {
            connection,
            sender,
            happened,
            identity: Identity::ZERO,
            token: String::new(),
        };
        match client.next() {
            Happened::Connected(identity, token) => {
                (client.identity, client.token) = (identity, token)
            }
            other => panic!("not connected, but {other:?}"),
        }
        client
    }
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .arg("--root-dir")
        .arg(directory)
        .arg("--config-path")
        .arg(directory.join("cli.toml"));
    command.current_dir(directory);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.directory.path().join("server.log"))
                .unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(30).collect();
            eprintln!(
                "the server's last lines, newest first:\n{}",
                lines.join("\n")
            );
        }
    }
}

/// What a callback was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    Connected(Identity, String),
    ConnectError(String),
    Disconnected(Option<String>),
    Applied(&'static str),
    Ended(&'static str),
    SubscriptionError(String),
    Insert(Cause, u32, i64),
    Delete(Cause, u32, i64),
    /// Id, balance before, balance after.
    Update(Cause, u32, i64, i64),
    /// What a reducer said: `Ok`, its own error, or an internal one.
    Result(Result<Result<(), String>, String>),
}

/// Why a row callback ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Subscribed,
    Unsubscribed,
    /// A call of this connection.
    Own,
    /// Another client's transaction.
    Other,
}

fn cause(event: &Event<Reducer>) -> Cause {
    match event {
        Event::SubscribeApplied => Cause::Subscribed,
        Event::UnsubscribeApplied => Cause::Unsubscribed,
        Event::Reducer(_) => Cause::Own,
        Event::Transaction => Cause::Other,
        other => panic!("rows change with {other:?}"),
    }
}

fn send(sender: &Sender<Happened>, what: Happened) {
    // The test may have ended.
    let _ = sender.send(what);
}

/// A connection, and what happened to it in order.
pub struct Client {
    pub connection: DbConnection,
    sender: Sender<Happened>,
    happened: Receiver<Happened>,
    pub identity: Identity,
    pub token: String,
}

impl Client {
    /// The next thing that happens.
    pub fn next(&self) -> Happened {
        self.happened
            .recv_timeout(PATIENCE)
            .expect("something happens")
    }

    /// Checks that nothing more has happened: a call's answer comes after all that was sent before it.
    pub fn expect_nothing_more(&self) {
        let error = self.call_transfer(0, 0, 1);
        assert_eq!(
            error,
            Ok(Err("same_account".to_owned())),
            "nothing but the answer comes"
        );
    }

    /// Reports the changes of rows from here on.
    pub fn watch_rows(&self) {
        let accounts = self.connection.db.accounts();
        let sender = self.sender.clone();
        accounts.on_insert(move |ctx, row| {
            send(
                &sender,
                Happened::Insert(cause(&ctx.event), row.id, row.balance),
            )
        });
        let sender = self.sender.clone();
        accounts.on_delete(move |ctx, row| {
            send(
                &sender,
                Happened::Delete(cause(&ctx.event), row.id, row.balance),
            )
        });
        let sender = self.sender.clone();
        accounts.on_update(move |ctx, old, new| {
            assert_eq!(old.id, new.id);
            send(
                &sender,
                Happened::Update(cause(&ctx.event), new.id, old.balance, new.balance),
            );
        });
    }

    /// Subscribes under a label that [`Happened::Applied`] and [`Happened::Ended`] bear.
    pub fn subscribe(&self, label: &'static str, queries: &[&'static str]) -> Subscription {
        let (applied, failed) = (self.sender.clone(), self.sender.clone());
        let handle = self
            .connection
            .subscription_builder()
            .on_applied(move |_| send(&applied, Happened::Applied(label)))
            .on_error(move |_, error| send(&failed, Happened::SubscriptionError(error.to_string())))
            .subscribe(queries.to_vec());
        Subscription {
            handle,
            label,
            sender: self.sender.clone(),
        }
    }

    /// Everything that happens until `last` does, without it; in a fixed order, as rows of a message have none.
    pub fn until(&self, last: &Happened) -> Vec<Happened> {
        let mut seen = Vec::new();
        loop {
            match self.next() {
                what if what == *last => break,
                what => seen.push(what),
            }
        }
        seen.sort_by_key(|what| format!("{what:?}"));
        seen
    }

    /// Takes as many happenings, in a fixed order.
    pub fn take(&self, count: usize) -> Vec<Happened> {
        let mut seen: Vec<_> = (0..count).map(|_| self.next()).collect();
        seen.sort_by_key(|what| format!("{what:?}"));
        seen
    }

    pub fn start_seed(&self, n: u32, initial_balance: i64) {
        let sender = self.sender.clone();
        self.connection
            .reducers
            .seed_then(n, initial_balance, move |_, result| {
                send(&sender, Happened::Result(result.map_err(|e| e.to_string())))
            })
            .expect("the call is queued");
    }

    pub fn start_transfer(&self, from: u32, to: u32, amount: i64) {
        let sender = self.sender.clone();
        self.connection
            .reducers
            .transfer_then(from, to, amount, move |_, result| {
                send(&sender, Happened::Result(result.map_err(|e| e.to_string())))
            })
            .expect("the call is queued");
    }

    /// Calls and expects that the result is the next thing that happens.
    pub fn call_transfer(
        &self,
        from: u32,
        to: u32,
        amount: i64,
    ) -> Result<Result<(), String>, String> {
        self.start_transfer(from, to, amount);
        match self.next() {
            Happened::Result(result) => result,
            other => panic!("no result, but {other:?}"),
        }
    }

    pub fn call_missing(&self) -> Result<Result<(), String>, String> {
        let sender = self.sender.clone();
        self.connection
            .reducers
            .missing_then(1, move |_, result| {
                send(&sender, Happened::Result(result.map_err(|e| e.to_string())))
            })
            .expect("the call is queued");
        match self.next() {
            Happened::Result(result) => result,
            other => panic!("no result, but {other:?}"),
        }
    }

    pub fn call_seed(&self, n: u32, initial_balance: i64) {
        self.start_seed(n, initial_balance);
        assert_eq!(self.next(), Happened::Result(Ok(Ok(()))));
    }

    /// The cache, by id.
    pub fn cached(&self) -> Vec<(u32, i64)> {
        let mut rows: Vec<_> = self
            .connection
            .db
            .accounts()
            .iter()
            .map(|row| (row.id, row.balance))
            .collect();
        rows.sort_unstable();
        assert_eq!(self.connection.db.accounts().count(), rows.len() as u64);
        rows
    }

    pub fn cached_balance(&self, id: u32) -> Option<i64> {
        self.connection
            .db
            .accounts()
            .id()
            .find(&id)
            .map(|row| row.balance)
    }

    pub fn disconnect(&self) {
        self.connection.disconnect().expect("it is connected");
        assert!(matches!(self.next(), Happened::Disconnected(_)));
        assert!(!self.connection.is_active());
    }
}

pub struct Subscription {
    handle: SubscriptionHandle,
    label: &'static str,
    sender: Sender<Happened>,
}

impl Subscription {
    pub fn is_active(&self) -> bool {
        self.handle.is_active()
    }

    pub fn is_ended(&self) -> bool {
        self.handle.is_ended()
    }

    pub fn unsubscribe(&self) {
        let (sender, label) = (self.sender.clone(), self.label);
        self.handle
            .clone()
            .unsubscribe_then(Box::new(move |_| send(&sender, Happened::Ended(label))))
            .expect("the subscription is active");
    }
}
