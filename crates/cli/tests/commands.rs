//! The commands against a server that plays its part.

mod common;

use common::{identity, json, text, token, token_of, Home, Mock, Request, Response, DATABASE};

const SCHEMA: &str = r#"{"sections":[{"Typespace":{"types":[]}},
 {"Reducers":[{"source_name":"add","params":{"elements":[{"name":{"some":"n"},"algebraic_type":{"U32":[]}},{"name":{"some":"who"},"algebraic_type":{"String":[]}}]},
   "visibility":{"ClientCallable":[]},"ok_return_type":{"Product":{"elements":[]}},"err_return_type":{"String":[]}}]},
 {"ExplicitNames":{"entries":[]}}]}"#;

/// The routes that most commands begin with.
fn basics(request: &Request) -> Option<Response> {
    if request.line() == "GET /v1/database/shop/identity" {
        return Some(text(200, DATABASE));
    }
    if request.line() == format!("GET /v1/database/{DATABASE}/schema?version=10") {
        return Some(json(SCHEMA));
    }
    if request.line() == "POST /v1/identity" {
        let token = token("direct");
        return Some(json(format!(r#"{{"identity":"c2","token":"{token}"}}"#)));
    }
    None
}

fn mock(answer: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static) -> Mock {
    Mock::start(move |request| {
        answer(request)
            .or_else(|| basics(request))
            .unwrap_or_else(|| text(404, ""))
    })
}

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
        no.stdout.contains("Changing host from ")
            && no.stdout.contains("PEM two")
            && no.stdout.matches("Continue? [y/N]").count() == 1
            && no.stdout.ends_with("Aborting\n"),
        "the changes, then one question: {no:#?}"
    );
    assert!(!home.config().contains(&moved.url[7..]));
    let same = home.run_with(&edit, "y\n", &[]).ok();
    assert_eq!(
        same.stdout.matches("Continue? [y/N]").count(),
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
    // A mistyped directory is somebody's files.
    let foreign = home.run_with(&["server", "clear", "-y"], "", &[]);
    assert!(
        foreign.status == 1 && foreign.stderr.contains("[LC0881]"),
        "{foreign:#?}"
    );
    assert!(home.path("root/data/x").exists());
    home.write("root/data/metadata.toml", "");
    let no = home.run_with(&["server", "clear"], "n\n", &[]).ok();
    assert!(
        no.stdout
            .contains("Are you sure you want to delete all data from the local database? [y/N]"),
        "{no:#?}"
    );
    assert!(home.path("root/data/x").exists());
    home.run_with(&["server", "clear"], "yes\n", &[]).ok();
    assert!(!home.path("root/data").exists());
}

#[test]
fn without_a_login_the_server_itself_gives_one() {
    let home = Home::new();
    let server = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let outcome = home.run(&["list", "-s", &server.url, "-y"]).ok();
    let me = lightcone_types::Identity::from_claims("localhost", "direct").to_hex();
    assert!(
        outcome.stdout.contains(&format!(
            "We have logged in directly to your target server.\nWARNING: This login will NOT work for any other servers.\nLogged in with identity {me}\n"
        )),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stdout
            .contains(&format!("No databases found for {me}.")),
        "{outcome:#?}"
    );
    // On this machine nobody is asked for an account elsewhere.
    let home = Home::new();
    let outcome = home.run(&["list", "-s", &server.url]).ok();
    assert!(
        outcome
            .stdout
            .starts_with("We have logged in directly to your target server."),
        "{outcome:#?}"
    );
    // Elsewhere the question comes; the end of input answers it no.
    let outcome = home.run(&["list", "-s", "https://elsewhere.invalid"]);
    assert!(
        outcome.stdout.contains(
            "You are not logged in. Would you like to log in with spacetimedb.com? [y/N]"
        ),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stderr
            .contains("cannot reach the server at https://elsewhere.invalid"),
        "{outcome:#?}"
    );
}

/// Who asks a server gets the login for that server or a new one, and never the one of another server.
#[test]
fn a_login_goes_to_its_own_server_only() {
    let home = Home::new();
    let here = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let stranger = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    home.log_in("ann", &here.url);
    home.run(&["list", "-s", &here.url]).ok();
    home.run(&["list", "-s", &stranger.url, "-y"]).ok();
    let sent = |server: &Mock| -> Vec<Option<String>> {
        server
            .requests()
            .into_iter()
            .map(|r| r.authorization)
            .collect()
    };
    let bearer = |subject: &str| Some(format!("Bearer {}", token(subject)));
    assert_eq!(sent(&here), [bearer("ann")]);
    assert_eq!(
        sent(&stranger),
        [None, bearer("direct")],
        "a login of its own, asked for without any"
    );
    let other_name = here.url.replace("127.0.0.1", "localhost");
    let outcome = home.run(&["list", "-s", &other_name, "-y"]).ok();
    assert!(
        outcome
            .stderr
            .contains(&format!("you have a login for {} too", here.url)),
        "{outcome:#?}"
    );
    let shown = home.run(&["login", "show"]).ok();
    assert_eq!(
        shown.stdout.matches("You are logged in as ").count(),
        3,
        "{shown:#?}"
    );
    let shown = home
        .run(&["login", "show", "--token", "--server", &here.url])
        .ok();
    assert!(shown.stdout.contains(&token("ann")), "{shown:#?}");
    home.run(&["logout", "--server", &stranger.url]).ok();
    let config = home.config();
    assert!(
        config.contains(&here.url) && !config.contains(&stranger.url),
        "{config}"
    );
}

/// The file of the reference's command has one token, which is for one server here.
#[test]
fn the_token_of_an_older_file_goes_to_one_server() {
    let home = Home::new();
    let server = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let stranger = mock(|r| (r.path.ends_with("/databases")).then(|| json(r#"{"identities":[]}"#)));
    let old = format!(
        "default_server = \"mine\"\nspacetimedb_token = \"{}\" # old\n\n[[server_configs]]\nnickname = \"mine\"\nhost = \"{}\"\nprotocol = \"http\"\n",
        token("ann"),
        server.url.strip_prefix("http://").expect("http")
    );
    home.write("root/config/cli.toml", &old);
    home.run(&["list"]).ok();
    home.run(&["list", "-s", &stranger.url, "-y"]).ok();
    let bearer = Some(format!("Bearer {}", token("ann")));
    assert!(server.requests().iter().all(|r| r.authorization == bearer));
    assert!(stranger
        .requests()
        .iter()
        .all(|r| r.authorization != bearer));
    // What it was for at first, it stays for.
    home.run(&[
        "server",
        "add",
        "--url",
        &stranger.url,
        "evil",
        "-d",
        "--no-fingerprint",
    ])
    .ok();
    home.run(&["list"]).ok();
    assert!(stranger
        .requests()
        .iter()
        .all(|r| r.authorization != bearer));
    // A token that names its site is for that site's server, whatever the default is.
    home.run(&[
        "login",
        "--token",
        &token_of("https://auth.spacetimedb.com", "ann"),
    ])
    .ok();
    assert!(
        home.config()
            .contains("\"https://maincloud.spacetimedb.com\" = "),
        "{}",
        home.config()
    );
}

/// A server that redirects elsewhere does not take the login along.
#[test]
fn redirects_get_no_login() {
    let home = Home::new();
    let stranger = mock(|_| Some(json(r#"{"identities":[]}"#)));
    let target = stranger.url.clone();
    let server = Mock::start_with_location(move |r| Some(format!("{target}{}", r.path)));
    home.log_in("ann", &server.url);
    let outcome = home.run(&["list", "-s", &server.url]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(
        outcome.stderr.contains("[LC0862]") && outcome.stderr.contains(&stranger.url),
        "{outcome:#?}"
    );
    assert!(stranger.requests().is_empty());
    assert_eq!(server.requests().len(), 1);
}

/// Over plain HTTP to another machine, a login goes only if the user says so.
#[test]
fn logins_over_plain_http_need_consent() {
    let home = Home::new();
    // A name that leads nowhere: what counts is whether the command tries.
    const URL: &str = "http://db.invalid:3000";
    home.log_in("ann", URL);
    let tries = |args: &[&str], input: &str| {
        let outcome = home.run_with(&[args, &["-s", URL]].concat(), input, &[]);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        match outcome.stderr.contains("[LC0602]") {
            true => true,
            false => {
                assert!(outcome.stderr.contains("[LC0861]"), "{outcome:#?}");
                assert!(outcome.stdout.contains("is not encrypted"), "{outcome:#?}");
                false
            }
        }
    };
    assert!(!tries(&["list"], ""));
    assert!(!tries(&["list"], "n\n"));
    assert!(tries(&["list"], "y\n"));
    assert!(tries(&["list", "-y"], ""));
    assert!(tries(&["list", "--allow-insecure"], ""));
    assert!(tries(&["call", "--anonymous", "x", "f"], ""));
    assert!(!tries(&["subscribe", "x", "SELECT * FROM t"], ""));
    home.run(&["server", "add", "--url", URL, "lab", "--no-fingerprint"])
        .ok();
    assert!(!tries(&["list"], ""));
    home.run(&["server", "edit", "lab", "--allow-insecure", "-y"])
        .ok();
    assert!(tries(&["list"], ""));
    home.run(&[
        "server",
        "edit",
        "lab",
        "--url",
        "http://other.invalid",
        "--no-fingerprint",
        "-y",
    ])
    .ok();
    let outcome = home.run(&["list", "-s", "lab"]);
    assert!(
        outcome.stderr.contains("[LC0861]"),
        "consent for one server is not consent for another: {outcome:#?}"
    );
    let direct = home.run(&["login", "--server-issued-login", "lab"]);
    assert!(direct.stderr.contains("[LC0861]"), "{direct:#?}");
}

/// Logging in again replaces the login of that server, and a login that fails costs nothing.
#[test]
fn logging_in_twice() {
    let home = Home::new();
    let count = std::sync::atomic::AtomicU32::new(0);
    let server = mock(move |r| {
        (r.line() == "POST /v1/identity").then(|| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            json(format!(
                r#"{{"identity":"c2","token":"{}"}}"#,
                token(&n.to_string())
            ))
        })
    });
    let login = ["login", "--server-issued-login", &server.url];
    let first = home.run(&login).ok();
    assert!(
        first
            .stdout
            .starts_with(&format!("Logged in with identity {}\n", identity("0"))),
        "{first:#?}"
    );
    let second = home.run(&login).ok();
    assert!(
        second.stdout.starts_with(&format!(
            "Logged out (identity {}).\nLogged in with identity {}\n",
            identity("0"),
            identity("1")
        )),
        "{second:#?}"
    );
    let away = home.run(&["login", "--server-issued-login", "http://127.0.0.1:9"]);
    assert_eq!(away.status, 1);
    let shown = home.run(&["login", "show"]).ok();
    assert!(
        shown
            .stdout
            .starts_with(&format!("You are logged in as {}\n", identity("1"))),
        "{shown:#?}"
    );
}

#[test]
fn login_and_logout() {
    let home = Home::new();
    let outcome = home.run(&["login", "show"]).ok();
    assert!(
        outcome.stdout.starts_with("You are not logged in."),
        "{outcome:#?}"
    );
    assert_eq!(
        home.run(&["logout"]).ok().stdout,
        "You are not logged in.\n"
    );
    let me = home.log_in("ann", "local");
    let shown = home.run(&["login", "show", "--token"]).ok();
    assert!(
        shown
            .stdout
            .starts_with(&format!("You are logged in as {me}\n"))
            && shown.stdout.contains(&token("ann"))
    );
    let out = home.run(&["logout"]).ok();
    assert_eq!(out.stdout, format!("Logged out (identity {me}).\n"));
    assert!(!home.config().contains("token"), "{}", home.config());
    let odd = home.run(&["login", "--token", "what"]).ok();
    assert!(odd.stdout.starts_with("Token saved.\n"), "{odd:#?}");
    assert_eq!(
        home.run(&["login", "--token", "x", "--server-issued-login", "local"])
            .status,
        2
    );
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
        session.stdout.contains("🪐shop>")
            && session
                .stdout
                .contains("(1 row) [server: 0.01ms]\nRoundtrip time: "),
        "{session:#?}"
    );
    assert!(session.stderr.contains("no such table"), "{session:#?}");
    let history = std::fs::read_to_string(home.path(".stdb.history.txt")).expect("a history");
    assert_eq!(history, "SELECT * FROM t\nnope\n");
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
            outcome.stderr.contains("You are not the owner.")
                && outcome.stderr.contains("[LC0615]"),
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
        line if line == format!("GET /v1/identity/{mine}/databases") => {
            Some(json(format!(r#"{{"identities":["{DATABASE}"]}}"#)))
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
            .stdout
    };
    let out = on(&["delete", "shop"], "no\n");
    assert!(out.contains(&format!("Are you sure you want to delete database shop ({DATABASE})? This action cannot be undone. [y/N]")), "{out}");
    assert!(
        out.ends_with("Aborting\n") && !server.lines().iter().any(|l| l.starts_with("DELETE")),
        "{out}"
    );
    assert_eq!(
        on(&["delete", "shop", "-y"], ""),
        "Skipping confirmation due to --yes\n"
    );
    assert_eq!(
        on(&["rename", "--to", "new", DATABASE], ""),
        format!("Name set to new for identity {DATABASE}.\n")
    );
    assert_eq!(
        server.requests().pop().expect("a request").body,
        br#"["new"]"#
    );
    assert_eq!(
        on(&["lock", "shop"], ""),
        format!("Database {DATABASE} is now locked. It cannot be deleted until unlocked.\n")
    );
    assert!(on(&["unlock", "shop"], "").contains("is now unlocked"));
    let list = on(&["list"], "");
    assert!(
        list.starts_with(&format!("Associated databases for user {me}:\n")),
        "{list}"
    );
    assert!(
        list.contains(&format!(" shop, bank       | {DATABASE} \n")),
        "{list}"
    );
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
    assert_eq!(server.requests().len(), asked, "nobody was asked");
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

#[test]
fn the_web_login_waits_for_approval_and_logout_ends_the_session() {
    let home = Home::new();
    let polls = std::sync::atomic::AtomicU32::new(0);
    let site =
        Mock::start(
            move |request| match request.path.split('?').next().unwrap_or_default() {
                "/api/auth/cli/login/request-token" => {
                    json(r#"{"success":true,"data":{"token":"ask"}}"#)
                }
                "/api/auth/cli/status" => {
                    match polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                        0 => json(r#"{"success":true,"data":{"approved":false}}"#),
                        _ => json(
                            r#"{"success":true,"data":{"approved":true,"sessionToken":"session"}}"#,
                        ),
                    }
                }
                "/api/spacetimedb-token"
                    if request.authorization.as_deref() == Some("Bearer session") =>
                {
                    json(format!(
                        r#"{{"success":true,"data":{{"token":"{}"}}}}"#,
                        token("web")
                    ))
                }
                "/auth/cli/logout" => text(200, ""),
                _ => json(r#"{"success":false,"error":"no"}"#),
            },
        );
    let me = lightcone_types::Identity::from_claims("localhost", "web").to_hex();
    let outcome = home
        .run(&["login", "--auth-host", &site.url, "--no-browser"])
        .ok();
    assert!(
        outcome
            .stdout
            .contains(&format!("{}/login/cli?token=ask", site.url)),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stdout
            .contains(&format!("Logged in with identity {me}\n")),
        "{outcome:#?}"
    );
    assert!(
        home.config().contains("web_session_token = \"session\""),
        "{}",
        home.config()
    );
    // The session is the site's, and no other site gets it.
    let other = Mock::start(|_| text(200, ""));
    let copy = home.config();
    home.run(&["logout", "--auth-host", &other.url]).ok();
    assert!(other.requests().is_empty(), "{:?}", other.lines());
    home.write("root/config/cli.toml", &copy);
    home.run(&["logout", "--auth-host", &site.url]).ok();
    assert_eq!(
        site.lines().last().map(String::as_str),
        Some("POST /auth/cli/logout")
    );
    assert!(!home.config().contains("token"), "{}", home.config());
    let refused = Mock::start(|_| json(r#"{"success":false,"error":"try later"}"#));
    let outcome = home.run(&["login", "--auth-host", &refused.url, "--no-browser"]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("try later"),
        "{outcome:#?}"
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
