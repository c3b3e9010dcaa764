//! The real server under load, killed and stopped at random moments, on a disk that loses what was not synced, fails a sync, or fills up.

mod power;

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::common::server::Server;
use super::common::{module, Home};

/// Until then everything has to happen that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Each of them moves money from an account of its own to another one of its own.
const CLIENTS: usize = 4;
const MONEY: i64 = 1_000_000;
/// Small, so that each life has several segments and snapshots.
const CONFIG: &str = "[commitlog]\nmax-segment-size = 8192\n[limits]\nsnapshot-log-bytes = 5000\n";
const SYNC_US_MAX: i64 = 3000;

/// Numbers from a seed.
pub struct Random(u64);

impl Random {
    /// Below a number that is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

/// What the test and layer.c tell each other, in the order of its `struct control`.
#[derive(Clone, Copy)]
enum Field {
    GrowthLeft,
    SyncsLeft,
    SyncUsMax,
    SyncsFailed,
    WritesRefused,
}

/// layer.c, and its files.
struct Layer {
    library: PathBuf,
    below: PathBuf,
    side: PathBuf,
    control: File,
}

impl Layer {
    fn build(home: &Home) -> Layer {
        let side = home.path("disk");
        fs::create_dir_all(side.join("saved")).expect("made");
        let below = home.path("server");
        fs::create_dir_all(&below).expect("made");
        let library = side.join("layer.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing_disk/layer.c");
        let mut compiler = Command::new("cc");
        compiler.args([
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
        ]);
        let built = compiler.arg(&library).arg(source).status();
        assert!(built.expect("cc, which links Rust too").success());
        let mut options = OpenOptions::new();
        let control = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(side.join("control"));
        Layer {
            library,
            below: below.canonicalize().expect("it is there"),
            side: side.canonicalize().expect("it is there"),
            control: control.expect("made"),
        }
    }

    fn set(&self, field: Field, value: i64) {
        let at = field as u64 * 8;
        self.control
            .write_all_at(&value.to_le_bytes(), at)
            .expect("written");
    }

    fn get(&self, field: Field) -> i64 {
        let mut bytes = [0; 8];
        self.control
            .read_exact_at(&mut bytes, field as u64 * 8)
            .expect("read");
        i64::from_le_bytes(bytes)
    }

    /// The disk works.
    fn mend(&self) {
        self.set(Field::GrowthLeft, i64::MAX);
        self.set(Field::SyncsLeft, i64::MAX);
        self.set(Field::SyncUsMax, SYNC_US_MAX);
        self.set(Field::SyncsFailed, 0);
        self.set(Field::WritesRefused, 0);
    }
}

/// What one client knows, over all lives.
#[derive(Default)]
struct Client {
    tried: AtomicI64,
    acknowledged: AtomicI64,
    /// The most that a confirmed read has shown.
    seen: AtomicI64,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Stopped,
    SyncFails,
    DiskFull,
}

struct World {
    home: Home,
    layer: Layer,
    clients: [Client; CLIENTS],
    token: String,
    random: Random,
}

/// Status and body. An error: the server was killed.
fn ask(url: &str, head: &str, body: &[u8]) -> std::io::Result<(u16, String)> {
    let address = url.strip_prefix("http://").expect("a URL");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(stream, "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n")?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    Ok((status.ok_or_else(cut)?, body.to_owned()))
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl World {
    fn new(seed: u64) -> World {
        let home = Home::new();
        let layer = Layer::build(&home);
        home.write("server/data/config.toml", CONFIG);
        let mut world = World {
            home,
            layer,
            clients: Default::default(),
            token: String::new(),
            random: Random(seed),
        };
        let server = world.start();
        let (status, body) = ask(&server.url, "POST /v1/identity HTTP/1.1", b"").expect("answered");
        assert_eq!(status, 200, "{body}");
        let (_, token) = body.split_once("\"token\":\"").expect("a token");
        world.token = token.split('"').next().expect("a token").to_owned();
        let program = fs::read(module("transfer")).expect("a module");
        world.ok(&server, "PUT /v1/database/bank", &program);
        let seed = format!("[{},{MONEY}]", 2 * CLIENTS);
        world.ok(&server, "POST /v1/database/bank/call/seed", seed.as_bytes());
        drop(server);
        world.lose_power();
        world
    }

    fn start(&self) -> Server {
        self.layer.mend();
        Server::start_with(&self.home, "127.0.0.1:0", |command| {
            command
                .env("LD_PRELOAD", &self.layer.library)
                .env("FAILING_DISK_BELOW", &self.layer.below)
                .env("FAILING_DISK_SIDE", &self.layer.side);
        })
    }

    fn lose_power(&mut self) {
        let (bytes, names) =
            power::lose_power(&self.layer.below, &self.layer.side, &mut self.random);
        println!("  the power fails: {bytes} bytes and {names} names are lost");
    }

    fn ask(&self, server: &Server, head: &str, body: &[u8]) -> std::io::Result<(u16, String)> {
        let head = format!("{head} HTTP/1.1\r\nAuthorization: Bearer {}", self.token);
        ask(&server.url, &head, body)
    }

    fn ok(&self, server: &Server, head: &str, body: &[u8]) -> String {
        let (status, body) = self.ask(server, head, body).expect("answered");
        assert_eq!(status, 200, "{body}");
        body
    }

    /// What all clients have moved, by a confirmed read. An error: what was answered, if anything was.
    fn moved(&self, server: &Server) -> Result<[i64; CLIENTS], String> {
        let head = "POST /v1/database/bank/sql?confirmed=true";
        let answer = self.ask(server, head, b"SELECT id, balance FROM accounts");
        let (status, body) = answer.map_err(|error| error.to_string())?;
        if status != 200 {
            return Err(body);
        }
        let mut balances = [0; 2 * CLIENTS];
        let (_, rows) = body.split_once("\"rows\":[[").expect("rows");
        for row in rows.split_once("]]").expect("rows").0.split("],[") {
            let (id, balance) = row.split_once(',').expect("two columns");
            balances[id.parse::<usize>().expect("an id")] = balance.parse().expect("a number");
        }
        let mut moved = [0; CLIENTS];
        for (client, pair) in balances.chunks(2).enumerate() {
            assert_eq!(pair[0] + pair[1], 2 * MONEY, "half of a transfer: {body}");
            moved[client] = pair[1] - MONEY;
        }
        Ok(moved)
    }

    /// What was acknowledged or read is there, and nothing that was not asked for.
    fn check(&self, server: &Server) {
        let moved = self.moved(server).expect("a database that opens");
        for (client, moved) in self.clients.iter().zip(moved) {
            let known = client
                .acknowledged
                .load(SeqCst)
                .max(client.seen.load(SeqCst));
            let tried = client.tried.load(SeqCst);
            assert!(
                (known..=tried).contains(&moved),
                "{moved} moved; {known} are known, and {tried} were asked for"
            );
            // From here on both count from what is there.
            client.acknowledged.store(moved, SeqCst);
            client.tried.store(moved, SeqCst);
        }
    }

    fn acknowledged(&self) -> i64 {
        self.clients
            .iter()
            .map(|client| client.acknowledged.load(SeqCst))
            .sum()
    }

    /// Calls until the server is gone. Each answer is a success, or an error with a code.
    fn call(&self, server: &Server, number: usize) {
        let client = &self.clients[number];
        let body = format!("[{},{},1]", 2 * number, 2 * number + 1);
        loop {
            let has_failed = self.layer.get(Field::SyncsFailed) > 0;
            client.tried.fetch_add(1, SeqCst);
            match self.ask(
                server,
                "POST /v1/database/bank/call/transfer",
                body.as_bytes(),
            ) {
                Err(_) => return,
                Ok((200, _)) => {
                    assert!(!has_failed, "acknowledged after a sync has failed");
                    client.acknowledged.fetch_add(1, SeqCst);
                }
                Ok((status, body)) => {
                    // The second one is SpacetimeDB's text for a database that is being opened again.
                    let is_told = body.contains("[LC") || body == "no such module";
                    assert!(is_told, "{status} {body}");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }

    /// Reads until the server is gone.
    fn watch(&self, server: &Server, is_over: &AtomicBool) {
        while !is_over.load(SeqCst) {
            let Ok(moved) = self.moved(server) else {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            };
            for (client, moved) in self.clients.iter().zip(moved) {
                client.seen.fetch_max(moved, SeqCst);
            }
        }
    }

    fn until_acknowledged(&self, more: u64) {
        let wanted = self.acknowledged() + more as i64;
        until("more calls that succeed", || self.acknowledged() >= wanted);
    }

    fn is_refused(&self, server: &Server) -> String {
        let asked = self.ask(server, "POST /v1/database/bank/call/transfer", b"[0,1,0]");
        asked.expect("answered").1
    }

    /// From a start to a power failure.
    fn live(&mut self, end: End) {
        let [calls, more, pause_ms, syncs, room] =
            [120, 40, 30, 12, 12_000].map(|end| self.random.below(end));
        let server = self.start();
        self.check(&server);
        let is_over = AtomicBool::new(false);
        let world = &*self;
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let server = &server;
                scope.spawn(move || world.call(server, number));
            }
            scope.spawn(|| world.watch(&server, &is_over));
            world.until_acknowledged(calls);
            match end {
                End::Killed => {}
                End::Stopped => {
                    server.signal(Signal::STOP);
                    std::thread::sleep(Duration::from_millis(pause_ms));
                    if pause_ms % 2 == 0 {
                        server.signal(Signal::CONT);
                        world.until_acknowledged(more);
                    }
                }
                End::SyncFails => {
                    world.layer.set(Field::SyncsLeft, syncs as i64);
                    until("a sync that fails", || {
                        world.layer.get(Field::SyncsFailed) > 0
                    });
                    until("a database that is read-only", || {
                        world.is_refused(&server).contains("LC0537")
                    });
                    until("what is durable can be read", || {
                        world.moved(&server).is_ok()
                    });
                }
                End::DiskFull => {
                    world.layer.set(Field::GrowthLeft, room as i64);
                    until("a full disk", || world.layer.get(Field::WritesRefused) > 0);
                    until("a database that is read-only", || {
                        world.is_refused(&server).contains("LC0537")
                    });
                    until("what is durable can be read", || {
                        world.moved(&server).is_ok()
                    });
                    world.layer.set(Field::GrowthLeft, i64::MAX);
                    world.until_acknowledged(more + 1);
                }
            }
            is_over.store(true, SeqCst);
            server.signal(Signal::KILL);
        });
        println!("  {end:?}: {} calls are acknowledged", self.acknowledged());
        drop(server);
        self.lose_power();
    }
}

/// `FAILING_DISK_LIVES` and `FAILING_DISK_SEED` make it longer, and another one.
#[test]
fn what_was_acknowledged_outlives_kills_and_a_failing_disk() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let lives: usize = number("FAILING_DISK_LIVES").unwrap_or(4) as usize;
    let seed: u64 = number("FAILING_DISK_SEED").unwrap_or(1);
    let mut world = World::new(seed);
    for life in 0..lives {
        let ends = [End::Killed, End::SyncFails, End::DiskFull, End::Stopped];
        println!("life {life} of seed {seed}");
        world.live(ends[life % ends.len()]);
    }
    let server = world.start();
    world.check(&server);
}
