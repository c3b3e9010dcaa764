//! Benchmarks of the log on a real disk (cargo's target directory).

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use lightcone_log::{
    Epoch, Frame, LocalLog, Log, LogOffset, LogOptions, LogWriter, LogWriterOptions, MemoryLog,
};

/// About what one transfer logs.
const RECORD_BYTES: usize = 72;
const EPOCH: Epoch = Epoch::new(0);

fn fresh(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// One frame and one sync, with and without preallocation.
fn append_and_sync(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append_and_sync");
    group.sample_size(20);
    for transactions in [1u32, 64, 2560] {
        let record = vec![0x5a; RECORD_BYTES * transactions as usize];
        for preallocate in [true, false] {
            let directory = fresh("bench-append");
            let options = LogOptions {
                preallocate,
                ..LogOptions::default()
            };
            let mut log = LocalLog::open(&directory, options).expect("a log").0;
            group.throughput(Throughput::Elements(transactions.into()));
            let id = BenchmarkId::new(
                if preallocate {
                    "zero-filled"
                } else {
                    "growing"
                },
                transactions,
            );
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let tail = log.tail();
                    let frame = Frame {
                        first_offset: tail.next_offset,
                        count: transactions,
                        payload: &[&record],
                    };
                    log.append(tail.epoch, frame).expect("the log takes it");
                    log.sync().expect("the disk works");
                    log.trim(tail.next_offset).expect("old segments go");
                })
            });
        }
    }
    group.finish();
}

/// What the committer costs per submitted batch apart from the disk, and with it.
fn committer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("committer");
    group.sample_size(20);
    for disk in [false, true] {
        let directory = fresh("bench-committer");
        let log: Box<dyn Log> = match disk {
            true => Box::new(
                LocalLog::open(&directory, LogOptions::default())
                    .expect("a log")
                    .0,
            ),
            false => Box::new(MemoryLog::new()),
        };
        let committer = LogWriter::spawn(log, LogWriterOptions::default(), Box::new(|_| {}));
        let mut offset = LogOffset::FIRST;
        let mut spare = Vec::new();
        let batches = 100u64;
        group.throughput(Throughput::Elements(batches * 64));
        let name = if disk {
            "100 batches of 64, disk"
        } else {
            "100 batches of 64, memory"
        };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..batches {
                    spare.resize(64 * RECORD_BYTES, 1);
                    let payload = std::mem::take(&mut spare);
                    let proposed = committer.propose(offset, 64, payload);
                    spare = proposed.expect("the log takes it").spare;
                    offset += 64;
                }
                committer.wait_committed(offset).expect("the disk works");
                committer.trim(offset);
            })
        });
    }
    group.finish();
}

/// Opening and reading a log of 1,000,000 transactions, in frames of 64.
fn recover(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recover");
    group.sample_size(10);
    let directory = fresh("bench-recover");
    let transactions = 1_000_000u64;
    {
        let mut log = LocalLog::open(&directory, LogOptions::default())
            .expect("a log")
            .0;
        let record = vec![0x5a; RECORD_BYTES * 64];
        while log.tail().next_offset.get() < transactions {
            let first_offset = log.tail().next_offset;
            log.append(
                EPOCH,
                Frame {
                    first_offset,
                    count: 64,
                    payload: &[&record],
                },
            )
            .expect("the log takes it");
        }
        log.close().expect("the disk works");
    }
    group.throughput(Throughput::Elements(transactions));
    group.bench_function("open and read 1,000,000 transactions", |bencher| {
        bencher.iter(|| {
            let (log, recovery) = LocalLog::open(&directory, LogOptions::default()).expect("a log");
            let mut reader = log
                .feed()
                .read(LogOffset::FIRST)
                .expect("the start is there");
            let mut bytes = 0;
            while let Some(frame) = reader.next().expect("no damage") {
                bytes += frame.payload.len();
            }
            black_box((bytes, recovery))
        })
    });
    group.finish();
}

criterion_group!(benches, append_and_sync, committer, recover);
criterion_main!(benches);
