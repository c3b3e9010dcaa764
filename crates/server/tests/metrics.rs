//! What the metrics say of functions, tables and queries, to whom, and how much of it (06 §5.21).

use crate::common::publishing::{by, call, created};
use crate::common::{answer, config, json, TestServer, User};

/// The value of the one line with this name and these labels.
#[track_caller]
fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut found = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix('{')?;
        let (have, value) = rest.split_once("} ")?;
        let has = |(label, value): &(&str, &str)| have.contains(&format!("{label}=\"{value}\""));
        labels
            .iter()
            .all(has)
            .then(|| value.parse().expect("a number"))
    });
    let first = found.next();
    assert_eq!(
        found.next(),
        None,
        "{name} {labels:?} is there more than once"
    );
    first
}

/// All of this name with these labels, added up.
fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix('{')?;
        let (have, value) = rest.split_once("} ")?;
        let has = |(label, value): &(&str, &str)| have.contains(&format!("{label}=\"{value}\""));
        labels.iter().all(has).then(|| value.parse::<f64>())?.ok()
    });
    values.sum()
}

/// Of all reducers after [`use_it`]: six, and the connect reducer of each of seven requests.
const CALLS: u64 = 13;

/// Three calls that work, and one of each kind that does not.
async fn use_it(server: &TestServer, user: &User, name: &str) {
    let path = |function: &str| format!("/v1/database/{name}/call/{function}");
    for (function, args, status) in [
        ("add", r#"[1,"x"]"#, 200),
        ("add", r#"[2,"y"]"#, 200),
        // It changes nothing.
        ("add", r#"[2,"y"]"#, 200),
        ("fail", r#"["no"]"#, 530),
        ("panic", "[]", 530),
        ("slow", "{}", 402),
    ] {
        assert_eq!(call(server, user, &path(function), args).await.0, status);
    }
    let sql = server.request("POST", &format!("/v1/database/{name}/sql"));
    let sql = sql.bearer_auth(&user.token).body("SELECT * FROM person");
    assert_eq!(answer(sql).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_tables_and_queries() {
    let server = TestServer::start().await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    use_it(&server, &user, "a").await;
    let text = server.ask("GET", "/v1/metrics").await.1;
    let of = |name: &str, labels: &[(&str, &str)]| value(&text, name, labels);

    let txns = "spacetime_num_txns_total";
    assert_eq!(
        of(txns, &[("reducer", "add"), ("committed", "true")]),
        Some(2.0),
        "{text}"
    );
    assert_eq!(
        of(txns, &[("reducer", "add"), ("committed", "false")]),
        Some(0.0)
    );
    assert_eq!(
        of(txns, &[("reducer", "panic"), ("committed", "false")]),
        Some(1.0)
    );
    let times = "spacetime_txn_elapsed_time_sec_count";
    assert_eq!(
        of(times, &[("txn_type", "Reducer"), ("reducer", "add")]),
        Some(3.0)
    );
    let all = [("reducer", "add"), ("le", "+Inf")];
    assert_eq!(of("spacetime_txn_elapsed_time_sec_bucket", &all), Some(3.0));
    let errors = "lightcone_call_errors_total";
    for (function, error) in [("fail", "sender"), ("panic", "trap"), ("slow", "time")] {
        let labels = [
            ("kind", "reducer"),
            ("function", function),
            ("error", error),
        ];
        assert_eq!(of(errors, &labels), Some(1.0), "{function}");
    }
    assert_eq!(
        of(
            "spacetime_worker_sender_errors_total",
            &[("reducer_symbol", "fail")]
        ),
        Some(1.0)
    );
    assert_eq!(
        of("spacetime_num_table_rows", &[("table_name", "person")]),
        Some(2.0)
    );
    assert_eq!(
        of(
            "spacetime_num_rows_inserted_total",
            &[("table_name", "person")]
        ),
        Some(2.0)
    );
    let bytes = of("spacetime_table_size_bytes", &[("table_name", "person")]);
    assert!(bytes.is_some_and(|bytes| bytes > 0.0), "{text}");
    assert_eq!(
        of("lightcone_query_seconds_count", &[("kind", "sql")]),
        Some(1.0)
    );
    let waits = of("spacetime_reducer_wait_time_sec_count", &[]);
    assert_eq!(waits, Some(6.0), "{text}");
    let rounds = of("lightcone_writer_round_seconds_count", &[]).expect("rounds");
    assert!(rounds >= 7.0, "{rounds}");
    let longest = of("lightcone_writer_round_longest_seconds", &[]).expect("the longest");
    let sum = of("lightcone_writer_round_seconds_sum", &[]).expect("a sum");
    assert!(longest > 0.0 && longest <= sum, "{longest} of {sum}");

    // A function that is there before and after goes on counting.
    let publish = server.request("PUT", "/v1/database/a");
    let publish = publish.bearer_auth(&user.token).body("module changed");
    assert_eq!(answer(publish).await.0, 200);
    let text = server.ask("GET", "/v1/metrics").await.1;
    let labels = [("txn_type", "Reducer"), ("reducer", "add")];
    assert_eq!(value(&text, times, &labels), Some(3.0), "{text}");
    assert_eq!(
        value(
            &text,
            "spacetime_num_table_rows",
            &[("table_name", "person")]
        ),
        Some(2.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn series_have_a_bound() {
    let bounds =
        "[limits]\nmetrics-databases-max = 1\nmetrics-functions-max = 1\nmetrics-tables-max = 1";
    let server = TestServer::start_with(config(bounds)).await;
    let user = server.user().await;
    let mut identities = Vec::new();
    for name in ["a", "b", "c"] {
        identities.push(created(&server, &user, name, "module changed").await);
        use_it(&server, &user, name).await;
    }
    let text = server.ask("GET", "/v1/metrics").await.1;
    assert!(text.contains(&identities[0]), "{text}");
    assert!(
        !text.contains(&identities[1]) && !text.contains(&identities[2]),
        "{text}"
    );
    let calls = |db: &str| {
        let family = "spacetime_txn_elapsed_time_sec_count";
        let lines = text.lines().filter(|line| line.starts_with(family));
        let lines = lines.filter(|line| line.contains(&format!("db=\"{db}\"")));
        lines
            .map(|line| {
                line.rsplit_once(' ')
                    .expect("a value")
                    .1
                    .parse::<u64>()
                    .expect("a number")
            })
            .collect::<Vec<_>>()
    };
    // One function at most and the others, of one kind; all functions of the other databases together. Each request connects.
    assert!(calls(&identities[0]).len() <= 2, "{text}");
    assert_eq!(calls(&identities[0]).iter().sum::<u64>(), CALLS);
    assert_eq!(calls("(other)"), [2 * CALLS]);
    let rows = |db: &str, table: &str| {
        value(
            &text,
            "spacetime_num_table_rows",
            &[("db", db), ("table_name", table)],
        )
    };
    assert_eq!(rows("(other)", "(other)"), Some(4.0), "{text}");
    assert!(rows(&identities[0], "(other)").is_some(), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_can_be_kept_back() {
    let server = TestServer::start_with(config("[metrics]\nnames = false")).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    use_it(&server, &user, "a").await;
    for path in ["/v1/metrics", "/v1/metrics?format=json"] {
        let text = server.ask("GET", path).await.1;
        assert!(text.contains("(other)"), "{text}");
        assert!(
            !text.contains("person") && !text.contains("\"add\""),
            "{text}"
        );
    }
    let times = "spacetime_txn_elapsed_time_sec_count";
    let text = server.ask("GET", "/v1/metrics").await.1;
    let all = value(&text, times, &[("reducer", "(other)")]);
    assert_eq!(all, Some(CALLS as f64), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_a_database_are_for_its_readers() {
    let server = TestServer::start().await;
    let (owner, stranger) = (server.user().await, server.user().await);
    let identity = created(&server, &owner, "a", "module").await;
    use_it(&server, &owner, "a").await;
    let path = "/v1/database/a/metrics";
    assert_eq!(by(&server, &stranger, "GET", path).await.0, 403);
    assert_eq!(server.ask("GET", path).await.0, 403);
    let (status, body) = by(&server, &owner, "GET", path).await;
    assert_eq!(status, 200);
    let counted = json(&body);
    let database = &counted["databases"][0];
    assert_eq!(database["identity"], identity.as_str());
    assert_eq!(database["names"][0], "a");
    let functions = database["functions"].as_array().expect("functions");
    let add = functions
        .iter()
        .find(|of| of["name"] == "add")
        .expect("add");
    let buckets = add["times"]["buckets"].as_array().expect("buckets");
    let calls: u64 = buckets.iter().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(calls, 3, "{body}");
    assert!(buckets.len() <= counted["bounds_us"].as_array().expect("bounds").len() + 1);
    let tables = database["tables"].as_array().expect("tables");
    assert!(
        tables
            .iter()
            .any(|of| of["name"] == "person" && of["rows"] == 2),
        "{body}"
    );

    let all = json(&server.ask("GET", "/v1/metrics?format=json").await.1);
    assert_eq!(all["databases"][0]["identity"], identity.as_str());
    assert_eq!(server.ask("GET", "/v1/metrics?format=xml").await.0, 400);

    // The first look was at the start, before there was a database.
    let past = "/v1/database/a/metrics?format=history";
    assert_eq!(by(&server, &stranger, "GET", past).await.0, 403);
    let of_database = json(&by(&server, &owner, "GET", past).await.1);
    assert_eq!(of_database["looks"], serde_json::json!([]));
    let of_server = json(&server.ask("GET", "/v1/metrics?format=history").await.1);
    assert_eq!(of_server["bounds_us"], all["bounds_us"]);
    let families = of_server["looks"][0]["counts"].as_str().expect("a text");
    assert!(families.contains("process_cpu_seconds_total"), "{families}");
    assert!(!families.contains("spacetime_num_txns_total"), "{families}");
}

async fn sql(server: &TestServer, user: &User, name: &str, text: &'static str) {
    let request = server.request("POST", &format!("/v1/database/{name}/sql"));
    let (status, body) = answer(request.bearer_auth(&user.token).body(text)).await;
    assert_eq!(status, 200, "{body}");
}

/// Whatever breaks by it.
async fn published(server: &TestServer, user: &User, name: &str, program: &'static str) {
    let path = format!("/v1/database/{name}");
    let plan = server.request("POST", &format!("{path}/pre_publish"));
    let (status, plan) = answer(plan.bearer_auth(&user.token).body(program)).await;
    assert_eq!(status, 200, "{plan}");
    let auto = json(&plan)["AutoMigrate"].clone();
    let token = auto["token"].as_str().expect("a token");
    let query = format!("policy=BreakClients&token={token}");
    let request = server.request("PUT", &format!("{path}?{query}"));
    let (status, body) = answer(request.bearer_auth(&user.token).body(program)).await;
    assert_eq!(status, 200, "{body}");
}

const TIMES: &str = "spacetime_txn_elapsed_time_sec_count";

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_databases_do_not_fall() {
    let server = TestServer::start_with(config("[limits]\nmetrics-databases-max = 1")).await;
    let user = server.user().await;
    let mut identities = Vec::new();
    for name in ["a", "b", "c"] {
        identities.push(created(&server, &user, name, "module").await);
        use_it(&server, &user, name).await;
    }
    let others = |text: &str| sum(text, TIMES, &[("db", "(other)")]);
    let rows = |text: &str| sum(text, "spacetime_num_table_rows", &[("db", "(other)")]);
    let text = server.ask("GET", "/v1/metrics").await.1;
    assert_eq!((others(&text), rows(&text)), (2.0 * CALLS as f64, 4.0));
    // One of the sum goes: what it has counted stays, what it had goes.
    let gone = by(&server, &user, "DELETE", "/v1/database/b").await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    let text = server.ask("GET", "/v1/metrics").await.1;
    assert_eq!((others(&text), rows(&text)), (2.0 * CALLS as f64, 2.0));
    // The one with a series goes. No database that is in the sum takes its place, but the next one does.
    let gone = by(&server, &user, "DELETE", "/v1/database/a").await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    let next = created(&server, &user, "d", "module").await;
    use_it(&server, &user, "d").await;
    let text = server.ask("GET", "/v1/metrics").await.1;
    assert_eq!(others(&text), 2.0 * CALLS as f64);
    assert_eq!(sum(&text, TIMES, &[("db", &next)]), CALLS as f64);
    assert!(!text.contains(&identities[0]) && !text.contains(&identities[2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_functions_and_tables_do_not_fall() {
    for text in [
        "[limits]\nmetrics-functions-max = 1\nmetrics-tables-max = 1",
        "[metrics]\nnames = false",
    ] {
        let server = TestServer::start_with(config(text)).await;
        let user = server.user().await;
        created(&server, &user, "a", "module procedure table:zoo").await;
        let path = "/v1/database/a/call/work";
        call(&server, &user, path, "[]").await;
        sql(
            &server,
            &user,
            "a",
            "INSERT INTO zoo (id, name) VALUES (1, 'x')",
        )
        .await;
        sql(&server, &user, "a", "DELETE FROM zoo").await;
        let counted = |text: &str| {
            let of = [("txn_type", "Procedure"), ("reducer", "(other)")];
            let inserted = "spacetime_num_rows_inserted_total";
            let rows = sum(text, inserted, &[("table_name", "(other)")]);
            (sum(text, TIMES, &of), rows)
        };
        let before = server.ask("GET", "/v1/metrics").await.1;
        assert_eq!(counted(&before), (1.0, 1.0), "{before}");
        for program in ["module", "module other", "module procedure table:zoo"] {
            published(&server, &user, "a", program).await;
            let text = server.ask("GET", "/v1/metrics").await.1;
            assert_eq!(counted(&text), (1.0, 1.0), "{program}\n{text}");
        }
        call(&server, &user, path, "[]").await;
        let text = server.ask("GET", "/v1/metrics").await.1;
        assert_eq!(counted(&text), (2.0, 1.0), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_readers_are_told_less() {
    let listen = "[metrics]\nlisten = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef\"";
    for (more, is_told) in [("", false), ("\nlisten-names = true", true)] {
        let server = TestServer::start_with(config(&format!("{listen}{more}"))).await;
        let user = server.user().await;
        let identity = created(&server, &user, "a", "module").await;
        use_it(&server, &user, "a").await;
        let handle = server.handle.as_ref().expect("running");
        let address = handle.metrics_addr().expect("a listener");
        let ask = |token: &str| {
            let request = server.http.get(format!("http://{address}/metrics"));
            answer(request.header("authorization", format!("Bearer {token}")))
        };
        let asked = std::time::Instant::now();
        let text = ask("").await.1;
        assert_eq!(text.contains("\"add\""), is_told, "{text}");
        assert_eq!(text.contains("person"), is_told, "{text}");
        assert_eq!(text.contains(&identity), is_told, "{text}");
        assert!(text.contains(&identity[..32]), "{text}");
        let all = [("db", &identity[..32])];
        let all = all.map(|(label, value)| (label, if is_told { &*identity } else { value }));
        assert_eq!(sum(&text, TIMES, &all), CALLS as f64);
        // It is the same for a second, whatever happens.
        use_it(&server, &user, "a").await;
        let again = ask("wrong").await.1;
        // A machine may be too busy to ask twice in that time.
        if asked.elapsed() < std::time::Duration::from_secs(1) {
            assert_eq!(again, text);
        }
        let whole = ask("0123456789abcdef").await.1;
        assert!(whole.contains("\"add\"") && whole.contains(&identity));
        assert_eq!(sum(&whole, TIMES, &[("db", &identity)]), 2.0 * CALLS as f64);
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        assert_eq!(sum(&ask("").await.1, TIMES, &all), 2.0 * CALLS as f64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_opens_no_database() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let identity = created(&server, &user, "a", "module").await;
    let look = "/v1/database/a/metrics";
    let is_open = |body: &str| json(body)["databases"][0]["is_open"].clone();
    assert_eq!(is_open(&by(&server, &user, "GET", look).await.1), true);
    let directory = server.stop().await;
    let server = TestServer::start_in(directory, config("")).await;
    let (status, body) = by(&server, &user, "GET", look).await;
    assert_eq!((status, is_open(&body)), (200, false.into()), "{body}");
    assert_eq!(json(&body)["databases"][0]["names"][0], "a");
    let text = server.ask("GET", "/v1/metrics").await.1;
    assert!(!text.contains(&identity), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_and_the_disk() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let identity = created(&server, &user, "a", "module").await;
    use_it(&server, &user, "a").await;
    let directory = server.stop().await;
    let server = TestServer::start_in(directory, config("")).await;
    use_it(&server, &user, "a").await;
    let text = server.ask("GET", "/v1/metrics").await.1;
    let of = |name: &str, labels: &str| {
        let start = format!("{name}{labels} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(|value| value.parse::<f64>().expect("a number"))
    };
    if cfg!(target_os = "linux") {
        for (name, least, most) in [
            ("process_resident_memory_bytes", 1e6, 1e12),
            ("process_virtual_memory_bytes", 1e6, 1e15),
            ("process_cpu_seconds_total", 0.0, 1e6),
            ("process_threads", 2.0, 1e5),
            ("process_open_fds", 3.0, 1e6),
            ("process_max_fds", 3.0, 1e19),
            ("process_start_time_seconds", 1.6e9, 1e10),
        ] {
            let value = of(name, "").unwrap_or(-1.0);
            assert!(least <= value && value <= most, "{name} {value}");
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let age = now.expect("after 1970").as_secs_f64()
            - of("process_start_time_seconds", "").expect("a time");
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }
    let db = format!("{{db=\"{identity}\"}}");
    assert!(
        of("lightcone_replay_transactions", &db) >= Some(2.0),
        "{text}"
    );
    assert!(of("lightcone_replay_bytes", &db) > Some(0.0));
    assert!(of("lightcone_replay_seconds", &db) > Some(0.0));
    assert_eq!(of("lightcone_snapshots_failed_total", &db), Some(0.0));
}
