//! The engine alone, without module host, network and disk: what a transfer, a read, a seed and a recovery cost.
//!
//! `cargo bench -p lightcone-engine` prints one table; a name (`memory`, `transfer`, `reads`, `recovery`) after `--` picks
//! a part. Every time is CPU time of the thread, so that a busy machine disturbs it less, and the median of the rounds;
//! random accesses are spread over the whole table. Of `recovery` it is time by the clock, as other threads take part.
//!
//! `-- large <directory> [MiB]` writes a snapshot of 5 GiB there while random rows are updated, of which pages of so many MiB may be
//! copied; if there is one, it opens it.

use std::path::Path;
use std::time::{Duration, Instant};

use lightcone_engine::{CommitOutput, CopyRoom, Datastore, RangeBounds, RowBuffer};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions, MemoryLog};
use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10};
use lightcone_schema::{
    ColumnDef, IndexAlgorithm, IndexDef, ModuleDef, TableAccess, TableDef, UniqueConstraintDef,
};
use lightcone_snapshot::SnapshotStore;
use lightcone_types::{AlgebraicType as T, ColId, IndexId, TableId, TypeRef};

/// That of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 15;

fn def() -> ModuleDef {
    let raw = RawModuleDef::V10(RawModuleDefV10 {
        sections: Vec::new(),
    });
    let mut def = ModuleDef::validate(raw).expect("an empty module is valid");
    let table = |name: &str, columns: [(&str, T); 2], algorithm: IndexAlgorithm| TableDef {
        name: name.into(),
        source_name: name.into(),
        row_type: TypeRef(0),
        columns: columns
            .into_iter()
            .map(|(name, ty)| ColumnDef {
                name: name.into(),
                source_name: name.into(),
                ty,
                default: None,
            })
            .collect(),
        primary_key: Some(ColId(0)),
        indexes: vec![IndexDef {
            name: format!("{name}_id_idx"),
            source_name: format!("{name}_id_idx"),
            accessor_name: None,
            algorithm,
            unique: true,
        }],
        constraints: vec![UniqueConstraintDef {
            name: format!("{name}_id_key"),
            columns: vec![ColId(0)],
        }],
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Public,
        is_event: false,
    };
    def.tables = vec![
        table(
            "account",
            [("id", T::U32), ("balance", T::I64)],
            IndexAlgorithm::Hash(vec![ColId(0)]),
        ),
        table(
            "ordered",
            [("id", T::U64), ("value", T::U64)],
            IndexAlgorithm::BTree(vec![ColId(0)]),
        ),
        table(
            "text",
            [("id", T::U64), ("text", T::String)],
            IndexAlgorithm::BTree(vec![ColId(0)]),
        ),
    ];
    def
}

struct Bench {
    datastore: Datastore,
    output: CommitOutput,
    account: TableId,
    account_id: IndexId,
    seed: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut datastore = Datastore::new();
        let mut output = CommitOutput::default();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(&def()).expect("names are free");
        datastore.commit(&mut output).expect("the record fits");
        let account = datastore
            .table_id_from_name("account")
            .expect("the table exists");
        let account_id = datastore
            .index_id_from_name("account_id_idx")
            .expect("the index exists");
        Bench {
            datastore,
            output,
            account,
            account_id,
            seed: 1,
        }
    }

    /// A number below `end`, different each time (xorshift).
    fn random(&mut self, end: u32) -> u32 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (((self.seed >> 32) * u64::from(end)) >> 32) as u32
    }

    fn seed_accounts(&mut self, count: u32) {
        self.datastore.begin();
        let mut row = [0; 12];
        for id in 0..count {
            row[..4].copy_from_slice(&id.to_le_bytes());
            self.datastore
                .insert(self.account, &row, &mut Vec::new())
                .expect("a new key");
        }
        self.datastore
            .commit(&mut self.output)
            .expect("the record fits");
    }

    fn transfers(&mut self, pairs: &[(u32, u32)]) {
        let Bench {
            datastore,
            output,
            account,
            account_id,
            ..
        } = self;
        let mut found = RowBuffer::default();
        let mut generated = Vec::new();
        for batch in pairs.chunks(64) {
            output.clear();
            for &(from, to) in batch {
                datastore.begin();
                for (id, amount) in [(from, -1_i64), (to, 1)] {
                    found.clear();
                    datastore
                        .index_scan_point(*account_id, &id.to_le_bytes(), &mut found)
                        .expect("a good point");
                    let mut row: [u8; 12] = found.bytes[..].try_into().expect("one account");
                    let balance =
                        i64::from_le_bytes(row[4..].try_into().expect("eight bytes")) + amount;
                    row[4..].copy_from_slice(&balance.to_le_bytes());
                    datastore
                        .update(*account, *account_id, &row, &mut generated)
                        .expect("the key is there");
                }
                assert!(datastore.commit(output).expect("the record fits") || from == to);
            }
        }
    }
}

fn rss_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok())
        .unwrap_or(0)
        * 4096
}

/// A stopwatch of the CPU time of this thread.
struct Watch(f64);

impl Watch {
    fn now() -> f64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }

    fn start() -> Watch {
        Watch(Watch::now())
    }

    fn ns(&self) -> f64 {
        Watch::now() - self.0
    }

    fn ms(&self) -> f64 {
        self.ns() / 1e6
    }
}

/// The median time of `work`, divided by `count`, in nanoseconds.
fn median_ns(count: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Watch::start();
            work();
            start.ns() / count as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn line(what: &str, value: f64, unit: &str) {
    println!("| {what} | {value:.1} | {unit} |");
}

fn transfers(accounts: u32, watched: bool) {
    let mut bench = Bench::new();
    bench.seed_accounts(accounts);
    bench.datastore.set_watched(bench.account, watched);
    let pairs: Vec<_> = (0..100_000)
        .map(|_| (bench.random(accounts), bench.random(accounts)))
        .collect();
    bench.transfers(&pairs);
    let ns = median_ns(pairs.len(), || bench.transfers(&pairs));
    let deltas = if watched { ", with deltas" } else { "" };
    line(&format!("transfer, {accounts} accounts{deltas}"), ns, "ns");
}

fn reads() {
    let mut bench = Bench::new();
    bench.seed_accounts(1_000_000);
    let keys: Vec<_> = (0..100_000).map(|_| bench.random(1_000_000)).collect();
    bench.datastore.begin();
    let mut found = RowBuffer::default();
    let ns = median_ns(keys.len(), || {
        for key in &keys {
            found.clear();
            bench
                .datastore
                .index_scan_point(bench.account_id, &key.to_le_bytes(), &mut found)
                .expect("a good point");
            assert_eq!(found.bytes.len(), 12);
        }
    });
    line("point lookup, 1,000,000 rows, hash", ns, "ns");
    let ns = median_ns(1_000_000, || {
        found.clear();
        bench
            .datastore
            .scan(bench.account, &mut found)
            .expect("in a transaction");
        assert_eq!(found.bytes.len(), 12_000_000);
    });
    line("full scan", ns, "ns a row");
    let ordered = bench
        .datastore
        .table_id_from_name("ordered")
        .expect("the table exists");
    let text = bench
        .datastore
        .table_id_from_name("text")
        .expect("the table exists");
    let index = bench
        .datastore
        .index_id_from_name("ordered_id_idx")
        .expect("the index exists");
    for id in 0..1_000_000_u64 {
        // Keys in no order, so that the tree is not one that was filled from one side.
        let key = id.wrapping_mul(0x9e37_79b9) % (1 << 32);
        let row = [key.to_le_bytes(), id.to_le_bytes()].concat();
        bench
            .datastore
            .insert(ordered, &row, &mut Vec::new())
            .expect("a new key");
    }
    let ns = median_ns(keys.len(), || {
        for &key in &keys {
            let key = u64::from(key).wrapping_mul(0x9e37_79b9) % (1 << 32);
            found.clear();
            bench
                .datastore
                .index_scan_point(index, &key.to_le_bytes(), &mut found)
                .expect("a good point");
            assert_eq!(found.bytes.len(), 16);
        }
    });
    line("point lookup, 1,000,000 rows, B-tree", ns, "ns");
    let mut rows = 0;
    let ns = median_ns(1, || {
        rows = 0;
        for &key in &keys[..1_000] {
            let bound = |tag: u8, key: u64| [&[tag], &key.to_le_bytes()[..]].concat();
            let start = u64::from(key) << 12;
            let (start, end) = (bound(0, start), bound(1, start + (100 << 12)));
            found.clear();
            bench
                .datastore
                .index_scan_range(index, RangeBounds::of_first(&start, &end), &mut found)
                .expect("a good range");
            rows += found.bytes.len() / 16;
        }
    });
    line("range scan of some 100 rows", ns / rows as f64, "ns a row");
    let ns = median_ns(100_000, || {
        for id in 0..100_000_u64 {
            let mut row = id.to_le_bytes().to_vec();
            row.extend_from_slice(&24_u32.to_le_bytes());
            row.extend_from_slice(b"a text of 24 bytes, yes!");
            bench
                .datastore
                .insert(text, &row, &mut Vec::new())
                .expect("a new key");
        }
        bench.datastore.clear(text).expect("in a transaction");
    });
    line("insert and delete of a row with text", ns, "ns");
    bench.datastore.rollback();
}

fn seed_and_memory() {
    let mut bench = Bench::new();
    let before = rss_bytes();
    let start = Watch::start();
    bench.seed_accounts(1_000_000);
    line(
        "seed of 1,000,000 rows in one transaction",
        start.ms(),
        "ms",
    );
    bench.output = CommitOutput::default();
    line(
        "memory by RSS",
        (rss_bytes() - before) as f64 / 1e6,
        "bytes a row",
    );
    let table = bench
        .datastore
        .table(bench.account)
        .expect("the table exists");
    line(
        "memory by count",
        table.heap_bytes() as f64 / 1e6,
        "bytes a row",
    );
}

fn recovery() {
    let mut bench = Bench::new();
    bench.output.clear();
    bench.seed_accounts(1_000_000);
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = SnapshotStore::open(directory.path()).expect("a new store");
    let start = Watch::start();
    bench
        .datastore
        .snapshot()
        .write_to(&store, LogOffset::FIRST)
        .expect("a snapshot");
    line("snapshot of 1,000,000 rows", start.ms(), "ms");
    let directory = tempfile::tempdir().expect("a directory");
    let (mut log, _) =
        LocalLog::open(directory.path(), LogOptions::default()).expect("an empty directory");
    let mut generated = Vec::new();
    for first_offset in (0..1_000_000).step_by(100) {
        bench.output.clear();
        for _ in 0..100 {
            let id = bench.random(1_000_000);
            let mut row = [1; 12];
            row[..4].copy_from_slice(&id.to_le_bytes());
            row[4..8].copy_from_slice(&(first_offset as u32).to_le_bytes());
            row[8..].copy_from_slice(&bench.random(u32::MAX).to_le_bytes());
            bench.datastore.begin();
            bench
                .datastore
                .update(bench.account, bench.account_id, &row, &mut generated)
                .expect("the key is there");
            assert!(bench
                .datastore
                .commit(&mut bench.output)
                .expect("the record fits"));
        }
        log.append(
            Epoch::FIRST,
            Frame {
                first_offset: LogOffset::new(first_offset),
                count: 100,
                payload: &[&bench.output.records],
            },
        )
        .expect("appended");
    }
    log.sync().expect("synced");
    let start = Instant::now();
    let (datastore, report) =
        Datastore::recover(Path::new("."), &mut store, &log).expect("recovered");
    let ms = start.elapsed().as_secs_f64() * 1e3;
    assert_eq!(report.replayed, 1_000_000);
    line("recovery: 1,000,000 rows and 1,000,000 records", ms, "ms");
    drop(datastore);
    let start = Instant::now();
    Datastore::recover(Path::new("."), &mut store, &MemoryLog::new())
        .map(drop)
        .unwrap_or_default();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    line("recovery: 1,000,000 rows alone", ms, "ms");
}

/// Rows of the large database, and the bytes of the text in each: 5 GiB of pages.
const LARGE_ROWS: u64 = 5_240_000;
const TEXT_BYTES: usize = 1_000;

fn text_row(id: u64, byte: u8) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.extend_from_slice(&(TEXT_BYTES as u32).to_le_bytes());
    row.extend_from_slice(&id.to_le_bytes().map(|byte| byte & 127));
    row.resize(12 + TEXT_BYTES, byte);
    row
}

/// Updates random rows of the large database until `is_over`. Gives their number, the most memory by RSS, and the longest wait for a
/// snapshot.
fn update_at_random(
    bench: &mut Bench,
    room: &CopyRoom,
    is_over: impl Fn() -> bool,
) -> (u64, usize, Duration) {
    let text = bench.datastore.table_id_from_name("text");
    let index = bench.datastore.index_id_from_name("text_id_idx");
    let (text, index) = (text.expect("a table"), index.expect("an index"));
    let (mut updates, mut rss, mut longest) = (0, 0, Duration::ZERO);
    while !is_over() {
        bench.output.clear();
        for _ in 0..64 {
            let row = text_row(u64::from(bench.random(LARGE_ROWS as u32)), b'u');
            bench.datastore.begin();
            let updated = bench.datastore.update(text, index, &row, &mut Vec::new());
            updated.expect("the key is there");
            let committed = bench.datastore.commit(&mut bench.output);
            committed.expect("the record fits");
        }
        updates += 64;
        if updates % 1024 == 0 {
            rss = rss.max(rss_bytes());
        }
        if !room.has_room(&bench.datastore) {
            let start = Instant::now();
            room.wait();
            longest = longest.max(start.elapsed());
        }
    }
    (updates, rss, longest)
}

fn large(directory: &str, copied_bytes_max: u64) {
    let mut store = SnapshotStore::open(Path::new(directory)).expect("a directory");
    let start = Instant::now();
    let opened = Datastore::of_snapshot(&mut store, u64::MAX);
    if let Ok((datastore, _)) = opened {
        let seconds = start.elapsed().as_secs_f64();
        line("pages", datastore.page_bytes() as f64 / 1e6, "MB");
        line("memory by RSS", rss_bytes() as f64 / 1e6, "MB");
        return line("opening", seconds, "s");
    }
    let mut bench = Bench::new();
    let text = bench.datastore.table_id_from_name("text");
    let text = text.expect("the table exists");
    for first in (0..LARGE_ROWS).step_by(1_000) {
        bench.output.clear();
        bench.datastore.begin();
        for id in first..first + 1_000 {
            let row = text_row(id, b's');
            let inserted = bench.datastore.insert(text, &row, &mut Vec::new());
            inserted.expect("a new key");
        }
        let committed = bench.datastore.commit(&mut bench.output);
        committed.expect("the record fits");
    }
    let pages = bench.datastore.page_bytes();
    line("pages", pages as f64 / 1e6, "MB");
    let room = CopyRoom::new(u64::MAX);
    let until = Instant::now() + Duration::from_secs(5);
    let (updates, rss, _) = update_at_random(&mut bench, &room, || Instant::now() > until);
    line("memory by RSS before", rss as f64 / 1e6, "MB");
    line("updates before", updates as f64 / 5.0, "each second");
    let room = CopyRoom::new(copied_bytes_max);
    let frozen = bench.datastore.snapshot();
    room.begin(&bench.datastore);
    std::thread::scope(|scope| {
        let start = Instant::now();
        let writes = scope.spawn(|| {
            let written = frozen.write_while(&store, LogOffset::FIRST, &room, || true);
            written.expect("it is written");
        });
        let updated = update_at_random(&mut bench, &room, || writes.is_finished());
        let ((updates, rss, longest), seconds) = (updated, start.elapsed().as_secs_f64());
        line("snapshot", seconds, "s");
        line("memory by RSS, at most", rss as f64 / 1e6, "MB");
        line("updates meanwhile", updates as f64 / seconds, "each second");
        line(
            "longest wait of an update",
            longest.as_secs_f64() * 1e3,
            "ms",
        );
    });
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = args.iter().position(|arg| arg == "large") {
        let directory = args.get(at + 1).expect("a directory");
        let mib = args.get(at + 2).and_then(|arg| arg.parse::<u64>().ok());
        println!("| what | value | unit |\n|---|---|---|");
        return large(directory, mib.map_or(u64::MAX, |mib| mib << 20));
    }
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    println!("| what | value | unit |\n|---|---|---|");
    if wanted("memory") {
        seed_and_memory();
    }
    if wanted("transfer") {
        transfers(1_000, false);
        transfers(100_000, false);
        transfers(1_000_000, false);
        transfers(100_000, true);
    }
    if wanted("reads") {
        reads();
    }
    if wanted("recovery") {
        recovery();
    }
}
