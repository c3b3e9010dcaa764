//! Backups of a real server under load, in a directory and in storage with the protocol of S3: made, listed, verified, brought back,
//! killed in the middle, damaged.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common;
use crate::common::server::Server;
use crate::common::{Home, Outcome};
use lightcone_backup::Manifest;
use serde_json::Value;

/// Snapshots come soon here.
const CONFIG: &str = "[limits]\nsnapshot-log-bytes = 262144\n";
const ACCOUNTS: u64 = 2_000;
const TOTAL: u64 = ACCOUNTS * 100;

struct World {
    home: Home,
    server: Server,
    token: String,
}

impl World {
    /// With a database `bank` in which transfers leave the sum of all balances as it is.
    fn start(config: &str) -> World {
        let home = Home::new();
        home.write("server/data/config.toml", config);
        let server = Server::start(&home);
        home.run(&["login", "--server-issued-login", &server.url])
            .ok();
        let shown = ["login", "show", "--token", "--server", &server.url];
        let shown = home.run(&shown).ok().stdout;
        let mut words = shown.split_whitespace();
        let token = words.find(|word| word.starts_with("ey")).expect("a token");
        let token = token.to_owned();
        let world = World {
            home,
            server,
            token,
        };
        world
            .on(&["publish", "-b", &module("transfer"), "bank"])
            .ok();
        // Much that changes, so that there is a snapshot.
        for balance in ["1", "2", "3"] {
            world.on(&["call", "bank", "seed", "20000", balance]).ok();
        }
        let accounts = ACCOUNTS.to_string();
        world.on(&["call", "bank", "seed", &accounts, "100"]).ok();
        world
    }

    /// After the server was killed: with what is on the disk.
    fn again(self) -> World {
        let World {
            home,
            server,
            token,
        } = self;
        drop(server);
        let server = Server::start(&home);
        home.run(&["login", "--token", &token, "--server", &server.url])
            .ok();
        World {
            home,
            server,
            token,
        }
    }

    fn on(&self, args: &[&str]) -> Outcome {
        self.on_with(args, &[])
    }

    fn on_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Outcome {
        let variables = [&[("NO_COLOR", "1")], variables].concat();
        self.home.run_with(&self.args(args), "", &variables)
    }

    /// With the server, for commands that need one.
    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let needs_server = !matches!(args, ["backup", "list" | "verify" | "prune", ..]);
        let server = ["-s", self.server.url.as_str()];
        let server = if needs_server { &server[..] } else { &[] };
        [args, server].concat()
    }

    fn place(&self) -> String {
        self.home
            .path("backups")
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }

    fn create(&self) -> Outcome {
        self.on(&["backup", "create", "bank", "--place", &self.place()])
    }

    fn restore(&self, name: &str, more: &[&str]) -> Outcome {
        let args = ["backup", "restore", name, "--place", &self.place()];
        self.on(&[&args, more].concat())
    }

    fn verify(&self) -> Outcome {
        self.on(&["backup", "verify", "--place", &self.place()])
    }

    fn backups(&self) -> Vec<Value> {
        let list = [
            "backup",
            "list",
            "--format",
            "json",
            "--place",
            &self.place(),
        ];
        let list: Value = serde_json::from_str(&self.on(&list).ok().stdout).expect("JSON");
        list["backups"].as_array().expect("a list").clone()
    }

    /// How many accounts there are, and what they have together.
    fn sums(&self, database: &str) -> (u64, u64) {
        let text = "SELECT COUNT(*) AS n, SUM(balance) AS total FROM accounts";
        let table = self.on(&["sql", database, text]).ok().stdout;
        let row = table.lines().nth(2).expect("a row");
        // A sum is an option.
        let number = |cell: &str| {
            let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
            digits.parse().expect("a number")
        };
        let (count, total) = row.split_once('|').expect("two cells");
        (number(count), number(total))
    }

    fn replicas(&self) -> usize {
        let entries = std::fs::read_dir(self.home.path("server/data/replicas"));
        entries.expect("replicas").count()
    }
}

fn module(name: &str) -> String {
    let directory = std::env::var_os("LIGHTCONE_MODULES_WASM_DIR").map_or_else(
        || {
            let home = PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
            home.join(".cache/lightcone/wasm")
        },
        PathBuf::from,
    );
    let path = directory.join(format!("{name}.wasm"));
    assert!(
        path.is_file(),
        "{} is missing: make modules",
        path.display()
    );
    path.to_str().expect("UTF-8").to_owned()
}

/// Clients that transfer from account to account until they are stopped.
struct Load {
    is_over: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    slowest_us: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(world: &World, clients: u64) -> Load {
        let (is_over, calls) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let slowest_us = Arc::new(AtomicU64::new(0));
        let (url, token) = (world.server.url.clone(), world.token.clone());
        let counted = (is_over.clone(), calls.clone(), slowest_us.clone());
        let run = move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let client = reqwest::Client::new();
            let tasks = (0..clients).map(|number| {
                let (is_over, calls, slowest_us) = counted.clone();
                let url = format!("{url}/v1/database/bank/call/transfer");
                let (client, token) = (client.clone(), token.clone());
                runtime.spawn(async move {
                    let mut turn = number;
                    while !is_over.load(Ordering::SeqCst) {
                        turn += clients;
                        let (from, to) = (turn % ACCOUNTS, (turn * 7 + 1) % ACCOUNTS);
                        let started = Instant::now();
                        let call = client.post(&url).bearer_auth(&token);
                        let call = call.header("content-type", "application/json");
                        let sent = call.body(format!("[{from},{to},1]")).send().await;
                        drop(sent.expect("an answer").bytes().await);
                        let took = started.elapsed().as_micros() as u64;
                        slowest_us.fetch_max(took, Ordering::SeqCst);
                        calls.fetch_add(1, Ordering::SeqCst);
                    }
                })
            });
            let tasks: Vec<_> = tasks.collect();
            for task in tasks {
                runtime.block_on(task).expect("no panic");
            }
        };
        Load {
            is_over,
            calls,
            slowest_us,
            thread: Some(std::thread::spawn(run)),
        }
    }

    /// Calls a second, and the slowest one in microseconds, while something is done.
    fn while_doing(&self, work: impl FnOnce()) -> (f64, u64) {
        let (calls, started) = (self.calls.load(Ordering::SeqCst), Instant::now());
        self.slowest_us.store(0, Ordering::SeqCst);
        work();
        let calls = self.calls.load(Ordering::SeqCst) - calls;
        let rate = calls as f64 / started.elapsed().as_secs_f64();
        (rate, self.slowest_us.load(Ordering::SeqCst))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let thread = self.thread.take().expect("it runs");
        let _ = thread.join();
    }
}

/// All files of a place, in the order of their names.
fn files(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in ["log", "manifests", "objects", "snapshots"] {
        let entries = std::fs::read_dir(place.join(directory))
            .into_iter()
            .flatten();
        found.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    found.sort();
    found
}

fn now() -> String {
    lightcone_types::Timestamp::now().to_rfc3339()
}

#[test]
fn backups_under_load_are_restored_as_of_any_moment() {
    let world = World::start(CONFIG);
    let load = Load::start(&world, 8);
    let (rate, slowest_us) = load.while_doing(|| std::thread::sleep(Duration::from_secs(2)));
    println!("without a backup: {rate:.0} calls/s, the slowest {slowest_us} us");
    let started = Instant::now();
    let first = world.create().ok();
    assert!(first.stdout.contains("Backed up bank as of "), "{first:#?}");
    let (rate, slowest_us) = load.while_doing(|| {
        for _ in 0..6 {
            let more = world.create().ok();
            assert!(!more.stderr.contains("begins anew"), "{more:#?}");
        }
    });
    println!("with backups: {rate:.0} calls/s, the slowest {slowest_us} us");
    println!("seven backups: {:?}", started.elapsed());
    drop(load);
    let held = world
        .on(&["top", "bank", "--once", "--format", "json"])
        .ok()
        .stdout;
    println!("{held}");
    world.create().ok();
    let backups = world.backups();
    assert_eq!(backups.len(), 8);
    let offset = |backup: &Value| backup["offset"].as_u64().expect("an offset");
    assert!(backups
        .windows(2)
        .all(|pair| offset(&pair[0]) <= offset(&pair[1])));
    let text = world
        .on(&["backup", "list", "--place", &world.place()])
        .ok();
    assert_eq!(text.stdout.lines().count(), 10, "{text:#?}");
    let verified = world.verify().ok().stdout;
    assert!(verified.contains("8 backups in"), "{verified}");
    assert!(!verified.contains("belong to no backup"), "{verified}");
    for file in files(&world.home.path("backups")) {
        let mode = std::fs::metadata(&file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }

    // A mistake, and what was before it.
    std::thread::sleep(Duration::from_millis(20));
    let before = now();
    std::thread::sleep(Duration::from_millis(20));
    world.on(&["call", "bank", "seed", "3", "5"]).ok();
    world.create().ok();
    world.restore("after", &[]).ok();
    assert_eq!(world.sums("after"), (3, 15));
    world.restore("before", &["--to", &before]).ok();
    assert_eq!(world.sums("before"), (ACCOUNTS, TOTAL));
    // Inside of frames too: no transfer is there by half.
    let backups = world.backups();
    let last = offset(backups.last().expect("backups"));
    let oldest = backups[0]["oldest_offset"].as_u64().expect("an offset");
    let oldest = oldest.max(20);
    let offsets = [last - 2, (last + oldest) / 2, oldest + 1, oldest];
    for (number, offset) in offsets.into_iter().enumerate() {
        let name = format!("middle{number}");
        let restored = world.restore(&name, &["--to", &offset.to_string()]).ok();
        let place = format!("as of transaction {offset}");
        assert!(restored.stdout.contains(&place), "{restored:#?}");
        assert_eq!(world.sums(&name), (ACCOUNTS, TOTAL), "{offset}");
    }
    // It is a database like any other, and the old one is as it was.
    assert_eq!(world.sums("bank"), (3, 15));
    world
        .on(&["call", "before", "transfer", "1", "2", "3"])
        .ok();
    let listed = world.on(&["list"]).ok().stdout;
    assert!(
        listed.contains("before") && listed.contains("bank"),
        "{listed}"
    );
    let refused = world.restore("before", &[]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0556]"),
        "{refused:#?}"
    );
    for to in [
        (last + 1).to_string(),
        "2001-01-01T00:00:00Z".to_owned(),
        "2999-01-01T00:00:00Z".to_owned(),
    ] {
        let refused = world.restore("never", &["--to", &to]);
        assert!(
            refused.status == 1 && refused.stderr.contains("[LC0889]"),
            "{refused:#?}"
        );
    }
    // Another database has no business here.
    let place = world.place();
    let refused = world.on(&["backup", "create", "before", "--place", &place]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0890]"),
        "{refused:#?}"
    );
    let world = world.again();
    assert_eq!(world.sums("before"), (ACCOUNTS, TOTAL));
    assert_eq!(world.sums("after"), (3, 15));
}

/// Runs a command and kills it after a while; returns whether it had ended by then.
fn killed_after(world: &World, args: &[&str], wait: Duration) -> bool {
    let mut command = world.home.command(&world.args(args));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    std::thread::sleep(wait);
    let has_ended = child.try_wait().expect("its status").is_some();
    let _ = child.kill();
    child.wait().expect("it ends");
    has_ended
}

/// Kills a command ten times, a little later each time, and looks at what is there. When it has ended by then, it is killed earlier.
fn kill_again_and_again(world: &World, args: &[&str], undisturbed: Duration, look: impl Fn()) {
    let mut step = undisturbed / 12;
    let (mut wait, mut killed) = (step, 0);
    while killed < 10 {
        if killed_after(world, args, wait) {
            step /= 2;
            wait = step;
        } else {
            killed += 1;
            wait += step;
        }
        look();
    }
}

#[test]
fn what_is_killed_leaves_nothing_half_done() {
    let mut world = World::start("[limits]\nsnapshot-log-bytes = 1048576\n");
    // Enough to write that there is a middle.
    world.on(&["call", "bank", "seed", "100000", "1"]).ok();
    // How long one takes that nothing disturbs, on this machine.
    let elsewhere = world.home.path("elsewhere").display().to_string();
    let undisturbed = Instant::now();
    world
        .on(&["backup", "create", "bank", "--place", &elsewhere])
        .ok();
    let undisturbed = undisturbed.elapsed();
    let place = world.place();
    let create = ["backup", "create", "bank", "--place", &place];
    kill_again_and_again(&world, &create, undisturbed, || {
        let verified = world.verify();
        let is_none = verified.stderr.contains("[LC0889]");
        assert!(is_none || verified.status == 0, "{verified:#?}");
        world.on(&["call", "bank", "transfer", "1", "2", "1"]);
    });
    world.create().ok();
    world.verify().ok();

    let undisturbed = Instant::now();
    world.restore("undisturbed", &[]).ok();
    let undisturbed = undisturbed.elapsed();
    let replicas = world.replicas();
    let restore = ["backup", "restore", "copy", "--place", &place];
    kill_again_and_again(&world, &restore, undisturbed, || {
        world.on(&["delete", "copy", "-y"]);
    });
    // The server may have had all of it by then, and go on.
    let started = Instant::now();
    while world.replicas() > replicas {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "files stay behind"
        );
        let sums = world.on(&["sql", "copy", "SELECT COUNT(*) AS n FROM accounts"]);
        if sums.status == 0 {
            assert_eq!(world.sums("copy").0, 100_000);
            world.on(&["delete", "copy", "-y"]).ok();
        }
        std::thread::sleep(Duration::from_millis(50));
    }

    // The server in the middle of it.
    for (number, wait_ms) in [60, 150, 300, 600].into_iter().enumerate() {
        let name = format!("killed{number}");
        let restore = ["backup", "restore", &name, "--place", &place];
        let mut command = world
            .home
            .command(&[&restore[..], &["-s", &world.server.url]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(wait_ms));
        world = world.again();
        child.wait().expect("it ends");
        // All of it, or nothing and the name is free.
        let sums = world.on(&["sql", &name, "SELECT COUNT(*) AS n FROM accounts"]);
        match sums.status {
            0 => assert_eq!(world.sums(&name).0, 100_000),
            _ => {
                world.restore(&name, &[]).ok();
                assert_eq!(world.sums(&name).0, 100_000);
            }
        }
    }
    assert_eq!(world.sums("bank").0, 100_000);
}

#[test]
fn damage_of_each_file_is_named() {
    let world = World::start(CONFIG);
    let is_there = |name: &str| {
        let name = format!("/{name}/");
        let all = files(&world.home.path("backups"));
        all.iter()
            .any(|file| file.to_string_lossy().contains(&name))
    };
    // Until there is a snapshot in it.
    let started = Instant::now();
    world.create().ok();
    while !is_there("objects") {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no snapshot came"
        );
        std::thread::sleep(Duration::from_secs(1));
        world.on(&["call", "bank", "transfer", "1", "2", "1"]).ok();
        world.create().ok();
    }
    world.on(&["call", "bank", "transfer", "1", "2", "1"]).ok();
    world.create().ok();
    let place = world.home.path("backups");
    let all = files(&place);
    for directory in ["log", "manifests", "objects", "snapshots"] {
        assert!(is_there(directory), "{directory}: {all:?}");
    }
    world.verify().ok();
    for file in &all {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let whole = std::fs::read(file).expect("a file");
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x10;
        let cut = whole[..middle].to_vec();
        for bytes in [Some(damaged), Some(cut), None] {
            match &bytes {
                Some(bytes) => std::fs::write(file, bytes).expect("written"),
                None => std::fs::remove_file(file).expect("removed"),
            }
            let verified = world.verify();
            // A manifest that is gone is missed where later ones go on from it.
            let is_unmissed =
                bytes.is_none() && file.parent().is_some_and(|p| p.ends_with("manifests"));
            if !is_unmissed {
                assert!(verified.status == 1, "{name}: {verified:#?}");
                assert!(
                    verified.stderr.contains("[LC0551]"),
                    "{name}: {verified:#?}"
                );
                assert!(verified.stdout.contains(&name), "{name}: {verified:#?}");
            }
            std::fs::write(file, &whole).expect("written");
        }
    }
    world.verify().ok();
    // What cannot be read is not brought back by half.
    for file in &all {
        if file.to_string_lossy().contains("/objects/") {
            std::fs::remove_file(file).expect("removed");
        }
    }
    let refused = world.restore("half", &[]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0551]"),
        "{refused:#?}"
    );
    assert_eq!(
        world.on(&["sql", "half", "SELECT * FROM accounts"]).status,
        1
    );
    // The next backup has it all again.
    let made = world.create().ok();
    assert!(made.stderr.contains("[LC0551]"), "{made:#?}");
    world.restore("whole", &[]).ok();
    assert_eq!(world.sums("whole"), (ACCOUNTS, TOTAL));
}

/// The places with copies of all files of a place.
fn copy_place(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = to.join(file.strip_prefix(from).expect("it is in it"));
        std::fs::create_dir_all(copy.parent().expect("a directory")).expect("made");
        std::fs::copy(&file, copy).expect("copied");
    }
}

#[test]
fn old_backups_go_and_the_others_stay_whole() {
    let world = World::start(CONFIG);
    for _ in 0..6 {
        // More than makes a snapshot.
        world.on(&["call", "bank", "seed", "8000", "1"]).ok();
        world.create().ok();
    }
    let accounts = ACCOUNTS.to_string();
    world.on(&["call", "bank", "seed", &accounts, "100"]).ok();
    world.create().ok();
    let place = world.home.path("backups");
    let before = files(&place);
    let prune = |place: &str, more: &[&str]| {
        let args = ["backup", "prune", "--place", place, "--files-older-than"];
        world.on(&[&args, more].concat())
    };
    // Nothing goes without being asked for, nor from a place without backups.
    let place = place.to_str().expect("UTF-8");
    assert!(prune(place, &["0s"]).status != 0);
    let refused = prune("nowhere", &["0s", "--keep-last", "1"]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0889]"),
        "{refused:#?}"
    );
    let tried = prune(place, &["0s", "--keep-last", "2", "--dry-run"]).ok();
    assert!(
        tried.stdout.contains("Would remove 5 backups"),
        "{tried:#?}"
    );
    let young = prune(place, &["1d", "--keep-last", "7"]).ok();
    assert!(young.stdout.contains("Removed 0 backups"), "{young:#?}");
    assert_eq!(files(&world.home.path("backups")), before);

    // Killed at some moment, and then done. Which moments are met, the machine decides; `prune.rs` has a test with each.
    let copy = |name: &str| {
        let copied = world.home.path(name);
        copy_place(&world.home.path("backups"), &copied);
        copied.to_str().expect("UTF-8").to_owned()
    };
    let whole = |place: &str, backups: usize| {
        let verified = world.on(&["backup", "verify", "--place", place]).ok();
        let list = ["backup", "list", "--format", "json", "--place", place];
        let list: Value = serde_json::from_str(&world.on(&list).ok().stdout).expect("JSON");
        let count = list["backups"].as_array().expect("a list").len();
        assert!(count >= backups, "{list}");
        (count, verified.stdout)
    };
    let undisturbed = Instant::now();
    prune(&copy("undisturbed"), &["0s", "--keep-last", "2"]).ok();
    let undisturbed = undisturbed.elapsed();
    for eighths in 3..=8 {
        let place = copy(&format!("killed{eighths}"));
        let args = ["backup", "prune", "--place", &place, "--keep-last", "2"];
        let args = [&args[..], &["--files-older-than", "0s"]].concat();
        killed_after(&world, &args, undisturbed * eighths / 8);
        whole(&place, 2);
        prune(&place, &["0s", "--keep-last", "2"]).ok();
        let (count, verified) = whole(&place, 2);
        assert_eq!(count, 2);
        assert!(!verified.contains("belong to no backup"), "{verified}");
    }

    let removed = prune(place, &["0s", "--keep-last", "3"]).ok();
    assert!(removed.stdout.contains("Removed 4 backups"), "{removed:#?}");
    assert!(files(&world.home.path("backups")).len() < before.len());
    let (count, verified) = whole(place, 3);
    assert_eq!(count, 3);
    assert!(!verified.contains("belong to no backup"), "{verified}");
    let backups = world.backups();
    let offset = backups[0]["offset"].as_u64().expect("an offset");
    world.restore("oldest", &["--to", &offset.to_string()]).ok();
    assert_eq!(world.sums("oldest"), (8_000, 8_000));
    world.restore("newest", &[]).ok();
    assert_eq!(world.sums("newest"), (ACCOUNTS, TOTAL));
    let more = world.create().ok();
    assert!(!more.stderr.contains("begins anew"), "{more:#?}");
    world.verify().ok();
}

/// What a command says that does nothing.
fn refused(outcome: Outcome) -> String {
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    outcome.stderr
}

#[test]
fn what_is_exported_is_imported() {
    let world = World::start("[limits]\nclient-bytes-max = 1048576\n");
    let out = world.home.path("out");
    let place = out.to_str().expect("UTF-8");
    let exported = world.on(&["export", "bank", "--out", place]).ok();
    assert!(
        exported.stdout.contains("2000 rows of 1 tables"),
        "{}",
        exported.stdout
    );
    assert!(!exported.stderr.contains("warning"), "{}", exported.stderr);
    let path = |name: &str| out.join(name);
    for (name, expected) in [
        ("", 0o700),
        ("accounts.ndjson", 0o600),
        ("module.wasm", 0o600),
    ] {
        let mode = std::fs::metadata(path(name)).expect("there").permissions();
        assert_eq!(mode.mode() & 0o777, expected, "{name}");
    }
    let schema = std::fs::read_to_string(path("schema.json")).expect("a schema");
    let described: Value = serde_json::from_str(&schema).expect("JSON");
    assert!(
        described["as_of"].is_u64() && described["definition"].is_object(),
        "{schema}"
    );
    let rows = std::fs::read_to_string(path("accounts.ndjson")).expect("rows");
    let balance =
        |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["balance"].as_u64();
    let balances: Option<u64> = rows.lines().map(balance).sum();
    assert_eq!(balances, Some(TOTAL));
    // Files of two exports are not mixed.
    let again = refused(world.on(&["export", "bank", "--out", place]));
    assert!(again.contains("[LC0892]"), "{again}");

    // The module of another database does what it did, on the same rows; its `init` does not run again.
    let imported = world.on(&["import", place, "copy"]).ok().stdout;
    assert!(imported.contains("2000 rows of 1 tables"), "{imported}");
    assert_eq!(world.sums("copy"), (ACCOUNTS, TOTAL));
    world.on(&["call", "copy", "transfer", "1", "2", "5"]).ok();
    let text = "SELECT balance FROM accounts WHERE id = 2";
    for (database, balance) in [("copy", "105"), ("bank", "100")] {
        let answer = world.on(&["sql", database, text]).ok().stdout;
        assert!(answer.contains(balance), "{answer}");
    }

    // What is not whole, or no row, becomes no database.
    let replicas = world.replicas();
    let refuses = |rows: &str, schema: &str, code: &str| {
        std::fs::write(path("accounts.ndjson"), rows).expect("written");
        std::fs::write(path("schema.json"), schema).expect("written");
        let said = refused(world.on(&["import", place, "other"]));
        assert!(said.contains(code), "{said}");
        let said = refused(world.on(&["sql", "other", text]));
        assert!(said.contains("other"), "{said}");
    };
    let first = rows.lines().next().expect("a row");
    refuses(
        &format!("{first}\n"),
        &schema,
        "says that there are 2000 [LC0893]",
    );
    refuses(
        &format!("{first}\n{first}\n{{\"id\":1}}\n"),
        &schema,
        "accounts.ndjson:3: ",
    );
    refuses(
        &format!(
            "{first}\n{}\n",
            first.replace("\"balance\":", "\"balance\":1")
        ),
        &schema,
        "[LC0894]",
    );
    refuses(&rows, "{}", "[LC0893]");
    std::os::unix::fs::symlink("accounts.ndjson", path("link")).expect("made");
    for other in ["/", "../out/accounts.ndjson", "link"] {
        let schema = schema.replace("accounts.ndjson", other);
        refuses(&rows, &schema, "is not the name of a file beside it");
    }
    std::fs::write(path("schema.json"), &schema).expect("written");
    let taken = refused(world.on(&["import", place, "copy"]));
    assert!(taken.contains("[LC0556]"), "{taken}");
    assert_eq!(world.replicas(), replicas);

    // A table that is too much for one answer comes in pages, each row once.
    world
        .on(&["call", "bank", "seed", "60000", "123456789"])
        .ok();
    let large = world.home.path("large");
    let place = large.to_str().expect("UTF-8");
    let exported = world.on(&["export", "bank", "--out", place]).ok().stdout;
    assert!(exported.contains("60000 rows of 1 tables"), "{exported}");
    let rows = std::fs::read_to_string(large.join("accounts.ndjson")).expect("rows");
    let rows = rows.lines().zip(0..);
    for (line, id) in rows {
        assert_eq!(line, format!("{{\"id\":{id},\"balance\":123456789}}"));
    }
    let place = world.home.path("torn").display().to_string();
    let torn = ["export", "bank", "--table-by-table", "--out", &place];
    let torn = refused(world.on(&torn));
    assert!(torn.contains("[LC0706]"), "{torn}");
}

/// Other servers know no states of the past.
#[test]
fn other_servers_are_exported_from() {
    const DEFINITION: &str = r#"{"typespace":{"types":[{"Product":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}}]}}]},
        "tables":[{"name":"t","product_type_ref":0,"primary_key":[],"indexes":[],"constraints":[],"sequences":[],"schedule":{"none":[]},
        "table_type":{"User":[]},"table_access":{"Public":[]}}],"reducers":[],"types":[],"misc_exports":[],"row_level_security":[]}"#;
    let answer = |columns: &str, rows: &str| {
        common::json(format!(
            r#"[{{"schema":{{"elements":[{columns}]}},"rows":{rows},"total_duration_micros":1,"stats":{{}}}}]"#
        ))
    };
    let column =
        |name: &str, ty: &str| format!(r#"{{"name":{{"some":"{name}"}},"algebraic_type":{ty}}}"#);
    let mode = Arc::new(Mutex::new(""));
    let (mode_of, asked) = (mode.clone(), AtomicU64::new(0));
    let mock = common::Mock::start(move |request| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let mode = *mode_of.lock().expect("no panic");
        match request.path.rsplit_once('/').map_or("", |(_, last)| last) {
            "changes?follow=false" if mode == "busy" => common::text(503, "too many [LC0514]"),
            "schema?version=9" if mode == "updated" => {
                let number = asked.fetch_add(1, Ordering::Relaxed) as usize;
                common::json(format!("{DEFINITION}{}", " ".repeat(number)))
            }
            "schema?version=9" if mode == "twice" => {
                let tables = DEFINITION.find(r#"{"name":"t""#).expect("a table");
                let end = DEFINITION.find(r#"],"reducers""#).expect("its end");
                let (before, table) = (&DEFINITION[..tables], &DEFINITION[tables..end]);
                common::json(format!("{before}{table},{}", &DEFINITION[tables..]))
            }
            "schema?version=9" => common::json(DEFINITION),
            "changes?follow=false" if mode == "trimmed" => common::text(200, "id: 5-0\n\n"),
            "sql" if text == "SELECT * FROM \"t\" AS OF 5" => common::text(400, "gone [LC0419]"),
            "sql" if text.starts_with("SELECT program_kind, program_bytes FROM \"st_module\"") => {
                let program = column("program_bytes", r#"{"Array":{"U8":[]}}"#);
                let columns = format!("{},{program}", column("program_kind", r#"{"U8":[]}"#));
                answer(&columns, r#"[[0,"0061736d"]]"#)
            }
            "sql" if text == "SELECT * FROM \"t\"" => {
                answer(&column("id", r#"{"U32":[]}"#), "[[1],[2]]")
            }
            _ => common::text(404, "not found"),
        }
    });
    let home = Home::new();
    home.log_in("u1", &mock.url);
    let export = ["export", common::DATABASE, "--out", "out", "-s", &mock.url];
    let exported = home.run(&export).ok();
    assert!(
        exported.stderr.contains("one after the other"),
        "{}",
        exported.stderr
    );
    let read = |name: &str| std::fs::read(home.path("out").join(name)).expect("a file");
    assert_eq!(read("t.ndjson"), b"{\"id\":1}\n{\"id\":2}\n");
    assert_eq!(read("module.wasm"), b"\0asm");
    let described: Value = serde_json::from_slice(&read("schema.json")).expect("JSON");
    assert!(described["as_of"].is_null(), "{described}");
    // One that knows them, and is busy, is not taken for one that does not. Nor is what does not fit together an export.
    for (how, code, text) in [
        ("busy", "[LC0514]", "--table-by-table"),
        ("updated", "[LC0892]", "was updated meanwhile"),
        ("twice", "[LC0892]", "t.ndjson is there already"),
        ("trimmed", "[LC0419]", "Remove trimmed and export again"),
    ] {
        *mode.lock().expect("no panic") = how;
        let export = ["export", common::DATABASE, "--out", how, "-s", &mock.url];
        let said = refused(home.run(&export));
        assert!(said.contains(code) && said.contains(text), "{said}");
        assert!(!home.path(how).join("schema.json").exists(), "{how}");
    }
}

#[test]
fn the_newest_backup_is_the_last_one_whatever_the_clock_says() {
    let world = World::start(CONFIG);
    world.create().ok();
    // As if the clock of the server was set back by an hour since.
    let all = files(&world.home.path("backups"));
    let is_manifest = |path: &&PathBuf| path.extension().is_some_and(|e| e == "json");
    let path = all.iter().find(is_manifest).expect("a manifest");
    let mut made = Manifest::decode("m", &std::fs::read(path).expect("a file")).expect("whole");
    made.time += 3_600_000_000;
    std::fs::remove_file(path).expect("removed");
    let moved = world.home.path("backups").join(made.name());
    std::fs::write(moved, made.encode()).expect("written");
    world.on(&["call", "bank", "seed", "3", "5"]).ok();
    world.create().ok();
    world.restore("newest", &[]).ok();
    assert_eq!(world.sums("newest"), (3, 15));
}

/// Storage with the protocol of S3: `moto_server -p 5000` of the Python package `moto[server]`, or another one at the address in
/// `LIGHTCONE_TEST_S3`.
#[test]
#[ignore = "needs a server for S3"]
fn storage_with_the_protocol_of_s3() {
    let endpoint = std::env::var("LIGHTCONE_TEST_S3");
    let endpoint = endpoint.unwrap_or_else(|_| "http://127.0.0.1:5000".to_owned());
    let variables = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bucket = format!("backups-{}", std::process::id());
    let made = reqwest::Client::new().put(format!("{endpoint}/{bucket}"));
    let made = runtime.block_on(made.send()).expect("an answer");
    assert!(made.status().is_success(), "{made:?}");
    let world = World::start(CONFIG);
    let place = format!("s3://{bucket}/of/bank");
    let on = |args: &[&str]| {
        let args = [&["backup"], args, &["--place", &place]].concat();
        world.on_with(&args, &variables)
    };
    let load = Load::start(&world, 4);
    for _ in 0..6 {
        let made = on(&["create", "bank"]).ok();
        assert!(!made.stderr.contains("begins anew"), "{made:#?}");
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(load);
    on(&["create", "bank"]).ok();
    let verified = on(&["verify"]).ok().stdout;
    assert!(verified.contains("7 backups in"), "{verified}");
    let listed = on(&["list"]).ok().stdout;
    assert_eq!(listed.lines().count(), 9, "{listed}");
    let prune = ["prune", "--keep-last", "2", "--files-older-than", "0s"];
    // As a command that was killed leaves it.
    let lock = format!("{endpoint}/{bucket}/of/bank/manifests/lock");
    // What looks like a signature is enough for `moto`.
    let signature = "AWS4-HMAC-SHA256 Credential=test/20261128/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00";
    let ask = |method: reqwest::Method, body: &'static str| {
        let asked = reqwest::Client::new().request(method, &lock).body(body);
        let asked = asked.header("authorization", signature).send();
        assert!(runtime
            .block_on(asked)
            .expect("an answer")
            .status()
            .is_success());
    };
    ask(reqwest::Method::PUT, "a killed command");
    let held = refused(on(&prune));
    assert!(
        held.contains("`a killed command`") && held.contains("[LC0895]"),
        "{held}"
    );
    // It is taken for no backup.
    let verified = on(&["verify"]).ok().stdout;
    assert!(verified.contains("7 backups in"), "{verified}");
    ask(reqwest::Method::DELETE, "");
    // The first one leaves no lock.
    on(&prune).ok();
    on(&prune).ok();
    let verified = on(&["verify"]).ok().stdout;
    assert!(verified.contains("2 backups in"), "{verified}");
    assert!(!verified.contains("belong to no backup"), "{verified}");
    on(&["restore", "copy"]).ok();
    assert_eq!(world.sums("copy"), (ACCOUNTS, TOTAL));
    let gone = format!("s3://{bucket}-gone/x");
    let refused = world.on_with(&["backup", "create", "bank", "--place", &gone], &variables);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0888]"),
        "{refused:#?}"
    );
}
