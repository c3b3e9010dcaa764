//! A join of 1,000,000 rows with 100,000 on an index, aggregated, and scans of the 1,000,000, beside SQLite in memory.
//!
//! Times are those of the processor, so that other work on the machine counts as little as it can.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{criterion_group, criterion_main, Criterion};
use lightcone_query::{compile_statement, Caller, Catalog, Progress, Query, Run, Tables};
use lightcone_schema::{
    ColumnSchema, IndexAlgorithm, IndexSchema, TableAccess, TableKind, TableSchema,
};
use lightcone_table::{Table, TableView};
use lightcone_types::{AlgebraicType, ColId, Identity, IndexId, TableId};

const MESSAGES: u32 = 1_000_000;
const ROOMS: u32 = 100_000;
const QUERIES: [(&str, &str); 7] = [
    ("join, sum", "SELECT COUNT(*) AS n, SUM(m.size) AS s FROM message m JOIN room r ON m.room = r.id WHERE r.kind < 5"),
    ("join, groups", "SELECT r.kind, COUNT(*) AS n, SUM(m.size) AS s FROM message m JOIN room r ON m.room = r.id GROUP BY r.kind"),
    ("semi-join", "SELECT COUNT(*) AS n FROM room r WHERE EXISTS (SELECT 1 FROM message m WHERE m.room = r.id AND m.size > 90)"),
    ("scan, sum", "SELECT COUNT(*) AS n, SUM(size) AS s FROM message WHERE size < 50"),
    ("scan, few", "SELECT id FROM message WHERE size = 7 AND room < 1000"),
    ("scan, groups", "SELECT size, COUNT(*) AS n, MAX(id) AS m FROM message GROUP BY size"),
    ("scan, order", "SELECT id, size FROM message ORDER BY size DESC, id LIMIT 100"),
];

struct Database([Table; 2]);

fn table(id: u32, name: &str, columns: [&str; 3], indexed: &[(u16, bool)]) -> Table {
    let column = |name: &str| ColumnSchema {
        name: name.to_owned(),
        accessor: None,
        ty: AlgebraicType::U32,
    };
    let index = |(column, unique): &(u16, bool)| IndexSchema {
        id: IndexId(0),
        name: "i".to_owned(),
        accessor: None,
        algorithm: IndexAlgorithm::BTree(vec![ColId(*column)]),
        unique: *unique,
    };
    Table::new(Arc::new(TableSchema {
        id: TableId(id),
        name: name.to_owned(),
        accessor: None,
        columns: columns.into_iter().map(column).collect(),
        primary_key: None,
        indexes: indexed.iter().map(index).collect(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        access: TableAccess::Public,
        kind: TableKind::User,
        is_event: false,
        view: None,
    }))
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

impl Database {
    fn new() -> Database {
        let mut messages = table(
            4096,
            "message",
            ["id", "room", "size"],
            &[(0, true), (1, false)],
        );
        let mut rooms = table(4097, "room", ["id", "kind", "x"], &[(0, true)]);
        (0..MESSAGES).for_each(|n| drop(messages.insert(&row(message(n)))));
        (0..ROOMS).for_each(|n| drop(rooms.insert(&row(room(n)))));
        Database([messages, rooms])
    }

    fn query(&self, text: &str) -> Arc<Query> {
        let caller = Caller {
            identity: Identity::ZERO,
            is_owner: true,
        };
        let statement = compile_statement(text, self, &caller).expect("valid");
        Arc::new(statement.into_query().expect("a query"))
    }

    fn run(&self, query: &Arc<Query>) -> usize {
        let mut run = Run::new(query.clone(), Identity::ZERO, 64 << 20);
        let mut rows = 0;
        loop {
            let mut steps = 1 << 17;
            let progress = run.run(self, &mut steps, |_| {
                rows += 1;
                true
            });
            if progress.expect("it is small") == Progress::Done {
                return rows;
            }
        }
    }
}

impl Catalog for Database {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let found = self.0.iter().find(|table| table.schema.name == name)?;
        Some(found.schema.clone())
    }
}

impl Tables for Database {
    fn table(&self, id: TableId) -> Option<&TableView> {
        let found = self.0.iter().find(|table| table.schema.id == id)?;
        Some(found)
    }
}

fn sqlite() -> rusqlite::Connection {
    let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
    sqlite
        .execute_batch(
            "CREATE TABLE message (id INTEGER PRIMARY KEY, room INTEGER, size INTEGER);
             CREATE TABLE room (id INTEGER PRIMARY KEY, kind INTEGER, x INTEGER);
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
    let end = "COMMIT; CREATE INDEX i ON message (room); ANALYZE";
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
    let (database, sqlite) = (Database::new(), sqlite());
    let mut group = criterion.benchmark_group("ad_hoc");
    group.sample_size(10);
    for (name, text) in QUERIES {
        let query = database.query(text);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| timed(times, || _ = black_box(database.run(&query))));
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
