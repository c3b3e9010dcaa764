//! What a transaction changes: the instances that it concerns are brought up to date before it ends.

use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_host::ConsoleLevel;
use lightcone_live::{Asker, Dependent, Holder};
use lightcone_table::{CurrentTables, DeltaBatch, DeltaKind, ReadSet};
use lightcone_types::TableId;

use super::changes::Changed;
use super::failures::ViewError;
use super::host::{ViewHost, ViewMessage};
use super::query::{self, JoinKey, ViewQuery};
use super::{Queued, Views};

impl Views {
    /// In a sealed transaction: brings what its changes concern up to date.
    pub fn refresh(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        changed: Changed<'_>,
        messages: &mut Vec<ViewMessage>,
    ) {
        let started = host.instant();
        self.failures.begin_refresh();
        self.find_concerned(datastore, &changed);
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
                self.change_query(host, datastore, (number, queued), changed.deltas, messages);
            }
        }
        self.concerned = concerned;
        self.concerned.clear();
        self.listed.clear();
    }

    fn find_concerned(&mut self, datastore: &Datastore, changed: &Changed<'_>) {
        let Views {
            dependents,
            joins,
            looked,
            instances,
            concerned,
            listed,
            ..
        } = self;
        let mut queue = |number: u32, how: Queued| {
            let instance = instances[number as usize].as_mut();
            let instance = instance.expect("dependents, and those with a join, are live instances");
            if instance.queued == Queued::No {
                concerned.push(number);
            }
            if instance.queued < how {
                instance.queued = how;
            }
        };
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
        for of_shape in deltas
            .ops(place..deltas.position())
            .chunk_by(|a, b| a.table == b.table)
        {
            let start = place;
            place += of_shape.len();
            if !joins.is_of_instances(of_shape[0].table) {
                continue;
            }
            for (op, place) in of_shape.iter().zip(start..) {
                for number in joins.instances_of_key(op.table, deltas.key(op)) {
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
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        messages: &mut Vec<ViewMessage>,
    ) -> Option<String> {
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
            let query = self.prepare(host, datastore, number, query);
            self.set_reads(datastore, number, reads, query);
        }
        let failure = result.as_ref().err().map(|error| error.reason.clone());
        self.evaluated(host, number, started, result, messages);
        failure
    }

    /// Brings the rows of an instance up to date whose query's tables have changed.
    fn change_query(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        (number, queued): (u32, Queued),
        deltas: &DeltaBatch,
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
        let result = match queued {
            Queued::Rows => query.change(host, datastore, rows, self.listed.of(number, deltas)),
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

    /// Has the instance hear of the changes of its query's join. Without the indexes for that, it is evaluated again each time. An
    /// index for a window is held, too.
    fn prepare(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        number: u32,
        mut query: Option<ViewQuery>,
    ) -> Option<ViewQuery> {
        let new = query.as_mut()?;
        let now = host.instant();
        if let Some((shape, key)) = new.join() {
            let shapes = std::iter::once(&**shape);
            match self.joins.may_add(datastore, shapes, Asker::Module, now) {
                Ok(()) => {
                    let holder = Holder::Instance(number);
                    self.joins.add(datastore, (shape, key), holder);
                }
                Err(_) => new.give_up_join(),
            }
        }
        new.hold_index(datastore, &mut self.building, now);
        query
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
            if let Some((table, column)) = old.held_index() {
                datastore.release_index(table, column);
            }
            tables.extend(old.read_tables());
            dependents.remove(of_query, old.reads());
            let new = query.as_ref().and_then(ViewQuery::join);
            let is_other = |old: &JoinKey<'_>| new.is_none_or(|new| !is_same(*old, new));
            if let Some(join) = old.join().filter(is_other) {
                joins.remove(datastore, join, Holder::Instance(number));
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
            datastore.set_read(table, is_joined || self.dependents.has_table(table));
        }
    }
}

fn is_same(one: JoinKey<'_>, other: JoinKey<'_>) -> bool {
    one.0.id == other.0.id && one.1 == other.1
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
