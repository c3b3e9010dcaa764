//! Commit: from the undo log to the net change, its log record and its deltas.

use lightcone_table::{DeltaBatch, DeltaKind, RowId, Table};
use lightcone_types::TableId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::catalog::sequence_row;
use crate::datastore::Datastore;
use crate::error::{DatastoreError, Result};
use crate::record::{put_group, put_group_head, put_varint, GroupKind, TRANSACTION};
use crate::schedule::ScheduleChange;
use crate::system::ST_SEQUENCE_ID;
use crate::table_state::{TableSlot, TableState};
use crate::transaction::{Change, ChangeKind, NetChange, NetKind, RECORD_ROOM_BYTES};

/// Where commits put their results; reused from batch to batch.
#[derive(Default)]
pub struct CommitOutput {
    /// Log records, one per transaction that changed something.
    pub records: Vec<u8>,
    /// Rows that subscribers of watched tables must see.
    pub deltas: DeltaBatch,
    /// What changed in schedule tables, in order.
    pub schedules: Vec<ScheduleChange>,
    /// Streams of outbox tables that messages came to, or went from.
    pub outbound: Vec<u64>,
    net: Vec<NetChange>,
    group: Vec<u8>,
}

impl CommitOutput {
    pub fn clear(&mut self) {
        self.records.clear();
        self.deltas.clear();
        self.schedules.clear();
        self.outbound.clear();
    }
}

/// Up to so many changes the net effect is found by comparing all with all.
const SMALL_CHANGES: usize = 16;
/// Up to so many delete-insert pairs of one table are compared directly.
const SMALL_PAIRS: usize = 64;

impl Datastore {
    /// [`seal`](Self::seal) and [`finish`](Self::finish), where nothing live stands between.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub fn commit(&mut self, out: &mut CommitOutput) -> Result<bool> {
        let has_record = self.seal(out)?;
        self.finish(out);
        Ok(has_record)
    }

    /// Writes the record of the open transaction, and its net change but for the rows of views. From now on only these may change, and
    /// [`finish`](Self::finish) has to follow. Returns whether there is a record: not if it had no net effect on other rows.
    ///
    /// # Errors
    /// Its record is too large for the log. It is undone then, and `out` is as before.
    pub fn seal(&mut self, out: &mut CommitOutput) -> Result<bool> {
        assert!(self.transaction.open, "an open transaction is sealed");
        if self.has_outboxes && !self.transaction.is_repeated {
            let numbered = self.number_outbox_rows(&mut out.outbound);
            numbered.inspect_err(|_| self.rollback())?;
        }
        self.save_sequences();
        let start = out.records.len();
        let has_record = match self.has_schema_changes() {
            true => {
                self.write_sealed_record(out);
                true
            }
            false => self.write_net_record(out),
        };
        if let Err(error) = self.require_record_fits(out.records.len() - start) {
            out.records.truncate(start);
            out.records.shrink_to(1 << 20);
            self.rollback();
            // They may be what is too much. The next transaction that draws from them saves them.
            self.forget_unsaved_sequences(false);
            return Err(error);
        }
        self.tell_changes(out);
        self.forget_unsaved_sequences(true);
        Ok(has_record)
    }

    /// Ends the sealed transaction. The net change of views' rows comes behind that of other tables.
    pub fn finish(&mut self, out: &mut CommitOutput) {
        if self.transaction.has_view_changes {
            out.net.clear();
            self.net_change_of(&mut out.net, TableState::is_view);
            self.tell_changes(out);
        }
        if self.has_schema_changes() {
            // Of tables that are not watched, only how many rows there are now is noted.
            self.states().for_each(TableState::count_rows);
        }
        out.net.shrink_to(1 << 16);
        self.transaction.reset();
    }

    /// The record of a transaction of rows, if it has one, and its net change.
    fn write_net_record(&self, out: &mut CommitOutput) -> bool {
        out.net.clear();
        if self.write_replacements(out) {
            return true;
        }
        match self.transaction.has_view_changes {
            false => self.collect_net(&self.transaction.changes, &mut out.net),
            true => self.net_change_of(&mut out.net, |state| !state.is_view()),
        }
        let has_record = !out.net.is_empty();
        if has_record {
            self.write_record(out);
        }
        has_record
    }

    /// The record of a transaction that has replaced rows of one unwatched table, each once: most transactions are
    /// like that, and this does nothing but what they need. False: it is another one, and nothing is done.
    #[inline]
    fn write_replacements(&self, out: &mut CommitOutput) -> bool {
        let (transaction, records) = (&self.transaction, &mut out.records);
        let changes = &transaction.changes[..];
        let (Some(first), true) = (changes.first(), changes.len() <= SMALL_CHANGES) else {
            return false;
        };
        let state = self.at(first.slot);
        let (table, layout) = (&state.table, state.table.layout());
        let (Some(row_bytes), Some(position), false) = (
            layout.fixed_size(),
            table.identity_position(),
            state.is_told() || state.is_view(),
        ) else {
            return false;
        };
        let index = &table.indexes()[position];
        let start = records.len();
        records.push(TRANSACTION);
        put_varint(records, 1);
        let (kind, count) = ((GroupKind::Put, position), changes.len());
        put_group_head(records, table.schema.id, kind, count, count * row_bytes);
        for (place, change) in changes.iter().enumerate() {
            let is_first = change.kind == ChangeKind::Replace
                && change.slot == first.slot
                && changes[..place].iter().all(|each| each.row != change.row);
            let rows = is_first.then(|| (transaction.old(change.old), table.row(change.row)));
            match rows {
                Some((old, new)) if old != new && index.same_key(layout, old, new) => {
                    records.extend_from_slice(new);
                }
                _ => {
                    records.truncate(start);
                    return false;
                }
            }
        }
        self.count_changes_of(first.slot, count as u64, count as u64);
        true
    }

    /// The record of a transaction that has changed tables, with rows and tables in the order in which it changed them, and the net
    /// change of watched tables.
    #[cold]
    fn write_sealed_record(&mut self, out: &mut CommitOutput) {
        self.seal_rows();
        let sealed = &self.transaction.sealed;
        out.records.push(TRANSACTION);
        put_varint(&mut out.records, sealed.group_count as u64);
        out.records.extend_from_slice(&sealed.groups);
        out.net.clear();
        self.net_change_of(&mut out.net, |state| !state.is_view() && state.is_told());
    }

    fn require_record_fits(&self, bytes: usize) -> Result<()> {
        let bytes_max = self.transaction_bytes_max + RECORD_ROOM_BYTES;
        match bytes > bytes_max && !self.transaction.is_repeated {
            true => Err(DatastoreError::RecordTooLarge { bytes, bytes_max }),
            false => Ok(()),
        }
    }

    /// Puts the net change to where subscribers, schedules and metrics look for it.
    fn tell_changes(&mut self, out: &mut CommitOutput) {
        if out.net.is_empty() {
            return;
        }
        self.write_deltas(out);
        if self.has_schedules {
            self.write_schedules(out);
        }
        self.empty_event_tables(&out.net);
        self.count_net_changes(&out.net);
    }

    /// What the open transaction has changed in the tables that there are now.
    fn net_change(&self, net: &mut Vec<NetChange>) {
        let changes = &self.transaction.changes;
        if !self.has_schema_changes() {
            return self.collect_net(changes, net);
        }
        self.net_change_of(net, |_| true);
    }

    /// The same of some of these tables.
    pub(crate) fn net_change_of(
        &self,
        net: &mut Vec<NetChange>,
        is_wanted: impl Fn(&TableState) -> bool,
    ) {
        let changes = self.transaction.changes.iter();
        let is_there = |change: &&Change| {
            let state = self.tables[change.slot.index()].as_ref();
            state.is_some_and(&is_wanted)
        };
        let changes: Vec<Change> = changes.filter(is_there).copied().collect();
        self.collect_net(&changes, net);
    }

    /// What the open transaction has changed in the tables that `is_wanted` names: calls `visit` with each row that went, came, or
    /// was replaced, as it was and as it is.
    pub fn for_each_net_change(
        &mut self,
        is_wanted: impl Fn(TableId) -> bool,
        mut visit: impl FnMut(&Table, Option<&[u8]>, Option<&[u8]>),
    ) {
        let is_wanted_at = |slot: TableSlot| {
            let state = self.tables[slot.index()].as_ref();
            state.is_some_and(|state| is_wanted(state.table.schema.id))
        };
        let changes = &self.transaction.changes;
        if !changes.iter().any(|change| is_wanted_at(change.slot)) {
            return;
        }
        let mut net = std::mem::take(&mut self.transaction.net);
        self.net_change(&mut net);
        for item in net.iter().filter(|item| is_wanted(item.table)) {
            let table = &self.at(item.slot).table;
            let old = (item.kind != NetKind::Insert).then(|| self.transaction.old(item.old));
            let new = (item.kind != NetKind::Delete).then(|| table.row(item.new));
            visit(table, old, new);
        }
        net.clear();
        net.shrink_to(1 << 16);
        self.transaction.net = net;
    }

    /// The next commit saves the sequences of a table, which have reserved values.
    pub(crate) fn save_sequences_of(&mut self, slot: TableSlot) {
        if let Some(state) = &mut self.tables[slot.index()] {
            self.transaction.save_sequences_of(slot, state);
        }
    }

    /// Rewrites the catalog rows of sequences that have issued values and reserved some since they were last saved. They count as
    /// saved when the transaction is committed.
    fn save_sequences(&mut self) {
        if self.transaction.unsaved_sequences.is_empty() {
            return;
        }
        let slot = self.slot(ST_SEQUENCE_ID).expect("system tables exist");
        let index = self.at(slot).table.schema.indexes[0].id;
        // A value that was issued and not reserved would be issued again: that must not depend on the size limit.
        let bytes_max = std::mem::replace(&mut self.transaction_bytes_max, usize::MAX);
        // Saving one sequence never draws from another: rows are updated, not inserted.
        let slots = std::mem::take(&mut self.transaction.unsaved_sequences);
        for slot in &slots {
            let Some(state) = &self.tables[slot.index()] else {
                continue;
            };
            let id = state.table.schema.id;
            let unsaved = state.sequences.iter().filter(|sequence| sequence.unsaved);
            let rows: Vec<_> = unsaved
                .map(|sequence| sequence_row(id, &sequence.schema, sequence.allocated))
                .collect();
            for row in rows {
                // During bootstrap the row may not be there yet; it is written with the same value then.
                let _ = self.update(ST_SEQUENCE_ID, index, &row, &mut Vec::new());
            }
        }
        self.transaction.unsaved_sequences = slots;
        self.transaction_bytes_max = bytes_max;
    }

    /// No table waits to have its sequences saved any more: they are saved, or the next transaction that draws from them saves them.
    fn forget_unsaved_sequences(&mut self, are_saved: bool) {
        for slot in self.transaction.unsaved_sequences.drain(..) {
            // None: it was made in a transaction that is undone, or dropped.
            let Some(state) = &mut self.tables[slot.index()] else {
                continue;
            };
            state.is_saving_sequences = false;
            for sequence in &mut state.sequences {
                sequence.unsaved &= !are_saved;
            }
        }
    }

    /// The net effect of some changes, one behind the other, sorted by tables and kinds.
    pub(crate) fn collect_net(&self, changes: &[Change], net: &mut Vec<NetChange>) {
        let transaction = &self.transaction;
        // A migration function mostly inserts, after the catalog was changed in other ways.
        let is_insert = |change: &Change| change.kind == ChangeKind::Insert;
        let only_inserts = transaction.only_inserts
            || (changes.len() > SMALL_CHANGES && changes.iter().all(is_insert));
        if only_inserts {
            let inserted = changes.iter();
            let inserted = inserted.map(|change| self.net_of(change, ChangeKind::Insert));
            net.extend(inserted.map(|n| n.expect("an inserted row is a net insert")));
        } else if changes.len() <= SMALL_CHANGES {
            for (position, first) in changes.iter().enumerate() {
                let same = |other: &&Change| other.slot == first.slot && other.row == first.row;
                if !changes[..position].iter().any(|other| same(&other)) {
                    let last = changes[position..].iter().rev().find(same);
                    let last = last.expect("the change itself");
                    net.extend(self.net_of(first, last.kind));
                }
            }
        } else {
            let mut last_kinds: FxHashMap<(TableSlot, RowId), ChangeKind> = FxHashMap::default();
            for change in changes {
                last_kinds.insert((change.slot, change.row), change.kind);
            }
            for change in changes {
                if let Some(last) = last_kinds.remove(&(change.slot, change.row)) {
                    net.extend(self.net_of(change, last));
                }
            }
        }
        if !net.is_sorted_by_key(|n| (n.table, n.kind)) {
            net.sort_by_key(|n| (n.table, n.kind));
        }
        if !only_inserts {
            self.cancel_moved_rows(net);
        }
    }

    /// The net change of a row whose first change in the transaction is `first`.
    fn net_of(&self, first: &Change, last: ChangeKind) -> Option<NetChange> {
        let table = &self.at(first.slot).table;
        let existed = first.kind != ChangeKind::Insert;
        let exists = last != ChangeKind::Delete;
        let kind = match (existed, exists) {
            (false, false) => return None,
            (false, true) => NetKind::Insert,
            (true, false) => NetKind::Delete,
            (true, true) => {
                let (old, new) = (self.transaction.old(first.old), table.row(first.row));
                if old == new {
                    return None;
                }
                NetKind::Put
            }
        };
        Some(NetChange {
            slot: first.slot,
            table: table.schema.id,
            kind,
            new: first.row,
            old: first.old,
        })
    }

    /// A row deleted at one place and inserted unchanged at another did not change (05 §7.4).
    ///
    /// Puts that keep their key cannot take part: a unique key is at one place only. Other puts become a delete and an
    /// insert first, because the log identifies a put by its key.
    fn cancel_moved_rows(&self, net: &mut Vec<NetChange>) {
        let transaction = &self.transaction;
        let mut split = Vec::new();
        for item in net.iter_mut().filter(|n| n.kind == NetKind::Put) {
            let table = &self.at(item.slot).table;
            let (old, new) = (transaction.old(item.old), table.row(item.new));
            let index = table.identity_index();
            let keeps_key = index.is_some_and(|index| index.same_key(table.layout(), old, new));
            if !keeps_key {
                item.kind = NetKind::Delete;
                split.push(NetChange {
                    kind: NetKind::Insert,
                    ..*item
                });
            }
        }
        if !split.is_empty() {
            net.append(&mut split);
            net.sort_by_key(|n| (n.table, n.kind));
        }
        let (mut start, mut cancelled) = (0, Vec::new());
        for of_table in net.chunk_by(|a, b| a.table == b.table) {
            let end = start + of_table.len();
            let deletes = start + of_table.partition_point(|n| n.kind == NetKind::Delete);
            let inserts = start + of_table.partition_point(|n| n.kind != NetKind::Insert);
            if deletes > start && inserts < end {
                self.cancel_equal(net, start..deletes, inserts..end, &mut cancelled);
            }
            start = end;
        }
        if !cancelled.is_empty() {
            let cancelled: FxHashSet<usize> = cancelled.into_iter().collect();
            let mut position = 0;
            net.retain(|_| {
                position += 1;
                !cancelled.contains(&(position - 1))
            });
        }
    }

    fn cancel_equal(
        &self,
        net: &[NetChange],
        deletes: std::ops::Range<usize>,
        inserts: std::ops::Range<usize>,
        cancelled: &mut Vec<usize>,
    ) {
        let transaction = &self.transaction;
        let table = &self.at(net[deletes.start].slot).table;
        if deletes.len() * inserts.len() <= SMALL_PAIRS {
            for delete in deletes {
                let old = transaction.old(net[delete].old);
                // Rows are a set: one insert at most equals the old row.
                if let Some(insert) = inserts.clone().find(|&i| table.row(net[i].new) == old) {
                    cancelled.extend([delete, insert]);
                }
            }
            return;
        }
        let by_row: FxHashMap<&[u8], usize> = inserts.map(|i| (table.row(net[i].new), i)).collect();
        for delete in deletes {
            if let Some(&insert) = by_row.get(transaction.old(net[delete].old)) {
                cancelled.extend([delete, insert]);
            }
        }
    }

    fn write_record(&self, out: &mut CommitOutput) {
        let CommitOutput {
            records,
            net,
            group,
            ..
        } = out;
        records.push(TRANSACTION);
        put_varint(records, self.logged_groups(net).count() as u64);
        self.write_groups(net, records, group);
        group.shrink_to(1 << 20);
    }

    /// Changes by table and kind, without those of views, which are not logged.
    fn logged_groups<'n>(
        &'n self,
        net: &'n [NetChange],
    ) -> impl Iterator<Item = &'n [NetChange]> + 'n {
        net.chunk_by(|a, b| a.table == b.table && a.kind == b.kind)
            .filter(|items| !self.at(items[0].slot).is_view())
    }

    /// Appends the groups of a net change, and says how many they are. `group` is for one at a time.
    pub(crate) fn write_groups(
        &self,
        net: &[NetChange],
        out: &mut Vec<u8>,
        group: &mut Vec<u8>,
    ) -> usize {
        let mut count = 0;
        for items in self.logged_groups(net) {
            let table = &self.at(items[0].slot).table;
            let (kind, index) = group_kind(table, items[0].kind);
            group.clear();
            for item in items {
                match kind {
                    GroupKind::DeleteByKey => table
                        .identity_index()
                        .expect("rows deleted by key have a unique index")
                        .point_of_row(table.layout(), self.transaction.old(item.old), group),
                    GroupKind::DeleteRow => group.extend_from_slice(self.transaction.old(item.old)),
                    _ => group.extend_from_slice(table.row(item.new)),
                }
            }
            put_group(out, items[0].table, (kind, index), items.len(), group);
            count += 1;
        }
        count
    }

    fn write_deltas(&self, out: &mut CommitOutput) {
        for item in &out.net {
            let state = self.at(item.slot);
            if !state.is_wanted() {
                continue;
            }
            let (table, id) = (&state.table, state.table.schema.id);
            if item.kind != NetKind::Insert {
                let old = self.transaction.old(item.old);
                out.deltas.push(id, DeltaKind::Delete, old);
            }
            if item.kind != NetKind::Delete {
                out.deltas.push(id, DeltaKind::Insert, table.row(item.new));
            }
        }
    }

    /// First all that went, then all that came: a key that is used again stays.
    fn write_schedules(&self, out: &mut CommitOutput) {
        let CommitOutput { net, schedules, .. } = out;
        let of = |item: &NetChange| {
            let state = self.at(item.slot);
            state.schedule.map(|schedule| (schedule, &state.table))
        };
        for item in net.iter().filter(|item| item.kind != NetKind::Insert) {
            if let Some((schedule, table)) = of(item) {
                schedules.push(schedule.went(table, self.transaction.old(item.old)));
            }
        }
        for item in net.iter().filter(|item| item.kind != NetKind::Delete) {
            if let Some((schedule, table)) = of(item) {
                schedules.push(schedule.came(table, table.row(item.new)));
            }
        }
    }

    /// Counts what has changed, for the metrics.
    fn count_net_changes(&self, net: &[NetChange]) {
        for items in net.chunk_by(|a, b| a.slot == b.slot) {
            let (mut inserted, mut deleted) = (0, 0);
            for item in items {
                inserted += u64::from(item.kind != NetKind::Delete);
                deleted += u64::from(item.kind != NetKind::Insert);
            }
            self.count_changes_of(items[0].slot, inserted, deleted);
        }
    }

    #[inline]
    fn count_changes_of(&self, slot: TableSlot, inserted: u64, deleted: u64) {
        let state = self.at(slot);
        state.counters.inserted.add(inserted);
        state.counters.deleted.add(deleted);
        state.count_rows();
    }

    /// Event rows live inside their transaction only (02 §10.2).
    fn empty_event_tables(&mut self, net: &[NetChange]) {
        if !self.has_event_tables {
            return;
        }
        for items in net.chunk_by(|a, b| a.slot == b.slot) {
            let table = &mut self.at_mut(items[0].slot).table;
            if table.schema.is_event {
                table.clear();
            }
        }
    }
}

/// The kind of a group, and the index by whose keys it names rows.
fn group_kind(table: &Table, kind: NetKind) -> (GroupKind, usize) {
    let index = table.identity_position();
    match (kind, index) {
        _ if table.schema.is_event => (GroupKind::Event, 0),
        (NetKind::Delete, Some(index)) => (GroupKind::DeleteByKey, index),
        (NetKind::Delete, None) => (GroupKind::DeleteRow, 0),
        (NetKind::Put, index) => (GroupKind::Put, index.unwrap_or(0)),
        (NetKind::Insert, _) => (GroupKind::Insert, 0),
    }
}
