//! The two programs together: a real server, a real module (`make modules` builds it), every command.

// Its layer.c knows the system calls of one processor.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common;
use crate::common::server::Server;
use crate::common::{module, Home, Outcome};

#[test]
fn from_publish_to_delete() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());

    let out = on(&["publish", "-b", &module("transfer"), "bank"])
        .ok()
        .stdout;
    let identity = out
        .trim_end()
        .rsplit_once("identity: ")
        .expect("the identity at the end")
        .1
        .to_owned();
    assert!(
        out.contains("Created new database with name: bank, identity: "),
        "{out}"
    );
    on(&["call", "bank", "seed", "10", "1000"]).ok();
    on(&["call", "bank", "transfer", "3", "4", "50"]).ok();
    let refused = on(&["call", "bank", "transfer", "3", "4", "99999"]);
    assert!(
        refused.status == 1 && refused.stderr.contains("insufficient_funds"),
        "{refused:#?}"
    );
    let rows = on(&["sql", "bank", "SELECT * FROM accounts WHERE id = 3"])
        .ok()
        .stdout;
    assert_eq!(rows, " id | balance \n----+---------\n 3  | 950     \n");
    let logs = on(&["logs", "bank"]).ok().stdout;
    assert!(logs.contains("seeded 10 accounts"), "{logs}");
    assert!(on(&["describe", "--json", "bank", "reducer", "transfer"])
        .ok()
        .stdout
        .contains("\"amount\""));
    let list = on(&["list"]).ok().stdout;
    assert!(list.contains("bank") && list.contains(&identity), "{list}");

    // The same module again changes nothing; another one with other tables is refused.
    assert!(on(&["publish", "-b", &module("transfer"), "bank"])
        .ok()
        .stdout
        .contains("Updated database"));
    let other = on(&["publish", "-b", &module("coverage"), "bank"]);
    assert!(
        other.status == 1 && other.stderr.contains("accounts"),
        "{other:#?}"
    );
    assert!(on(&[
        "publish",
        "-y",
        "--delete-data=on-conflict",
        "-b",
        &module("coverage"),
        "bank"
    ])
    .ok()
    .stdout
    .contains("Updated"));
    on(&["call", "bank", "check_numbers"]).ok();

    on(&["lock", "bank"]).ok();
    let locked = on(&["delete", "bank", "-y"]);
    assert!(
        locked.status == 1 && locked.stderr.contains("unlock"),
        "{locked:#?}"
    );
    on(&["unlock", "bank"]).ok();
    on(&["rename", "--to", "museum", &identity]).ok();
    on(&["delete", "museum", "-y"]).ok();
    assert!(on(&["logs", "museum"]).status == 1);
    assert_eq!(server.stop(), 0, "a polite stop is a success");
}

/// What `sql` has answered is there after a SIGKILL.
#[test]
fn a_confirmed_insert_outlives_the_server() {
    let home = Home::new();
    let server = Server::start(&home);
    home.run(&["login", "--server-issued-login", &server.url])
        .ok();
    let sql = |server: &Server, text: &str| home.run(&["sql", "bank", text, "-s", &server.url]);
    home.run(&[
        "publish",
        "-b",
        &module("transfer"),
        "bank",
        "-s",
        &server.url,
    ])
    .ok();
    for start in (0..50).step_by(5) {
        let rows = (start..start + 5).map(|id| format!("({id}, 1000)"));
        let rows = rows.collect::<Vec<_>>().join(", ");
        let inserted = sql(&server, &format!("INSERT INTO accounts VALUES {rows}"));
        assert_eq!(inserted.ok().stdout, "\n\n", "no columns");
    }
    sql(&server, "UPDATE accounts SET balance = 7 WHERE id = 3").ok();
    sql(&server, "DELETE FROM accounts WHERE id > 47").ok();
    let refused = sql(&server, "INSERT INTO accounts VALUES (3, 1)");
    assert!(refused.status == 1 && refused.stderr.contains("Unique constraint violation"));
    drop(server);
    let server = Server::start(&home);
    home.run(&["login", "--server-issued-login", &server.url])
        .ok();
    let count = sql(&server, "SELECT COUNT(*) AS n FROM accounts")
        .ok()
        .stdout;
    assert_eq!(count, " n  \n----\n 48 \n");
    let row = sql(&server, "SELECT balance FROM accounts WHERE id = 3")
        .ok()
        .stdout;
    assert_eq!(row, " balance \n---------\n 7       \n");
}

/// `fixtures/data-2026-11-28.tar.gz` was written by a server that had no due times in its control database: its log, two snapshots, names
/// and roles. It has no keys.
#[test]
fn a_data_directory_of_an_earlier_version_goes_on() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("server")).expect("made");
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(fixtures.join("data-2026-11-28.tar.gz"))
        .arg("-C")
        .arg(home.path("server"))
        .status();
    assert!(unpacked.expect("tar runs").success());
    let balances = |server: &Server| {
        home.run(&["login", "--server-issued-login", &server.url])
            .ok();
        let query = "SELECT balance FROM accounts WHERE id < 3";
        let rows = home.run(&["sql", "house", query, "-s", &server.url]).ok();
        let rows = rows.stdout.lines().skip(2).map(|row| row.trim().to_owned());
        rows.filter(|row| !row.is_empty()).collect::<Vec<_>>()
    };
    let server = Server::start(&home);
    assert_eq!(balances(&server), ["979", "1039", "1039"]);
    let transfer = ["call", "bank", "transfer", "1", "2", "39"];
    home.run(&[&transfer[..], &["-s", &server.url]].concat())
        .ok();
    assert_eq!(server.stop(), 0);
    // Names and roles are what they were, and are written in today's way.
    let server = Server::start(&home);
    assert_eq!(balances(&server), ["979", "1000", "1078"]);
    assert!(!home.path("server/data/control-db/copy-1.damaged").exists());
}

#[test]
fn subscriptions_print_changes() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());
    on(&["publish", "-b", &module("transfer"), "bank"]).ok();
    on(&["call", "bank", "seed", "3", "10"]).ok();

    let query = "SELECT * FROM accounts WHERE id = 1";
    let watch = [
        "subscribe",
        "bank",
        query,
        "--print-initial-update",
        "-n",
        "1",
        "-t",
        "60",
    ];
    let out = std::thread::scope(|scope| {
        let watching = scope.spawn(|| on(&watch));
        // The watcher may not be there yet: change the row until it has seen one change.
        while !watching.is_finished() {
            on(&["call", "bank", "transfer", "0", "1", "1"]);
            on(&["call", "bank", "transfer", "1", "0", "1"]);
        }
        watching.join().expect("no panic").ok().stdout
    });
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(
        lines[0].starts_with(r#"{"accounts":{"deletes":[],"inserts":[{"id":1,"balance":1"#),
        "{out}"
    );
    assert!(
        lines[1].contains(r#""deletes":[{"id":1,"#) && lines[1].contains(r#""inserts":[{"id":1,"#),
        "{out}"
    );

    let late = on(&["subscribe", "bank", query, "-n", "1", "-t", "1"]);
    assert!(
        late.stderr
            .contains("subscription timed out after 1s after receiving 0/1 updates"),
        "{late:#?}"
    );
    on(&["subscribe", "bank", query, "-t", "1"]).ok();
    let none = on(&[
        "subscribe",
        "bank",
        query,
        "-n",
        "0",
        "--print-initial-update",
    ])
    .ok();
    assert!(
        none.stdout.starts_with(r#"{"accounts":{"deletes":[],"#),
        "no updates are wanted, but the server's answer: {none:#?}"
    );
    let wrong = on(&["subscribe", "bank", "SELECT * FROM nothing", "-n", "0"]);
    assert!(
        wrong.status == 1
            && wrong
                .stderr
                .contains("encountered error in initial subscribe: "),
        "{wrong:#?}"
    );
    let wrong = on(&["subscribe", "bank", "SELECT * FROM nothing"]);
    assert!(
        wrong.status == 1
            && wrong
                .stderr
                .contains("encountered error in initial subscribe: "),
        "{wrong:#?}"
    );
}

/// Whom the module does not let in, has watched nothing.
#[test]
fn a_refused_connection_is_no_success() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    let login = home.run(&["login", "--server-issued-login", &url]).ok();
    let me = login.stdout.lines().next().expect("a line");
    let me = me.rsplit(' ').next().expect("the identity").to_owned();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());
    on(&["publish", "-b", &module("coverage"), "club"]).ok();
    on(&["call", "club", "ban", &me]).ok();
    for end in [&[][..], &["-n", "0"], &["-n", "1"], &["-t", "60"]] {
        let refused = on(&[&["subscribe", "club", "SELECT * FROM lifecycle"], end].concat());
        assert_eq!(refused.status, 1, "{end:?}: {refused:#?}");
        assert!(
            refused.stderr.contains("[LC0865]") || refused.stderr.contains("subscription closed"),
            "{refused:#?}"
        );
    }
}

/// `spacetime dev` in a directory whose module is `name`, built by a cargo that has it already.
#[cfg(unix)]
fn develop(home: &Home, url: &str, name: &str) -> Command {
    use std::os::unix::fs::PermissionsExt;
    home.write(
        "project/spacetimedb/Cargo.toml",
        "[package]\nname = \"m\"\n",
    );
    home.write(
        "cargo",
        &format!(
            "#!/bin/sh\necho '{{\"reason\":\"compiler-artifact\",\"filenames\":[\"{}\"]}}'\n",
            module(name)
        ),
    );
    let cargo = home.path("cargo");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_spacetime"));
    command
        .arg("--root-dir")
        .arg(home.path("root"))
        .args(["dev", "bank", "--server-only", "--skip-generate", "-s", url])
        .current_dir(home.path("project"))
        .env("CARGO", cargo)
        .env("CARGO_UNSTABLE_BUILD_STD", "std")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits until the command has said something, then ends it; what it had said until then.
#[cfg(unix)]
fn until(mut command: Command, text: &str) -> String {
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let (lines, said_lines) = std::sync::mpsc::channel();
    let outputs: [Box<dyn std::io::Read + Send>; 2] = [
        Box::new(process.stdout.take().expect("piped")),
        Box::new(process.stderr.take().expect("piped")),
    ];
    for output in outputs {
        let lines = lines.clone();
        std::thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| lines.send(line))
        });
    }
    drop(lines);
    let mut said = String::new();
    for line in said_lines {
        said.push_str(&line);
        said.push('\n');
        if line.contains(text) {
            break;
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    said
}

/// Data are deleted only when the user has said so: at the terminal, or on the command line.
#[cfg(unix)]
#[test]
fn development_deletes_no_data_on_its_own() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());
    on(&["publish", "-b", &module("transfer"), "bank"]).ok();
    on(&["call", "bank", "seed", "3", "10"]).ok();
    let is_there = || on(&["sql", "bank", "SELECT * FROM accounts"]).status == 0;

    let outcome = develop(&home, &url, "coverage").output().expect("it runs");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&outcome.stdout),
        String::from_utf8_lossy(&outcome.stderr),
    );
    assert_eq!(outcome.status.code(), Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains("[LC0863]") && stderr.contains("--delete-data=on-conflict"),
        "{stdout}{stderr}"
    );
    assert!(is_there());

    // At a terminal it asks.
    let mut at_terminal = develop(&home, &url, "coverage");
    let words: Vec<String> = std::iter::once(at_terminal.get_program())
        .chain(at_terminal.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut script = Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]);
    script.current_dir(home.path("project"));
    for (key, value) in at_terminal.get_envs() {
        script.env(key, value.unwrap_or_default());
    }
    script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    at_terminal.stdin(Stdio::null());
    if let Ok(mut process) = script.spawn() {
        use std::io::Write;
        let mut stdin = process.stdin.take().expect("piped");
        stdin.write_all(b"n\n").expect("written");
        let outcome = process.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&outcome.stdout);
        assert!(
            said.contains("Are you sure you want to proceed? [deleting bank] [y/N]")
                && said.contains("[LC0864]"),
            "{said}"
        );
        assert_eq!(outcome.status.code(), Some(1), "{said}");
        assert!(is_there());
    }

    let mut agreed = develop(&home, &url, "coverage");
    agreed.arg("--delete-data=on-conflict");
    let said = until(agreed, "Watching for changes");
    assert!(said.contains("Updated database"), "{said}");
    assert!(!is_there());
}

#[test]
fn a_stranger_may_not_change_or_read_logs() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    home.run(&["publish", "-s", &url, "-b", &module("transfer"), "bank"])
        .ok();
    home.run(&["login", "--server-issued-login", &url]).ok();
    for command in [
        ["logs", "bank"].as_slice(),
        &["delete", "bank", "-y"],
        &["publish", "-y", "bank", "-b", &module("transfer")],
        &["lock", "bank"],
    ] {
        let outcome = home.run(&[command, &["-s", &url]].concat());
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        assert!(
            outcome.stderr.contains("not authorized") || outcome.stderr.contains("owner"),
            "{outcome:#?}"
        );
    }
}

#[test]
fn two_servers_do_not_share_a_directory_and_ports_are_checked() {
    let home = Home::new();
    let server = Server::start(&home);
    let start = |address: &str| {
        Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"))
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
            .output()
            .expect("it runs")
    };
    let same_data = start("127.0.0.1:0");
    assert_eq!(same_data.status.code(), Some(1));
    let text = String::from_utf8_lossy(&same_data.stderr).into_owned();
    assert!(
        text.contains("cannot take lock on database; spacetime.pid already exists"),
        "{text}"
    );
    let same_port = start(server.url.strip_prefix("http://").expect("http"));
    let text = String::from_utf8_lossy(&same_port.stderr).into_owned();
    assert!(
        same_port.status.code() == Some(1)
            && text.contains("is already in use")
            && text.contains("[LC0621]"),
        "{text}"
    );
}

#[test]
fn modules_describe_themselves() {
    for name in ["transfer", "coverage"] {
        let output = Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"))
            .args(["extract-schema", &module(name)])
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.starts_with("{\"V10\":{\"sections\":["),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
    let home = Home::new();
    home.write("bad.wasm", "no wasm at all");
    let output = Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"))
        .arg("extract-schema")
        .arg(home.path("bad.wasm"))
        .output()
        .expect("it runs");
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("[LC0632]"));
}

/// Builds a module with the toolchain of `make modules`, whose directory makes this quick.
fn build_module(home: &Home, module: &str) -> Outcome {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("bash")
        .args([
            "-c",
            ". scripts/lib.sh && . scripts/wasm-toolchain.sh && \
              CARGO_TARGET_DIR=$LIGHTCONE_MODULES_TARGET_DIR exec \"$@\"",
            "bash",
        ])
        .arg(env!("CARGO_BIN_EXE_spacetime"))
        .arg("--root-dir")
        .arg(home.path("root"))
        .args(["build", "--module-path", module])
        .current_dir(root)
        // What cargo sets for tests is meant for this package and this machine.
        .env_remove("CARGO")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output();
    Outcome::from(output.expect("bash runs"))
}

#[test]
fn rust_modules_are_built() {
    let built = build_module(&Home::new(), "modules/transfer-rs").ok();
    assert_eq!(built.stdout, "Build finished successfully.\n");
}

/// Crates that no module can have are explained, also where the linker is what fails. These are stand-ins with the names and symbols of
/// the real ones, so that nothing is fetched.
#[test]
fn crates_for_browsers_are_explained() {
    let home = Home::new();
    let package = |name: &str, version: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n{rest}")
    };
    let root = "[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nrand = { path = \"rand\" }\n[workspace]\n";
    home.write("m/Cargo.toml", &package("m", "0.1.0", root));
    home.write(
        "m/src/lib.rs",
        "#[no_mangle] pub extern \"C\" fn f() -> u32 { rand::random() }\n",
    );
    home.write(
        "m/rand/src/lib.rs",
        "pub fn random() -> u32 { absent::ask() }\n",
    );
    let symbol = |name: &str, attribute: &str| {
        format!("{attribute} extern \"C\" {{ fn {name}() -> u32; }}\npub fn ask() -> u32 {{ unsafe {{ {name}() }} }}\n")
    };
    let browser = "#[link(wasm_import_module = \"__wbindgen_placeholder__\")]";
    for (name, version, source) in [
        ("getrandom", "0.3.4", symbol("__getrandom_v03_custom", "")),
        (
            "getrandom",
            "0.2.17",
            "compile_error!(\"not supported by default\");".to_owned(),
        ),
        (
            "wasm-bindgen",
            "0.2.100",
            symbol("__wbindgen_throw", browser),
        ),
    ] {
        let absent =
            format!("[dependencies]\nabsent = {{ package = \"{name}\", path = \"../absent\" }}\n");
        home.write("m/rand/Cargo.toml", &package("rand", "0.9.5", &absent));
        home.write("m/absent/Cargo.toml", &package(name, version, ""));
        home.write("m/absent/src/lib.rs", &source);
        let refused = build_module(&home, home.path("m").to_str().expect("UTF-8"));
        assert_eq!(refused.status, 1, "{refused:#?}");
        for part in [
            "[LC0613]",
            &format!("the module uses {name}"),
            &format!("    rand 0.9.5 > {name} {version}\n"),
            "    rand = { version = \"0.9\", default-features = false",
        ] {
            assert!(refused.stderr.contains(part), "{part}: {refused:#?}");
        }
    }
}

/// A start says which program runs where, and that it listens; a directory that others could enter is one line more.
#[cfg(unix)]
#[test]
fn a_start_says_little() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    for (mode, lines_max) in [(0o755, 5), (0o700, 4)] {
        home.write("server/data/x", "");
        let data = home.path("server/data");
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let mut process = Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"))
            .args([
                "start",
                "--non-interactive",
                "--listen-addr",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(&data)
            .arg("--jwt-key-dir")
            .arg(home.path("server/keys"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut out = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut said = Vec::new();
        while !said
            .last()
            .is_some_and(|line: &String| line.contains("Starting SpacetimeDB listening on"))
        {
            said.push(out.next().expect("it listens").expect("text"));
        }
        // What it says later it has not said for the start.
        std::thread::sleep(std::time::Duration::from_millis(300));
        process.kill().expect("killed");
        said.extend(out.map(|line| line.expect("text")));
        let errors = process.wait_with_output().expect("it ended").stderr;
        assert_eq!(String::from_utf8_lossy(&errors), "");
        assert!(said.len() <= lines_max, "{said:#?}");
        assert!(!said.iter().any(|line| line.contains("WARN")), "{said:#?}");
        let mended = said
            .iter()
            .filter(|line| line.contains("INFO") && line.contains("[LC0138]"));
        assert_eq!(mended.count(), usize::from(mode == 0o755), "{said:#?}");
    }
}

/// Damages a byte of a log segment well before its end, and returns the segment.
/// What `scripts/cpp-module.sh` ends with where C++ cannot be compiled.
const SKIPPED: i32 = 77;

#[test]
fn a_module_in_cpp_is_made_built_published_and_called() {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cpp-module.sh");
    let check = Command::new(script)
        .arg("--check")
        .status()
        .expect("the script runs");
    if check.code() == Some(SKIPPED) {
        return;
    }
    let home = Home::new();
    let server = Server::start(&home);
    home.run(&["login", "--server-issued-login", &server.url])
        .ok();
    home.run(&["init", "people", "--lang", "cpp", "--non-interactive"])
        .ok();
    let published = home
        .run(&[
            "publish",
            "-p",
            "people/spacetimedb",
            "people",
            "-s",
            &server.url,
            "--no-config",
        ])
        .ok();
    assert!(
        published.stdout.contains("Created new database"),
        "{published:#?}"
    );
    let on = |args: &[&str]| home.run(&[args, &["-s", &server.url]].concat());
    on(&["call", "people", "add", "\"Ann\""]).ok();
    on(&["call", "people", "say_hello"]).ok();
    let refused = on(&["call", "people", "add", "\"\""]);
    assert!(
        refused.stderr.contains("a person needs a name"),
        "{refused:#?}"
    );
    let rows = on(&["sql", "people", "SELECT * FROM person"]).ok().stdout;
    assert_eq!(rows, " id | name  \n----+-------\n 1  | \"Ann\" \n");
    let logs = on(&["logs", "people"]).ok().stdout;
    assert!(
        logs.contains("Hello, Ann!") && logs.contains("src/lib.cpp"),
        "{logs}"
    );

    // What has an operating system is refused before it travels.
    let source = std::fs::read_to_string(home.path("people/spacetimedb/src/lib.cpp"));
    let with_files = source.expect("the source").replace(
        "lightcone::log_info(\"Hello, World!\");",
        "std::remove(\"x\");",
    );
    home.write(
        "people/spacetimedb/src/lib.cpp",
        &format!("#include <cstdio>\n{with_files}"),
    );
    let refused = home.run(&["build", "-p", "people/spacetimedb"]);
    assert!(
        refused.status == 1 && refused.stderr.contains("[LC0613]"),
        "{refused:#?}"
    );
    home.write("people/spacetimedb/src/lib.cpp", "int x = ;");
    let broken = home.run(&["build", "-p", "people/spacetimedb"]);
    assert!(
        broken.status == 1
            && broken.stderr.contains("[LC0613]")
            && broken.stderr.contains("lib.cpp:1:9"),
        "{broken:#?}"
    );
}

fn damage(home: &Home) -> PathBuf {
    let log = home.path("server/data/replicas/1/log");
    let mut segments: Vec<PathBuf> = std::fs::read_dir(&log)
        .expect("the log")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "segment")
        })
        .collect();
    segments.sort();
    let segment = segments.swap_remove(0);
    let mut bytes = std::fs::read(&segment).expect("the segment");
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .expect("a written segment");
    bytes[end - 1000] ^= 0x40;
    std::fs::write(&segment, bytes).expect("written");
    segment
}

#[test]
fn a_damaged_log_is_refused_and_repaired_on_request() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let publish = ["publish", "-b", &module("transfer"), "bank", "-s", &url];
    home.run(&publish).ok();
    home.run(&["call", "bank", "seed", "2", "1000", "-s", &url])
        .ok();
    for _ in 0..20 {
        home.run(&["call", "bank", "transfer", "0", "1", "1", "-s", &url])
            .ok();
    }
    server.stop();
    let segment = damage(&home);

    let query = ["sql", "bank", "SELECT * FROM accounts WHERE id = 1", "-s"];
    let server = Server::start(&home);
    let refused = home.run(&[&query[..], &[&server.url]].concat());
    assert_eq!(refused.status, 1, "{refused:#?}");
    assert!(refused.stderr.contains("LC0503"), "{refused:#?}");
    server.stop();

    let repaired = repair(&segment);
    assert!(
        repaired.stdout.contains("is damaged at byte") && repaired.stdout.contains(".removed"),
        "{repaired:#?}"
    );
    assert!(repair(&segment).stdout.contains("The log is whole"));
    let server = Server::start(&home);
    let rows = home.run(&[&query[..], &[&server.url]].concat()).ok().stdout;
    let balance: i64 = rows
        .split_whitespace()
        .last()
        .and_then(|text| text.parse().ok())
        .expect("a balance");
    assert!(
        (1000..1020).contains(&balance),
        "some transfers are gone: {rows}"
    );
    home.run(&["call", "bank", "transfer", "0", "1", "1", "-s", &server.url])
        .ok();
}

fn repair(segment: &std::path::Path) -> common::Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_spacetimedb-standalone"))
        .args(["repair", "--yes"])
        .arg(segment.parent().expect("a directory"))
        .output()
        .expect("the program runs");
    common::Outcome::from(output)
}
