//! Views: which of their instances are live, what each depends on, and evaluating them again when that changes (03 §14).
//!
//! An instance is a view with the identity that looks at it, or an anonymous view. Its rows are in the view's backing table, so
//! that queries and subscriptions find them like those of any table. It lives from the first query that needs it. Before a
//! transaction is committed, its changes are compared with what the instances have read ([`dependents`]), and those that are
//! concerned are evaluated in the same transaction: clients see table and view change together.
//!
//! **A view that fails** never fails the transaction. Its last rows stand, its subscribers are told once, the module's log says
//! why, and the next evaluation that succeeds brings its rows up to date. What failing evaluations take is bounded
//! ([`failures`]).
//!
//! **Unused instances** are not evaluated: a change to what they have read makes their rows go. Those that nothing changes are
//! kept for a while, so that whoever comes back finds them.

mod dependents;
mod failures;
mod intervals;
mod joins;
mod kept;
mod query;
mod runner;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, ReadSet, ViewInstance};
use lightcone_host::ConsoleLevel;
use lightcone_query::view_instance;
use lightcone_schema::ViewSchema;
use lightcone_types::{Identity, TableId};
use lightcone_wire::server;
use rustc_hash::FxHashMap;

use self::dependents::{Dependent, Dependents, Looked};
use self::failures::{Failures, ViewError};
use self::joins::ViewJoins;
use self::query::{RowChanges, ViewQuery};
use self::runner::Runner;
use crate::module::Module;
use crate::peer::ConnectionNumber;
use crate::shared::Shared;

/// Instances that nobody uses and that are kept for who comes back; the oldest go first.
const UNUSED_INSTANCES_MAX: usize = 1024;
/// Those that nobody has used for so long go too.
const UNUSED_TIME_MAX: Duration = Duration::from_secs(600);
/// No rows, as a BSATN array.
const NO_ROWS: &[u8] = &[0; 4];

/// What evaluating a view needs beside the tables.
#[derive(Clone, Copy)]
pub(crate) struct ViewHost<'a> {
    pub shared: &'a Shared,
    pub module: &'a Arc<Module>,
}

impl ViewHost<'_> {
    fn instant(&self) -> Instant {
        self.shared.environment().instant()
    }

    fn name(&self, table: TableId) -> Arc<str> {
        match self.module.views.get(&table) {
            Some(function) => function.name.clone(),
            None => "".into(),
        }
    }
}

/// A view that a query reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewRead {
    /// Where its rows are.
    pub table: TableId,
    pub view: ViewSchema,
}

/// A message for a client about a view.
pub(crate) type ViewMessage = (ConnectionNumber, Vec<u8>);

/// The instance of a view for who looks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct InstanceKey {
    table: TableId,
    instance: ViewInstance,
}

struct Instance {
    key: InstanceKey,
    /// Who looks; none for an anonymous view.
    sender: Option<Identity>,
    /// Its rows are those of its last evaluation that did not fail, and it hears of changes.
    is_live: bool,
    /// What the module's function has read.
    reads: ReadSet,
    /// What it returned, if that is a query.
    query: Option<ViewQuery>,
    subscribers: FxHashMap<(ConnectionNumber, u32), Subscriber>,
    /// Its last evaluation failed.
    is_failing: bool,
    /// It fails, and is to be evaluated again: something has changed, or it may have failed for what has passed.
    is_overdue: bool,
    queued: Queued,
    /// Its turn among the unused ones; 0 while it is used.
    unused_turn: u64,
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

struct Unused {
    number: u32,
    turn: u64,
    since: Instant,
}

/// All instances of all views of a database.
#[derive(Default)]
pub(crate) struct Views {
    instances: Vec<Option<Instance>>,
    free: Vec<u32>,
    by_key: hashbrown::HashMap<InstanceKey, u32>,
    dependents: Dependents,
    joins: ViewJoins,
    runner: Runner,
    unused: VecDeque<Unused>,
    unused_turns: u64,
    failures: Failures,
    looked: Looked,
    concerned: Vec<u32>,
    changes: RowChanges,
}

impl Views {
    /// Whether any transaction can concern a view.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.dependents.is_empty() && self.joins.is_empty()
    }

    // ---- Who uses what -------------------------------------------------------------------------------------------------

    /// Makes sure that the rows of these views are there for who looks at them, in the open transaction.
    ///
    /// # Errors
    /// There are too many instances.
    pub fn materialise(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        caller: Identity,
        reads: &[ViewRead],
        messages: &mut Vec<ViewMessage>,
    ) -> Result<(), String> {
        self.drop_unused(host, datastore);
        let mut numbers = Vec::with_capacity(reads.len());
        let mut made = Ok(());
        for read in reads {
            match self.find_or_make(host, datastore, caller, *read) {
                Ok(number) => {
                    // Making the next one must not drop it.
                    self.instance_mut(number).unused_turn = 0;
                    numbers.push(number);
                }
                Err(error) => {
                    made = Err(error);
                    break;
                }
            }
        }
        for number in numbers {
            if made.is_ok() {
                self.bring_up(host, datastore, number, messages);
            }
            if self.instance(number).subscribers.is_empty() {
                self.set_unused(host, number);
            }
        }
        made
    }

    /// Evaluates an instance that somebody is about to read, unless its rows are good, or it is to wait.
    fn bring_up(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        messages: &mut Vec<ViewMessage>,
    ) {
        let now = host.instant();
        let instance = self.instance(number);
        let (is_live, is_overdue, view) =
            (instance.is_live, instance.is_overdue, instance.key.table);
        let may_begin = !is_live && self.failures.may_begin(view, now);
        if may_begin || (is_overdue && self.failures.may_retry(view, now)) {
            return self.evaluate(host, datastore, number, messages);
        }
        if !is_live {
            self.instance_mut(number).is_live = true;
            self.wait(host, number, messages);
        }
    }

    /// Counts a query set that reads these views, which are materialised. Returns what its client is to be told.
    pub fn subscribe(
        &mut self,
        host: ViewHost<'_>,
        caller: Identity,
        reads: &[ViewRead],
        (connection, query_set_id): (ConnectionNumber, u32),
        request_id: u32,
    ) -> Vec<ViewMessage> {
        let mut messages = Vec::new();
        for read in reads {
            let Some(&number) = self.by_key.get(&key_of(*read, caller)) else {
                continue;
            };
            let instance = self.instance_mut(number);
            instance.unused_turn = 0;
            let subscriber = instance
                .subscribers
                .entry((connection, query_set_id))
                .or_insert(Subscriber {
                    request_id,
                    queries: 0,
                });
            subscriber.queries += 1;
            if instance.is_overdue && instance.subscribers.len() == 1 {
                // Nobody waited for it before.
                self.failures.push(read.table, number);
            }
            let instance = self.instance(number);
            let subscriber = &instance.subscribers[&(connection, query_set_id)];
            if instance.is_failing && subscriber.queries == 1 {
                let text = failed_text(&host.name(read.table));
                messages.push(error_message(connection, query_set_id, request_id, &text));
            }
        }
        messages
    }

    /// A query set that [`subscribe`](Self::subscribe) counted is gone.
    pub fn unsubscribe(
        &mut self,
        host: ViewHost<'_>,
        caller: Identity,
        reads: &[ViewRead],
        (connection, query_set_id): (ConnectionNumber, u32),
    ) {
        for read in reads {
            let Some(&number) = self.by_key.get(&key_of(*read, caller)) else {
                continue;
            };
            let subscribers = &mut self.instance_mut(number).subscribers;
            let Some(subscriber) = subscribers.get_mut(&(connection, query_set_id)) else {
                continue;
            };
            subscriber.queries -= 1;
            if subscriber.queries > 0 {
                continue;
            }
            subscribers.remove(&(connection, query_set_id));
            if subscribers.is_empty() {
                self.set_unused(host, number);
            }
        }
    }

    fn find_or_make(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        caller: Identity,
        read: ViewRead,
    ) -> Result<u32, String> {
        let key = key_of(read, caller);
        if let Some(&number) = self.by_key.get(&key) {
            return Ok(number);
        }
        let instances_max = host.shared.options.limits.view_instances_max;
        while self.by_key.len() >= instances_max {
            if !self.drop_oldest_unused(datastore) {
                return Err(format!("all {instances_max} instances of views that there may be are in use; raise limits.view-instances-max [LC0715]"));
            }
        }
        let instance = Instance {
            key,
            sender: (!read.view.is_anonymous).then_some(caller),
            is_live: false,
            reads: ReadSet::default(),
            query: None,
            subscribers: FxHashMap::default(),
            is_failing: false,
            is_overdue: false,
            queued: Queued::No,
            unused_turn: 0,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.instances[number as usize] = Some(instance);
                number
            }
            None => {
                self.instances.push(Some(instance));
                (self.instances.len() - 1) as u32
            }
        };
        self.by_key.insert(key, number);
        Ok(number)
    }

    fn set_unused(&mut self, host: ViewHost<'_>, number: u32) {
        self.unused_turns += 1;
        let turn = self.unused_turns;
        self.instance_mut(number).unused_turn = turn;
        self.unused.push_back(Unused {
            number,
            turn,
            since: host.instant(),
        });
    }

    /// Drops unused instances that are too many or too old, in the open transaction.
    fn drop_unused(&mut self, host: ViewHost<'_>, datastore: &mut Datastore) {
        let now = host.instant();
        while let Some(oldest) = self.unused.front() {
            let is_old = now.saturating_duration_since(oldest.since) >= UNUSED_TIME_MAX;
            if !is_old && self.unused.len() <= UNUSED_INSTANCES_MAX {
                break;
            }
            self.drop_front_of_unused(datastore);
        }
    }

    /// False: there is none.
    fn drop_oldest_unused(&mut self, datastore: &mut Datastore) -> bool {
        while !self.unused.is_empty() {
            if self.drop_front_of_unused(datastore) {
                return true;
            }
        }
        false
    }

    /// Whether it was still unused, and is gone now.
    fn drop_front_of_unused(&mut self, datastore: &mut Datastore) -> bool {
        let Some(Unused { number, turn, .. }) = self.unused.pop_front() else {
            return false;
        };
        let instance = self.instances[number as usize].as_ref();
        // It may have been used again since, or its number be another's: turns are never given twice.
        if instance.is_none_or(|instance| instance.unused_turn != turn) {
            return false;
        }
        self.retire(datastore, number);
        if let Some(instance) = self.instances[number as usize].take() {
            self.by_key.remove(&instance.key);
            self.free.push(number);
        }
        true
    }

    /// Nobody uses the instance: its rows go, and it hears of no change.
    fn retire(&mut self, datastore: &mut Datastore, number: u32) {
        self.set_reads(datastore, number, ReadSet::default(), None);
        // Also if it is not live: rows that went with a program whose transaction was taken back are there again. Those that do
        // not fit into the transaction any more stay; nobody sees them, and the next evaluation replaces them.
        let InstanceKey { table, instance } = self.instance(number).key;
        let _ = datastore.replace_view_rows(table, &instance, NO_ROWS);
        let instance = self.instance_mut(number);
        instance.is_live = false;
        (instance.is_failing, instance.is_overdue) = (false, false);
    }

    // ---- What changes --------------------------------------------------------------------------------------------------

    /// Before the open transaction is committed: brings what its changes concern up to date.
    pub fn refresh(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        messages: &mut Vec<ViewMessage>,
    ) {
        let started = host.instant();
        self.find_concerned(host, datastore);
        let concerned = std::mem::take(&mut self.concerned);
        let mut told_of = None;
        for &number in &concerned {
            let queued = std::mem::take(&mut self.instance_mut(number).queued);
            let instance = self.instance(number);
            if instance.subscribers.is_empty() {
                self.retire(datastore, number);
            } else if instance.is_failing {
                self.retry_or_wait(host, datastore, number, messages);
            } else if self.failures.have_taken_long(instance.key.table) {
                self.wait(host, number, messages);
            } else if queued == Queued::Call {
                self.evaluate(host, datastore, number, messages);
            } else if queued == Queued::TooMuch && told_of != Some(instance.key.table) {
                told_of = Some(instance.key.table);
                let error = too_many_partners(host);
                self.evaluated(host, number, started, Err(error), messages);
            } else if queued == Queued::TooMuch {
                self.wait(host, number, messages);
            } else {
                self.change_query(host, datastore, number, queued, messages);
            }
        }
        self.concerned = concerned;
        self.concerned.clear();
        self.changes.clear();
        self.joins.clear();
        self.failures.end_refresh();
    }

    fn find_concerned(&mut self, host: ViewHost<'_>, datastore: &mut Datastore) {
        let Views {
            dependents,
            joins,
            looked,
            instances,
            concerned,
            changes,
            ..
        } = self;
        let mut queue = |dependent: Dependent, rows: Option<(&mut RowChanges, Row<'_>)>| {
            let number = dependent.instance();
            let instance = instances[number as usize].as_mut();
            let instance = instance.expect("dependents are live instances");
            if instance.queued == Queued::No {
                concerned.push(number);
            }
            let queued = match (dependent.is_query(), rows) {
                (true, _) if instance.queued >= Queued::Query => instance.queued,
                (true, Some((changes, row))) => match changes.note(number, row) {
                    true => Queued::Rows,
                    false => Queued::Query,
                },
                (true, None) => Queued::Query,
                (false, _) => Queued::Call,
            };
            instance.queued = queued;
        };
        let mut noted = joins.begin();
        datastore.for_each_net_change(
            |table| dependents.has_table(table) || joins.has_table(table),
            |table, old, new| {
                // Their rows are gone when the transaction ends: views see them empty (02 §10.2).
                if table.schema.is_event {
                    return;
                }
                let id = table.schema.id;
                if joins.has_table(id) {
                    noted.note(id, Row { old, new });
                }
                changes.next_row();
                dependents.concerned_by(looked, table, old, new, |dependent| {
                    queue(dependent, Some((changes, Row { old, new })));
                });
            },
        );
        dependents.concerned_by_counts(looked, |dependent| queue(dependent, None));
        changes.sort();
        let mut queue_join = |number: u32, how: Queued| {
            let instance = instances[number as usize].as_mut();
            let instance = instance.expect("joins are those of live instances");
            if instance.queued == Queued::No {
                concerned.push(number);
            }
            if instance.queued < how {
                instance.queued = how;
            }
        };
        let partners_max = host.shared.options.limits.join_partners_max;
        joins.evaluate(datastore, noted, partners_max, |number| {
            queue_join(number, Queued::TooMuch);
        });
        joins
            .concerned()
            .for_each(|number| queue_join(number, Queued::Rows));
    }

    /// Evaluates an instance by calling its function, in the open transaction.
    fn evaluate(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        messages: &mut Vec<ViewMessage>,
    ) {
        let started = host.instant();
        let instance = self.instance(number);
        let (key, sender) = (instance.key, instance.sender);
        let mut reads = ReadSet::default();
        let returned = self
            .runner
            .call(host, datastore, key.table, sender, &mut reads);
        let (query, result) = match returned {
            Ok(returned) => {
                let rows = (key.table, &key.instance);
                query::store(host, datastore, rows, sender, returned)
            }
            Err(error) => (None, Err(error)),
        };
        let is_live = std::mem::replace(&mut self.instance_mut(number).is_live, true);
        // An evaluation that was stopped has not read all that matters.
        let was_stopped = result.as_ref().is_err_and(|error| error.may_pass);
        if !(is_live && was_stopped) {
            let query = self.add_join(host, datastore, number, query);
            self.set_reads(datastore, number, reads, query);
        }
        self.evaluated(host, number, started, result, messages);
    }

    /// Brings the rows of an instance up to date whose query's tables have changed.
    fn change_query(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        queued: Queued,
        messages: &mut Vec<ViewMessage>,
    ) {
        let started = host.instant();
        let instance = self.instances[number as usize].as_mut();
        let instance = instance.expect("it is concerned");
        let Some(query) = &mut instance.query else {
            return;
        };
        let key = instance.key;
        let rows = (key.table, &key.instance);
        let result = match (queued, query.join_mut()) {
            (Queued::Rows, Some(join)) => {
                let changed = join.change(datastore, rows, self.joins.of(number));
                changed.map_err(ViewError::from)
            }
            (Queued::Rows, None) => query.change(host, datastore, rows, self.changes.of(number)),
            _ => query.evaluate(host, datastore, rows),
        };
        self.evaluated(host, number, started, result, messages);
    }

    /// Notes how an evaluation ended. Who subscribes to the instance is told when it begins to fail.
    fn evaluated(
        &mut self,
        host: ViewHost<'_>,
        number: u32,
        started: Instant,
        result: Result<(), ViewError>,
        messages: &mut Vec<ViewMessage>,
    ) {
        let instance = self.instance_mut(number);
        instance.is_overdue = result.as_ref().is_err_and(|error| error.may_pass);
        let was_failing = std::mem::replace(&mut instance.is_failing, result.is_err());
        if result.is_ok() && !was_failing {
            return;
        }
        let now = host.instant();
        let instance = self.instance(number);
        let name = host.name(instance.key.table);
        let log = &host.shared.log;
        let time = host.shared.environment().now();
        let Err(ViewError { reason, may_pass }) = result else {
            if was_failing {
                let text = format!("the view `{name}` works again");
                log.host(ConsoleLevel::Info, Some(&name), &text, time);
            }
            return;
        };
        let took = now.saturating_duration_since(started);
        let (view, is_subscribed) = (instance.key.table, !instance.subscribers.is_empty());
        self.failures.failed(view, took, is_subscribed, now);
        if may_pass {
            self.failures.push(view, number);
        }
        if was_failing {
            return;
        }
        self.tell_subscribers(host, number, messages);
        let database = host.shared.options.identity;
        tracing::warn!(%database, view = %name, reason, "a view failed");
        let text = format!("Error materializing view `{name}`: {reason}; its last rows stand until it works again [LC0331]");
        log.host(ConsoleLevel::Error, Some(&name), &text, time);
    }

    // ---- Views that fail -----------------------------------------------------------------------------------------------

    /// Tells who is subscribed to an instance that it fails from now on.
    fn tell_subscribers(&self, host: ViewHost<'_>, number: u32, messages: &mut Vec<ViewMessage>) {
        let instance = self.instance(number);
        let text = failed_text(&host.name(instance.key.table));
        let subscribers = instance.subscribers.iter();
        messages.extend(subscribers.map(|((connection, query_set_id), subscriber)| {
            error_message(*connection, *query_set_id, subscriber.request_id, &text)
        }));
    }

    /// The view has failed for so many, or for so long, that this one waits as if it had, too.
    fn wait(&mut self, host: ViewHost<'_>, number: u32, messages: &mut Vec<ViewMessage>) {
        let instance = self.instance_mut(number);
        (instance.is_failing, instance.is_overdue) = (true, true);
        let view = instance.key.table;
        self.failures.push(view, number);
        self.tell_subscribers(host, number, messages);
    }

    fn retry_or_wait(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        messages: &mut Vec<ViewMessage>,
    ) {
        let view = self.instance(number).key.table;
        if self.failures.may_retry(view, host.instant()) {
            return self.evaluate(host, datastore, number, messages);
        }
        let instance = self.instance_mut(number);
        if !std::mem::replace(&mut instance.is_overdue, true) {
            self.failures.push(view, number);
        }
    }

    /// When failing views are to be tried again; none if none is.
    pub fn next_retry(&mut self, now: Instant) -> Option<Instant> {
        let Views {
            failures,
            instances,
            ..
        } = self;
        failures.next_retry(now, |view, number| {
            let instance = instances[number as usize].as_ref();
            instance.is_some_and(|instance| {
                // Whoever reads one that nobody is subscribed to has it tried.
                instance.is_overdue
                    && instance.key.table == view
                    && !instance.subscribers.is_empty()
            })
        })
    }

    /// Tries failing views again, in the open transaction, until the time is over.
    pub fn retry(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        until: Instant,
        messages: &mut Vec<ViewMessage>,
    ) {
        loop {
            let now = host.instant();
            if now >= until || self.next_retry(now).is_none_or(|at| at > now) {
                return;
            }
            let Some(number) = self.failures.pop(now) else {
                return;
            };
            let instance = self.instances[number as usize].as_ref();
            if instance.is_some_and(|i| i.is_overdue && !i.subscribers.is_empty()) {
                self.evaluate(host, datastore, number, messages);
            }
        }
    }

    // ---- The whole database --------------------------------------------------------------------------------------------

    /// A new program takes over, in the open transaction: evaluates all instances that somebody uses.
    ///
    /// # Errors
    /// One of them fails that did not fail before. The caller rolls back, and calls [`rebuild`](Self::rebuild) with the old program.
    pub fn replace_program(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        messages: &mut Vec<ViewMessage>,
    ) -> Result<(), String> {
        self.runner = Runner::default();
        for number in 0..self.instances.len() as u32 {
            let Some(instance) = &self.instances[number as usize] else {
                continue;
            };
            let was_failing = instance.is_failing;
            if instance.subscribers.is_empty() {
                self.retire(datastore, number);
                continue;
            }
            self.evaluate(host, datastore, number, messages);
            let instance = self.instance(number);
            if instance.is_failing && !was_failing {
                let name = host.name(instance.key.table);
                return Err(format!("the new program's view `{name}` fails for those who are subscribed to it; the module's log says why [LC0331]"));
            }
        }
        Ok(())
    }

    /// Evaluates anew what somebody uses, in the open transaction: the tables are not what they were.
    pub fn rebuild(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        messages: &mut Vec<ViewMessage>,
    ) {
        self.runner = Runner::default();
        self.failures.resume_all();
        for number in 0..self.instances.len() as u32 {
            match &self.instances[number as usize] {
                None => {}
                Some(instance) if instance.subscribers.is_empty() => {
                    self.retire(datastore, number);
                }
                Some(_) => self.evaluate(host, datastore, number, messages),
            }
        }
    }

    /// Has the instance hear of the changes of its query's join. Without the indexes for that, it is evaluated again each time.
    fn add_join(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        mut query: Option<ViewQuery>,
    ) -> Option<ViewQuery> {
        let new = query.as_mut()?;
        if let Some(join) = new.join() {
            let added = self.joins.add(datastore, join, number, host.instant());
            if added.is_err() {
                new.give_up_join(datastore);
            }
        }
        query
    }

    fn set_reads(
        &mut self,
        datastore: &mut Datastore,
        number: u32,
        reads: ReadSet,
        query: Option<ViewQuery>,
    ) {
        let Views {
            instances,
            dependents,
            joins,
            ..
        } = self;
        let instance = instances[number as usize].as_mut();
        let instance = instance.expect("it is evaluated");
        let (call, of_query) = (Dependent::new(number, false), Dependent::new(number, true));
        if instance.reads != reads {
            dependents.remove(call, &instance.reads);
            dependents.add(call, &reads);
            instance.reads = reads;
        }
        if let Some(old) = &instance.query {
            dependents.remove(of_query, old.reads());
            if let Some(join) = old.join() {
                let new = query.as_ref().and_then(ViewQuery::join);
                joins.replace(datastore, (join, new), number);
            }
        }
        if let Some(new) = &query {
            dependents.add(of_query, new.reads());
        }
        instance.query = query;
    }

    /// Holds all indexes for joins again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        self.joins.hold_all_indexes(datastore);
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

/// A changed row, as it was and as it is.
#[derive(Clone, Copy)]
struct Row<'r> {
    old: Option<&'r [u8]>,
    new: Option<&'r [u8]>,
}

fn key_of(read: ViewRead, caller: Identity) -> InstanceKey {
    let instance = view_instance(read.view, &caller);
    InstanceKey {
        table: read.table,
        instance: instance[..].try_into().expect("a hash has 32 bytes"),
    }
}

/// Why the change of a view's join was not found.
fn too_many_partners(host: ViewHost<'_>) -> ViewError {
    let partners_max = host.shared.options.limits.join_partners_max;
    ViewError {
        reason: format!("a changed row had more than {partners_max} partners in its join, which limits.join-partners-max allows on average [LC0714]"),
        may_pass: true,
    }
}

/// What subscribers are told. Why it failed is for the module's owner: the reason may hold what others wrote.
fn failed_text(view: &str) -> String {
    format!("the view `{view}` failed: its last rows stand, and the subscription goes on; when the view works again, what has changed is sent [LC0331]")
}

fn error_message(
    connection: ConnectionNumber,
    query_set_id: u32,
    request_id: u32,
    text: &str,
) -> ViewMessage {
    let mut message = Vec::new();
    server::subscription_error(&mut message, Some(request_id), query_set_id, text);
    (connection, message)
}
