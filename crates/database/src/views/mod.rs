//! Views: which of their instances are live, what each depends on, and evaluating them again when that changes (03 §14).
//!
//! An instance is a view with the identity that looks at it, or an anonymous view, and with the arguments if it has parameters. Its rows are in the view's backing table, so
//! that queries and subscriptions find them like those of any table. It lives from the first query that needs it. When a
//! transaction is sealed, its changes are compared with what the instances have read ([`Dependents`]), and those that are
//! concerned are evaluated in the same transaction: clients see table and view change together.
//!
//! **A view that fails** never fails the transaction. Its last rows stand, its subscribers are told once, the module's log says
//! why, and the next evaluation that succeeds brings its rows up to date. What failing evaluations take is bounded
//! ([`failures`]).
//!
//! **Unused instances** are not evaluated: a change to what they have read makes their rows go. Those that nothing changes are
//! kept for a while, so that the next one who looks finds them.
mod changes;
mod failures;
mod find;
mod host;
mod known;
mod program;
mod query;
mod refresh;
mod retries;
mod runner;
mod uses;

use std::collections::BTreeMap;
use std::time::Instant;

use lightcone_live::{Dependents, IndexBuilding, Joins, Looked, Windows};
use lightcone_query::ViewArguments;
use lightcone_table::ReadSet;
use lightcone_types::{Identity, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

use self::changes::Listed;
use self::failures::Failures;
use self::host::InstanceKey;
use self::query::{Listener, ViewQuery};
use self::runner::Runner;
use crate::peer::{ConnectionNumber, SetKey};

pub(crate) use self::changes::Changed;
pub(crate) use self::host::{Evaluation, ViewHost, ViewMessage, ViewRead};

struct Instance {
    key: InstanceKey,
    /// Who looks; none for an anonymous view.
    sender: Option<Identity>,
    arguments: ViewArguments,
    /// Its rows are those of its last evaluation that did not fail, and it hears of changes.
    is_live: bool,
    /// What the module's function has read.
    reads: ReadSet,
    /// What it returned, if that is a query.
    query: Option<ViewQuery>,
    subscribers: FxHashMap<SetKey, Subscriber>,
    /// Its last evaluation failed.
    is_failing: bool,
    /// It fails, and is to be evaluated again: something has changed, or it may have failed for what has passed.
    is_overdue: bool,
    queued: Queued,
    /// Its turn among the unused ones; 0 while it is used.
    unused_turn: u64,
    /// Of its rows, with what is kept to bring them up to date.
    bytes: usize,
}

/// Queries of one set that read an instance.
struct Subscriber {
    /// Of the set's `Subscribe`.
    request_id: u32,
    queries: usize,
}

/// How a transaction concerns an instance.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd)]
enum Queued {
    #[default]
    No,
    /// Rows that its query reads have changed; they are listed.
    Rows,
    /// The same, and they are too many to be listed.
    Query,
    /// The same, and finding the change of its join was too much.
    TooMuch,
    /// The function has to run again.
    Call,
}

/// An instance that is not used since then.
struct Unused {
    number: u32,
    since: Instant,
}

/// All instances of all views of a database.
#[derive(Default)]
pub(crate) struct Views {
    instances: Vec<Option<Instance>>,
    free: Vec<u32>,
    by_key: hashbrown::HashMap<InstanceKey, u32>,
    dependents: Dependents,
    /// Also those of query sets: a shape that both use is evaluated once.
    pub joins: Joins,
    /// Those of views alone.
    pub windows: Windows,
    /// For query sets, too.
    pub indexes: IndexBuilding,
    runner: Runner,
    /// By turn: the oldest first.
    unused: BTreeMap<u64, Unused>,
    unused_turns: u64,
    /// Of all instances.
    bytes: usize,
    /// Those with arguments, by view.
    of_views: FxHashMap<TableId, usize>,
    /// Instances with arguments that the query sets of clients read, once for each set.
    of_clients: FxHashMap<ConnectionNumber, usize>,
    failures: Failures,
    looked: Looked,
    /// Views with rows that functions have read, and that the open transaction has changed since.
    changed_views: FxHashSet<TableId>,
    concerned: Vec<u32>,
    listed: Listed,
}

impl Views {
    /// Whether any transaction can concern a view.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let hears_of_nothing = !self.joins.has_instances() && self.windows.is_empty();
        hears_of_nothing && self.dependents.is_empty()
    }

    /// Whether functions that read rows of views are to run again.
    #[inline]
    pub fn have_changed_for_others(&self) -> bool {
        !self.changed_views.is_empty()
    }

    fn listener(&mut self, instance: u32) -> Listener<'_> {
        Listener {
            instance,
            key: self.instance(instance).key,
            joins: &mut self.joins,
            windows: &mut self.windows,
            indexes: &mut self.indexes,
        }
    }

    fn instance(&self, number: u32) -> &Instance {
        let instance = self.instances[number as usize].as_ref();
        instance.expect("numbers are of instances that are there")
    }

    fn instance_mut(&mut self, number: u32) -> &mut Instance {
        let instance = self.instances[number as usize].as_mut();
        instance.expect("numbers are of instances that are there")
    }
}
