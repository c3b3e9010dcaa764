//! All tables of one database, and reads.

use std::sync::{Arc, Mutex, PoisonError};

use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_table::{CurrentTables, Index, IndexBuild, IndexChanges, Table, TableView, Tables};
use lightcone_types::{ColId, IndexId, TableId, Timestamp};
use rustc_hash::FxHashSet;

use crate::counters::TableCounters;
use crate::error::{DatastoreError, Result};
use crate::making::Making;
use crate::names::Names;
use crate::old_names::{OldNames, ABSENT_OLD_INDEX, ABSENT_OLD_TABLE};
use crate::system::{self, SYSTEM_SEQUENCE_FIRST};
use crate::table_state::{TableSlot, TableState};
use crate::transaction::{Transaction, TRANSACTION_BYTES_MAX};

/// All tables of one database. Owned by the writer thread; a module call borrows it by moving the box.
pub struct Datastore {
    /// By slot; the slot of a table that is gone stays empty.
    pub(crate) tables: Vec<Option<TableState>>,
    /// Slot of each table id.
    table_slots: Vec<TableSlot>,
    /// Slot and position of each index id.
    index_slots: Vec<(TableSlot, u32)>,
    pub(crate) table_names: Names<TableId>,
    pub(crate) index_names: Names<IndexId>,
    pub(crate) transaction: Transaction,
    pub(crate) transaction_bytes_max: usize,
    /// Some table has a schedule, or had one.
    pub(crate) has_schedules: bool,
    /// The same of outboxes.
    pub(crate) has_outboxes: bool,
    /// Messages that may wait in all outbox tables together.
    pub(crate) outbox_messages_max: u64,
    /// Some table is an event table, or was one.
    pub(crate) has_event_tables: bool,
    pub(crate) clock: Clock,
    /// Tables that were read, while a migration function runs.
    pub(crate) noted_reads: Option<Mutex<FxHashSet<TableId>>>,
    /// A function that makes rows of one row runs.
    pub(crate) making: Option<Box<Making>>,
    pub(crate) old_names: OldNames,
    /// Tables whose rows a copy left out.
    pub(crate) left_out: FxHashSet<TableId>,
    /// Those of them that a migration function wanted.
    pub(crate) missed: FxHashSet<TableId>,
}

/// The time of day.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

impl Default for Datastore {
    fn default() -> Self {
        Datastore::new()
    }
}

impl Datastore {
    /// A database with empty system tables and their sequences. [`bootstrap`](Self::bootstrap) writes the catalog's
    /// own rows.
    pub fn new() -> Datastore {
        let mut datastore = Datastore {
            tables: Vec::new(),
            table_slots: Vec::new(),
            index_slots: Vec::new(),
            table_names: Names::default(),
            index_names: Names::default(),
            transaction: Transaction::default(),
            transaction_bytes_max: TRANSACTION_BYTES_MAX,
            has_schedules: false,
            has_outboxes: false,
            outbox_messages_max: u64::MAX,
            has_event_tables: false,
            clock: Arc::new(Timestamp::now),
            noted_reads: None,
            making: None,
            old_names: OldNames::default(),
            left_out: FxHashSet::default(),
            missed: FxHashSet::default(),
        };
        for schema in system::system_tables() {
            datastore.add_table(TableState::new(schema, |_| SYSTEM_SEQUENCE_FIRST));
        }
        datastore.hold_catalog_indexes();
        datastore
    }

    /// Limits the bytes of changes of one transaction. A record must fit a frame of the log, so the limit is at most
    /// 16 MiB below that.
    pub fn set_transaction_bytes_max(&mut self, bytes_max: usize) {
        self.transaction_bytes_max = bytes_max.min(TRANSACTION_BYTES_MAX);
    }

    /// What [`set_transaction_bytes_max`](Self::set_transaction_bytes_max) has set.
    pub fn transaction_bytes_max(&self) -> usize {
        self.transaction_bytes_max
    }

    /// Sets where the time comes from that schedules are compared with. Without it, from the machine.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Limits how many messages may wait in all outbox tables together.
    pub fn set_outbox_messages_max(&mut self, messages_max: u64) {
        self.outbox_messages_max = messages_max;
    }

    /// What is counted of a table, as of now and from now on.
    pub fn counters(&self, table: TableId) -> Option<Arc<TableCounters>> {
        let state = self.at(self.slot(table).ok()?);
        state.count_rows();
        Some(state.counters.clone())
    }

    /// Registers a table under its ids and names.
    pub(crate) fn add_table(&mut self, state: TableState) -> TableSlot {
        let slot = TableSlot::new(self.tables.len());
        let schema = state.table.schema.clone();
        put(
            &mut self.table_slots,
            schema.id.0 as usize,
            slot,
            TableSlot::NONE,
        );
        self.insert_names(&schema);
        self.register_indexes(slot, None, &schema);
        self.has_schedules |= state.schedule.is_some();
        self.has_outboxes |= state.outbox.is_some();
        self.has_event_tables |= schema.is_event;
        self.tables.push(Some(state));
        slot
    }

    /// Takes a table out, with its names.
    pub(crate) fn remove_table(&mut self, slot: TableSlot) -> Option<TableState> {
        let state = self.tables[slot.index()].take()?;
        let schema = &state.table.schema;
        self.remove_names(schema);
        self.table_slots[schema.id.0 as usize] = TableSlot::NONE;
        for index in &schema.indexes {
            self.index_slots[index.id.0 as usize] = (TableSlot::NONE, 0);
        }
        Some(state)
    }

    /// Puts a table back that was taken out. Its names are put back apart.
    pub(crate) fn restore_table(&mut self, slot: TableSlot, state: TableState) {
        let schema = state.table.schema.clone();
        self.table_slots[schema.id.0 as usize] = slot;
        self.tables[slot.index()] = Some(state);
        self.register_indexes(slot, None, &schema);
    }

    /// Says where the indexes of a table are, in the place of those that it had.
    pub(crate) fn register_indexes(
        &mut self,
        slot: TableSlot,
        before: Option<&TableSchema>,
        now: &TableSchema,
    ) {
        let nowhere = (TableSlot::NONE, 0);
        for index in before.iter().flat_map(|schema| &schema.indexes) {
            self.index_slots[index.id.0 as usize] = nowhere;
        }
        for (position, index) in now.indexes.iter().enumerate() {
            let place = (slot, position as u32);
            put(&mut self.index_slots, index.id.0 as usize, place, nowhere);
        }
    }

    fn insert_names(&mut self, schema: &TableSchema) {
        let accessor = schema.accessor.as_deref();
        self.table_names.insert(schema.id, &schema.name, accessor);
        for index in &schema.indexes {
            let accessor = index.accessor.as_deref();
            self.index_names.insert(index.id, &index.name, accessor);
        }
    }

    fn remove_names(&mut self, schema: &TableSchema) {
        let accessor = schema.accessor.as_deref();
        self.table_names.remove(schema.id, &schema.name, accessor);
        for index in &schema.indexes {
            let accessor = index.accessor.as_deref();
            self.index_names.remove(index.id, &index.name, accessor);
        }
    }

    /// A table has other names, or its indexes have.
    pub(crate) fn exchange_names(&mut self, before: &TableSchema, now: &TableSchema) {
        self.remove_names(before);
        self.insert_names(now);
    }

    /// The id of the table with this canonical name or, failing that, accessor name.
    pub fn table_id_from_name(&self, name: &str) -> Option<TableId> {
        self.table_names.get(name)
    }

    /// The id of the index with this canonical name or, failing that, source name.
    pub fn index_id_from_name(&self, name: &str) -> Option<IndexId> {
        self.index_names.get(name)
    }

    /// The program whose code runs from now on is that of this definition: only names of old tables that it declares are known.
    pub fn know_old_tables(&mut self, def: &ModuleDef) {
        self.old_names = OldNames::of(def);
    }

    /// What the name of a declared old table gives that is not there.
    pub fn absent_old_table(&self, name: &str) -> Option<TableId> {
        let is_declared = self.old_names.tables.contains(name);
        is_declared.then_some(ABSENT_OLD_TABLE)
    }

    /// The same of an index.
    pub fn absent_old_index(&self, name: &str) -> Option<IndexId> {
        let is_declared = self.old_names.indexes.contains(name);
        is_declared.then_some(ABSENT_OLD_INDEX)
    }

    pub fn schema(&self, table: TableId) -> Option<&Arc<TableSchema>> {
        self.state(table).ok().map(|state| &state.table.schema)
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.states().map(|state| &state.table.schema)
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = &TableState> {
        self.tables.iter().flatten()
    }

    /// The table itself, for reads that need layouts and indexes.
    pub fn table(&self, table: TableId) -> Option<&Table> {
        self.state(table).ok().map(|state| &state.table)
    }

    /// Asks for (or declines) the changes of a table as deltas, for subscribers.
    pub fn set_watched(&mut self, table: TableId, watched: bool) {
        if let Ok(slot) = self.slot(table) {
            self.at_mut(slot).watched = watched;
        }
    }

    pub fn is_watched(&self, table: TableId) -> bool {
        self.state(table).is_ok_and(|state| state.watched)
    }

    /// The same as [`set_watched`](Self::set_watched), for views.
    pub fn set_read(&mut self, table: TableId, is_read: bool) {
        if let Ok(slot) = self.slot(table) {
            self.at_mut(slot).is_read = is_read;
        }
    }

    /// Declines the changes of all tables.
    pub fn unwatch_all(&mut self) {
        for state in self.tables.iter_mut().flatten() {
            (state.watched, state.is_read) = (false, false);
        }
    }

    /// Holds the indexes by which the parts of a table are found.
    pub(crate) fn hold_catalog_indexes(&mut self) {
        let parts = [
            system::SEQUENCES_BY_TABLE,
            system::INDEXES_BY_TABLE,
            system::CONSTRAINTS_BY_TABLE,
        ];
        for (table, column) in parts {
            self.hold_index(table, column);
        }
    }

    /// From now on, what changes in a column is noted for an index that is built elsewhere, as [`Table::begin_index`].
    pub fn begin_index(&mut self, table: TableId, column: ColId, changes_bytes_max: usize) {
        if let Ok(slot) = self.slot(table) {
            let table = &mut self.at_mut(slot).table;
            table.begin_index(column, changes_bytes_max);
        }
    }

    /// What has changed since, as [`Table::take_index_changes`].
    pub fn take_index_changes(&mut self, table: TableId, column: ColId) -> Option<IndexChanges> {
        let slot = self.slot(table).ok()?;
        self.at_mut(slot).table.take_index_changes(column)
    }

    /// Undoes [`begin_index`](Self::begin_index).
    pub fn give_up_index(&mut self, table: TableId, column: ColId) {
        if let Ok(slot) = self.slot(table) {
            self.at_mut(slot).table.give_up_index(column);
        }
    }

    /// Takes an index that was built elsewhere and holds it once, as [`Table::take_index`].
    pub fn take_index(&mut self, table: TableId, column: ColId, build: IndexBuild) -> Vec<Index> {
        match self.slot(table) {
            Ok(slot) => self.at_mut(slot).table.take_index(column, build),
            Err(_) => Vec::new(),
        }
    }

    /// Notes that code has read a table, while a migration function runs.
    #[inline]
    pub(crate) fn note_read(&self, table: &Table) {
        if let Some(noted) = &self.noted_reads {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(table.schema.id);
        }
    }

    #[inline]
    pub(crate) fn slot(&self, table: TableId) -> Result<TableSlot> {
        match self.table_slots.get(table.0 as usize) {
            Some(&slot) if slot != TableSlot::NONE => Ok(slot),
            _ if table == ABSENT_OLD_TABLE => Err(DatastoreError::NoOldTable),
            _ => Err(DatastoreError::NoSuchTable),
        }
    }

    #[inline]
    pub(crate) fn index_slot(&self, index: IndexId) -> Result<(TableSlot, usize)> {
        match self.index_slots.get(index.0 as usize) {
            Some(&(slot, position)) if slot != TableSlot::NONE => Ok((slot, position as usize)),
            _ if index == ABSENT_OLD_INDEX => Err(DatastoreError::NoOldTable),
            _ => Err(DatastoreError::NoSuchIndex),
        }
    }

    #[inline]
    pub(crate) fn at(&self, slot: TableSlot) -> &TableState {
        self.tables[slot.index()]
            .as_ref()
            .expect("slots in use hold tables")
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: TableSlot) -> &mut TableState {
        self.tables[slot.index()]
            .as_mut()
            .expect("slots in use hold tables")
    }

    pub(crate) fn state(&self, table: TableId) -> Result<&TableState> {
        self.slot(table).map(|slot| self.at(slot))
    }

    #[inline]
    pub(crate) fn index(&self, index: IndexId) -> Result<(&Table, &Index)> {
        let (slot, position) = self.index_slot(index)?;
        let table = &self.at(slot).table;
        Ok((table, &table.indexes()[position]))
    }

    #[inline]
    pub(crate) fn require_transaction(&self) -> Result<()> {
        match self.transaction.open {
            true => Ok(()),
            false => Err(DatastoreError::NotInTransaction),
        }
    }

    /// The number of rows visible in the transaction (03 §8.2).
    ///
    /// # Errors
    /// No transaction; no such table.
    pub fn row_count(&self, table: TableId) -> Result<u64> {
        Ok(self.read_table(table)?.rows().row_count())
    }

    /// An index with its table.
    pub fn index_of(&self, index: IndexId) -> Option<(&Table, &Index)> {
        self.index(index).ok()
    }

    /// Bytes of the pages that a snapshot would have, with a little for each page.
    pub fn page_bytes(&self) -> u64 {
        let kept = self.states().filter(|state| !state.is_view());
        kept.map(|state| state.table.rows().heap_bytes() as u64)
            .sum()
    }

    /// Bytes of pages that a snapshot of these tables may hold alone, since they were copied or replaced; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        let kept = self.states().filter(|state| !state.is_view());
        kept.map(|state| state.table.rows().released_bytes()).sum()
    }

    /// Memory of all tables in bytes; ordered indexes are estimated.
    pub fn heap_bytes(&self) -> usize {
        self.states().map(|state| state.table.heap_bytes()).sum()
    }
}

impl Tables for Datastore {
    fn table(&self, id: TableId) -> Option<&TableView> {
        self.current(id).map(|table| &**table)
    }
}

impl CurrentTables for Datastore {
    fn current(&self, id: TableId) -> Option<&Table> {
        Datastore::table(self, id)
    }

    fn hold_index(&mut self, table: TableId, column: ColId) {
        if let Ok(slot) = self.slot(table) {
            self.at_mut(slot).table.hold_index(column);
        }
    }

    fn release_index(&mut self, table: TableId, column: ColId) {
        if let Ok(slot) = self.slot(table) {
            self.at_mut(slot).table.release_index(column);
        }
    }
}

fn put<T: Clone>(slots: &mut Vec<T>, at: usize, value: T, empty: T) {
    if slots.len() <= at {
        slots.resize(at + 1, empty);
    }
    slots[at] = value;
}
