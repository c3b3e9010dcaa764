//! Which host call may touch what: the table of spec 03 §6.1, as far as it is not the adapters' business.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
#[path = "common/host.rs"]
mod host;
#[path = "common/transactions.rs"]
mod transactions;

use std::panic::{catch_unwind, AssertUnwindSafe};

use common::*;
use host::Host;
use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{
    AbiError, Errno, HostEnv, HostLimits, HttpMethod, HttpRequest, HttpVersion, Lent,
    OpenTransaction, RangeBounds, ReadView,
};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ConnectionId, IndexId, TableId};
use transactions::Committing;

/// What a host call does in each of the five states.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Work,
    Errno(u16),
    Trap,
}

use Does::{Errno as E, Trap, Work};

type HostCall = fn(&mut HostEnv, TableId, IndexId) -> Result<(), AbiError>;

/// Load phase, reducer, view, procedure, transaction of a procedure.
const CALLS: &[(&str, [Does; 5], HostCall)] = &[
    ("table_id", [E(2), Work, Work, E(2), Work], |env, _, _| {
        env.table_id_from_name("item").map(drop)
    }),
    ("index_id", [E(2), Work, Work, E(2), Work], |env, _, _| {
        env.index_id_from_name("item_id_idx_btree").map(drop)
    }),
    (
        "row_count",
        [E(2), Work, Work, E(2), Work],
        |env, table, _| env.table_row_count(table).map(drop),
    ),
    (
        "table_scan",
        [E(2), Work, Work, E(2), Work],
        |env, table, _| env.table_scan(table).map(drop),
    ),
    (
        "scan_point",
        [E(2), Work, Work, E(2), Work],
        |env, _, index| env.index_scan_point(index, &[0; 8]).map(drop),
    ),
    (
        "scan_range",
        [E(2), Work, Work, E(2), Work],
        |env, _, index| {
            env.index_scan_range(index, RangeBounds::of_first(&[2], &[2]))
                .map(drop)
        },
    ),
    (
        "point_read",
        [E(2), Work, Work, E(2), Work],
        |env, _, index| env.point_read(index, &mut [0; 64], 8).map(drop),
    ),
    ("jwt", [E(2), Work, Work, E(2), Work], |env, _, _| {
        env.jwt_source(ConnectionId(1)).map(drop)
    }),
    (
        "insert",
        [E(2), Work, E(19), E(2), Work],
        |env, table, _| env.insert(table, &mut item(7)).map(drop),
    ),
    (
        "update",
        [E(2), Work, E(19), E(2), Work],
        |env, table, index| env.update(table, index, &mut item(1)).map(drop),
    ),
    (
        "delete_point",
        [E(2), Work, E(19), E(2), Work],
        |env, _, index| env.delete_by_index_point(index, &[0; 8]).map(drop),
    ),
    (
        "delete_range",
        [E(2), Work, E(19), E(2), Work],
        |env, _, index| {
            env.delete_by_index_range(index, RangeBounds::of_first(&[2], &[2]))
                .map(drop)
        },
    ),
    (
        "delete_eq",
        [E(2), Work, E(19), E(2), Work],
        |env, table, _| env.delete_all_by_eq(table, &[0; 4]).map(drop),
    ),
    ("clear", [E(2), Work, E(19), E(2), Work], |env, table, _| {
        env.clear(table).map(drop)
    }),
    ("start", [Trap, E(17), E(17), Work, E(17)], |env, _, _| {
        start(env)
    }),
    ("commit", [E(18), E(18), E(18), E(18), Work], |env, _, _| {
        env.procedure_commit_mut_tx()
    }),
    ("abort", [E(18), E(18), E(18), E(18), Work], |env, _, _| {
        env.procedure_abort_mut_tx()
    }),
    ("http", [Trap, E(17), E(17), Work, E(17)], |env, _, _| {
        let waiting = env.ask_http(request(), &[])?;
        env.block(waiting);
        env.http_answer().map(drop)
    }),
    ("sleep", [Trap, Trap, Trap, Work, Trap], |env, _, _| {
        let waiting = env.ask_sleep(0)?;
        env.block(waiting);
        Ok(env.slept().map(drop)?)
    }),
    ("console", [Work; 5], |env, _, _| {
        env.console_log(2, None, None, 0, b"text", Vec::new);
        Ok(())
    }),
];

/// As hosts open a transaction.
fn start(env: &mut HostEnv) -> Result<(), AbiError> {
    let waiting = env.ask_transaction()?;
    env.block(waiting);
    env.open_transaction().map(drop)
}

fn request() -> HttpRequest {
    HttpRequest {
        method: HttpMethod::Get,
        headers: Vec::new(),
        timeout: None,
        uri: "http://name.test/".to_owned(),
        version: HttpVersion::Http11,
    }
}

fn item(id: u64) -> Vec<u8> {
    row(&[V::U64(id)])
}

/// A table with one row, in a transaction.
fn items() -> (Datastore, TableId, IndexId) {
    let module = module(vec![table("item", &[("id", T::U64)])
        .btree(&[0], true)
        .primary_key(0)]);
    let mut datastore = creating(&module);
    let (table, index) = (
        table_id(&datastore, "item"),
        index_id(&datastore, "item_id_idx_btree"),
    );
    datastore
        .insert(table, &item(1), &mut Vec::new())
        .expect("a new row");
    (datastore, table, index)
}

fn does(result: Result<(), AbiError>) -> Does {
    match result {
        Ok(()) => Work,
        Err(AbiError::Errno(errno)) => E(errno.number()),
        Err(AbiError::Trap(_)) => Trap,
    }
}

#[test]
fn every_call_answers_as_the_chapter_says() {
    for (name, expected, call) in CALLS {
        let mut host = Host::new(HostLimits::default());
        let (mut datastore, table, index) = items();
        let mut seen = vec![does(
            host.call(Lent::Nothing, |env| call(env, table, index)),
        )];
        let view = Lent::Read(ReadView::of(&mut datastore));
        let in_view = does(host.call(view, |env| call(env, table, index)));
        let transaction = Lent::Transaction(OpenTransaction::of(&mut datastore));
        seen.push(does(host.call(transaction, |env| call(env, table, index))));
        seen.push(in_view);

        let (mut datastore, table, index) = items();
        datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
        let mut transactions = Committing::on(&mut datastore);
        let procedure = Lent::Transactions(&mut transactions);
        seen.push(does(host.call(procedure, |env| call(env, table, index))));
        let procedure = Lent::Transactions(&mut transactions);
        seen.push(does(host.call(procedure, |env| {
            start(env).expect("none is open");
            call(env, table, index)
        })));
        assert_eq!(seen, expected, "{name}");
        assert!(!datastore.in_transaction(), "{name}");
        let after = host.call(Lent::Nothing, |env| env.table_row_count(table));
        assert_eq!(after, Err(Errno::NOT_IN_TRANSACTION.into()), "{name}");
    }
}

/// 02 §14.9: names are looked up, and all access to rows ends the call, here also the insert: the table is none that takes rows in.
#[test]
fn a_function_for_rows_reads_and_changes_nothing() {
    for (name, expected, call) in CALLS.iter().filter(|(_, does, _)| does[0] == E(2)) {
        let mut host = Host::new(HostLimits::default());
        let (mut datastore, table, index) = items();
        let rows = datastore.row_count(table).expect("the table");
        datastore.begin_making();
        let transaction = Lent::Transaction(OpenTransaction::of(&mut datastore));
        let seen = does(host.call(transaction, |env| call(env, table, index)));
        let looks_up = matches!(*name, "table_id" | "index_id");
        assert_eq!(
            seen,
            if looks_up { Work } else { Trap },
            "{name} {expected:?}"
        );
        assert_eq!(datastore.row_count(table).expect("the table"), rows);
    }
}

/// Spec 03 §11.8: a view inside of a procedure's transaction reads, and the procedure goes on where it was.
#[test]
fn a_loan_inside_of_another_one_ends_first() {
    let (mut datastore, table, _) = items();
    let (mut inner, inner_table, _) = items();
    let mut host = Host::new(HostLimits::default());
    let transaction = Lent::Transaction(OpenTransaction::of(&mut datastore));
    lightcone_host::lend(&mut host, transaction, |host| {
        let view = Lent::Read(ReadView::of(&mut inner));
        let refused = host.call(view, |env| env.insert(inner_table, &mut item(2)));
        assert_eq!(refused, Err(Errno::TRANSACTION_IS_READ_ONLY.into()));
        host.call_again(|env| env.insert(table, &mut item(2)))
            .expect("the outer transaction");
    });
    assert_eq!(datastore.row_count(table).expect("the table"), 2);
}

#[test]
fn a_panic_ends_the_loan() {
    let (mut datastore, table, _) = items();
    let mut host = Host::new(HostLimits::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let transaction = Lent::Transaction(OpenTransaction::of(&mut datastore));
        host.call(transaction, |_| panic!("a bug of the host"))
    }));
    assert!(panicked.is_err());
    drop(datastore);
    let after = host.call_again(|env| env.table_row_count(table));
    assert_eq!(after, Err(Errno::NOT_IN_TRANSACTION.into()));
}

#[test]
#[should_panic(expected = "a transaction begins before it is lent")]
fn only_an_open_transaction_is_lent() {
    OpenTransaction::of(&mut Datastore::new());
}
