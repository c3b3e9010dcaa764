//! What a transaction changes: the instances that it concerns are brought up to date before it ends.

use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_host::ConsoleLevel;
use lightcone_live::Dependent;
use lightcone_table::{DeltaBatch, DeltaKind, ReadSet};
use lightcone_types::TableId;

use super::changes::Changed;
use super::failures::ViewError;
use super::host::{Evaluation, ViewHost};
use super::query::{self, Listener, ViewQuery};
use super::runner::Returned;
use super::{Instance, Queued, Views};

/// A function that reads rows of views runs again when these change: so often in a transaction. Then it waits.
const ROUNDS_MAX: usize = 8;

impl Views {
    /// In a sealed transaction: brings what its changes concern up to date.
    pub fn refresh(&mut self, evaluation: &mut Evaluation<'_>, changed: &Changed<'_>) {
        self.failures.begin_refresh();
        self.find_concerned(evaluation.datastore, changed);
        for _ in 0..ROUNDS_MAX {
            self.bring_up_concerned(evaluation, changed.deltas);
            self.find_readers_of_views();
            if self.concerned.is_empty() {
                break;
            }
        }
        for number in std::mem::take(&mut self.concerned) {
            let instance = self.instance_mut(number);
            instance.queued = Queued::No;
            if instance.is_failing {
                self.try_later(number);
            } else {
                self.wait(evaluation, number);
            }
        }
        self.listed.clear();
    }

    fn bring_up_concerned(&mut self, evaluation: &mut Evaluation<'_>, deltas: &DeltaBatch) {
        let started = evaluation.host.instant();
        let concerned = std::mem::take(&mut self.concerned);
        let mut told_of = None;
        for &number in &concerned {
            let queued = std::mem::take(&mut self.instance_mut(number).queued);
            let instance = self.instance(number);
            if instance.subscribers.is_empty() {
                self.retire(evaluation.datastore, number);
            } else if instance.is_failing {
                self.retry_or_wait(evaluation, number);
            } else if self.failures.have_taken_long(instance.key.table) {
                self.wait(evaluation, number);
            } else if queued == Queued::Call {
                self.evaluate(evaluation, number);
            } else if queued == Queued::TooMuch && told_of != Some(instance.key.table) {
                told_of = Some(instance.key.table);
                let error = too_many_partners(evaluation.host);
                self.evaluated(evaluation, number, started, Err(error));
            } else if queued == Queued::TooMuch {
                self.wait(evaluation, number);
            } else {
                self.change_query(evaluation, number, queued, deltas);
            }
        }
        self.concerned = concerned;
        self.concerned.clear();
    }

    /// Functions have read rows of views that have changed: these run again.
    fn find_readers_of_views(&mut self) {
        let changed = std::mem::take(&mut self.changed_views);
        let readers = changed
            .iter()
            .flat_map(|view| self.dependents.of_whole(*view));
        for reader in readers {
            let queue = (&mut self.instances[..], &mut self.concerned);
            enqueue(queue, reader.instance(), Queued::Call);
        }
    }

    fn find_concerned(&mut self, datastore: &mut Datastore, changed: &Changed<'_>) {
        let Views {
            dependents,
            joins,
            windows,
            looked,
            instances,
            concerned,
            listed,
            ..
        } = self;
        let mut queue =
            |number: u32, how| enqueue((&mut instances[..], &mut *concerned), number, how);
        let deltas = changed.deltas;
        let mut place = changed.tables.start;
        let of_tables = deltas.ops(changed.tables.clone());
        for of_table in of_tables.chunk_by(|a, b| a.table == b.table) {
            let start = place;
            place += of_table.len();
            let table = datastore.table(of_table[0].table);
            // Rows of event tables are gone when the transaction ends: views see these tables empty (02 §10.2).
            let table = table.filter(|table| !table.schema.is_event);
            let Some(table) = table.filter(|table| dependents.has_table(table.schema.id)) else {
                continue;
            };
            for (op, place) in of_table.iter().zip(start..) {
                let row = (deltas.row(op), op.kind == DeltaKind::Insert);
                dependents.concerned_by(looked, table, row, |dependent| {
                    let number = dependent.instance();
                    let how = match dependent.is_query() {
                        false => Queued::Call,
                        true if listed.push(number, place) => Queued::Rows,
                        true => Queued::Query,
                    };
                    queue(number, how);
                });
            }
        }
        dependents.concerned_by_counts(looked, |dependent| {
            let how = match dependent.is_query() {
                true => Queued::Query,
                false => Queued::Call,
            };
            queue(dependent.instance(), how);
        });
        for shape in changed.failed_joins {
            let failed = joins.instances_of(*shape);
            failed.for_each(|number| queue(number, Queued::TooMuch));
        }
        for number in windows.drop_failed(datastore) {
            queue(number, Queued::Query);
        }
        for of_shape in deltas
            .ops(place..deltas.position())
            .chunk_by(|a, b| a.table == b.table)
        {
            let start = place;
            place += of_shape.len();
            for (op, place) in of_shape.iter().zip(start..) {
                let (shape, key) = (op.table, deltas.key(op));
                let of_join = joins.instances_of_key(shape, key);
                for number in of_join.chain(windows.instances_of_key(shape, key)) {
                    listed.push_found(number, place);
                    queue(number, Queued::Rows);
                }
            }
        }
        listed.sort();
    }

    /// Evaluates an instance by calling its function, in the open transaction. Says why that failed, if it did.
    pub(super) fn evaluate(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        number: u32,
    ) -> Option<String> {
        let host = evaluation.host;
        let started = host.instant();
        let instance = self.instance(number);
        let (key, sender) = (instance.key, instance.sender);
        let arguments = instance.arguments.clone();
        let mut reads = ReadSet::default();
        let changes = evaluation.datastore.change_count();
        let runner = &mut self.runner;
        let returned = runner.call(evaluation, key.table, (sender, &arguments), &mut reads);
        let mut bytes = 0;
        let (query, result) = match returned {
            Ok(returned) => {
                if let Returned::Rows(rows) = &returned {
                    bytes = rows.len();
                }
                let listener = &mut self.listener(number);
                query::store(evaluation, listener, (sender, returned))
            }
            Err(error) => (None, Err(error)),
        };
        let is_live = std::mem::replace(&mut self.instance_mut(number).is_live, true);
        self.note_changes(evaluation.datastore, key.table, changes);
        // Of views, it is only known which ones have changed.
        let read = reads.tables().map(|(table, _)| table);
        let views = read.filter(|table| host.module.views.contains_key(table));
        let views: Vec<TableId> = views.collect();
        views.into_iter().for_each(|view| reads.table(view));
        // An evaluation that was stopped has not read all that matters.
        let was_stopped = result.as_ref().is_err_and(|error| error.may_pass);
        if !(is_live && was_stopped) {
            self.set_reads(evaluation.datastore, number, reads, query);
        }
        if result.is_ok() {
            let query = self.instance(number).query.as_ref();
            self.set_bytes(number, query.map_or(bytes, ViewQuery::bytes));
        }
        let failure = result.as_ref().err().map(|error| error.reason.clone());
        self.evaluated(evaluation, number, started, result);
        failure
    }

    /// Brings the rows of an instance up to date whose query's tables have changed.
    fn change_query(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        number: u32,
        queued: Queued,
        deltas: &DeltaBatch,
    ) {
        let started = evaluation.host.instant();
        let instance = self.instance_mut(number);
        let table = instance.key.table;
        let Some(mut query) = instance.query.take() else {
            return;
        };
        let listed = self.listed.of(number, deltas);
        let changes = evaluation.datastore.change_count();
        let (heard, listener) = (query.hears(), &mut self.listener(number));
        let result = match queued {
            Queued::Rows => query.change(evaluation, listener, listed),
            _ => query.evaluate(evaluation, listener),
        };
        self.note_changes(evaluation.datastore, table, changes);
        if heard && !query.hears() {
            let of_query = Dependent::new(number, true);
            self.dependents.add(of_query, query.reads());
            self.watch(evaluation.datastore, query.read_tables().collect());
        }
        if result.is_ok() {
            self.set_bytes(number, query.bytes());
        }
        self.instance_mut(number).query = Some(query);
        self.evaluated(evaluation, number, started, result);
    }

    /// Indexes that are wanted on a table are there, or may be built again: queries without them are evaluated again, and are kept
    /// up to date from then on.
    pub fn try_indexes_again(&mut self, table: TableId) {
        for (number, instance) in (0..).zip(&mut self.instances) {
            let Some(instance) = instance.as_mut() else {
                continue;
            };
            let query = instance.query.as_ref();
            if query.is_some_and(|query| query.wants_index_on(table)) {
                instance.is_overdue = true;
                self.failures.push(instance.key.table, number);
            }
        }
    }

    /// Notes whether rows of a view have changed since there were so many changes.
    pub(super) fn note_changes(&mut self, datastore: &Datastore, view: TableId, before: usize) {
        if datastore.change_count() != before && self.dependents.has_table(view) {
            self.changed_views.insert(view);
        }
    }

    /// Notes how an evaluation ended. Who subscribes to the instance is told when it begins to fail.
    fn evaluated(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        number: u32,
        started: Instant,
        result: Result<(), ViewError>,
    ) {
        let host = evaluation.host;
        host.count(self.instance(number).key.table, started, &result);
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
        let Err(ViewError {
            reason, may_pass, ..
        }) = result
        else {
            if was_failing {
                let text = format!("the view `{name}` works again");
                log.host(ConsoleLevel::Info, Some(&name), &text, time);
            }
            return;
        };
        let took = now.saturating_duration_since(started);
        let (view, is_subscribed) = (instance.key.table, !instance.subscribers.is_empty());
        // Anyone may choose arguments that a view fails for: that must not keep those with others from their first rows.
        let is_chosen = instance.arguments.is_some() && !is_subscribed;
        if !is_chosen {
            self.failures.failed(view, took, is_subscribed, now);
        }
        if may_pass {
            self.failures.push(view, number);
        }
        if was_failing {
            return;
        }
        self.tell_subscribers(evaluation, number);
        let database = host.shared.options.identity;
        if !is_chosen {
            tracing::warn!(%database, view = %name, reason, "a view failed");
        }
        let text = format!("Error materializing view `{name}`: {reason}; its last rows stand until it works again [LC0331]");
        log.host(ConsoleLevel::Error, Some(&name), &text, time);
    }

    pub(super) fn set_reads(
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
            windows,
            indexes,
            ..
        } = self;
        let instance = instances[number as usize].as_mut();
        let instance = instance.expect("it is evaluated");
        let (call, of_query) = (Dependent::new(number, false), Dependent::new(number, true));
        let mut tables: Vec<TableId> = Vec::new();
        if instance.reads != reads {
            tables.extend(
                instance
                    .reads
                    .tables()
                    .chain(reads.tables())
                    .map(|read| read.0),
            );
            dependents.remove(call, &instance.reads);
            dependents.add(call, &reads);
            instance.reads = reads;
        }
        if let Some(old) = &instance.query {
            tables.extend(old.read_tables());
            dependents.remove(of_query, old.reads());
            if query.as_ref().is_none_or(|new| !new.hears_as(old)) {
                let listener = &mut Listener {
                    instance: number,
                    key: instance.key,
                    joins,
                    windows,
                    indexes,
                };
                old.end_listening(datastore, listener);
            }
        }
        if let Some(new) = &query {
            tables.extend(new.read_tables());
            dependents.add(of_query, new.reads());
        }
        instance.query = query;
        self.watch(datastore, tables);
    }

    /// Asks for the changes of those of these tables that instances read.
    pub fn watch(&self, datastore: &mut Datastore, tables: Vec<TableId>) {
        for table in tables {
            let is_joined = self.joins.has_table_of_instances(table);
            let is_read = is_joined || self.windows.reads(table);
            datastore.set_read(table, is_read || self.dependents.has_table(table));
        }
    }
}

/// An instance is to be brought up to date, at least like this.
fn enqueue(
    (instances, concerned): (&mut [Option<Instance>], &mut Vec<u32>),
    number: u32,
    how: Queued,
) {
    let instance = instances[number as usize].as_mut();
    let instance =
        instance.expect("dependents, and those with a join or window, are live instances");
    if instance.queued == Queued::No {
        concerned.push(number);
    }
    if instance.queued < how {
        instance.queued = how;
    }
}

/// Why the change of a view's join was not found.
fn too_many_partners(host: ViewHost<'_>) -> ViewError {
    let partners_max = host.shared.options.limits.join_partners_max;
    ViewError {
        reason: format!("a transaction changed too much in its join (limits.join-partners-max allows {partners_max} partners for each changed row on average, and a transaction has a limit in all) [LC0714]"),
        may_pass: true,
        ran_too_long: false,
    }
}
