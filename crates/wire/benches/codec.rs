//! Cost of decoding client messages and writing server messages.

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lightcone_types::{Encode, Reader, Timestamp};
use lightcone_wire::rows::row_list;
use lightcone_wire::{
    payload, server, skip_server_message, ClientMessage, ClientPayload, Compression, Protocol,
    RowListSize, RowSize,
};

const CALLS: u32 = 40;

fn calls() -> Vec<u8> {
    let mut bytes = Vec::new();
    for request_id in 0..CALLS {
        let message = ClientMessage::CallReducer {
            request_id,
            reducer: "transfer",
            args: &[1; 16],
        };
        message.encode(&mut bytes);
    }
    bytes
}

fn client(c: &mut Criterion) {
    let mut group = c.benchmark_group("client");
    group.throughput(Throughput::Elements(u64::from(CALLS)));
    let bytes = calls();
    group.bench_function("decode 40 calls", |b| {
        b.iter(|| {
            let mut args_bytes = 0;
            for message in ClientPayload::new(Protocol::V3, black_box(&bytes)) {
                if let Ok(ClientMessage::CallReducer { args, .. }) = message {
                    args_bytes += args.len();
                }
            }
            args_bytes
        })
    });
    let mut out = Vec::new();
    group.bench_function("encode 40 calls", |b| {
        b.iter(|| {
            out.clear();
            for request_id in 0..CALLS {
                ClientMessage::CallReducer {
                    request_id: black_box(request_id),
                    reducer: "transfer",
                    args: &[1; 16],
                }
                .encode(&mut out);
            }
            out.len()
        })
    });
    group.finish();
}

fn results(c: &mut Criterion) {
    let mut group = c.benchmark_group("results");
    group.throughput(Throughput::Elements(u64::from(CALLS)));
    let mut out = Vec::new();
    group.bench_function("write 40 OkEmpty", |b| {
        b.iter(|| {
            out.clear();
            for request_id in 0..CALLS {
                server::reducer_result_ok_empty(&mut out, black_box(request_id), Timestamp(1));
            }
            out.len()
        })
    });
    static ROWS: [[u8; 12]; 4] = [[1; 12], [2; 12], [3; 12], [4; 12]];
    let update = |out: &mut Vec<u8>| {
        let mut set = (black_box(7_u32), 1_u32, "accounts", 1_u32).to_vec();
        let (inserts, deletes) = ROWS.split_at(2);
        let slices = |rows: &'static [[u8; 12]]| rows.iter().map(|row| &row[..]);
        let written = server::persistent_rows(
            &mut set,
            RowSize::Fixed(12),
            slices(inserts),
            slices(deletes),
        );
        written.expect("rows fit");
        server::transaction_update(out, &set, 1);
    };
    group.throughput(Throughput::Elements(1));
    group.bench_function("write a TransactionUpdate of 2 + 2 rows", |b| {
        b.iter(|| {
            out.clear();
            update(&mut out);
            out.len()
        })
    });
    out.clear();
    update(&mut out);
    group.bench_function("skip a TransactionUpdate of 2 + 2 rows", |b| {
        b.iter(|| skip_server_message(&mut Reader::new(black_box(&out))).expect("is a message"))
    });
    group.finish();
}

fn one_by_one<'r>(out: &mut Vec<u8>, rows: impl Iterator<Item = &'r [u8]> + Clone) {
    let mut size = RowListSize::default();
    rows.clone().for_each(|row| size.add(row.len()));
    let mut list = size.begin(out).expect("rows fit");
    rows.for_each(|row| list.push(out, row));
}

fn row_lists(c: &mut Criterion) {
    const ROWS: usize = 100_000;
    let mut group = c.benchmark_group("row list");
    group.sample_size(20);
    group.throughput(Throughput::Elements(ROWS as u64));
    let data: Vec<u8> = (0..ROWS as u32)
        .flat_map(|n| [n.to_le_bytes(), [1; 4], [0; 4]].concat())
        .collect();
    let mut out = Vec::new();
    group.bench_function("100,000 rows of 12 bytes, in bulk", |b| {
        b.iter(|| {
            out.clear();
            row_list(
                &mut out,
                RowSize::Fixed(12),
                black_box(&data).chunks_exact(12),
            )
        })
    });
    group.bench_function("100,000 rows of 12 bytes, one by one", |b| {
        b.iter(|| {
            out.clear();
            let rows = black_box(&data).chunks_exact(12);
            one_by_one(&mut out, rows)
        })
    });
    let variable: Vec<&[u8]> = (0..ROWS).map(|n| &data[n..n + 8 + n % 16]).collect();
    group.bench_function("100,000 rows of 8 to 23 bytes, one by one", |b| {
        b.iter(|| {
            out.clear();
            one_by_one(&mut out, black_box(&variable).iter().copied())
        })
    });
    group.bench_function("100,000 rows of 8 to 23 bytes, walked twice", |b| {
        b.iter(|| {
            out.clear();
            row_list(
                &mut out,
                RowSize::Variable,
                black_box(&variable).iter().copied(),
            )
        })
    });
    group.throughput(Throughput::Bytes(data.len() as u64));
    for compression in [Compression::Gzip, Compression::Brotli] {
        group.bench_function(compression.query_value(), |b| {
            b.iter(|| {
                out.clear();
                payload::encode_payload(&mut out, black_box(&data), compression);
                out.len()
            })
        });
    }
    group.finish();
}

criterion_group!(benches, client, results, row_lists);
criterion_main!(benches);
