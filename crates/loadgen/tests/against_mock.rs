//! Whole runs against a mock server.

mod mock;

use clap::Parser;
use lightcone_loadgen::{run, Error, Options, Progress, Report};
use mock::Mock;

fn options(mock: &Mock, arguments: &str) -> Options {
    let url = mock.url();
    let fixed = [
        "lightcone-loadgen",
        "--url",
        &url,
        "--accounts",
        "1000",
        "--pairs",
        "5000",
    ];
    Options::parse_from(fixed.into_iter().chain(arguments.split_whitespace()))
}

fn try_run(mock: &Mock, arguments: &str) -> Result<Report, Error> {
    run(&options(mock, arguments), &mut |_| {})
}

#[track_caller]
fn error_text(mock: &Mock, arguments: &str) -> String {
    try_run(mock, arguments)
        .expect_err("the run fails")
        .to_string()
}

const SHORT: &str = "--database bank --seconds 0.4 --warmup-seconds 0.1 --connections 4";

#[test]
fn closed_loop_with_verification() {
    for (version, threads, burst_calls) in [("v3", 1, 10), ("v3", 2, 10), ("v2", 1, 1)] {
        let mock = Mock::start();
        let report = try_run(
            &mock,
            &format!(
                "{SHORT} --seed --verify --verify-strict --in-flight 10 --protocol {version} --threads {threads}"
            ),
        )
        .unwrap();
        assert!(report.is_clean() && report.is_verified(), "{report}");
        assert_eq!(mock.burst_calls_max(), burst_calls, "calls in one message");
        assert_eq!(report.strict, Some(Ok(())));
        assert_eq!(report.ledger.as_ref().unwrap().unknown_transfers(), 0);
        let verification = report.verification.as_ref().unwrap();
        assert_eq!(verification.accounts, 1000);
        assert!(verification.changed > 500);
        // The calls of the warm-up and after the window do not count.
        let succeeded = report.total.succeeded();
        assert!(succeeded > 100 && succeeded < mock.calls(), "{report}");
        assert!(report.total.percentile_ms(50.0) > 0.0);
    }
}

#[test]
fn progress_and_seconds() {
    let mock = Mock::start();
    let (mut lines, mut seconds, mut starts) = (vec![], vec![], 0);
    let arguments =
        "--database bank --seed --seconds 2 --warmup-seconds 0 --connections 2 --threads 2";
    let report = run(&options(&mock, arguments), &mut |progress| match progress {
        Progress::Line(line) => lines.push(line.to_owned()),
        Progress::Started => starts += 1,
        Progress::Second(point) => {
            assert_eq!(starts, 1);
            seconds.push(point.to_string());
        }
    })
    .unwrap();
    assert_eq!(report.series.len(), 2, "{lines:?}");
    let in_seconds: u64 = report.series.iter().map(|point| point.transfers).sum();
    assert!(in_seconds > 0 && in_seconds <= report.total.succeeded());
    assert!(lines.iter().any(|line| line.contains("closed loop")));
    assert_eq!(seconds.len(), 2);
    assert!(seconds[0].contains("transfers/s"), "{seconds:?}");
}

#[test]
fn open_loop_keeps_the_rate() {
    let mock = Mock::start();
    let report = try_run(
        &mock,
        &format!("{SHORT} --seconds 1 --seed --rate 2000 --threads 2"),
    )
    .unwrap();
    assert!(report.is_clean(), "{report}");
    let succeeded = report.total.succeeded();
    assert!((1900..=2100).contains(&succeeded), "{report}");
    assert_eq!(report.total.unsent, 0);
}

#[test]
fn open_loop_counts_latency_from_the_schedule() {
    let mock = Mock::start();
    // Far more than one call under way can do.
    let report = try_run(
        &mock,
        "--database bank --seconds 0.5 --warmup-seconds 0 --connections 1 --in-flight 1 --seed \
         --rate 1000000",
    )
    .unwrap();
    assert!(report.total.unsent > 100_000, "{report}");
    assert!(report.total.percentile_ms(95.0) > 100.0, "{report}");
}

#[test]
fn refused_calls_are_kept_apart() {
    let mock = Mock::start();
    let report = try_run(
        &mock,
        &format!("{SHORT} --seed --initial-balance 1 --amount 1 --alpha 1.5"),
    )
    .unwrap();
    assert!(report.total.refused.0["insufficient_funds"] > 0, "{report}");
    assert_eq!(report.total.failed.total(), 0);
    assert!(report.is_clean());
    let report = try_run(&mock, &format!("{SHORT} --reducer nonsense")).unwrap();
    assert!(report.total.failed.0["no such reducer"] > 0);
    assert!(!report.is_clean());
}

#[test]
fn subscribers_count_updates() {
    let mock = Mock::start();
    let report = try_run(
        &mock,
        &format!("{SHORT} --in-flight 1 --seed --subscribe-each 300 --subscribe-connections 3"),
    )
    .unwrap();
    let subscriptions = report.subscriptions.unwrap();
    assert_eq!((subscriptions.queries, subscriptions.connections), (300, 3));
    assert!(subscriptions.updates > 0, "{report}");
    assert_eq!(subscriptions.update_rows, 2 * subscriptions.updates);
}

/// A server that acknowledges without doing.
#[test]
fn the_strict_check_finds_lost_transfers() {
    let mock = Mock::start();
    let arguments = "--database forgets --seed --verify-strict --seconds 0.2 --connections 2";
    let report = try_run(&mock, arguments).unwrap();
    assert!(!report.is_verified());
    let text = report.strict.unwrap().unwrap_err();
    assert!(text.contains("accounts are wrong; account "), "{text}");
}

#[test]
fn failures_are_explained() {
    let mock = Mock::start();
    assert_eq!(
        error_text(&mock, "--database missing"),
        "the server refused the connection: 404 Not Found `missing` not found \
         (database `missing`) [LC0691]"
    );
    assert_eq!(
        error_text(&mock, "--database rejects"),
        "the server closed the connection: before its first message; the module may have rejected \
         the client [LC0692]"
    );
    for (arguments, text) in [
        (
            "--database bank --connections 0",
            "--connections must be 1 to",
        ),
        ("--database bank --in-flight 0", "--in-flight must be 1 to"),
        ("--database bank --threads 65", "--threads must be 1 to"),
        ("--database bank --seconds 0", "--seconds must be 0.1 to"),
        ("--database bank --alpha=-1", "--alpha must be"),
        ("--database bank --rate 0", "--rate must be"),
        ("--database bank --amount 0", "--amount must be"),
        ("--database bank --alpha 90", "--alpha 90 is too skewed"),
        (
            "--database bank --server-pid 4294967295",
            "--server-pid 4294967295 cannot be observed",
        ),
        ("--database a/b", "is not a database name"),
        ("--target spacetime-http", "--database is missing"),
        ("--target postgres", "is not a PostgreSQL URL"),
        (
            "--target rpc --subscribe-each 1",
            "--subscribe-each needs --target websocket",
        ),
        (
            "--target convex --verify",
            "--verify and --verify-strict are not for --target convex",
        ),
    ] {
        let error = error_text(&mock, arguments);
        assert!(
            error.contains(text) && error.ends_with("[LC0694]"),
            "{error}"
        );
    }
}

#[test]
fn a_closing_server_ends_the_run() {
    let mock = Mock::start();
    let start = std::time::Instant::now();
    let report = try_run(
        &mock,
        "--database closes --seed --verify-strict --seconds 30 --connections 2",
    );
    let report = report.unwrap();
    assert!(
        start.elapsed().as_secs() < 20,
        "ends with the last connection"
    );
    let closed = "the server closed the connection: 1001 module exited [LC0692]";
    assert!(report.total.disconnects.0.contains_key(closed), "{report}");
    assert!(report.total.unanswered > 0 && !report.is_clean());
    let ledger = report.ledger.unwrap();
    assert_eq!(ledger.unknown_transfers(), report.total.unanswered);
    // The mock forgets nothing: its accounts can still be checked.
    assert_eq!(report.strict, Some(Ok(())));
}
