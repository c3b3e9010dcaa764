//! Families about functions and tables of modules.

use std::num::NonZero;

use lightcone_database::{FunctionKind, FunctionMetrics, TableMetrics};

use super::fold::OTHER;
use super::shown::Shown;
use super::text::{families, few_times, Kind, Labels, Text};

pub(super) fn put(text: &mut Text, databases: &[Shown]) {
    put_transactions(text, databases);
    put_errors(text, databases);
    put_tables(text, databases);
}

/// A function or a table of a module.
struct Part<'d, P> {
    database: &'d Shown,
    of: &'d P,
}

/// Functions that were called.
fn called(databases: &[Shown]) -> impl Iterator<Item = Part<'_, FunctionMetrics>> + Clone {
    databases.iter().flat_map(|database| {
        let functions = database.metrics.module.functions.iter();
        let called = functions.filter(|function| function.calls() + function.refused > 0);
        called.map(move |of| Part { database, of })
    })
}

impl Part<'_, FunctionMetrics> {
    fn reducer_symbol(&self) -> Labels {
        let labels = self.database.identity();
        let labels = labels.and("module_hash", &self.database.program_hash);
        labels.and("reducer_symbol", &self.of.name)
    }

    fn call(&self) -> Labels {
        let txn_type = match self.of.kind {
            FunctionKind::Reducer => "Reducer",
            FunctionKind::Procedure => "Procedure",
            FunctionKind::HttpHandler => "HttpHandler",
            FunctionKind::View => "View",
        };
        let labels = Labels::of("txn_type", txn_type).and("db", &self.database.label);
        labels.and("reducer", &self.of.name)
    }

    fn view(&self) -> Labels {
        self.database.db().and("view", &self.of.name)
    }
}

impl Part<'_, TableMetrics> {
    fn db(&self) -> Labels {
        self.named(self.database.db())
    }

    fn change(&self) -> Labels {
        let labels = Labels::of("txn_type", "").and("db", &self.database.label);
        self.named(labels.and("reducer_or_query", ""))
    }

    fn named(&self, labels: Labels) -> Labels {
        // Tables that are added up have no id.
        let id = match &*self.of.name {
            OTHER => String::new(),
            _ => self.of.id.0.to_string(),
        };
        labels.and("table_id", id).and("table_name", &self.of.name)
    }
}

fn put_transactions(text: &mut Text, databases: &[Shown]) {
    let all = called(databases);
    let reducers = all
        .clone()
        .filter(|function| function.of.kind == FunctionKind::Reducer);
    let by_reducers = reducers.flat_map(|function| {
        let labels = function.call();
        [
            (labels.clone().and("committed", true), function.of.recorded),
            (labels.and("committed", false), function.of.failed()),
        ]
    });
    let others = databases.iter().map(|database| {
        let labels = Labels::of("txn_type", "Internal").and("db", &database.label);
        let labels = labels.and("reducer", "").and("committed", true);
        (labels, database.metrics.other_transactions)
    });
    text.family(
        Kind::Counter,
        "spacetime_num_txns_total",
        "Transactions that were committed and changed something; with committed=\"false\" calls that failed.",
        by_reducers.chain(others),
    );
    families! { text, all;
        Histogram "spacetime_txn_elapsed_time_sec" call |function| few_times(&function.of.times),
            "Times of calls with their commit, by the clock; of procedures and HTTP handlers from when the call has come, with all that they waited for.";
    }
    let views = all.filter(|function| function.of.kind == FunctionKind::View);
    families! { text, views;
        Counter "view_calls" view |function| function.of.calls(),
            "How often instances of views were evaluated or brought up to date.";
    }
}

fn put_errors(text: &mut Text, databases: &[Shown]) {
    let all = called(databases);
    let reducers = all
        .clone()
        .filter(|function| function.of.kind == FunctionKind::Reducer);
    families! { text, reducers;
        Counter "spacetime_worker_sender_errors_total" reducer_symbol |function| NonZero::new(function.of.sender_errors),
            "Calls that the reducer itself refused.";
        Counter "spacetime_worker_wasm_instance_errors_total" reducer_symbol |function| NonZero::new(function.of.traps + function.of.timeouts),
            "Calls of reducers that trapped or took too long.";
    }
    let samples = all.flat_map(|Part { database, of }| {
        let labels = database.db().and("kind", of.kind.name());
        let labels = labels.and("function", &of.name);
        let errors = [
            ("sender", of.sender_errors),
            ("trap", of.traps),
            ("time", of.timeouts),
            ("refused", of.refused),
        ];
        errors.map(|(error, count)| (labels.clone().and("error", error), NonZero::new(count)))
    });
    text.family(
        Kind::Counter,
        "lightcone_call_errors_total",
        "Calls that failed: the function said so, it trapped, it took too long, or it never began (too many were under way, or the database takes no writes).",
        samples,
    );
}

fn put_tables(text: &mut Text, databases: &[Shown]) {
    let tables = databases.iter().flat_map(|database| {
        let tables = database.metrics.module.tables.iter();
        tables.map(move |of| Part { database, of })
    });
    families! { text, tables;
        Gauge "spacetime_num_table_rows" db |table| table.of.rows,
            "Rows of a table.";
        Gauge "spacetime_table_size_bytes" db |table| table.of.bytes,
            "Memory of the pages with the rows of a table, without its indexes.";
        Counter "spacetime_num_rows_inserted_total" change |table| NonZero::new(table.of.inserted),
            "Rows that came; one that was replaced came and went.";
        Counter "spacetime_num_rows_deleted_total" change |table| NonZero::new(table.of.deleted),
            "Rows that went.";
    }
}
