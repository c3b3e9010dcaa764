//! What readers of the metrics see of each database.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use lightcone_database::{DatabaseMetrics, DatabaseStats};
use lightcone_types::Identity;

use super::counters::DatabaseCounters;
use super::fold::{fold_functions, fold_tables, OTHER};
use super::text::Labels;
use crate::config::{Config, Limits};
use crate::databases::Running;

/// Of an identity, where it is not shown as a whole: too little to open the database, and too much for two to have the same.
const IDENTITY_DIGITS: usize = 32;

/// How much of databases and their modules a reader sees by name.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Functions and tables up to their bounds, and not only their sums.
    names: bool,
    /// A reader could open a database by its whole identity.
    whole_identities: bool,
}

impl Detail {
    /// For programs on this machine, and readers with the token.
    pub fn for_operators(config: &Config) -> Detail {
        Detail {
            names: config.metrics.names,
            whole_identities: true,
        }
    }

    /// For all that reach `metrics.listen`.
    pub fn for_all(config: &Config) -> Detail {
        let listen_names = config.metrics.listen_names;
        Detail {
            names: config.metrics.names && listen_names,
            whole_identities: listen_names,
        }
    }
}

/// What is shown of one database, or of all others together.
#[derive(Default)]
pub(super) struct Shown {
    /// An identity, or [`OTHER`].
    pub label: String,
    /// Of the program; empty for several.
    pub program_hash: String,
    pub is_open: bool,
    pub counters: Arc<DatabaseCounters>,
    pub stats: DatabaseStats,
    pub read_only: u64,
    /// With no more functions and tables than are shown by name.
    pub metrics: DatabaseMetrics,
}

/// The counts of databases that were closed and had no series of their own: the sum that they were in must not fall.
#[derive(Default)]
pub struct Left(Shown);

impl Left {
    pub(super) fn sum(&self) -> &Shown {
        &self.0
    }

    /// Adds a database that is closed.
    pub fn add(&mut self, running: &Running) {
        if running.has_series {
            return;
        }
        let mut one = of_one(String::new(), running);
        one.leave();
        self.0.add(&one);
        self.0.fold(0, 0);
    }
}

/// The running databases: those that have series of their own, and the sum of all others, in which `others` are counted already.
pub(super) fn shown(
    mut running: Vec<(Identity, Running)>,
    mut others: Shown,
    limits: &Limits,
    detail: Detail,
) -> Vec<Shown> {
    running.sort_by_key(|(_, running)| running.handle.number());
    let (functions_max, tables_max) = match detail.names {
        true => (limits.metrics_functions_max, limits.metrics_tables_max),
        false => (0, 0),
    };
    let mut shown = Vec::new();
    for (identity, running) in &running {
        let mut one = of_one(identity.to_hex(), running);
        if !running.has_series {
            others.add(&one);
            // Each is folded at once: all functions of all databases would be many.
            others.fold(0, 0);
            continue;
        }
        one.fold(functions_max, tables_max);
        if !detail.whole_identities {
            one.label.truncate(IDENTITY_DIGITS);
            one.program_hash.clear();
        }
        shown.push(one);
    }
    if others.is_open {
        (others.label, others.program_hash) = (OTHER.to_owned(), String::new());
        shown.push(others);
    }
    shown
}

pub(super) fn of_one(label: String, running: &Running) -> Shown {
    let counters = DatabaseCounters::default();
    counters.add(&running.counters);
    Shown {
        label,
        program_hash: running.handle.program_hash().to_hex(),
        is_open: true,
        counters: Arc::new(counters),
        stats: running.handle.stats(),
        read_only: u64::from(running.handle.read_only().is_some()),
        metrics: running.handle.metrics(),
    }
}

impl Shown {
    pub fn add(&mut self, other: &Shown) {
        self.is_open |= other.is_open;
        self.counters.add(&other.counters);
        self.stats.add(&other.stats);
        self.read_only += other.read_only;
        self.metrics.add(&other.metrics);
    }

    fn fold(&mut self, functions_max: usize, tables_max: usize) {
        fold_functions(&mut self.metrics.module, functions_max);
        fold_tables(&mut self.metrics.module, tables_max);
    }

    /// Leaves what stays true when the database is closed.
    fn leave(&mut self) {
        self.counters.clients_connected.store(0, Relaxed);
        self.stats.leave();
        self.read_only = 0;
        self.metrics.leave();
    }

    pub fn db(&self) -> Labels {
        Labels::of("db", &self.label)
    }

    pub fn identity(&self) -> Labels {
        Labels::of("database_identity", &self.label)
    }
}
