//! The commands against a server that plays its part.

mod common;

use common::{json, text, token, Home, Mock, Request, Response, DATABASE};

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
    let later = home.run(&["mcp", "--anything", "at", "all"]);
    assert_eq!(later.status, 1);
    assert!(later.stderr.contains("[LC0601]"), "{later:#?}");
}

#[test]
fn the_first_run_writes_the_configuration() {
    let home = Home::new();
    let first = home.run(&["server", "list"]).ok();
    assert!(first.stderr.contains("Saving config to "), "{first:#?}");
    assert!(first
        .stderr
        .contains("WARNING: This command is UNSTABLE and subject to breaking changes.\n\n"));
    assert_eq!(
        first.stdout,
        " DEFAULT | HOSTNAME                  | PROTOCOL | NICKNAME  \n\
         ---------+---------------------------+----------+-----------\n \
         ***     | maincloud.spacetimedb.com | https    | maincloud \n         \
         | 127.0.0.1:3000            | http     | local     \n"
    );
    assert!(!home.run(&["server", "list"]).ok().stderr.contains("Saving"));
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
    // A question whose answer is the end of input is answered no.
    let home = Home::new();
    let outcome = home.run(&["list", "-s", &server.url]).ok();
    assert!(
        outcome.stdout.contains(
            "You are not logged in. Would you like to log in with spacetimedb.com? [y/N]"
        ),
        "{outcome:#?}"
    );
    assert!(
        outcome.stdout.contains("We have logged in directly"),
        "{outcome:#?}"
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
    let me = home.log_in("ann");
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
    assert_eq!(odd.stdout, "Token saved.\n");
    assert_eq!(
        home.run(&["login", "--token", "x", "--server-issued-login", "local"])
            .status,
        2
    );
}

#[test]
fn calls_send_json_and_show_refusals() {
    let home = Home::new();
    home.log_in("ann");
    let server = mock(|r| {
        (r.method == "POST" && r.path == format!("/v1/database/{DATABASE}/call/add")).then(|| {
            match String::from_utf8_lossy(&r.body).as_ref() {
                r#"[5, "five"]"# => text(200, ""),
                r#"[6, "six"]"# => text(530, "six is too many"),
                _ => text(400, "invalid arguments for reducer add: invalid length 1, expected args for add with 2 elements"),
            }
        })
    });
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
    home.log_in("ann");
    const RESULT: &str = r#"[{"schema":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}}]},"rows":[[7]],"total_duration_micros":9,"stats":{"rows_inserted":0,"rows_deleted":0,"rows_updated":0}}]"#;
    let server = mock(|r| {
        r.path
            .starts_with(&format!("/v1/database/{DATABASE}/sql"))
            .then(|| match r.body.as_slice() {
                b"SELECT * FROM t" => json(RESULT),
                _ => text(400, "no such table"),
            })
    });
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
    home.log_in("ann");
    let server = mock(|r| {
        r.path.starts_with(&format!("/v1/database/{DATABASE}/logs")).then(|| Response {
            status: 200,
            content_type: "application/x-ndjson",
            body: "{\"level\":\"Info\",\"ts\":0,\"function\":\"f\",\"message\":\"a\"}\n{\"level\":\"Warn\",\"ts\":1,\"message\":\"b\"}\n".into(),
        })
    });
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
    home.log_in("ann");
    let server = mock(|r| {
        (r.path.contains("/logs") || r.method == "DELETE").then(|| {
            text(
                403,
                "c2 is not authorized to perform action on database c2: view module logs",
            )
        })
    });
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
    let me = home.log_in("ann");
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
fn describe_prints_the_definition() {
    let home = Home::new();
    home.log_in("ann");
    let server = mock(|_| None);
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
            .ends_with(&format!("Logged in with identity {me}\n")),
        "{outcome:#?}"
    );
    assert!(
        home.config().contains("web_session_token = \"session\""),
        "{}",
        home.config()
    );
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
