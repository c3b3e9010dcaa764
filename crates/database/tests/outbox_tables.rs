//! Outbox tables of a database whose messages the test carries itself: answers that are late, lost, or say something else, and what a
//! receiver says of each number. `modules/latest-ts` has what `modules/outbox-rs` has but for `withdraw`.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common;
use crate::common::publishing::{log_of, stop};
use crate::common::tables::sql;
use crate::common::{caller, create, create_latest, open, options, OWNER};
use lightcone_database::{
    BackupAfter, CallArgs, Carried, Carrier, DatabaseHandle, DatabaseOptions, HostKind, Message,
    MessageAnswer, MessageResult, Restore, ResultStatus,
};
use lightcone_types::{Encode, Hash, Identity};
use serde_json::json;
use tokio::sync::oneshot;

const TARGET: Identity = Identity::from_le_bytes([5; 32]);
const SENDER: Identity = Identity::from_le_bytes([6; 32]);

/// A message on its way, with the place for its answer.
type Sent = (Message, oneshot::Sender<Carried>);

#[derive(Clone, Debug, Default)]
struct Post(Arc<Mutex<VecDeque<Sent>>>);

impl Carrier for Post {
    fn carry(&self, message: Message) -> Pin<Box<dyn Future<Output = Carried> + Send>> {
        let (tell, told) = oneshot::channel();
        self.0.lock().expect("whole").push_back((message, tell));
        Box::pin(async move { told.await.unwrap_or_else(|_| Carried::lost("lost")) })
    }
}

impl Post {
    async fn next(&self) -> Sent {
        for _ in 0..2000 {
            if let Some(next) = self.0.lock().expect("whole").pop_front() {
                return next;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("no message comes");
    }

    fn is_empty(&self) -> bool {
        self.0.lock().expect("whole").is_empty()
    }
}

fn done(status: ResultStatus, text: &str) -> Carried {
    let payload = text.as_bytes().to_vec();
    Carried {
        answer: Ok(MessageAnswer::Done(MessageResult { status, payload })),
        is_settled: true,
    }
}

fn out_of_order(expected: u64, is_settled: bool) -> Carried {
    Carried {
        answer: Ok(MessageAnswer::OutOfOrder { expected }),
        is_settled,
    }
}

fn posted(directory: &std::path::Path) -> (DatabaseOptions, Post) {
    let (options, post) = (options(directory), Post::default());
    options.commons.set_carrier(Arc::new(post.clone()));
    (options, post)
}

async fn call(database: &DatabaseHandle, reducer: &str, args: serde_json::Value) {
    let args = CallArgs::Json(args.to_string());
    let called = database.call(caller(OWNER), reducer, args).await;
    called.unwrap_or_else(|error| panic!("{reducer}: {error:?}"));
}

async fn send(database: &DatabaseHandle, number: u64) {
    let to = json!({ "__identity__": format!("0x{}", TARGET.to_hex()) });
    call(database, "send", json!([to, number, "text"])).await;
}

/// The rows that a query gives, as JSON.
async fn rows(database: &DatabaseHandle, text: &str) -> String {
    let found = sql(database, OWNER, text).await.expect("a query");
    found.0.to_string()
}

async fn until_rows(database: &DatabaseHandle, text: &str, expected: &str) {
    let mut found = String::new();
    for _ in 0..1000 {
        found = rows(database, text).await;
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{text}: {found} is not {expected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_stored_with_what_the_callback_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, post) = posted(directory.path());
    results_are_stored(create(options, "outbox").await, post).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_stored_with_what_the_callback_of_a_javascript_module_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, post) = posted(directory.path());
    results_are_stored(create_latest(options, HostKind::Js).await, post).await;
}

async fn results_are_stored(database: DatabaseHandle, post: Post) {
    for number in 1..=2 {
        send(&database, number).await;
    }
    let (first, answer) = post.next().await;
    assert_eq!((first.seq, first.ack_prefix, first.target), (1, 0, TARGET));
    assert_eq!(
        (first.reducer.as_str(), first.args),
        ("receive", (1_u64, "text").to_vec())
    );
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(post.is_empty(), "one of a stream is under way");
    answer
        .send(Carried::lost("the line is busy"))
        .expect("it waits");
    let (again, answer) = post.next().await;
    assert_eq!((again.stream, again.seq), (first.stream, 1));
    let noted = "SELECT retry_count, last_transport_error FROM st_outbound_msg WHERE seq = 1";
    assert_eq!(
        rows(&database, noted).await,
        r#"[[1,[0,"the line is busy"]]]"#
    );
    answer
        .send(done(ResultStatus::Error, "no"))
        .expect("it waits");
    let (second, answer) = post.next().await;
    assert_eq!((second.seq, second.ack_prefix), (2, 1));
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    until_rows(
        &database,
        "SELECT number, error FROM outcomes ORDER BY id",
        r#"[[1,"no"],[2,""]]"#,
    )
    .await;
    assert_eq!(rows(&database, "SELECT id FROM parcels").await, "[]");
    let metrics = database.metrics().messages;
    assert_eq!(
        (metrics.delivered, metrics.failed, metrics.retried),
        (1, 1, 1)
    );
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_goes_frees_its_stream_and_no_number_is_used_twice() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, post) = posted(directory.path());
    let database = create(options, "outbox").await;
    for number in 1..=4 {
        send(&database, number).await;
    }
    let (_, late) = post.next().await;
    for number in [1, 3] {
        call(&database, "withdraw", json!([number])).await;
    }
    // Its answer comes when the row is gone: it was applied, and no callback hears of it.
    late.send(done(ResultStatus::Ok, "")).expect("it waits");
    let (second, answer) = post.next().await;
    assert_eq!((second.seq, second.ack_prefix), (2, 0));
    // The receiver knows nothing of the first. While that may still arrive, its number is not given to another.
    answer.send(out_of_order(1, false)).expect("it waits");
    let (again, answer) = post.next().await;
    assert_eq!((again.seq, &again.args), (2, &second.args));
    answer.send(out_of_order(1, true)).expect("it waits");
    let (renumbered, answer) = post.next().await;
    assert_eq!((renumbered.seq, &renumbered.args), (1, &second.args));
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    let (fourth, answer) = post.next().await;
    assert_eq!(
        (fourth.seq, fourth.ack_prefix),
        (2, 1),
        "without the gap of the third"
    );
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    until_rows(
        &database,
        "SELECT number FROM outcomes ORDER BY id",
        "[[2],[4]]",
    )
    .await;
    assert!(post.is_empty());
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_with_what_was_not_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, post) = posted(directory.path());
    let database = create(options, "outbox").await;
    for number in 1..=3 {
        send(&database, number).await;
    }
    let (first, answer) = post.next().await;
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    let (second, _lost) = post.next().await;
    stop(database).await;
    let (options, post) = posted(directory.path());
    let database = common::open(options).await;
    let (again, answer) = post.next().await;
    assert_eq!(again, second);
    assert_eq!(again.stream, first.stream);
    answer
        .send(done(ResultStatus::OutOfEnergy, "too much"))
        .expect("it waits");
    let (third, answer) = post.next().await;
    assert_eq!((third.seq, third.ack_prefix), (3, 2));
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    let outcomes = r#"[[1,""],[2,"too much"],[3,""]]"#;
    until_rows(
        &database,
        "SELECT number, error FROM outcomes ORDER BY id",
        outcomes,
    )
    .await;
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_applies_each_number_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, _post) = posted(directory.path());
    let database = create(options, "outbox").await;
    let def = database.module_def();
    let (_, receiver) = def.reducer("receive").expect("a reducer");
    let message = |seq: u64, ack_prefix: u64, text: &str| Message {
        sender: SENDER,
        target: Identity::from_le_bytes([1; 32]),
        stream: 9,
        seq,
        ack_prefix,
        reducer: "receive".to_owned(),
        signature_hash: receiver.signature_hash(),
        args: (seq, text).to_vec(),
    };
    let ask = async |message: Message| database.receive(message).await.expect("an answer");
    let ok = || {
        MessageAnswer::Done(MessageResult {
            status: ResultStatus::Ok,
            payload: Vec::new(),
        })
    };
    let error = |text: &str| {
        let payload = text.as_bytes().to_vec();
        MessageAnswer::Done(MessageResult {
            status: ResultStatus::Error,
            payload,
        })
    };
    assert_eq!(
        ask(message(2, 0, "")).await,
        MessageAnswer::OutOfOrder { expected: 1 }
    );
    assert_eq!(ask(message(1, 0, "one")).await, ok());
    assert_eq!(ask(message(1, 0, "something else")).await, ok(), "a replay");
    let refused = error("number 2 is refused");
    assert_eq!(ask(message(2, 1, "refuse")).await, refused);
    assert_eq!(ask(message(2, 1, "refuse")).await, refused);
    assert_eq!(ask(message(1, 1, "one")).await, MessageAnswer::Acknowledged);
    // Failures before the reducer move the stream on as well.
    let missing = Message {
        reducer: "nothing".to_owned(),
        ..message(3, 2, "")
    };
    assert_eq!(
        ask(missing).await,
        error("IDC reducer does not exist: nothing")
    );
    let private = Message {
        reducer: "parcel_result".to_owned(),
        ..message(4, 3, "")
    };
    assert_eq!(
        ask(private).await,
        error("IDC reducer does not exist: parcel_result")
    );
    let other = Message {
        signature_hash: Hash::ZERO,
        ..message(5, 4, "")
    };
    let expected = receiver.signature_hash();
    let text = format!(
        "IDC reducer signature mismatch for receive: expected {expected}, got {}",
        Hash::ZERO
    );
    assert_eq!(ask(other).await, error(&text));
    let MessageAnswer::Done(short) = ask(Message {
        args: vec![1],
        ..message(6, 5, "")
    })
    .await
    else {
        panic!("it is done");
    };
    assert_eq!(short.status, ResultStatus::Error);
    assert_eq!(ask(message(7, 6, "seven")).await, ok());
    // Another stream has numbers of its own.
    assert_eq!(
        ask(Message {
            stream: 10,
            ..message(1, 0, "other")
        })
        .await,
        ok()
    );
    let found = rows(&database, "SELECT number, text FROM arrivals ORDER BY id").await;
    assert_eq!(found, r#"[[1,"one"],[7,"seven"],[1,"other"]]"#);
    let kept = "SELECT seq FROM st_inbound_msg WHERE stream_id = 9";
    assert_eq!(rows(&database, kept).await, "[[7]]");
    assert!(log_of(&database)
        .iter()
        .any(|line| line.contains("number 2 is refused")));
    stop(database).await;
}

/// Under the identity that it had: its targets know the numbers of all that it has sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_restored_database_is_sent_in_new_streams() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options, post) = posted(&directory.path().join("first"));
    let database = create(options, "outbox").await;
    for number in 1..=2 {
        send(&database, number).await;
    }
    let (first, answer) = post.next().await;
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    let (second, _) = post.next().await;
    assert_eq!((second.stream, second.seq), (first.stream, 2));
    let mut backup = database
        .backup(BackupAfter::default())
        .await
        .expect("it begins");
    let path = directory.path().join("restored");
    std::fs::create_dir(&path).expect("a directory");
    let (options, post) = posted(&path);
    let restored = options.clone();
    let restoring = tokio::task::spawn_blocking(move || {
        let mut restore = Restore::begin(restored, || u64::MAX).expect("it begins");
        while let Some(part) = backup.read().expect("it goes on") {
            restore.take(part.as_ref()).expect("a backup");
        }
        restore.finish().expect("it is whole")
    });
    restoring.await.expect("no panic");
    stop(database).await;

    let database = open(options).await;
    let (again, answer) = post.next().await;
    assert_ne!(again.stream, first.stream);
    assert_eq!((again.ack_prefix, &again.args), (0, &second.args));
    answer.send(out_of_order(1, true)).expect("it waits");
    let (numbered, answer) = post.next().await;
    assert_eq!((numbered.stream, numbered.seq), (again.stream, 1));
    assert_eq!(numbered.args, second.args);
    answer.send(done(ResultStatus::Ok, "")).expect("it waits");
    until_rows(
        &database,
        "SELECT COUNT(*) AS n FROM st_outbound_msg",
        "[[0]]",
    )
    .await;
    stop(database).await;
}
