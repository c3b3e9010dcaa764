//! `spacetime top`, beside a server that counts what a test tells it to, and beside a real one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common;
use crate::common::server::Server;
use crate::common::{json, text, Home, Mock, DATABASE};
use serde_json::{json, Value};

/// Counters that grow by so much with each look.
fn counting_answers() -> impl Fn(&str) -> common::Response + Send + Sync + 'static {
    let looks = AtomicU64::new(0);
    move |path| {
        if path != "/v1/metrics?format=json" && path != format!("/v1/database/{DATABASE}/metrics") {
            return text(404, "nothing");
        }
        let looks = looks.fetch_add(1, Ordering::Relaxed);
        let calls = 1000 * looks;
        let counted = json!({ "bounds_us": [10, 100, 1000], "databases": [{
            "identity": DATABASE, "names": ["shop"], "clients": 3, "sent_bytes": 2048 * looks,
            "rounds": { "buckets": [0, calls], "sum_us": 20 * calls },
            "functions": [{ "kind": "reducer", "name": "buy\u{1b}[2J", "sender_errors": looks,
                "times": { "buckets": [calls], "sum_us": 5 * calls } }],
            "tables": [{ "name": "orders", "rows": 7, "bytes": 65536, "inserted": calls, "deleted": 0 }],
        }]});
        json(counted.to_string())
    }
}

/// A server that counts so.
fn counting() -> Mock {
    let answers = counting_answers();
    Mock::start(move |request| answers(&request.path))
}

#[test]
fn rates_of_all_databases() {
    let (home, server) = (Home::new(), counting());
    let outcome = home
        .run(&[
            "top",
            "-s",
            &server.url,
            "--once",
            "--interval",
            "0.2",
            "--format",
            "json",
        ])
        .ok();
    let rates: Value = serde_json::from_str(&outcome.stdout).expect("one line of JSON");
    let of = &rates["databases"][0];
    let calls = of["calls_per_second"].as_f64().expect("a number");
    // A thousand in 0.2 s, or in longer on a slow machine.
    assert!(calls > 100.0 && calls <= 5000.0, "{rates}");
    assert_eq!(
        (&of["p99_us"], &of["longest_round_us"]),
        (&json!(10), &json!(100))
    );
    assert_eq!(of["name"], "shop");
    assert_eq!(of["functions"], Value::Null, "they are of one database");
    assert_eq!(server.requests().len(), 2);
    assert!(server
        .requests()
        .iter()
        .all(|request| request.authorization.is_none()));
    // Without a terminal it is the same, once.
    let outcome = home
        .run(&["top", "-s", &server.url, "--interval", "0.1"])
        .ok();
    assert!(
        outcome.stdout.contains("shop") && outcome.stdout.contains("WRITER"),
        "{outcome:#?}"
    );
    assert!(!outcome.stdout.contains('\u{1b}'), "{outcome:#?}");
}

#[test]
fn functions_and_tables_of_one() {
    let (home, server) = (Home::new(), counting());
    home.log_in("another-user", &server.url);
    let outcome = home
        .run(&["top", DATABASE, "-s", &server.url, "--interval", "0.1"])
        .ok();
    for word in ["shop", "orders", "64 KiB", "reducer", "3 clients"] {
        assert!(outcome.stdout.contains(word), "{word}: {outcome:#?}");
    }
    // A name that would clear the screen.
    assert!(
        outcome.stdout.contains("buy?[2J") && !outcome.stdout.contains('\u{1b}'),
        "{outcome:#?}"
    );
    assert!(server
        .requests()
        .iter()
        .all(|request| request.authorization.is_some()));
}

#[test]
fn a_look_that_fails_is_tried_again() {
    let home = Home::new();
    // Every second look works; from the sixth on none.
    let (looks, answers) = (AtomicU64::new(0), counting_answers());
    let server = Mock::start(move |request| {
        let look = looks.fetch_add(1, Ordering::Relaxed);
        match look % 2 == 0 && look < 6 {
            true => answers(&request.path),
            false => text(503, "not now\u{1b}[2J"),
        }
    });
    let url = &server.url;
    let args = ["top", "-s", url, "--interval", "0.1", "--format", "json"];
    let outcome = home.run(&args);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert_eq!(outcome.stdout.lines().count(), 2, "{outcome:#?}");
    for line in outcome.stdout.lines() {
        let rates: Value = serde_json::from_str(line).expect("JSON");
        assert!(rates["databases"][0]["calls_per_second"].as_f64() > Some(0.0));
    }
    // One, one, and then as many as may fail in a row, of which the last is the error.
    let told = |number: u32| {
        outcome
            .stderr
            .matches(&format!("look {number} of 30 failed: not now"))
            .count()
    };
    assert_eq!(
        (told(1), told(2), told(29), told(30)),
        (3, 1, 1, 0),
        "{outcome:#?}"
    );
    assert_eq!(server.requests().len(), 5 + 30);
    // A single look says so at once.
    let outcome = home.run(&["top", "-s", url, "--once", "--interval", "0.1"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
}

#[test]
fn wrong_values_are_refused() {
    let (home, server) = (Home::new(), counting());
    for interval in ["0", "-1", "x", "1e9", "NaN"] {
        let outcome = home.run(&["top", "-s", &server.url, &format!("--interval={interval}")]);
        assert_eq!(outcome.status, 2, "{outcome:#?}");
    }
    let refusing = Mock::start(|_| {
        text(
            403,
            "the metrics are for programs on the server's machine [LC0133]",
        )
    });
    let outcome = home.run(&["top", "-s", &refusing.url, "--once", "--interval", "0.1"]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("LC0133"),
        "{outcome:#?}"
    );
    let odd = Mock::start(|_| json("[]"));
    let outcome = home.run(&["top", "-s", &odd.url, "--once", "--interval", "0.1"]);
    assert!(
        outcome.status == 1 && outcome.stderr.contains("[LC0616]"),
        "{outcome:#?}"
    );
}

#[test]
fn a_real_server() {
    let home = Home::new();
    let server = Server::start(&home);
    let url = server.url.clone();
    home.run(&["login", "--server-issued-login", &url]).ok();
    let on = |args: &[&str]| home.run(&[args, &["-s", &url]].concat());
    on(&["publish", "-b", &common::module("transfer"), "bank"]).ok();
    on(&["call", "bank", "seed", "10", "1000"]).ok();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let args = [
                "top",
                "bank",
                "--once",
                "--interval",
                "3",
                "--format",
                "json",
            ];
            on(&args).ok().stdout
        });
        while !watching.is_finished() {
            on(&["call", "bank", "transfer", "3", "4", "1"]).ok();
        }
        let stdout = watching.join().expect("it ends");
        let rates: Value = serde_json::from_str(&stdout).expect("one line of JSON");
        let of = &rates["databases"][0];
        assert!(of["calls_per_second"].as_f64() > Some(0.0), "{rates}");
        assert_eq!(of["functions"][0]["name"], "transfer", "{rates}");
        assert_eq!(of["tables"][0]["name"], "accounts", "{rates}");
        assert_eq!(of["tables"][0]["rows"], 10, "{rates}");
    });
    let outcome = on(&["top", "bank", "--interval", "0.1"]).ok();
    for word in ["bank", "FUNCTION", "transfer", "accounts", "writer:"] {
        assert!(outcome.stdout.contains(word), "{outcome:#?}");
    }
    let all = on(&["top", "--interval", "0.1"]).ok();
    assert!(all.stdout.contains("bank"), "{all:#?}");
    // Others have no look at it.
    let other = Home::new();
    other.run(&["login", "--server-issued-login", &url]).ok();
    let refused = other.run(&["top", "bank", "-s", &url, "--interval", "0.1"]);
    assert_eq!(refused.status, 1, "{refused:#?}");
    server.stop();
}
