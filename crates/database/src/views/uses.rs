//! Who uses which instances: they are made for the first query that reads them, and kept for a while after the last.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::{Duration, Instant};

use lightcone_engine::Datastore;
use lightcone_query::view_instance;
use lightcone_table::ReadSet;
use lightcone_types::{Identity, TableId};
use rustc_hash::FxHashMap;

use super::host::{Evaluation, InstanceKey, ViewHost, ViewMessage, ViewRead, NO_ROWS};
use super::retries::{error_message, failed_text};
use super::{Instance, Queued, Subscriber, Unused, Views};
use crate::error::Refusal;
use crate::peer::{ConnectionNumber, SetKey};

/// Instances that are kept although they are not used; the oldest go first.
const UNUSED_INSTANCES_MAX: usize = 1024;
/// Those that were not used for so long go too.
const UNUSED_TIME_MAX: Duration = Duration::from_secs(600);

impl Views {
    /// Makes sure that the rows of these views are there for a caller, in the open transaction. A subscriber is about to hold them.
    ///
    /// # Errors
    /// There are too many instances.
    pub fn materialise(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        (caller, subscriber): (Identity, Option<ConnectionNumber>),
        reads: &[ViewRead],
    ) -> Result<(), Refusal> {
        self.check_client(evaluation.host, subscriber, reads)?;
        self.drop_unused(evaluation);
        let mut numbers = Vec::with_capacity(reads.len());
        let mut made = Ok(());
        for read in reads {
            match self.find_or_make(evaluation, caller, read) {
                Ok(number) => {
                    // Making the next one must not drop it.
                    self.set_used(number);
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
                self.bring_up(evaluation, number);
            }
            if self.instance(number).subscribers.is_empty() {
                self.set_unused(evaluation.host, number);
            }
        }
        made
    }

    /// Arguments make instances without end: a client's query sets, or one request, have so many with arguments.
    fn check_client(
        &self,
        host: ViewHost<'_>,
        client: Option<ConnectionNumber>,
        reads: &[ViewRead],
    ) -> Result<(), Refusal> {
        let new = reads.iter().filter(|read| read.arguments.is_some());
        let held = client.and_then(|client| self.of_clients.get(&client));
        let max = host.shared.options.limits.view_instances_per_connection_max;
        match new.count() {
            0 => Ok(()),
            new if new + held.unwrap_or(&0) <= max => Ok(()),
            _ => Err(Refusal(format!("the queries of one client may read views with arguments {max} times: unsubscribe from some, or raise limits.view-instances-per-connection-max [LC0715]"))),
        }
    }

    /// Evaluates an instance that is about to be read, unless its rows are good, or it is to wait.
    fn bring_up(&mut self, evaluation: &mut Evaluation<'_>, number: u32) {
        let now = evaluation.host.instant();
        let instance = self.instance(number);
        let (is_live, is_overdue, view) =
            (instance.is_live, instance.is_overdue, instance.key.table);
        let may_begin = !is_live && self.failures.may_begin(view, now);
        if may_begin || (is_overdue && self.failures.may_retry(view, now)) {
            self.evaluate(evaluation, number);
            return;
        }
        if !is_live {
            self.instance_mut(number).is_live = true;
            self.wait(evaluation, number);
        }
    }

    /// Counts a query set that reads these views, which are materialised. Returns what its client is to be told.
    pub fn subscribe(
        &mut self,
        host: ViewHost<'_>,
        caller: Identity,
        reads: &[ViewRead],
        set: SetKey,
        request_id: u32,
    ) -> Vec<ViewMessage> {
        let mut messages = Vec::new();
        for read in reads {
            let Some(&number) = self.by_key.get(&key_of(read, caller)) else {
                continue;
            };
            self.set_used(number);
            if read.arguments.is_some() {
                *self.of_clients.entry(set.connection).or_default() += 1;
            }
            let instance = self.instance_mut(number);
            let subscriber = instance.subscribers.entry(set).or_insert(Subscriber {
                request_id,
                queries: 0,
            });
            subscriber.queries += 1;
            if instance.is_overdue && instance.subscribers.len() == 1 {
                // It was not waited for before.
                self.failures.push(read.table, number);
            }
            let instance = self.instance(number);
            let subscriber = &instance.subscribers[&set];
            if instance.is_failing && subscriber.queries == 1 {
                let text = failed_text(&host.name(read.table));
                messages.push(error_message(set, request_id, &text));
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
        set: SetKey,
    ) {
        for read in reads {
            let Some(&number) = self.by_key.get(&key_of(read, caller)) else {
                continue;
            };
            let subscribers = &mut self.instance_mut(number).subscribers;
            let Some(subscriber) = subscribers.get_mut(&set) else {
                continue;
            };
            subscriber.queries -= 1;
            if subscriber.queries == 0 {
                subscribers.remove(&set);
                if subscribers.is_empty() {
                    self.set_unused(host, number);
                }
            }
            if read.arguments.is_some() {
                count_down(&mut self.of_clients, set.connection);
            }
        }
    }

    fn find_or_make(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        caller: Identity,
        read: &ViewRead,
    ) -> Result<u32, Refusal> {
        let limits = &evaluation.host.shared.options.limits;
        let key = key_of(read, caller);
        if let Some(&number) = self.by_key.get(&key) {
            return Ok(number);
        }
        if read.arguments.is_some() {
            let max = limits.view_instances_per_view_max;
            while self.of_views.get(&read.table).is_some_and(|of| *of >= max) {
                if !self.drop_oldest_unused(evaluation.datastore, Some(read.table)) {
                    return Err(Refusal(format!("all {max} instances of one view with arguments that there may be are in use; raise limits.view-instances-per-view-max [LC0715]")));
                }
            }
        }
        let instances_max = limits.view_instances_max;
        while self.by_key.len() >= instances_max {
            if !self.drop_oldest_unused(evaluation.datastore, None) {
                return Err(Refusal(format!("all {instances_max} instances of views that there may be are in use; raise limits.view-instances-max [LC0715]")));
            }
        }
        let bytes_max = limits.views_bytes_max;
        while self.bytes > bytes_max {
            if !self.drop_oldest_unused(evaluation.datastore, None) {
                return Err(Refusal(format!("the rows of all views have {} bytes, and limits.views-bytes-max is {bytes_max} [LC0715]", self.bytes)));
            }
        }
        let instance = Instance {
            key,
            sender: (!read.view.is_anonymous).then_some(caller),
            arguments: read.arguments.clone(),
            is_live: false,
            reads: ReadSet::default(),
            query: None,
            subscribers: FxHashMap::default(),
            is_failing: false,
            is_overdue: false,
            queued: Queued::No,
            unused_turn: 0,
            bytes: 0,
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
        if read.arguments.is_some() {
            *self.of_views.entry(read.table).or_default() += 1;
        }
        self.set_bytes(number, 0);
        Ok(number)
    }

    fn set_unused(&mut self, host: ViewHost<'_>, number: u32) {
        self.set_used(number);
        self.unused_turns += 1;
        let (turn, since) = (self.unused_turns, host.instant());
        self.instance_mut(number).unused_turn = turn;
        self.unused.insert(turn, Unused { number, since });
    }

    pub(super) fn set_bytes(&mut self, number: u32, of_rows: usize) {
        let instance = self.instance_mut(number);
        let bytes = of_rows + instance.arguments.as_ref().map_or(0, |given| given.len());
        let before = std::mem::replace(&mut instance.bytes, bytes);
        self.bytes = self.bytes - before + bytes;
    }

    fn set_used(&mut self, number: u32) {
        let turn = std::mem::take(&mut self.instance_mut(number).unused_turn);
        self.unused.remove(&turn);
    }

    /// Instances that were read lately and have no subscriber, the last ones first, and whether each fails.
    pub(super) fn unused_lately(&self, now: Instant) -> Vec<(u32, bool)> {
        let last = self.unused.values().rev();
        let lately =
            last.take_while(|unused| now.saturating_duration_since(unused.since) < UNUSED_TIME_MAX);
        let known = lately.map(|unused| (unused.number, self.instance(unused.number).is_failing));
        known.collect()
    }

    /// Drops unused instances that are too many or too old, in the open transaction.
    fn drop_unused(&mut self, evaluation: &mut Evaluation<'_>) {
        let now = evaluation.host.instant();
        while let Some((_, oldest)) = self.unused.first_key_value() {
            let is_old = now.saturating_duration_since(oldest.since) >= UNUSED_TIME_MAX;
            if !is_old && self.unused.len() <= UNUSED_INSTANCES_MAX {
                break;
            }
            self.drop_oldest_unused(evaluation.datastore, None);
        }
    }

    /// Drops an unused instance: of a view, or of any. False: there is none.
    fn drop_oldest_unused(&mut self, datastore: &mut Datastore, of: Option<TableId>) -> bool {
        let is_of = |number: u32| of.is_none_or(|view| self.instance(number).key.table == view);
        let oldest = self.unused.iter().find(|(_, unused)| is_of(unused.number));
        let Some((turn, number)) = oldest.map(|(turn, unused)| (*turn, unused.number)) else {
            return false;
        };
        self.unused.remove(&turn);
        self.retire(datastore, number);
        if let Some(instance) = self.instances[number as usize].take() {
            self.by_key.remove(&instance.key);
            self.bytes -= instance.bytes;
            if instance.arguments.is_some() {
                count_down(&mut self.of_views, instance.key.table);
            }
            self.free.push(number);
        }
        true
    }

    /// The instance is not used: its rows go, and it hears of no change.
    pub(super) fn retire(&mut self, datastore: &mut Datastore, number: u32) {
        self.set_reads(datastore, number, ReadSet::default(), None);
        // Also if it is not live: rows that went with a program whose transaction was taken back are there again. Those that do
        // not fit into the transaction any more stay; no query sees them, and the next evaluation replaces them.
        let InstanceKey { table, instance } = self.instance(number).key;
        let changes = datastore.change_count();
        let _ = datastore.replace_view_rows(table, &instance, NO_ROWS);
        self.note_changes(datastore, table, changes);
        self.set_bytes(number, 0);
        let instance = self.instance_mut(number);
        instance.is_live = false;
        (instance.is_failing, instance.is_overdue) = (false, false);
    }
}

fn count_down<K: Hash + Eq>(counts: &mut FxHashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

fn key_of(read: &ViewRead, caller: Identity) -> InstanceKey {
    let instance = view_instance(read.view, &read.arguments, &caller);
    InstanceKey {
        table: read.table,
        instance: instance[..].try_into().expect("a hash has 32 bytes"),
    }
}
