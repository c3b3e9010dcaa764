//! Windows at their limits: who ends, who is refused, and that no other is (08 §13.7).

use crate::common::requests::subscribe;
use crate::common::tables::sql;
use crate::common::watcher::Watcher;
use crate::common::windows::{create, identity_of, program, row};
use crate::common::OWNER;
use lightcone_types::Encode;
use lightcone_wire::ClientMessage;
use serde_json::{json, Value};

/// Subscribes, and gives the error that is the answer.
async fn refused(watcher: &mut Watcher, text: &str) -> String {
    watcher.subscribe(9, text).await;
    let mut errors = watcher.take_errors();
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    errors.remove(0).1
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_window_or_too_many_rows_is_refused() {
    let mut program = program();
    program["tables"]["e"] = json!([["room", "U32"]]);
    program["events"] = json!(["e"]);
    program["rules"] = json!([
        "SELECT u.* FROM u JOIN member m WHERE m.who = :sender",
        "SELECT member.* FROM member JOIN e ON member.id = e.room"
    ]);
    let database = create(&program, |options| {
        options.limits.window_rows_max = 100;
        options.limits.windows_max = 2;
    })
    .await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    for (text, code) in [
        ("SELECT * FROM e ORDER BY room LIMIT 3", "[LC0415]"),
        // As without ORDER BY: rules join everything with everything, or events.
        (
            "SELECT * FROM u ORDER BY a LIMIT 3",
            "require indexes on join columns",
        ),
        (
            "SELECT * FROM member ORDER BY id LIMIT 3",
            "Event tables cannot be used as the lookup table",
        ),
        (
            "SELECT t.* FROM t JOIN t s ON t.room = s.room ORDER BY t.id LIMIT 3",
            "[LC0415]",
        ),
        ("SELECT * FROM t ORDER BY id LIMIT 90 OFFSET 11", "[LC0727]"),
        ("SELECT * FROM t ORDER BY id", "Unsupported: "),
        ("SELECT * FROM t LIMIT 3", "Unsupported: "),
        ("SELECT id FROM t ORDER BY id LIMIT 3", "Column projections"),
        ("SELECT COUNT(*) AS n FROM t", "[LC0416]"),
        (
            "SELECT room, MAX(score) AS best FROM t GROUP BY room",
            "[LC0416]",
        ),
    ] {
        let error = refused(&mut watcher, text).await;
        assert!(error.contains(code), "{text}: {error}");
    }
    for set in 1..3 {
        let text = format!("SELECT * FROM t WHERE room = {set} ORDER BY id LIMIT 3");
        watcher.subscribe(set, &text).await;
    }
    // The same as another is no more windows.
    watcher
        .subscribe(3, "SELECT * FROM t WHERE room = 2  ORDER BY id LIMIT 3")
        .await;
    assert_eq!(watcher.take_errors(), []);
    let third = "SELECT * FROM t WHERE room = 3 ORDER BY id LIMIT 3";
    let error = refused(&mut watcher, third).await;
    assert!(error.contains("limits.windows-max"), "{error}");
    watcher.unsubscribe(1).await;
    watcher.subscribe(1, third).await;
    assert_eq!(watcher.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn first_rows_are_bounded_for_each_client() {
    let database = create(&program(), |options| {
        options.limits.live_rows_per_second = 2;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let rows: Vec<Value> = (0..100).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let (first, second) = (
        "SELECT * FROM t ORDER BY id LIMIT 50",
        "SELECT * FROM t ORDER BY score LIMIT 50",
    );
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    watcher.subscribe(1, first).await;
    assert_eq!(watcher.take_errors(), []);
    let error = refused(&mut watcher, second).await;
    assert!(error.ends_with("[LC0730]"), "{error}");
    // Another connection is of the same client; others may have as much.
    let mut again = Watcher::connect(&database, identity_of(1), 3).await;
    let error = refused(&mut again, second).await;
    assert!(error.ends_with("[LC0730]"), "{error}");
    let mut other = Watcher::connect(&database, identity_of(2), 4).await;
    other.subscribe(1, second).await;
    assert_eq!(other.take_errors(), []);
    assert_eq!(other.rows(1, "t").len(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_takes_too_much_ends_alone() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 100;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let text_of = |id: u32| if (21..900).contains(&id) { "" } else { "x" };
    let row_of = |id: u32| row(id, f64::from(id), text_of(id));
    let rows: Vec<Value> = (0..1000).map(row_of).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    // Rows that begin with others can be found, those behind cannot.
    let far = "SELECT * FROM t WHERE room = 1 AND text = 'x' ORDER BY score LIMIT 5";
    let near = "SELECT * FROM t ORDER BY score LIMIT 5";
    watcher.subscribe(1, far).await;
    watcher.subscribe(2, near).await;
    assert_eq!(watcher.take_errors(), []);
    assert_eq!(watcher.rows(1, "t"), watcher.rows(2, "t"));
    let beyond = "SELECT * FROM t WHERE room = 1 AND text = 'x' ORDER BY score DESC, id LIMIT 90";
    let error = refused(&mut watcher, beyond).await;
    assert!(error.ends_with("[LC0728]"), "{error}");
    for id in 0..18 {
        writer
            .change(&json!({ "t": { "deletes": [row_of(id)] } }))
            .await;
    }
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0728]")),
        "{errors:?}"
    );
    let expected = watcher.ask(near).await;
    assert_eq!(watcher.rows(2, "t"), expected);
    // It may be tried again when it is less.
    watcher.forget(1);
    let error = refused(&mut watcher, far).await;
    assert!(error.ends_with("[LC0728]"), "{error}");
    let deletes: Vec<Value> = (18..895).map(row_of).collect();
    writer.change(&json!({ "t": { "deletes": deletes } })).await;
    watcher.subscribe(1, far).await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(far).await;
    assert_eq!(watcher.rows(1, "t"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_window_ends_when_all_have_too_many_bytes() {
    let database = create(&program(), |options| {
        options.limits.windows_bytes_max = 100_000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let small = "SELECT * FROM t ORDER BY score LIMIT 1";
    let large = "SELECT * FROM t ORDER BY score LIMIT 50";
    watcher.subscribe(1, small).await;
    watcher.subscribe(2, large).await;
    let text = "long ".repeat(200);
    let rows: Vec<Value> = (0..90).map(|id| row(id, f64::from(id), &text)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(2, text)] if text.ends_with("[LC0728]")),
        "{errors:?}"
    );
    let expected = watcher.ask(small).await;
    assert_eq!(watcher.rows(1, "t"), expected);
    let error = refused(&mut watcher, large).await;
    assert!(error.ends_with("[LC0727]"), "{error}");
}

/// Waits until so many connections are left.
async fn connections_become(watcher: &mut Watcher, count: usize) {
    for _ in 0..500 {
        if watcher.ask("SELECT * FROM st_client").await.len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the others do not leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_gives_its_windows_back() {
    let database = create(&program(), |options| options.limits.windows_max = 1).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 5";
    let mut gone = Watcher::connect(&database, identity_of(1), 2).await;
    gone.subscribe(1, text).await;
    assert_eq!(gone.take_errors(), []);
    drop(gone);
    connections_become(&mut writer, 1).await;
    let rows: Vec<Value> = (0..9).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let mut next = Watcher::connect(&database, identity_of(2), 3).await;
    next.subscribe(1, text).await;
    let expected = next.ask(text).await;
    assert_eq!(next.rows(1, "t"), expected);
    drop(next);
    connections_become(&mut writer, 1).await;
    // There may be one window, and there is none.
    let mut other = Watcher::connect(&database, identity_of(1), 4).await;
    other
        .subscribe(1, "SELECT * FROM t ORDER BY score LIMIT 6")
        .await;
    assert_eq!(other.take_errors(), []);
}

fn row_in(room: u32, id: u32, text: &str) -> Value {
    let owner = identity_of(1).to_hex().to_string();
    json!([room * 10_000 + id, room, f64::from(id), owner, true, text])
}

fn text_of_room(room: u32) -> String {
    format!("SELECT * FROM t WHERE room = {room} AND text = 'x' ORDER BY score LIMIT 5")
}

/// Windows of so many rooms that a few rows more have to be looked for when one more row goes from each.
async fn rooms_at_their_end(writer: &mut Watcher, watcher: &mut Watcher, rooms: u32, others: u32) {
    let rows = |range: std::ops::Range<u32>, text: &str| -> Vec<Value> {
        let of_room = |room| range.clone().map(move |id| row_in(room, id, text));
        (0..rooms).flat_map(of_room).collect()
    };
    let inserts = rows(0..40, "x");
    writer.change(&json!({ "t": { "inserts": inserts } })).await;
    for room in 0..rooms {
        watcher.subscribe(room, &text_of_room(room)).await;
    }
    // 16 rows are kept behind the five.
    let (deletes, inserts) = (rows(0..16, "x"), rows(100..100 + others, ""));
    let change = json!({ "t": { "deletes": deletes, "inserts": inserts } });
    writer.change(&change).await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
}

/// One row less in each room.
fn one_less(rooms: u32) -> Value {
    let deletes: Vec<Value> = (0..rooms).map(|room| row_in(room, 16, "x")).collect();
    json!({ "t": { "deletes": deletes } })
}

/// Also when each of very many windows would take all that is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_looks_for_is_bounded_whichever_window_fails() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 300;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..40).map(|id| json!([id, 0])).collect();
    writer.change(&json!({ "u": { "inserts": rows } })).await;
    watcher
        .subscribe(90, "SELECT * FROM u WHERE b = 0 ORDER BY a LIMIT 5")
        .await;
    rooms_at_their_end(&mut writer, &mut watcher, 8, 600).await;
    writer
        .change(&json!({ "u": { "deletes": rows[..16] } }))
        .await;
    let mut change = one_less(8);
    change["u"] = json!({ "deletes": rows[16..17] });
    writer.change(&change).await;
    watcher.settle().await;
    let mut failed: Vec<u32> = watcher.take_errors().iter().map(|(set, _)| *set).collect();
    failed.sort_unstable();
    // The rooms took four times what is allowed in all: nothing is left for who comes last.
    assert_eq!(failed, [0, 1, 2, 3, 4, 5, 6, 7, 90]);
    watcher.forget(0);
    let deletes: Vec<Value> = (100..700).map(|id| row_in(0, id, "")).collect();
    writer.change(&json!({ "t": { "deletes": deletes } })).await;
    watcher.subscribe(0, &text_of_room(0)).await;
    assert_eq!(watcher.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_sees_the_rows_of_a_window_that_has_just_failed() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 200;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    rooms_at_their_end(&mut writer, &mut watcher, 4, 60).await;
    // All four together are too much, each of them is not. The next subscription comes in the same round.
    let mut args = Vec::new();
    one_less(4).to_string().encode(&mut args);
    let call = ClientMessage::CallReducer {
        request_id: 1,
        reducer: "change",
        args: &args,
    };
    let texts: Vec<String> = (0..4).map(text_of_room).collect();
    let mut messages = vec![call];
    for (set, text) in (0..4).zip(&texts) {
        messages.push(subscribe(set, vec![text]));
    }
    let mut late = Watcher::connect(&database, identity_of(2), 3).await;
    late.client.send(&messages).await;
    late.settle().await;
    watcher.settle().await;
    assert_eq!(watcher.take_errors().len(), 2, "two have ended");
    assert_eq!(late.take_errors(), []);
    for (set, text) in (0..4).zip(&texts) {
        let expected = late.ask(text).await;
        assert_eq!(expected.len(), 5);
        assert_eq!(late.rows(set, "t"), expected, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_does_not_take_all_windows() {
    let database = create(&program(), |options| {
        options.limits.windows_max = 20;
        options.limits.windows_bytes_max = 1 << 20;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut greedy = Watcher::connect(&database, identity_of(1), 2).await;
    for set in 0..30 {
        greedy.subscribe(set, &text_of_room(set)).await;
    }
    let errors = greedy.take_errors();
    assert_eq!(errors.len(), 20, "half of them are for others");
    assert!(errors.iter().all(|(_, text)| text.ends_with("[LC0727]")));
    let mut modest = Watcher::connect(&database, identity_of(2), 3).await;
    for set in 0..4 {
        modest.subscribe(set, &text_of_room(100 + set)).await;
    }
    assert_eq!(modest.take_errors(), []);
    for set in 0..30 {
        greedy.unsubscribe(set).await;
    }
    // The same of their bytes.
    let large = "long ".repeat(2000);
    let rows: Vec<Value> = (0..80).map(|id| row_in(50, id, &large)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let text = |limit: u32| format!("SELECT * FROM t WHERE room = 50 ORDER BY score LIMIT {limit}");
    greedy.take_errors();
    greedy.subscribe(40, &text(30)).await;
    assert_eq!(greedy.take_errors(), []);
    greedy.subscribe(41, &text(31)).await;
    let errors = greedy.take_errors();
    assert!(
        matches!(&errors[..], [(41, text)] if text.ends_with("[LC0727]")),
        "{errors:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_limit_counts_what_a_window_looks_at() {
    let database = create(&program(), |_| {}).await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..200).map(|id| row(id, f64::from(id), "")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    sql(&database, OWNER, "SET row_limit = 50")
        .await
        .expect("the owner may");
    watcher
        .subscribe(1, "SELECT * FROM t ORDER BY score LIMIT 5")
        .await;
    let own = "SELECT * FROM t WHERE owner = :sender ORDER BY score LIMIT 5";
    watcher.subscribe(2, own).await;
    assert_eq!(watcher.take_errors(), []);
    let filtered = "SELECT * FROM t WHERE text = 'x' AND id > 3 ORDER BY score LIMIT 5";
    let error = refused(&mut watcher, filtered).await;
    assert!(error.contains("cardinality"), "{error}");
}

/// A window's first rows are not copied, and many of one request have a bound.
#[tokio::test(flavor = "multi_thread")]
async fn many_windows_of_one_request_are_within_what_a_client_may_have() {
    let database = create(&program(), |options| {
        options.limits.client_bytes_max = 8 << 20;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let large = "long ".repeat(1000);
    let rows: Vec<Value> = (0..300).map(|id| row(id, f64::from(id), &large)).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let text = "SELECT * FROM t ORDER BY score LIMIT 300";
    let texts: Vec<String> = (1..100)
        .map(|n| text.replace("FROM", &format!("FROM{}", " ".repeat(n))))
        .collect();
    let texts = texts.iter().map(String::as_str).collect();
    watcher.client.send(&[subscribe(1, texts)]).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.contains("[LC0706]")),
        "{errors:?}"
    );
    // One is more than the writer copies; it is answered all the same.
    watcher.subscribe(2, text).await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(text).await;
    assert_eq!(watcher.rows(2, "t"), expected);
}

/// A row that is looked at counts for more where its condition is long.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_count_where_rows_are_looked_for() {
    let database = create(&program(), |options| {
        options.limits.window_rows_read_max = 100;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watcher = Watcher::connect(&database, identity_of(1), 2).await;
    let rows: Vec<Value> = (0..60).map(|id| row(id, f64::from(id), "x")).collect();
    writer.change(&json!({ "t": { "inserts": rows } })).await;
    let window = |terms: u32| {
        let terms = (0..terms).map(|term| format!(" AND score <> {}.5", 1000 + term));
        let terms: String = terms.collect();
        format!("SELECT * FROM t WHERE open = true{terms} ORDER BY score LIMIT 20")
    };
    watcher.subscribe(1, &window(1)).await;
    assert_eq!(watcher.take_errors(), []);
    let error = refused(&mut watcher, &window(300)).await;
    assert!(error.ends_with("[LC0728]"), "{error}");
}
