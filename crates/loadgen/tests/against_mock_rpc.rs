//! Whole runs over HTTP and over binary frames, against a mock server.

mod mock_rpc;

use clap::Parser;
use lightcone_loadgen::{run, Error, Options, Report};
use mock_rpc::{Manner, MockRpc};

const SHORT: &str = "--seconds 0.4 --warmup-seconds 0.1 --connections 4 --in-flight 5";

fn try_run(mock: &MockRpc, arguments: &str) -> Result<Report, Error> {
    let url = mock.url();
    let fixed = ["lightcone-loadgen", "--url", &url, "--accounts", "1000"];
    let arguments = format!("--pairs 5000 {SHORT} {arguments}");
    let all = fixed.into_iter().chain(arguments.split_whitespace());
    run(&Options::parse_from(all), &mut |_| {})
}

#[track_caller]
fn assert_verified(report: &Report, mock: &MockRpc) {
    assert!(report.is_clean() && report.is_verified(), "{report}");
    assert_eq!(report.strict, Some(Ok(())));
    let verification = report.verification.as_ref().unwrap();
    assert_eq!(verification.accounts, 1000);
    assert!(verification.changed > 100);
    let succeeded = report.total.succeeded();
    assert!(succeeded > 100 && succeeded < mock.calls(), "{report}");
}

#[test]
fn rpc_over_http() {
    for (manner, threads) in [(Manner::Usual, 1), (Manner::Chunked, 2)] {
        let mock = MockRpc::start(manner);
        let arguments = format!("--target rpc --seed --verify --verify-strict --threads {threads}");
        let report = try_run(&mock, &arguments).unwrap();
        assert_verified(&report, &mock);
        // Each of the 4 connections has 5 sockets.
        assert_eq!(mock.connections(), 20);
    }
}

#[test]
fn batched_frames() {
    let mock = MockRpc::start(Manner::Usual);
    let report = try_run(&mock, "--target batched --seed --verify --verify-strict").unwrap();
    assert_verified(&report, &mock);
    assert_eq!(mock.frame_calls_max(), 5, "all calls go in one frame");
}

#[test]
fn reducer_calls_over_http() {
    let mock = MockRpc::start(Manner::Usual);
    try_run(
        &mock,
        "--target rpc --seed --initial-balance 1 --seconds 0.1",
    )
    .unwrap();
    let report = try_run(
        &mock,
        "--target spacetime-http --database bank --alpha 1.5 --initial-balance 1",
    )
    .unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.total.refused.0["insufficient_funds"] > 0, "{report}");
}

#[test]
fn convex_mutations() {
    let mock = MockRpc::start(Manner::Usual);
    try_run(&mock, "--target rpc --seed --seconds 0.1").unwrap();
    let before = mock.calls();
    let report = try_run(&mock, "--target convex").unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.total.succeeded() <= mock.calls() - before);
}

#[test]
fn transfers_without_effect_are_counted_apart() {
    for target in ["rpc", "batched"] {
        let mock = MockRpc::start(Manner::Usual);
        let arguments =
            format!("--target {target} --seed --verify-strict --initial-balance 1 --alpha 1.5");
        let report = try_run(&mock, &arguments).unwrap();
        let noops = report.total.noops;
        assert!(noops > 0 && noops < report.total.succeeded(), "{report}");
        assert_eq!(report.strict, Some(Ok(())));
        assert_eq!(report.to_json()["noops"], noops);
    }
}

#[test]
fn failed_transfers_do_not_count() {
    let mock = MockRpc::start(Manner::Failing);
    let report = try_run(&mock, "--target rpc --seed --verify-strict").unwrap();
    assert!(
        report.total.failed.0["internal server error"] > 0,
        "{report}"
    );
    assert!(!report.is_clean());
    assert_eq!(report.strict, Some(Ok(())), "a failure did nothing");
}

#[test]
fn connections_that_close_are_told() {
    let mock = MockRpc::start(Manner::Closing);
    let report = try_run(&mock, "--target rpc --seed --verify-strict --seconds 5").unwrap();
    let closed = "the server closed the connection: after an answer [LC0692]";
    assert_eq!(report.total.disconnects.0[closed], 20, "{report}");
    // The last answer of each was taken.
    assert_eq!(report.total.unanswered, 0);
    assert_eq!(report.strict, Some(Ok(())));
}

#[test]
fn open_loop_keeps_the_rate() {
    let mock = MockRpc::start(Manner::Usual);
    let report = try_run(&mock, "--target rpc --seed --seconds 1 --rate 1000").unwrap();
    let succeeded = report.total.succeeded();
    assert!(
        report.is_clean() && (900..=1100).contains(&succeeded),
        "{report}"
    );
    assert_eq!(report.total.unsent, 0);
}

#[test]
fn failures_are_explained() {
    let mock = MockRpc::start(Manner::Usual);
    for (arguments, text) in [
        (
            "--target rpc --seed --url http://127.0.0.1:1",
            "cannot reach the server at 127.0.0.1:1",
        ),
        (
            "--target rpc --seed --url http://ADDRESS/elsewhere",
            "the method seed failed: HTTP 404 no route /elsewhere/rpc",
        ),
        (
            "--target postgres --seed --url postgres://me@ADDRESS/x",
            "the server",
        ),
        (
            "--target rpc --connections 60000 --in-flight 2",
            "--connections times --in-flight must be at most 60000 over HTTP, not 120000",
        ),
    ] {
        let arguments = arguments.replace("ADDRESS", &mock.address.to_string());
        let error = try_run(&mock, &arguments).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
