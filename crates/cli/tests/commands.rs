//! The commands against a server that plays its part. Logins: `logins.rs`.

use crate::common::shop::mock;
use crate::common::{identity, json, text, token, Home, Response, DATABASE, SHARED};

#[test]
fn usage_errors_end_with_2_and_runtime_errors_with_1() {
    let home = Home::new();
    let none = home.run(&[]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("Usage: spacetime"), "{none:#?}");
    let unknown = home.run(&["publish", "--colour"]);
    assert_eq!(unknown.status, 2);
    assert!(
        unknown
            .stderr
            .contains("unexpected argument '--colour' found"),
        "{unknown:#?}"
    );
    let typo = home.run(&["publsh"]);
    assert_eq!(typo.status, 2);
    assert!(
        typo.stderr.contains("publish"),
        "the near command is named: {typo:#?}"
    );
    let missing = home.run(&["logs"]);
    assert_eq!(missing.status, 2);
    assert!(
        missing
            .stderr
            .contains("the following required arguments were not provided"),
        "{missing:#?}"
    );
}

#[test]
fn the_first_run_writes_the_configuration() {
    let home = Home::new();
    let first = home.run(&["server", "list"]).ok();
    assert!(first.stderr.contains("Saving config to "), "{first:#?}");
    let lines: Vec<Vec<&str>> = first
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines,
        [
            &["DEFAULT", "HOSTNAME", "PROTOCOL", "NICKNAME"][..],
            &["maincloud.spacetimedb.com", "https", "maincloud"],
            &["***", "127.0.0.1:3000", "http", "local"],
        ],
        "the default is a server of one's own"
    );
    assert_eq!(home.run(&["server", "list"]).ok().stderr, "");
}

#[test]
fn an_unreachable_server_is_named_with_the_next_step() {
    let home = Home::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port");
    let outcome = home.run(&["server", "ping", &format!("http://{closed}")]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome
            .stderr
            .contains(&format!("cannot reach the server at http://{closed}")),
        "{outcome:#?}"
    );
    assert!(
        outcome.stderr.contains("spacetime start") && outcome.stderr.contains("[LC0602]"),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("Caused by:"), "{outcome:#?}");
}

#[test]
fn ping_tells_what_answered() {
    let home = Home::new();
    for (status, words) in [
        (200, "Server is online: "),
        (404, "Server returned 404 (Not Found): "),
        (500, "Server could not be reached (500 "),
    ] {
        let server = mock(move |_| Some(text(status, "")));
        let outcome = home.run(&["server", "ping", &server.url]).ok();
        assert!(
            outcome.stdout.starts_with(words) && outcome.stdout.contains(&server.url),
            "{outcome:#?}"
        );
    }
}

#[test]
fn servers_are_added_chosen_edited_and_removed() {
    let home = Home::new();
    let server = mock(|r| (r.path == "/v1/identity/public-key").then(|| text(200, "PEM one")));
    let added = home
        .run(&[
            "server",
            "add",
            "--url",
            &format!("{}/", server.url),
            "mine",
            "-d",
        ])
        .ok();
    let host = server.url.strip_prefix("http://").expect("http");
    assert!(
        added
            .stdout
            .contains(&format!("Host: {host}\nProtocol: http\n"))
            && added.stdout.contains("PEM one"),
        "{added:#?}"
    );
    assert!(
        home.config().contains("default_server = \"mine\"") && home.config().contains("PEM one")
    );
    for again in [
        ["--url", &server.url, "other"],
        ["--url", "http://127.0.0.1:9", "mine"],
        ["--url", "http://127.0.0.1:9/path", "path"],
        ["--url", "http://ann:secret@127.0.0.1:9", "secret"],
        ["--url", "http://127.0.0.1:9", "http://x"],
        ["--url", "http://127.0.0.1:9", ""],
    ] {
        let outcome =
            home.run(&[&["server", "add", "--no-fingerprint"], again.as_slice()].concat());
        assert!(
            outcome.status == 1 && outcome.stderr.contains("[LC0627]"),
            "{outcome:#?}"
        );
    }
    home.run(&["server", "edit", "mine", "--new-name", "yours", "-y"])
        .ok();
    let moved = mock(|r| (r.path == "/v1/identity/public-key").then(|| text(200, "PEM two")));
    let edit = ["server", "edit", "yours", "--url", &moved.url];
    let no = home.run_with(&edit, "n\n", &[]).ok();
    assert!(
        no.stderr.contains("Changing host from ")
            && no.stderr.contains("PEM two")
            && no.stderr.matches("Continue? [y/N]").count() == 1
            && no.stderr.ends_with("Aborting\n")
            && no.stdout.is_empty(),
        "the changes, then one question: {no:#?}"
    );
    assert!(!home.config().contains(&moved.url[7..]));
    let same = home.run_with(&edit, "y\n", &[]).ok();
    assert_eq!(
        same.stderr.matches("Continue? [y/N]").count(),
        1,
        "{same:#?}"
    );
    assert!(home.config().contains(&moved.url[7..]) && home.config().contains("PEM two"));
    home.run(&["server", "edit", "yours", "--url", &server.url, "-y"])
        .ok();
    assert_eq!(home.run(&["server", "edit", "yours"]).status, 2);
    assert!(
        home.config().contains("default_server = \"yours\""),
        "{}",
        home.config()
    );
    let same = home.run(&["server", "fingerprint", "yours"]).ok();
    assert!(same.stdout.contains("unchanged"), "{same:#?}");
    home.run(&["server", "remove", "yours"]).ok();
    assert!(
        !home.config().contains(host) && !home.config().contains("default_server"),
        "{}",
        home.config()
    );
    let outcome = home.run(&["server", "set-default", "yours"]);
    assert!(
        outcome
            .stderr
            .contains("No such saved server configuration: yours"),
        "{outcome:#?}"
    );
    let outcome = home.run(&["logs", "x"]);
    assert!(
        outcome.stderr.contains("server set-default"),
        "{outcome:#?}"
    );
}

#[test]
fn clearing_asks_first() {
    let home = Home::new();
    let nothing = home.run(&["server", "clear"]).ok();
    assert!(
        nothing.stdout.contains("Nothing has been deleted"),
        "{nothing:#?}"
    );
    home.write("root/data/x", "");
    // A mistyped directory has the user's files.
    let foreign = home.run_with(&["server", "clear", "-y"], "", &[]);
    assert!(
        foreign.status == 1 && foreign.stderr.contains("[LC0881]"),
        "{foreign:#?}"
    );
    assert!(home.path("root/data/x").exists());
    home.write("root/data/metadata.toml", "");
    let no = home.run_with(&["server", "clear"], "n\n", &[]).ok();
    assert!(
        no.stderr
            .contains("Are you sure you want to delete all data from the local database? [y/N]"),
        "{no:#?}"
    );
    assert!(home.path("root/data/x").exists());
    home.run_with(&["server", "clear"], "yes\n", &[]).ok();
    assert!(!home.path("root/data").exists());
}

#[test]
fn calls_send_json_and_show_refusals() {
    let home = Home::new();
    let server = mock(|r| {
        (r.method == "POST" && r.path == format!("/v1/database/{DATABASE}/call/add")).then(|| {
            match String::from_utf8_lossy(&r.body).as_ref() {
                r#"[5, "five"]"# => text(200, ""),
                r#"[6, "six"]"# => text(530, "six is too many"),
                _ => text(400, "invalid arguments for reducer add: invalid length 1, expected args for add with 2 elements"),
            }
        })
    });
    home.log_in("ann", &server.url);
    let call = |args: &[&str]| home.run(&[&["call", "-s", &server.url, "shop"], args].concat());
    let outcome = call(&["add", "5", "five"]).ok();
    assert_eq!(outcome.stdout, "");
    let sent = server.requests().pop().expect("a call");
    assert_eq!(
        sent.authorization.as_deref(),
        Some(format!("Bearer {}", token("ann")).as_str())
    );
    assert_eq!(sent.content_type.as_deref(), Some("application/json"));

    let refused = call(&["add", "6", "six"]);
    assert_eq!(
        (
            refused.status,
            refused
                .stderr
                .contains("Error: Response text: six is too many")
        ),
        (1, true),
        "{refused:#?}"
    );
    let wrong = call(&["add", "7"]);
    assert!(
        wrong.stderr.contains("add(n: U32, who: String)") && wrong.stderr.contains("[LC0618]"),
        "{wrong:#?}"
    );
    let unknown = call(&["ad"]);
    assert!(
        unknown.stderr.contains(&format!("No such reducer OR procedure `ad` for database `shop` resolving to identity `{DATABASE}`.")),
        "{unknown:#?}"
    );
    let negative = call(&["add", "-7", "x"]);
    assert_eq!(
        negative.status, 1,
        "a negative number is an argument, not a flag: {negative:#?}"
    );
    let nowhere = home.run(&["call", "-s", &server.url, "nowhere", "add"]);
    assert!(
        nowhere
            .stderr
            .contains("failed to find database `nowhere`."),
        "{nowhere:#?}"
    );
}

#[test]
fn sql_prints_tables_and_json() {
    let home = Home::new();
    const RESULT: &str = r#"[{"schema":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}}]},"rows":[[7]],"total_duration_micros":9,"stats":{"rows_inserted":0,"rows_deleted":0,"rows_updated":0}}]"#;
    let server = mock(|r| {
        r.path
            .starts_with(&format!("/v1/database/{DATABASE}/sql"))
            .then(|| match r.body.as_slice() {
                b"SELECT * FROM t" => json(RESULT),
                _ => text(400, "no such table"),
            })
    });
    home.log_in("ann", &server.url);
    let outcome = home
        .run(&["sql", "-s", &server.url, "shop", "SELECT", "*", "FROM", "t"])
        .ok();
    assert_eq!(outcome.stdout, " id \n----\n 7  \n");
    let outcome = home
        .run(&[
            "sql",
            "-s",
            &server.url,
            "--format",
            "json",
            "--confirmed",
            "false",
            "shop",
            "SELECT * FROM t",
        ])
        .ok();
    assert_eq!(outcome.stdout.trim(), RESULT);
    assert!(server
        .lines()
        .last()
        .expect("a query")
        .ends_with("/sql?confirmed=false"));
    let outcome = home.run(&["sql", "-s", &server.url, "shop", "SELEKT"]);
    assert_eq!(
        (
            outcome.status,
            outcome.stderr.ends_with("Error: no such table\n")
        ),
        (1, true),
        "{outcome:#?}"
    );
    let session = home
        .run_with(
            &["sql", "--interactive", "-s", &server.url, "shop"],
            "SELECT * FROM t\nnope\n.exit\n",
            &[],
        )
        .ok();
    assert!(
        session.stderr.contains("🪐shop>")
            && session.stderr.contains("Roundtrip time: ")
            && session.stdout == " id \n----\n 7  \n(1 row) [server: 0.01ms]\n",
        "{session:#?}"
    );
    assert!(session.stderr.contains("no such table"), "{session:#?}");
    let history = std::fs::read_to_string(home.path(".stdb.history.txt")).expect("a history");
    assert_eq!(history, "SELECT * FROM t\nnope\n");
}

#[test]
fn changes_are_lines_of_json() {
    let home = Home::new();
    let server = mock(|r| {
        let path = format!("/v1/database/{DATABASE}/changes");
        let end = match r.path.contains("follow=true") {
            true => {
                "event: end\ndata: {\"code\":\"LC0516\",\"reason\":\"it was deleted [LC0516]\"}\n\n"
            }
            false => "",
        };
        r.path.starts_with(&path).then(|| Response {
            location: None,
            status: 200,
            content_type: "text/event-stream",
            body: format!("id: 1\nevent: begin\ndata: {{\"a\":1}}\n\n: told\nid: 2\n\nid: 3\ndata: {{\"b\":2}}\n\n{end}"),
        })
    });
    home.log_in("ann", &server.url);
    let mut args = vec![
        "changes",
        "-s",
        &server.url,
        "shop",
        "--from",
        "7-ab",
        "--tables",
        "a,b",
    ];
    let outcome = home.run(&args);
    assert_eq!(
        (outcome.status, &*outcome.stdout),
        (1, "{\"a\":1}\n{\"b\":2}\n")
    );
    assert!(
        outcome.stderr.contains("it was deleted [LC0516] [LC0868]"),
        "{outcome:#?}"
    );
    args.push("--no-follow");
    assert_eq!(home.run(&args).ok().stdout, "{\"a\":1}\n{\"b\":2}\n");
    let asked = server.lines().pop().expect("a request");
    assert!(
        asked.ends_with("/changes?follow=false&from=7-ab&tables=a%2Cb"),
        "{asked}"
    );
}

#[test]
fn logs_are_filtered_and_laid_out() {
    let home = Home::new();
    let server = mock(|r| {
        r.path.starts_with(&format!("/v1/database/{DATABASE}/logs")).then(|| Response {
            location: None,
            status: 200,
            content_type: "application/x-ndjson",
            body: "{\"level\":\"Info\",\"ts\":0,\"function\":\"f\",\"message\":\"a\"}\n{\"level\":\"Warn\",\"ts\":1,\"message\":\"b\"}\n".into(),
        })
    });
    home.log_in("ann", &server.url);
    let outcome = home
        .run(&["logs", "-s", &server.url, "shop", "-n", "5"])
        .ok();
    assert_eq!(outcome.stdout.lines().count(), 2);
    assert!(
        outcome.stdout.contains("  INFO: f: a\n") && outcome.stdout.contains("  WARN: b\n"),
        "{outcome:#?}"
    );
    assert!(server
        .lines()
        .last()
        .expect("a request")
        .ends_with("/logs?follow=false&num_lines=5"));
    let outcome = home
        .run(&[
            "logs",
            "-s",
            &server.url,
            "shop",
            "-f",
            "--level",
            "warn",
            "--format",
            "json",
        ])
        .ok();
    assert_eq!(
        outcome.stdout,
        "{\"level\":\"Warn\",\"ts\":1,\"message\":\"b\"}\n"
    );
    assert!(server
        .lines()
        .last()
        .expect("a request")
        .ends_with("/logs?follow=true&num_lines=10"));
    assert_eq!(home.run(&["logs", "shop", "--level-exact"]).status, 2);
}

#[test]
fn a_stranger_is_told_that_he_is_not_the_owner() {
    let home = Home::new();
    let server = mock(|r| {
        (r.path.contains("/logs") || r.method == "DELETE").then(|| {
            text(
                403,
                "c2 is not authorized to perform action on database c2: view module logs",
            )
        })
    });
    home.log_in("ann", &server.url);
    for command in [["logs", "shop"].as_slice(), &["delete", "shop", "-y"]] {
        let outcome = home.run(&[command, &["-s", &server.url]].concat());
        assert_eq!(outcome.status, 1);
        assert!(
            outcome
                .stderr
                .contains("is not authorized to perform action"),
            "{outcome:#?}"
        );
        assert!(
            outcome.stderr.contains("says who you are") && outcome.stderr.contains("[LC0615]"),
            "{outcome:#?}"
        );
    }
}

#[test]
fn delete_asks_and_rename_lock_and_list_report() {
    let home = Home::new();
    let me = identity("ann");
    let mine = me.clone();
    let server = mock(move |r| match r.line().as_str() {
        line if line == format!("DELETE /v1/database/{DATABASE}") => Some(text(200, "")),
        line if line == format!("PUT /v1/database/{DATABASE}/names") => Some(json("\"Success\"")),
        line if line.ends_with("lock") => Some(text(200, "")),
        line if line == format!("GET /v1/identity/{mine}/databases") => Some(json(format!(
            r#"{{"identities":["{DATABASE}"],"roles":[{{"identity":"{SHARED}","role":"reader"}}]}}"#
        ))),
        line if line == format!("GET /v1/database/{SHARED}/names") => {
            Some(json(r#"{"names":["bazaar"]}"#))
        }
        line if line == format!("GET /v1/database/{DATABASE}/names") => {
            Some(json(r#"{"names":["shop","bank"]}"#))
        }
        _ => None,
    });
    home.log_in("ann", &server.url);
    let on = |args: &[&str], input: &str| {
        home.run_with(&[args, &["-s", &server.url]].concat(), input, &[])
            .ok()
    };
    let out = on(&["delete", "shop"], "no\n");
    assert_eq!(out.stdout, "");
    let out = out.stderr;
    assert!(out.contains(&format!("Are you sure you want to delete database shop ({DATABASE})? This action cannot be undone. [y/N]")), "{out}");
    assert!(
        out.ends_with("Aborting\n") && !server.lines().iter().any(|l| l.starts_with("DELETE")),
        "{out}"
    );
    assert_eq!(
        on(&["delete", "shop", "-y"], "").stderr,
        format!("Skipping confirmation due to --yes\nDeleted database shop ({DATABASE}).\n")
    );
    assert_eq!(
        on(&["rename", "--to", "new", DATABASE], "").stdout,
        format!("Name set to new for identity {DATABASE}.\n")
    );
    assert_eq!(
        server.requests().pop().expect("a request").body,
        br#"["new"]"#
    );
    assert_eq!(
        on(&["lock", "shop"], "").stdout,
        format!("Database {DATABASE} is now locked. It cannot be deleted until unlocked.\n")
    );
    assert!(on(&["unlock", "shop"], "")
        .stdout
        .contains("is now unlocked"));
    let list = on(&["list"], "").stdout;
    assert!(
        list.starts_with(&format!("Associated databases for user {me}:\n")),
        "{list}"
    );
    assert!(
        list.contains(&format!(" shop, bank       | {DATABASE} \n")),
        "{list}"
    );
    let shared = format!("Databases of others in which user {me} has a role:\n");
    let (own, shared) = list.split_once(&shared).expect("a second table");
    assert!(!own.contains("bazaar"), "{list}");
    assert!(
        shared.contains(&format!(" bazaar           | {SHARED} | reader \n")),
        "{list}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&on(&["list", "--format", "json"], "").stdout).expect("JSON");
    assert_eq!(
        (&json["databases"], &json["shared"]),
        (
            &serde_json::json!([{ "identity": DATABASE, "names": ["shop", "bank"] }]),
            &serde_json::json!([{ "identity": SHARED, "names": ["bazaar"], "role": "reader" }])
        )
    );
}

/// A program that reads a result gets that and nothing else, also where a login comes before it.
#[test]
fn only_results_go_to_stdout() {
    const ROWS: &str = r#"[{"schema":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}}]},"rows":[[7]],"total_duration_micros":5,"stats":{}}]"#;
    let server = mock(|r| match r.path.rsplit('/').next()? {
        "sql" => Some(json(ROWS)),
        "add" | "lock" => Some(text(200, "")),
        "databases" => Some(json(r#"{"identities":[]}"#)),
        path if path.starts_with("logs") => {
            Some(text(200, r#"{"level":"Warn","ts":1,"message":"b"}"#))
        }
        _ => None,
    });
    let me = identity("direct");
    for (args, stdout) in [
        (
            &["sql", "shop", "SELECT * FROM t"][..],
            " id \n----\n 7  \n".to_owned(),
        ),
        (
            &["sql", "--format", "json", "shop", "SELECT * FROM t"],
            format!("{ROWS}\n"),
        ),
        (&["call", "shop", "add", "1", "x"], String::new()),
        (
            &["logs", "--format", "json", "shop"],
            "{\"level\":\"Warn\",\"ts\":1,\"message\":\"b\"}\n".to_owned(),
        ),
        (&["list"], format!("No databases found for {me}.\n")),
        (
            &["lock", "shop"],
            format!("Database {DATABASE} is now locked. It cannot be deleted until unlocked.\n"),
        ),
    ] {
        let home = Home::new();
        let outcome = home.run(&[args, &["-s", &server.url]].concat()).ok();
        assert_eq!(outcome.stdout, stdout, "{args:?}");
        let remark = "We have logged in directly to your target server.\nWARNING: This login will NOT work for any other servers.\n";
        assert!(outcome.stderr.contains(remark), "{outcome:#?}");
    }
    let home = Home::new();
    let login = home
        .run(&["login", "--server-issued-login", &server.url])
        .ok();
    assert_eq!(login.stdout, format!("Logged in with identity {me}\n"));
}

/// A result that is not read, or that cannot be written, ends the command.
#[cfg(unix)]
#[test]
fn results_that_are_not_read() {
    use std::process::Stdio;
    let home = Home::new();
    let server = mock(|_| None);
    let describe = ["describe", "--json", "shop", "-s", &server.url];
    let mut closed = home
        .command(&describe)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(closed.stdout.take());
    assert_eq!(closed.wait().expect("it ends").code(), Some(141));
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let output = home
            .command(&describe)
            .stdout(full)
            .stderr(Stdio::piped())
            .output();
        let output = output.expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("the result cannot be written") && stderr.contains("[LC0619]"),
            "{stderr}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn collaborators_are_listed_added_and_removed() {
    let home = Home::new();
    let (ann, bob) = (identity("ann"), identity("bob"));
    let path = format!("/v1/database/{DATABASE}/collaborators");
    let (listed, owner, other) = (path.clone(), ann.clone(), bob.clone());
    let server = mock(move |r| match r.line().as_str() {
        line if line == format!("GET {listed}") => Some(json(format!(
            r#"{{"owner":"{owner}","collaborators":[{{"identity":"{other}","role":"reader"}}]}}"#
        ))),
        line if line == format!("PUT {listed}/{other}") => Some(text(200, "")),
        line if line == format!("DELETE {listed}/{other}") => Some(text(403, "not yours")),
        _ => None,
    });
    home.log_in("ann", &server.url);
    let run = |args: &[&str]| home.run(&[&["collaborators"], args, &["-s", &server.url]].concat());
    assert_eq!(
        run(&["list", "shop"])
            .ok()
            .stdout
            .lines()
            .collect::<Vec<_>>()[2..],
        [format!(" {ann} | owner  "), format!(" {bob} | reader ")]
    );
    for (role, shown) in [("publisher", "a publisher"), ("owner", "an owner")] {
        assert_eq!(
            run(&["add", &bob, "shop", "--role", role]).ok().stdout,
            format!("{bob} is now {shown} of {DATABASE}.\n")
        );
        let sent = server.requests().pop().expect("a request");
        assert_eq!(sent.body, format!(r#"{{"role":"{role}"}}"#).into_bytes());
        assert!(sent.authorization.is_some());
    }
    run(&["add", &bob, "shop"]).ok();
    let sent = server.requests().pop().expect("a request");
    assert_eq!(sent.body, br#"{"role":"reader"}"#);
    let refused = run(&["remove", &bob, "shop"]);
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("not yours"), "{}", refused.stderr);
    let asked = server.requests().len();
    let wrong = run(&["add", "bob", "shop"]);
    assert!(wrong.stderr.contains("[LC0875]"), "{}", wrong.stderr);
    assert_eq!(server.requests().len(), asked, "no server was asked");
    assert_eq!(run(&["add", &bob, "shop", "--role", "king"]).status, 2);
}

#[test]
fn describe_prints_the_definition() {
    let home = Home::new();
    let server = mock(|_| None);
    home.log_in("ann", &server.url);
    let on = |args: &[&str]| home.run(&[&["describe", "--json", "-s", &server.url], args].concat());
    assert!(on(&["shop"])
        .ok()
        .stdout
        .starts_with("{\n  \"sections\": [\n"));
    assert!(on(&["shop", "reducer", "add"])
        .ok()
        .stdout
        .contains("\"source_name\": \"add\""));
    let missing = on(&["shop", "table", "t"]);
    assert_eq!(
        (
            missing.status,
            missing.stderr.ends_with("Error: no such table\n")
        ),
        (1, true),
        "{missing:#?}"
    );
    assert_eq!(
        home.run(&["describe", "shop"]).status,
        2,
        "--json is mandatory"
    );
}

/// Built from a repository, the programs know the commit; from an archive, they say that they do not.
#[test]
fn the_version_names_the_commit() {
    let home = Home::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let git = std::process::Command::new("git")
        .args(["-C", root, "rev-parse", "HEAD"])
        .output();
    let repository = std::path::Path::new(root).join(".git").exists();
    let out = home.run(&["version"]).ok().stdout;
    let commit = out
        .lines()
        .find_map(|line| line.strip_prefix("Commit: "))
        .expect("the line");
    assert_eq!(commit, env!("LIGHTCONE_COMMIT"));
    if repository && git.is_ok_and(|git| git.status.success()) {
        assert_ne!(commit, "unknown");
    }
    assert!(home
        .run(&["--version"])
        .ok()
        .stdout
        .contains(&out[..out.find('\n').expect("lines")]));
}
