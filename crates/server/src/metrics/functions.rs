//! Families about functions and tables of modules.

use super::databases::Shown;
use super::text::{Kind, Labels, Text};
use super::OTHER;
use crate::database::{FunctionKind, FunctionMetrics, ModuleMetrics, TableMetrics};

/// Above all others: what is added up stays so.
const FOLDED: u32 = u32::MAX;

/// Leaves the functions of so many ranks, and adds the others up by kind, with those that have gone.
pub(super) fn fold_functions(module: &mut ModuleMetrics, functions_max: usize) {
    let is_told = |of: &FunctionMetrics| (of.rank as usize) < functions_max;
    let (mut told, rest): (Vec<_>, Vec<_>) = module.functions.drain(..).partition(is_told);
    let left = module.left_functions.drain(..).filter(|of| !is_told(of));
    let mut folded: Vec<FunctionMetrics> = Vec::new();
    for function in rest.into_iter().chain(left) {
        match folded.iter_mut().find(|other| other.kind == function.kind) {
            Some(other) => other.add(&function),
            None => folded.push(FunctionMetrics {
                name: OTHER.into(),
                rank: FOLDED,
                ..function
            }),
        }
    }
    told.append(&mut folded);
    module.functions = told;
}

/// The same of tables.
pub(super) fn fold_tables(module: &mut ModuleMetrics, tables_max: usize) {
    let is_told = |of: &TableMetrics| (of.rank as usize) < tables_max;
    let (mut told, rest): (Vec<_>, Vec<_>) = module.tables.drain(..).partition(is_told);
    let left = module.left_tables.drain(..).filter(|of| !is_told(of));
    let folded = rest.into_iter().chain(left).reduce(|mut other, table| {
        other.add(&table);
        other
    });
    told.extend(folded.map(|table| TableMetrics {
        name: OTHER.into(),
        rank: FOLDED,
        ..table
    }));
    module.tables = told;
}

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
            let labels = database.database_identity();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn function(kind: FunctionKind, name: &str, rank: u32, recorded: u64) -> FunctionMetrics {
        let mut times = crate::database::HistogramSnapshot::default();
        times.buckets[0] = 1;
        FunctionMetrics {
            kind,
            name: name.into(),
            rank,
            sender_errors: 0,
            traps: 0,
            timeouts: 0,
            refused: 0,
            recorded,
            times,
        }
    }

    #[test]
    fn what_is_beyond_the_bound_is_added_up() {
        use FunctionKind::{Reducer, View};
        let mut module = ModuleMetrics {
            functions: vec![
                function(Reducer, "b", 2, 2),
                function(Reducer, "a", 0, 1),
                function(Reducer, "c", 1, 4),
                function(View, "d", 3, 8),
            ],
            // They went with an update: the first had a series, the other was added up.
            left_functions: vec![
                function(Reducer, "", 0, 16),
                function(Reducer, "", FOLDED, 32),
            ],
            ..ModuleMetrics::default()
        };
        let all = module.clone();
        let shown = |module: &ModuleMetrics| -> Vec<(FunctionKind, String, u64, u64)> {
            let shown = module.functions.iter();
            shown
                .map(|of| (of.kind, of.name.to_string(), of.recorded, of.calls()))
                .collect()
        };
        fold_functions(&mut module, 1);
        let expected = [
            (Reducer, "a".to_owned(), 1, 1),
            (Reducer, OTHER.to_owned(), 38, 3),
            (View, OTHER.to_owned(), 8, 1),
        ];
        assert_eq!(shown(&module), expected);
        // Once more changes nothing.
        fold_functions(&mut module, 1);
        assert_eq!(shown(&module), expected);
        fold_functions(&mut module, 0);
        assert_eq!(module.functions.len(), 2);
        // Where no function has a series, all that have gone are in the sum.
        let mut module = all;
        fold_functions(&mut module, 0);
        assert_eq!(shown(&module)[0], (Reducer, OTHER.to_owned(), 55, 5));
    }
}
