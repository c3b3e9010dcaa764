//! A join of 1,000,000 rows with 100,000 on an index, aggregated, and scans of the 1,000,000, beside SQLite in memory.
//!
//! Times are those of the processor, so that other work on the machine counts as little as it can.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use common::database::Database;
use common::{btree, owner, table};
use criterion::{criterion_group, criterion_main, Criterion};
use lightcone_query::Query;
use lightcone_schema::IndexSchema;
use lightcone_types::AlgebraicType;

const MESSAGES: u32 = 1_000_000;
const ROOMS: u32 = 100_000;
const MEMBERS: u32 = 10_000;
const QUERIES: [(&str, &str); 8] = [
    ("join, sum", "SELECT COUNT(*) AS n, SUM(m.size) AS s FROM message m JOIN room r ON m.room = r.id WHERE r.kind < 5"),
    ("join, groups", "SELECT r.kind, COUNT(*) AS n, SUM(m.size) AS s FROM message m JOIN room r ON m.room = r.id GROUP BY r.kind"),
    ("semi-join", "SELECT COUNT(*) AS n FROM room r WHERE EXISTS (SELECT 1 FROM message m WHERE m.room = r.id AND m.size > 90)"),
    ("semi-join, few", "SELECT COUNT(*) AS n, SUM(m.size) AS s FROM message m WHERE EXISTS (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 77)"),
    ("scan, sum", "SELECT COUNT(*) AS n, SUM(size) AS s FROM message WHERE size < 50"),
    ("scan, few", "SELECT id FROM message WHERE size = 7 AND room < 1000"),
    ("scan, groups", "SELECT size, COUNT(*) AS n, MAX(id) AS m FROM message GROUP BY size"),
    ("scan, order", "SELECT id, size FROM message ORDER BY size DESC, id LIMIT 100"),
];

/// A table of three numbers, with columns that are indexed, and whether each index is unique.
fn add(
    database: &mut Database,
    name: &str,
    columns: [&str; 3],
    indexes: &[(u16, bool)],
    rows: impl Iterator<Item = [u32; 3]>,
) {
    let columns = columns.map(|name| (name, AlgebraicType::U32));
    let mut schema = table(4096 + database.tables.len() as u32, name, &columns);
    for (column, unique) in indexes {
        schema.indexes.push(IndexSchema {
            unique: *unique,
            ..btree(&[*column])
        });
    }
    database.add(schema, rows.map(row));
}

fn row(values: [u32; 3]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Of a message: its id, room and size. Rooms are spread.
fn message(n: u32) -> [u32; 3] {
    [n, n.wrapping_mul(2_654_435_761) % ROOMS, n % 100]
}

fn room(n: u32) -> [u32; 3] {
    [n, n % 10, 0]
}

/// Of who is in a room: an id, the room and the member. Each is in ten.
fn member(n: u32) -> [u32; 3] {
    [n, n, n % MEMBERS]
}

fn database() -> Database {
    let mut database = Database::default();
    let columns = ["id", "room", "size"];
    let indexes = [(0, true), (1, false)];
    let messages = (0..MESSAGES).map(message);
    add(&mut database, "message", columns, &indexes, messages);
    let columns = ["id", "kind", "x"];
    let rooms = (0..ROOMS).map(room);
    add(&mut database, "room", columns, &[(0, true)], rooms);
    let columns = ["id", "room", "member"];
    let indexes = [(0, true), (1, false), (2, false)];
    let members = (0..ROOMS).map(member);
    add(&mut database, "member", columns, &indexes, members);
    database
}

fn run(database: &Database, query: &Query) -> usize {
    let rows = database.rows(query.clone(), owner().identity, 64 << 20, 1 << 17);
    rows.expect("it is small").len()
}

fn sqlite() -> rusqlite::Connection {
    let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
    sqlite
        .execute_batch(
            "CREATE TABLE message (id INTEGER PRIMARY KEY, room INTEGER, size INTEGER);
             CREATE TABLE room (id INTEGER PRIMARY KEY, kind INTEGER, x INTEGER);
             CREATE TABLE member (id INTEGER PRIMARY KEY, room INTEGER, member INTEGER);
             BEGIN",
        )
        .expect("tables");
    let mut insert = sqlite
        .prepare("INSERT INTO message VALUES (?, ?, ?)")
        .expect("valid");
    (0..MESSAGES).for_each(|n| drop(insert.execute(message(n))));
    drop(insert);
    let mut insert = sqlite
        .prepare("INSERT INTO room VALUES (?, ?, ?)")
        .expect("valid");
    (0..ROOMS).for_each(|n| drop(insert.execute(room(n))));
    drop(insert);
    let mut insert = sqlite
        .prepare("INSERT INTO member VALUES (?, ?, ?)")
        .expect("valid");
    (0..ROOMS).for_each(|n| drop(insert.execute(member(n))));
    drop(insert);
    let end = "COMMIT; CREATE INDEX i ON message (room); CREATE INDEX j ON member (room);
         CREATE INDEX k ON member (member); ANALYZE";
    sqlite.execute_batch(end).expect("an index");
    sqlite
}

/// The time that this thread has had of a processor, from the first number of its scheduler's file; where there is none, the
/// time of the clock.
fn processor_time(since: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn timed(times: u64, mut work: impl FnMut()) -> Duration {
    let since = Instant::now();
    let before = processor_time(since);
    (0..times).for_each(|_| work());
    processor_time(since) - before
}

fn join(criterion: &mut Criterion) {
    let (database, sqlite) = (database(), sqlite());
    let mut group = criterion.benchmark_group("ad_hoc");
    group.sample_size(10);
    for (name, text) in QUERIES {
        let query = database.query(text, &owner());
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| timed(times, || _ = black_box(run(&database, &query))));
        });
        let mut statement = sqlite.prepare(text).expect("valid");
        group.bench_function(format!("{name} in SQLite"), |bencher| {
            bencher.iter_custom(|times| {
                timed(times, || {
                    let rows = statement.query_map([], |row| row.get::<_, i64>(0));
                    black_box(rows.expect("rows").count());
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, join);
criterion_main!(benches);
