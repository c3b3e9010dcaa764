//! Families about functions and tables of modules.

use super::fold::OTHER;
use super::shown::Shown;
use super::text::{Kind, Labels, Text};
use crate::database::{FunctionKind, FunctionMetrics, TableMetrics};

pub(super) fn put(text: &mut Text, databases: &[Shown]) {
    put_transactions(text, databases);
    put_errors(text, databases);
    put_tables(text, databases);
}

/// Functions that were called.
fn called(databases: &[Shown]) -> impl Iterator<Item = (&Shown, &FunctionMetrics)> + Clone {
    databases.iter().flat_map(|database| {
        let functions = database.metrics.module.functions.iter();
        let called = functions.filter(|function| function.calls() + function.refused > 0);
        called.map(move |function| (database, function))
    })
}

fn txn_type(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Reducer => "Reducer",
        FunctionKind::Procedure => "Procedure",
        FunctionKind::HttpHandler => "HttpHandler",
        FunctionKind::View => "View",
    }
}

fn put_transactions(text: &mut Text, databases: &[Shown]) {
    let labels = |database: &Shown, txn_type: &str, reducer: &str, committed: bool| {
        let labels = Labels::of("txn_type", txn_type).and("db", &database.label);
        labels.and("reducer", reducer).and("committed", committed)
    };
    let reducers = called(databases).filter(|(_, of)| of.kind == FunctionKind::Reducer);
    let by_reducers = reducers.clone().flat_map(|(database, of)| {
        [
            (labels(database, "Reducer", &of.name, true), of.recorded),
            (labels(database, "Reducer", &of.name, false), of.failed()),
        ]
    });
    let others = databases.iter().map(|database| {
        let labels = labels(database, "Internal", "", true);
        (labels, database.metrics.other_transactions)
    });
    text.family(
        Kind::Counter,
        "spacetime_num_txns_total",
        "Transactions that were committed and changed something; with committed=\"false\" calls that failed.",
        by_reducers.chain(others),
    );
    text.few_times(
        "spacetime_txn_elapsed_time_sec",
        "Times of calls with their commit, by the clock; of procedures and HTTP handlers from when the call has come, with all that they waited for.",
        called(databases).map(|(database, of)| {
            let labels = Labels::of("txn_type", txn_type(of.kind)).and("db", &database.label);
            (labels.and("reducer", &of.name), &of.times)
        }),
    );
    let views = called(databases).filter(|(_, of)| of.kind == FunctionKind::View);
    text.family(
        Kind::Counter,
        "view_calls",
        "How often instances of views were evaluated or brought up to date.",
        views.map(|(database, of)| (database.db().and("view", &of.name), of.calls())),
    );
}

fn put_errors(text: &mut Text, databases: &[Shown]) {
    type Read = fn(&FunctionMetrics) -> u64;
    let of_the_reference: [(&str, &str, Read); 2] = [
        (
            "spacetime_worker_sender_errors_total",
            "Calls that the reducer itself refused.",
            |of| of.sender_errors,
        ),
        (
            "spacetime_worker_wasm_instance_errors_total",
            "Calls of reducers that trapped or took too long.",
            |of| of.traps + of.timeouts,
        ),
    ];
    let reducers = called(databases).filter(|(_, of)| of.kind == FunctionKind::Reducer);
    for (name, help, read) in of_the_reference {
        let samples = reducers.clone().filter(|(_, of)| read(of) > 0);
        let samples = samples.map(|(database, of)| {
            let labels = database.identity();
            let labels = labels.and("module_hash", &database.program_hash);
            (labels.and("reducer_symbol", &of.name), read(of))
        });
        text.family(Kind::Counter, name, help, samples);
    }
    let errors: [(&str, Read); 4] = [
        ("sender", |of| of.sender_errors),
        ("trap", |of| of.traps),
        ("time", |of| of.timeouts),
        ("refused", |of| of.refused),
    ];
    let samples = called(databases).flat_map(|(database, of)| {
        let labels = database.db().and("kind", of.kind.name());
        let labels = labels.and("function", &of.name);
        let some = errors.into_iter().filter(move |(_, read)| read(of) > 0);
        some.map(move |(error, read)| (labels.clone().and("error", error), read(of)))
    });
    text.family(
        Kind::Counter,
        "lightcone_call_errors_total",
        "Calls that failed: the function said so, it trapped, it took too long, or it never began (too many were under way, or the database takes no writes).",
        samples,
    );
}

fn put_tables(text: &mut Text, databases: &[Shown]) {
    let tables = || {
        databases.iter().flat_map(|database| {
            let tables = database.metrics.module.tables.iter();
            tables.map(move |table| (database, table))
        })
    };
    let named = |labels: Labels, table: &TableMetrics| {
        // Tables that are added up have no id.
        let id = match &*table.name {
            OTHER => String::new(),
            _ => table.id.0.to_string(),
        };
        labels.and("table_id", id).and("table_name", &table.name)
    };
    type Read = fn(&TableMetrics) -> u64;
    let sizes: [(&str, &str, Read); 2] = [
        ("spacetime_num_table_rows", "Rows of a table.", |table| {
            table.rows
        }),
        (
            "spacetime_table_size_bytes",
            "Memory of the pages with the rows of a table, without its indexes.",
            |table| table.bytes,
        ),
    ];
    for (name, help, read) in sizes {
        let samples = tables().map(|(database, table)| (named(database.db(), table), read(table)));
        text.family(Kind::Gauge, name, help, samples);
    }
    let changes: [(&str, &str, Read); 2] = [
        (
            "spacetime_num_rows_inserted_total",
            "Rows that came; one that was replaced came and went.",
            |table| table.inserted,
        ),
        (
            "spacetime_num_rows_deleted_total",
            "Rows that went.",
            |table| table.deleted,
        ),
    ];
    for (name, help, read) in changes {
        let samples = tables().filter(|(_, table)| read(table) > 0);
        let samples = samples.map(|(database, table)| {
            let labels = Labels::of("txn_type", "").and("db", &database.label);
            (
                named(labels.and("reducer_or_query", ""), table),
                read(table),
            )
        });
        text.family(Kind::Counter, name, help, samples);
    }
}
