//! What windows under row-level security rules may take, and who ends when there is too much of it (08 §13.7).

use crate::common::tables::{create_tables, table_options};
use crate::common::watcher::Watcher;
use crate::common::OWNER;
use lightcone_database::{DatabaseHandle, DatabaseOptions};
use lightcone_types::Identity;
use serde_json::{json, Value};

const OPEN: &str = "SELECT * FROM doc WHERE open = TRUE";
const OWN: &str = "SELECT * FROM doc WHERE owner = :sender";
const OF_ROOM: &str =
    "SELECT doc.* FROM doc JOIN member ON doc.room = member.room WHERE member.who = :sender";

fn program(rules: &[&str], of_member: Value) -> Value {
    json!({
        "tables": {
            "doc": [["id", "U32"], ["room", "U32"], ["created", "U32"], ["owner", "Identity"], ["open", "Bool"], ["body", "String"]],
            "member": [["id", "U32"], ["room", "U32"], ["who", "Identity"]],
            "u": [["a", "U32"], ["b", "U32"]],
        },
        "uniqueKeys": { "doc": "id", "member": "id" },
        "indexes": { "doc": [["room"], ["created"]], "member": of_member },
        "rules": rules,
    })
}

async fn create(program: &Value, set: impl FnOnce(&mut DatabaseOptions)) -> DatabaseHandle {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    set(&mut options);
    create_tables(options, program).await
}

fn identity_of(number: u32) -> Identity {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Identity::from_le_bytes(bytes)
}

fn hex(number: u32) -> String {
    identity_of(number).to_hex().to_string()
}

/// A client that has connected, with an identity of this number.
async fn connect(database: &DatabaseHandle, number: u32) -> Watcher {
    Watcher::connect(database, identity_of(number), 100 + u128::from(number)).await
}

fn doc(id: u32, room: u32, open: bool, body: &str) -> Value {
    json!([id, room, id, hex(0), open, body])
}

/// Has what the query gives, and heard of no error.
async fn is_right(watcher: &mut Watcher, set: u32, table: &str, text: &str) {
    watcher.settle().await;
    assert_eq!(watcher.take_errors(), []);
    let expected = watcher.ask(text).await;
    assert_eq!(watcher.rows(set, table), expected);
}

const FIRST_DOCS: &str = "SELECT * FROM doc ORDER BY created LIMIT 20";

/// A room with so many members, of whom number 1 may see no other rooms.
async fn room_of(writer: &mut Watcher, members: u32) {
    let docs: Vec<Value> = (0..60).map(|id| doc(id, id / 40, false, "")).collect();
    let members = (1..=members).map(|id| json!([id, 0, hex(id)]));
    let members: Vec<Value> = members.collect();
    let all = json!({ "doc": { "inserts": docs }, "member": { "inserts": members } });
    writer.change(&all).await;
}

fn leaves(member: u32) -> Value {
    json!({ "member": { "deletes": [[member, 0, hex(member)]] } })
}

/// Each row of the room is looked up when its window loses it: by whom the rule asks for, and once for all rows of the room.
#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_a_large_room_keeps_the_window() {
    let each = format!("{OF_ROOM} AND member.id <> doc.id");
    for (rule, of_member) in [
        (&*each, json!([["who"], ["room"]])),
        (OF_ROOM, json!([["room"]])),
    ] {
        let program = program(&[rule], of_member);
        let database = create(&program, |options| {
            options.limits.window_rows_read_max = 1000;
        })
        .await;
        let mut writer = Watcher::connect(&database, OWNER, 1).await;
        room_of(&mut writer, 500).await;
        let mut watcher = connect(&database, 1).await;
        watcher.subscribe(1, FIRST_DOCS).await;
        is_right(&mut watcher, 1, "doc", FIRST_DOCS).await;
        assert_eq!(watcher.rows(1, "doc").len(), 20);
        writer.change(&leaves(1)).await;
        is_right(&mut watcher, 1, "doc", FIRST_DOCS).await;
        assert_eq!(watcher.rows(1, "doc").len(), 0);
    }
}

/// Of very many matches that a row has, some are counted, and others when these are gone.
#[tokio::test(flavor = "multi_thread")]
async fn rows_with_very_many_matches_are_in_windows() {
    let rule =
        "SELECT doc.* FROM doc JOIN member ON doc.room = member.room WHERE member.id <> doc.id";
    let program = program(&[rule], json!([["room"]]));
    let database = create(&program, |options| {
        options.limits.window_rows_read_max = 10_000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    room_of(&mut writer, 500).await;
    let mut watcher = connect(&database, 1).await;
    watcher.subscribe(1, FIRST_DOCS).await;
    let members: Vec<u32> = (1..=500).collect();
    for few in members.chunks(23) {
        is_right(&mut watcher, 1, "doc", FIRST_DOCS).await;
        assert_eq!(watcher.rows(1, "doc").len(), 20);
        let gone = few.iter().map(|id| json!([id, 0, hex(*id)]));
        let gone: Vec<Value> = gone.collect();
        writer
            .change(&json!({ "member": { "deletes": gone } }))
            .await;
    }
    is_right(&mut watcher, 1, "doc", FIRST_DOCS).await;
    assert_eq!(watcher.rows(1, "doc").len(), 0);
}

/// What it has looked at is there for the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_that_is_too_much_ends_its_window_alone() {
    let program = program(&[OF_ROOM], json!([["room"]]));
    let database = create(&program, |options| {
        options.limits.window_rows_read_max = 1000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    room_of(&mut writer, 1).await;
    let rows: Vec<Value> = (0..40).map(|id| json!([id, 0])).collect();
    writer.change(&json!({ "u": { "inserts": rows } })).await;
    let mut watcher = connect(&database, 1).await;
    let others = "SELECT * FROM u ORDER BY a LIMIT 5";
    watcher.subscribe(1, FIRST_DOCS).await;
    watcher.subscribe(2, others).await;
    assert_eq!(watcher.take_errors(), []);
    // More members than may be looked at for one window.
    let members = (2..4000_u32).map(|id| json!([id, 0, hex(id)]));
    let members: Vec<Value> = members.collect();
    let entered = json!({ "member": { "inserts": members } });
    writer.change(&entered).await;
    writer
        .change(&json!({ "u": { "deletes": rows[..16] } }))
        .await;
    is_right(&mut watcher, 2, "u", others).await;
    let mut change = leaves(1);
    change["u"] = json!({ "deletes": rows[16..17] });
    writer.change(&change).await;
    watcher.settle().await;
    let errors = watcher.take_errors();
    assert!(
        matches!(&errors[..], [(1, text)] if text.ends_with("[LC0728]")),
        "{errors:?}"
    );
    is_right(&mut watcher, 2, "u", others).await;
}

/// Very many windows keep the same rows, and are short of the same ones in one transaction.
async fn feeds(rules: &[&str], rows_read_max: usize) -> (DatabaseHandle, Watcher, Vec<Watcher>) {
    let program = program(rules, json!([["who"], ["room"]]));
    let database = create(&program, |options| {
        options.limits.window_rows_read_max = rows_read_max;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    // One of ten is a member's own.
    let doc_of = |id: u32| match id % 10 {
        9 => json!([id, 0, id, hex(1 + id / 10 % 30), false, ""]),
        _ => doc(id, 0, true, ""),
    };
    let docs: Vec<Value> = (0..400).map(doc_of).collect();
    let members: Vec<Value> = (1..=30).map(|id| json!([id, 0, hex(id)])).collect();
    let all = json!({ "doc": { "inserts": docs }, "member": { "inserts": members } });
    writer.change(&all).await;
    let mut watchers = Vec::new();
    for number in 1..=30 {
        let mut watcher = connect(&database, number).await;
        watcher.subscribe(1, FIRST_DOCS).await;
        assert_eq!(watcher.take_errors(), []);
        watchers.push(watcher);
    }
    (database, writer, watchers)
}

fn open_docs(ids: std::ops::Range<u32>) -> Value {
    let ids = ids.filter(|id| id % 10 != 9);
    let docs: Vec<Value> = ids.map(|id| doc(id, 0, true, "")).collect();
    json!({ "doc": { "deletes": docs } })
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_run_out_of_the_same_rows_go_on() {
    for rules in [&[OPEN, OWN][..], &[OWN, OPEN]] {
        let (_database, mut writer, mut watchers) = feeds(rules, 200).await;
        // One by one, and then very many at once.
        for id in 0..40 {
            writer.change(&open_docs(id..id + 1)).await;
        }
        for watcher in &mut watchers {
            is_right(watcher, 1, "doc", FIRST_DOCS).await;
        }
        writer.change(&open_docs(40..120)).await;
        for watcher in &mut watchers {
            is_right(watcher, 1, "doc", FIRST_DOCS).await;
            assert_eq!(watcher.rows(1, "doc").len(), 20);
        }
    }
}

/// Where each row has to be looked up for each window, they are short of spare rows, and not of those that come out.
#[tokio::test(flavor = "multi_thread")]
async fn feeds_whose_rows_are_looked_up_share_what_may_be() {
    let rule = format!("{OF_ROOM} AND member.id <> doc.id");
    let (_database, mut writer, mut watchers) = feeds(&[&rule, OWN], 700).await;
    for id in 0..60 {
        writer.change(&open_docs(id..id + 1)).await;
    }
    for watcher in &mut watchers {
        is_right(watcher, 1, "doc", FIRST_DOCS).await;
        assert_eq!(watcher.rows(1, "doc").len(), 20);
    }
}

/// A changed row that many windows hear of counts for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn windows_that_hear_of_the_same_rows_are_counted() {
    let program = program(&[OPEN, OWN], json!([["who"]]));
    let database = create(&program, |options| {
        options.limits.query_steps_per_table_max = 3200;
    })
    .await;
    let mut watchers = Vec::new();
    for number in 0..12 {
        let mut watcher = connect(&database, number).await;
        // So many that they are no modest connection's.
        for set in 0..20 {
            let rows = set + 1;
            let text = format!("SELECT * FROM doc ORDER BY created LIMIT {rows}");
            watcher.subscribe(set, &text).await;
        }
        // There may be 200 in all, and a few of each connection anyway.
        let refused = watcher.take_errors();
        assert_eq!(!refused.is_empty(), number >= 10, "{number}: {refused:?}");
        assert!(refused.len() < 20, "{refused:?}");
        let is_for_that = |(_, text): &(u32, String)| text.ends_with("[LC0711]");
        assert!(refused.iter().all(is_for_that), "{refused:?}");
        watchers.push(watcher);
    }
}

/// Conditions of a window's sources cost what they would cost without rules.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_count_wherever_they_are_evaluated() {
    // Each `<>` is a step, and 32 of them are a row.
    let conditions = |count: u32| -> String {
        let each = (0..count).map(|id| format!("id <> {id}"));
        each.collect::<Vec<_>>().join(" AND ")
    };
    let rules_without: &[&str] = &[];
    let of_author = "SELECT doc.* FROM doc JOIN u ON doc.room = u.a JOIN member m ON m.room = u.a WHERE m.who = :sender AND m.id <> doc.id AND m.id <> doc.created";
    for rules in [rules_without, &[OPEN, OWN], &[OF_ROOM], &[of_author, OWN]] {
        let program = program(rules, json!([["who"], ["room"]]));
        let database = create(&program, |options| {
            options.limits.window_rows_read_max = 6000;
        })
        .await;
        let mut writer = Watcher::connect(&database, OWNER, 1).await;
        let docs: Vec<Value> = (0..100).map(|id| doc(id, 0, true, "")).collect();
        let of_room = json!([[1, 0, hex(1)]]);
        let all = json!({ "doc": { "inserts": docs }, "member": { "inserts": of_room }, "u": { "inserts": [[0, 0]] } });
        writer.change(&all).await;
        let mut watcher = connect(&database, 1).await;
        // None of a hundred rows is found.
        for (set, count, is_refused) in [(1, 10, false), (2, 3200, true)] {
            let text = format!(
                "SELECT * FROM doc WHERE {} AND body <> '' ORDER BY created LIMIT 1",
                conditions(count)
            );
            watcher.subscribe(set, &text).await;
            let mut errors = watcher.take_errors();
            // A long text is compiled beside the others.
            while errors.is_empty() && !watcher.sets().contains(&set) {
                watcher.settle().await;
                errors = watcher.take_errors();
            }
            let expected = usize::from(is_refused);
            assert_eq!(errors.len(), expected, "{rules:?} {count}: {errors:?}");
            assert!(
                errors.iter().all(|(_, text)| text.ends_with("[LC0728]")),
                "{errors:?}"
            );
        }
    }
}

/// A large row comes into very many windows at once: whose window ends for it is not told of the row first.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_row_is_not_sent_to_windows_that_it_ends() {
    let program = program(&[OPEN, OWN], json!([["who"]]));
    let database = create(&program, |options| {
        options.limits.windows_bytes_max = 4_000_000;
    })
    .await;
    let mut writer = Watcher::connect(&database, OWNER, 1).await;
    let mut watchers = Vec::new();
    for number in 1..=20 {
        let mut watcher = connect(&database, number).await;
        watcher.subscribe(1, FIRST_DOCS).await;
        watchers.push(watcher);
    }
    let large = doc(1, 0, true, &"long ".repeat(100_000));
    writer
        .change(&json!({ "doc": { "inserts": [large] } }))
        .await;
    let mut ended = 0;
    for watcher in &mut watchers {
        watcher.settle().await;
        let errors = watcher.take_errors();
        let is_ended = matches!(&errors[..], [(1, text)] if text.ends_with("[LC0728]"));
        assert!(is_ended || errors.is_empty(), "{errors:?}");
        let rows = usize::from(!is_ended);
        assert_eq!(watcher.rows(1, "doc").len(), rows);
        ended += usize::from(is_ended);
    }
    assert!((1..20).contains(&ended), "{ended}");
}
