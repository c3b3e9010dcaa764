//! Row iterators over real tables: scans run in parts, and what the module sees does not change (spec 03 §8.2).

#[path = "../../engine/tests/common/mod.rs"]
mod common;
#[path = "common/host.rs"]
mod host;

use common::*;
use host::Host;
use lightcone_host::{
    AbiError, Advance, HostEnv, HostLimits, HostTrap, Lent, LimitKind, OpenTransaction, RangeBounds,
};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, IndexId, TableId};

const ROWS: u64 = 20_000;
const ROW_BYTES: usize = 17;

#[derive(Clone, Copy)]
struct Ids {
    item: TableId,
    by_id: IndexId,
    by_kind: IndexId,
    other: TableId,
}

fn item(id: u64, kind: u8) -> Vec<u8> {
    row(&[V::U64(id), V::U8(kind), V::U64(0)])
}

/// Runs `body` in a call, with `ROWS` items whose ids count up from 0 and whose kinds are 0 and 1 in turn.
fn call_with_items(limits: HostLimits, body: impl FnOnce(&mut HostEnv, Ids)) {
    let columns = [("id", T::U64), ("kind", T::U8), ("value", T::U64)];
    let mut datastore = creating(&module(vec![
        table("item", &columns)
            .btree(&[0], true)
            .btree(&[1], false)
            .primary_key(0),
        table("other", &columns),
    ]));
    let ids = Ids {
        item: table_id(&datastore, "item"),
        by_id: index_id(&datastore, "item_id_idx_btree"),
        by_kind: index_id(&datastore, "item_kind_idx_btree"),
        other: table_id(&datastore, "other"),
    };
    for id in 0..ROWS {
        datastore
            .insert(ids.item, &item(id, (id % 2) as u8), &mut Vec::new())
            .expect("a new row");
    }
    let transaction = OpenTransaction::of(&mut datastore);
    Host::new(limits).call(Lent::Transaction(transaction), |env| body(env, ids));
}

/// The ids of the next rows, and whether these were the last.
fn advance(env: &mut HostEnv, iterator: u32) -> (Vec<u64>, bool) {
    let mut buffer = vec![0; 1 << 20];
    let (count, last) = match env.row_iter_advance(iterator, &mut buffer) {
        Ok(Advance::More(count)) => (count, false),
        Ok(Advance::Finished(count)) => (count, true),
        other => panic!("unexpected: {other:?}"),
    };
    let rows = buffer[..count].chunks_exact(ROW_BYTES);
    let id = |row: &[u8]| u64::from_le_bytes(row[..8].try_into().expect("eight bytes"));
    (rows.map(id).collect(), last)
}

fn rest(env: &mut HostEnv, iterator: u32) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        let (mut next, last) = advance(env, iterator);
        assert!(last || !next.is_empty(), "rows were promised");
        ids.append(&mut next);
        if last {
            return ids;
        }
    }
}

#[test]
fn a_scan_fetches_no_more_than_is_asked_for() {
    call_with_items(HostLimits::default(), |env, ids| {
        let scans = [
            env.table_scan(ids.item).expect("a scan"),
            env.index_scan_range(ids.by_id, RangeBounds::of_first(&[2], &[2]))
                .expect("a scan"),
            env.index_scan_point(ids.by_kind, &[1]).expect("a scan"),
        ];
        for (scan, expected) in scans.into_iter().zip([ROWS, ROWS, ROWS / 2]) {
            let (first, last) = advance(env, scan);
            assert!(!last);
            assert!(first.len() <= 4096 / ROW_BYTES, "{} rows", first.len());
            let (second, _) = advance(env, scan);
            assert!(second.len() > first.len(), "later parts are larger");
            let total = first.len() + second.len() + rest(env, scan).len();
            assert_eq!(total as u64, expected);
        }
    });
}

#[test]
fn writes_do_not_disturb_open_iterators() {
    call_with_items(HostLimits::default(), |env, ids| {
        let writes: [fn(&mut HostEnv, Ids); 6] = [
            |env, ids| {
                let deleted = env.delete_by_index_point(ids.by_kind, &[1]).unwrap();
                assert_eq!(u64::from(deleted), ROWS / 2);
            },
            |env, ids| {
                for id in ROWS..ROWS + 10_000 {
                    env.insert(ids.item, &mut item(id, 1)).unwrap();
                }
            },
            |env, ids| {
                let start = [&[0][..], &ROWS.to_le_bytes()].concat();
                env.delete_by_index_range(ids.by_id, RangeBounds::of_first(&start, &[2]))
                    .unwrap();
            },
            |env, ids| {
                for id in (0..ROWS).step_by(2) {
                    env.update(ids.item, ids.by_id, &mut item(id, 3)).unwrap();
                }
            },
            |env, ids| {
                let list = [&1u32.to_le_bytes()[..], &item(2, 3)].concat();
                assert_eq!(env.delete_all_by_eq(ids.item, &list).unwrap(), 1);
            },
            |env, ids| assert_eq!(env.clear(ids.item).unwrap(), ROWS / 2 - 1),
        ];
        let mut expected: Vec<u64> = (0..ROWS).collect();
        for (number, write) in writes.into_iter().enumerate() {
            let scans = [
                env.table_scan(ids.item).expect("a scan"),
                env.index_scan_range(ids.by_id, RangeBounds::of_first(&[2], &[2]))
                    .expect("a scan"),
            ];
            // One of them has given out something, the other nothing.
            let mut seen = [advance(env, scans[0]).0, Vec::new()];
            write(env, ids);
            for (scan, seen) in scans.into_iter().zip(&mut seen) {
                seen.extend(rest(env, scan));
                seen.sort_unstable();
                assert_eq!(*seen, expected, "write {number}");
            }
            let now = env.table_scan(ids.item).expect("a scan");
            expected = rest(env, now);
            expected.sort_unstable();
        }
        assert!(expected.is_empty());
    });
}

#[test]
fn only_writes_to_its_own_table_fetch_the_rest_of_a_scan() {
    // The whole table exceeds the limit; its parts do not.
    call_with_items(
        HostLimits {
            iterator_bytes_max: 300 << 10,
            ..HostLimits::default()
        },
        |env, ids| {
            let scan = env.table_scan(ids.item).expect("a scan");
            let (first, _) = advance(env, scan);
            env.insert(ids.other, &mut item(1, 1)).expect("no trap");
            assert_eq!((first.len() + rest(env, scan).len()) as u64, ROWS);

            let scan = env.table_scan(ids.item).expect("a scan");
            let error = env.insert(ids.item, &mut item(ROWS, 1)).unwrap_err();
            let limit = LimitKind::IteratorBytes;
            assert!(
                matches!(error, AbiError::Trap(HostTrap::Limit { kind, .. }) if kind == limit),
                "{error:?}"
            );
            env.row_iter_close(scan).expect("it is still there");
            env.insert(ids.item, &mut item(ROWS, 1))
                .expect("nothing is left to fetch");
        },
    );
}
