//! `spacetime doctor` on machines that lack something, and beside real servers.

use std::time::{Duration, Instant};

use crate::common::server::Server;
use crate::common::{text, token, Home, Mock, Outcome};
use serde_json::Value;

/// The findings of a run with `--format json`.
struct Findings {
    outcome: Outcome,
    checks: Vec<Value>,
}

impl Findings {
    fn of(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let args = [&["doctor", "--format", "json"], args].concat();
        let outcome = home.run_with(&args, "", variables);
        let report: Value = serde_json::from_str(&outcome.stdout).expect("one line of JSON");
        let checks = report["checks"].as_array().expect("checks").clone();
        assert_eq!(report["is_ok"], outcome.status == 0, "{outcome:#?}");
        assert_eq!(
            outcome.stderr.contains("[LC0880]"),
            outcome.status == 1,
            "{outcome:#?}"
        );
        Self { outcome, checks }
    }

    /// The worst state of a check, with its message and advice; empty if there is none.
    fn find(&self, name: &str) -> (String, String) {
        let rank = |check: &&Value| {
            let states = ["ok", "note", "warning", "error"];
            states.iter().position(|state| check["state"] == *state)
        };
        let found = self.checks.iter().filter(|check| check["name"] == name);
        found
            .max_by_key(rank)
            .map_or_else(Default::default, |check| {
                let text = |key: &str| check[key].as_str().unwrap_or_default();
                (
                    text("state").to_owned(),
                    format!("{} → {}", text("message"), text("advice")),
                )
            })
    }

    #[track_caller]
    fn expect(&self, name: &str, state: &str, words: &str) {
        let (found, said) = self.find(name);
        assert!(
            found == state && said.contains(words),
            "{name}: {found} {said}\n{:#?}",
            self.outcome
        );
    }
}

/// A directory with nothing but the programs that are named, each a script that prints a line.
#[cfg(unix)]
fn tools(home: &Home, programs: &[(&str, &str)]) -> String {
    use std::os::unix::fs::PermissionsExt;
    for (name, script) in programs {
        let file = format!("tools/{name}");
        home.write(&file, &format!("#!/bin/sh\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(home.path(&file), mode).expect("executable");
    }
    std::fs::create_dir_all(home.path("tools")).expect("created");
    home.path("tools").to_str().expect("UTF-8").to_owned()
}

#[cfg(unix)]
#[test]
fn what_is_missing_is_an_error_only_where_it_is_needed() {
    let home = Home::new();
    let nothing = tools(&home, &[]);
    let without = [("PATH", nothing.as_str()), ("CARGO", ""), ("RUSTC", "")];
    let outside = Findings::of(&home, &["--offline"], &without);
    assert_eq!(outside.outcome.status, 0);
    for name in ["cargo", "node", "npm", "wasm-opt", "git"] {
        outside.expect(name, "note", "not found");
    }
    outside.expect("spacetimedb-standalone", "ok", "spacetimedb-standalone");
    assert!(!home.path("root").exists(), "looking changes nothing");

    home.write("spacetime.json", "{ database: 'shop', 'module-path': 'm' }");
    home.write("m/Cargo.toml", "[package]\nname = \"m\"\n");
    let inside = Findings::of(&home, &["--offline"], &without);
    inside.expect("cargo", "error", "https://rustup.rs");
    inside.expect("node", "note", "not found");

    let sysroot = home.path("sysroot");
    let rustc = format!("echo {}", sysroot.display());
    let path = tools(
        &home,
        &[
            ("cargo", "echo 'cargo 1.95.0 (x)'"),
            ("rustc", &rustc),
            ("node", "echo v16.1.0"),
            ("npm", "echo oh no >&2; exit 1"),
        ],
    );
    let with = [("PATH", path.as_str()), ("CARGO", ""), ("RUSTC", "")];
    let found = Findings::of(&home, &["--offline"], &with);
    found.expect("cargo", "ok", "cargo 1.95.0 (x)");
    found.expect(
        "wasm32-unknown-unknown",
        "error",
        "rustup target add wasm32-unknown-unknown",
    );
    found.expect("node", "warning", "v16.1.0 is old");
    found.expect("npm", "note", "oh no");
    std::fs::create_dir_all(sysroot.join("lib/rustlib/wasm32-unknown-unknown/lib"))
        .expect("created");
    let found = Findings::of(&home, &["--offline"], &with);
    found.expect("wasm32-unknown-unknown", "ok", "installed");
    found.outcome.ok();
}

/// A toolchain that waits for a network must not keep the user waiting.
#[cfg(unix)]
#[test]
fn programs_that_hang_are_given_up() {
    let home = Home::new();
    let path = tools(&home, &[("node", "exec /bin/sleep 60")]);
    let started = Instant::now();
    let found = Findings::of(&home, &["--offline"], &[("PATH", &path), ("CARGO", "")]);
    found.expect("node", "note", "did not end in 10 s");
    assert!(started.elapsed() < Duration::from_secs(40));
}

#[cfg(unix)]
#[test]
fn files_of_this_machine() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.run(&["server", "list"]).ok();
    let file = home.path("root/config/cli.toml");
    Findings::of(&home, &["--offline"], &[]).expect("cli.toml", "ok", "cli.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("changed");
    let open = Findings::of(&home, &["--offline"], &[]);
    open.expect("cli.toml", "warning", "chmod 600");
    assert_eq!(open.outcome.status, 0, "a warning is no failure");

    home.write("root/config/cli.toml", "default_server = 3\n");
    let broken = Findings::of(&home, &["--offline"], &[]);
    broken.expect(
        "cli.toml",
        "error",
        "`default_server` must be a string [LC0605]",
    );

    home.write("root/config/cli.toml", "default_server = \"local\"\n");
    home.write(
        "root/data/metadata.toml",
        "version = \"2.10.1\"\nedition = \"standalone\"\n",
    );
    let foreign = Findings::of(&home, &["--offline"], &[]);
    foreign.expect("data directory", "error", "edition `standalone`");
    foreign.expect("disk", &foreign.find("disk").0, "MiB free");

    let shown = home.run(&["doctor", "--offline"]);
    assert_eq!(shown.status, 1);
    assert!(
        shown.stdout.contains("This machine\n")
            && shown.stdout.contains("\n  error    data directory ")
            && shown
                .stdout
                .contains("→ Start ours with another --data-dir")
            && shown.stdout.contains("\n1 error, "),
        "{shown:#?}"
    );
}

#[test]
fn files_of_the_project() {
    let home = Home::new();
    home.write("spacetime.json", "{ database: 'shop',\n  sever: 'x' }");
    let typo = Findings::of(&home, &["--offline"], &[]);
    typo.expect(
        "spacetime.json",
        "error",
        "spacetime.json:2:3: Config key 'sever'",
    );
    let ignored = Findings::of(&home, &["--offline", "--no-config"], &[]);
    assert_eq!(ignored.find("spacetime.json"), Default::default());

    home.write("spacetime.json", "{ database: 'shop', 'module-path': 'm', generate: [{language: 'typescript', 'out-dir': 'b'}] }");
    home.write(
        "m/package.json",
        "{ \"dependencies\": { \"spacetimedb\": \"*\" } }",
    );
    home.write(
        "b/index.ts",
        "// a\n\n// This was generated using spacetimedb cli version 2.1.0 (commit x).\n",
    );
    let project = Findings::of(&home, &["--offline"], &[]);
    project.expect("spacetime.json", "ok", "spacetime.json");
    project.expect("module", "error", "npm install");
    project.expect("bindings", "warning", "of version 2.1.0");
    home.write(
        "m/node_modules/spacetimedb/package.json",
        "{\"version\": \"3.0.0\"}",
    );
    let project = Findings::of(&home, &["--offline"], &[]);
    project.expect("module", "warning", "3.0.0, of another major version");
}

#[test]
fn servers_are_asked() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.write(
        "spacetime.json",
        &format!("{{ database: 'shop', server: '{url}' }}"),
    );
    let found = Findings::of(&home, &[], &[]);
    found.expect("ping", "ok", &url);
    found.expect("version", "ok", env!("CARGO_PKG_VERSION"));
    found.expect("login", "ok", "none for this server");
    found.expect("database", "note", "spacetime publish");
    assert_eq!(found.find("clock"), Default::default(), "one clock");

    home.run(&["login", "--server-issued-login", &url]).ok();
    Findings::of(&home, &[], &[]).expect("login", "ok", "as ");
    home.run(&["login", "--token", &token("stranger"), "--server", &url])
        .ok();
    let refused = Findings::of(&home, &["-s", &url], &[]);
    refused.expect("login", "error", "it has another key");
    server.stop();
    Findings::of(&home, &["-s", &url], &[]).expect("ping", "error", "spacetime start");
}

#[test]
fn what_is_no_server_is_told() {
    let home = Home::new();
    let other = Mock::start(|_| text(404, "nothing here"));
    let found = Findings::of(&home, &["-s", &other.url], &[]);
    found.expect("ping", "error", "that is no server of this kind");
    let found = Findings::of(&home, &["-s", "nowhere"], &[]);
    found.expect("address", "error", "[LC0603]");

    // The default server, which was not started.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port");
    home.write(
        "root/config/cli.toml",
        &format!("default_server = \"{closed}\"\n[[server_configs]]\nhost = \"{closed}\"\nprotocol = \"http\"\n"),
    );
    let found = Findings::of(&home, &[], &[]);
    found.expect("ping", "warning", "the port is free");
    assert_eq!(found.outcome.status, 0);

    // A program that takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    Findings::of(&home, &["-s", &url], &[]).expect("ping", "error", "no answer in 5 s");
}

#[test]
fn a_login_is_not_sent_unencrypted() {
    let home = Home::new();
    let server = Mock::start(|_| text(200, ""));
    home.log_in("ann", "http://192.0.2.1:9");
    // No request with the login leaves for an address that is not this machine.
    let proxied = Findings::of(
        &home,
        &["-s", "http://192.0.2.1:9"],
        &[("http_proxy", &server.url), ("NO_PROXY", "")],
    );
    proxied.expect("login", "warning", "not encrypted");
    assert!(
        server.requests().iter().all(|r| r.authorization.is_none())
            && !server.requests().is_empty(),
        "{:?}",
        server.requests()
    );
}

#[test]
fn clocks_are_compared() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let found = Findings::of(&Home::new(), &["-s", &url], &[]);
    found.expect("clock", "warning", "differ by ");
}
