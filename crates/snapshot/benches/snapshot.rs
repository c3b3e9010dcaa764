//! Benchmarks of snapshots on a real disk (cargo's target directory).

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::LogOffset;

const PAGE_BYTES: usize = 64 << 10;

fn page(number: u64) -> Vec<u8> {
    let words = (0..PAGE_BYTES as u64 / 8)
        .map(|word| (number << 32 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}

/// 250 pages are about what a million rows of 12 bytes take.
fn snapshot(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10);
    for pages in [250u64, 4000] {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-snapshot");
        let _ = std::fs::remove_dir_all(&directory);
        let mut store = SnapshotStore::open(&directory).expect("a store");
        group.throughput(Throughput::Bytes(pages * PAGE_BYTES as u64));
        let contents: Vec<Vec<u8>> = (0..pages).map(page).collect();
        let mut offset = 0;
        group.bench_function(BenchmarkId::new("write all", pages), |bencher| {
            bencher.iter(|| {
                // Without an earlier snapshot everything is new.
                let _ = std::fs::remove_dir_all(&directory);
                store = SnapshotStore::open(&directory).expect("a store");
                let mut writer = store.begin(LogOffset::FIRST).expect("one at a time");
                for page in &contents {
                    writer.put(page).expect("the disk works");
                }
                writer.finish(b"").expect("the disk works")
            })
        });
        group.bench_function(
            BenchmarkId::new("write, one page changed", pages),
            |bencher| {
                bencher.iter(|| {
                    offset += 1;
                    let mut writer = store.begin(LogOffset::new(offset)).expect("one at a time");
                    let known = store.latest().expect("readable").expect("one");
                    for hash in known.objects().skip(1) {
                        assert!(
                            writer.reuse(hash)
                                || known.read(hash).and_then(|page| writer.put(&page)).is_ok()
                        );
                    }
                    writer.put(&page(pages + offset)).expect("the disk works");
                    writer.finish(b"").expect("the disk works");
                    store.prune(2).expect("nothing else runs")
                })
            },
        );
        group.bench_function(BenchmarkId::new("open and read all", pages), |bencher| {
            let mut object = Vec::new();
            bencher.iter(|| {
                let snapshot = store.latest().expect("readable").expect("one");
                for hash in snapshot.objects() {
                    snapshot.read_into(hash, &mut object).expect("no damage");
                    black_box(&object);
                }
            })
        });
    }
    group.finish();
}

criterion_group!(benches, snapshot);
criterion_main!(benches);
