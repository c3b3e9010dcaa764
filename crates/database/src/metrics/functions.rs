//! Counters of the functions and tables of a module.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{Counter, Datastore, TableCounters};
use lightcone_schema::ModuleDef;
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use super::histogram::{Histogram, HistogramSnapshot};

/// What a function of a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    Reducer,
    Procedure,
    HttpHandler,
    View,
}

impl FunctionKind {
    pub const ALL: [FunctionKind; 4] = [
        FunctionKind::Reducer,
        FunctionKind::Procedure,
        FunctionKind::HttpHandler,
        FunctionKind::View,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FunctionKind::Reducer => "reducer",
            FunctionKind::Procedure => "procedure",
            FunctionKind::HttpHandler => "http-handler",
            FunctionKind::View => "view",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The function said so: the caller's fault.
    Sender,
    /// It trapped, threw, or gave something that it may not give.
    Trap,
    /// It took too long.
    Time,
    /// It never began.
    NotRun,
}

/// Counted by the writer.
#[derive(Default)]
pub(crate) struct FunctionCounters {
    /// Transactions with a record.
    recorded: Counter,
    /// By [`Failure`].
    failures: [Counter; 4],
    times: Histogram,
}

impl FunctionCounters {
    /// A call has ended.
    #[inline]
    pub fn note(&self, time: Duration, failure: Option<Failure>) {
        self.times.note(time);
        if let Some(failure) = failure {
            self.failures[failure as usize].add(1);
        }
    }

    /// A call was refused before it began.
    pub fn note_refused(&self) {
        self.failures[Failure::NotRun as usize].add(1);
    }

    /// The last call's transaction has a record.
    #[inline]
    pub fn note_record(&self) {
        self.recorded.add(1);
    }
}

/// What a function has done since the database was opened.
#[derive(Clone, Debug)]
pub struct FunctionMetrics {
    pub kind: FunctionKind,
    /// The canonical name.
    pub name: Arc<str>,
    /// Calls that the function itself refused.
    pub sender_errors: u64,
    pub traps: u64,
    /// Calls that were stopped because they took too long.
    pub timeouts: u64,
    /// Calls that never began, because too many were under way.
    pub refused: u64,
    /// Reducers: transactions with a record.
    pub recorded: u64,
    /// All calls that began and have ended, with the commit. Of a procedure or HTTP handler from when the call has come, by the
    /// time of day.
    pub times: HistogramSnapshot,
}

impl FunctionMetrics {
    pub fn calls(&self) -> u64 {
        self.times.count()
    }

    /// Calls that began and failed.
    pub fn failed(&self) -> u64 {
        self.sender_errors + self.traps + self.timeouts
    }

    /// Adds what another function has done.
    pub fn add(&mut self, other: &FunctionMetrics) {
        self.sender_errors += other.sender_errors;
        self.traps += other.traps;
        self.timeouts += other.timeouts;
        self.refused += other.refused;
        self.recorded += other.recorded;
        self.times.add(&other.times);
    }
}

/// A table of the module, or the table that holds the rows of a view.
#[derive(Clone, Debug)]
pub struct TableMetrics {
    pub id: TableId,
    /// The canonical name.
    pub name: Arc<str>,
    pub rows: u64,
    /// Memory of the pages that hold the rows, without indexes.
    pub bytes: u64,
    /// Rows that came since the database was opened. A row that was replaced came and went.
    pub inserted: u64,
    pub deleted: u64,
}

impl TableMetrics {
    /// Adds what another table has.
    pub fn add(&mut self, other: &TableMetrics) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.inserted += other.inserted;
        self.deleted += other.deleted;
    }
}

type Named = (Arc<str>, Arc<FunctionCounters>);

/// Counters of a module's functions, by their positions in its definition, and of its tables.
#[derive(Default)]
pub(crate) struct ModuleCounters {
    reducers: Vec<Named>,
    procedures: Vec<Named>,
    handlers: Vec<Named>,
    views: Vec<Named>,
    tables: Vec<(TableId, Arc<str>, Arc<TableCounters>)>,
}

impl ModuleCounters {
    /// Functions that the module before had too go on counting.
    pub fn new(
        def: &ModuleDef,
        datastore: &Datastore,
        before: Option<&ModuleCounters>,
    ) -> ModuleCounters {
        let go_on = |names: Vec<&str>, old: fn(&ModuleCounters) -> &Vec<Named>| {
            let old = before.into_iter().flat_map(old);
            let old: FxHashMap<&str, &Named> = old.map(|named| (&*named.0, named)).collect();
            let named = |name: &str| match old.get(name) {
                Some((name, counters)) => (name.clone(), counters.clone()),
                None => (name.into(), Arc::default()),
            };
            names.into_iter().map(named).collect()
        };
        let tables = def.tables.iter().map(|table| &table.name);
        let tables = tables.chain(def.views.iter().map(|view| &view.name));
        let tables = tables.filter_map(|name| {
            let id = datastore.table_id_from_name(name)?;
            Some((id, name.as_str().into(), datastore.counters(id)?))
        });
        ModuleCounters {
            reducers: go_on(names(&def.reducers, |f| &f.name), |old| &old.reducers),
            procedures: go_on(names(&def.procedures, |f| &f.name), |old| &old.procedures),
            handlers: go_on(names(&def.http_handlers, |f| &f.name), |old| &old.handlers),
            views: go_on(names(&def.views, |f| &f.name), |old| &old.views),
            tables: tables.collect(),
        }
    }

    pub fn reducer(&self, id: u32) -> &FunctionCounters {
        &self.reducers[id as usize].1
    }

    pub fn procedure(&self, id: u32) -> &FunctionCounters {
        &self.procedures[id as usize].1
    }

    pub fn handler(&self, id: u32) -> &FunctionCounters {
        &self.handlers[id as usize].1
    }

    /// By the position in the definition.
    pub fn view(&self, position: usize) -> &FunctionCounters {
        &self.views[position].1
    }

    /// Of functions and tables, in the order of the definition.
    pub fn read(&self) -> (Vec<FunctionMetrics>, Vec<TableMetrics>) {
        let of = |kind| {
            let named = match kind {
                FunctionKind::Reducer => &self.reducers,
                FunctionKind::Procedure => &self.procedures,
                FunctionKind::HttpHandler => &self.handlers,
                FunctionKind::View => &self.views,
            };
            named.iter().map(move |(name, counters)| {
                let failures = |failure: Failure| counters.failures[failure as usize].get();
                FunctionMetrics {
                    kind,
                    name: name.clone(),
                    sender_errors: failures(Failure::Sender),
                    traps: failures(Failure::Trap),
                    timeouts: failures(Failure::Time),
                    refused: failures(Failure::NotRun),
                    recorded: counters.recorded.get(),
                    times: counters.times.snapshot(),
                }
            })
        };
        let tables = self.tables.iter().map(|(id, name, counters)| TableMetrics {
            id: *id,
            name: name.clone(),
            rows: counters.rows.get(),
            bytes: counters.bytes.get(),
            inserted: counters.inserted.get(),
            deleted: counters.deleted.get(),
        });
        let functions = FunctionKind::ALL.into_iter().flat_map(of);
        (functions.collect(), tables.collect())
    }
}

fn names<T>(functions: &[T], name: impl Fn(&T) -> &String) -> Vec<&str> {
    functions.iter().map(|each| name(each).as_str()).collect()
}
