//! Tables that change while they hold rows: how they follow the catalog, what of it goes into the record, and the way back.
//!
//! The catalog's rows say what a table is. Code that changes them, in the open transaction, has the table follow with
//! [`Datastore::follow_catalog`]. Until then the row changes of the transaction are sealed: their net change is written, so that
//! replay meets rows, catalog and tables in the same order. Rollback takes back row changes and schema changes in turns.

use lightcone_schema::{IndexSchema, TableSchema};
use lightcone_table::{AlterError, Clashes, RowLayout, Table, Tick};
use lightcone_types::bsatn::{decode_value, Reader};
use lightcone_types::{text, TableId};

use crate::datastore::Datastore;
use crate::error::SchemaError;
use crate::record::{put_group, GroupKind};
use crate::sequence::Sequence;
use crate::system::SYSTEM_TABLE_ID_MAX;
use crate::table_state::{Described, TableSlot, TableState};
use crate::transaction::{CatalogBefore, SchemaChange, SchemaUndo, StateBefore};

/// The most of a key that an error shows.
const SHOWN_KEY_BYTES_MAX: usize = 200;

impl Datastore {
    /// Whether the open transaction has made, changed or dropped tables.
    #[inline]
    pub(crate) fn has_schema_changes(&self) -> bool {
        !self.transaction.schema_changes.is_empty()
    }

    /// Before the catalog is changed: so that what the transaction takes of it can be given back.
    pub(crate) fn note_catalog(&mut self) {
        if self.transaction.catalog_before.is_some() {
            return;
        }
        let system = (0..self.tables.len()).filter_map(|slot| {
            let state = self.tables[slot].as_ref()?;
            let is_system = state.table.schema.id.0 <= SYSTEM_TABLE_ID_MAX;
            is_system.then(|| (TableSlot::new(slot), state.sequences.clone()))
        });
        self.transaction.catalog_before = Some(Box::new(CatalogBefore {
            sequences: system.collect(),
            table_names: self.table_names.clone(),
            index_names: self.index_names.clone(),
        }));
    }

    /// Registers a table whose catalog rows were just written.
    pub(crate) fn create(&mut self, state: TableState) -> TableSlot {
        let id = state.table.schema.id;
        self.seal_step(id, GroupKind::Schema, &[]);
        let slot = self.add_table(state);
        self.changed(SchemaUndo::Created(slot));
        slot
    }

    /// Makes a table in memory what the catalog says of it, in the open transaction.
    ///
    /// # Errors
    /// Rows do not fit, or `tick` has said no. The transaction is only good for a rollback then.
    pub(crate) fn follow_catalog(
        &mut self,
        table: TableId,
        tick: Tick<'_>,
    ) -> Result<(), SchemaError> {
        self.seal_step(table, GroupKind::Schema, &[]);
        for undo in self.apply_catalog(table, tick)? {
            self.changed(undo);
        }
        Ok(())
    }

    /// Fills a table that was made in this transaction with the rows of another, each with `suffix` behind it.
    ///
    /// # Errors
    /// As [`follow_catalog`](Self::follow_catalog).
    pub(crate) fn copy_rows(
        &mut self,
        (from, to): (TableId, TableId),
        suffix: &[u8],
        tick: Tick<'_>,
    ) -> Result<(), SchemaError> {
        let mut how = from.0.to_le_bytes().to_vec();
        how.extend_from_slice(suffix);
        self.seal_step(to, GroupKind::Copy, &how);
        self.apply_copy((from, to), suffix, tick)
    }

    fn changed(&mut self, undo: SchemaUndo) {
        let changes = self.transaction.changes.len();
        let change = SchemaChange { changes, undo };
        self.transaction.schema_changes.push(change);
    }

    /// Writes the net effect of the row changes so far into the transaction's record, and what comes next.
    fn seal_step(&mut self, table: TableId, next: GroupKind, how: &[u8]) {
        self.note_catalog();
        self.seal_rows();
        let sealed = &mut self.transaction.sealed;
        let count = usize::from(!how.is_empty());
        put_group(&mut sealed.groups, table, (next, 0), count, how);
        sealed.group_count += 1;
    }

    /// Writes the net effect of the row changes that are not in the transaction's record.
    pub(crate) fn seal_rows(&mut self) {
        let changes = std::mem::take(&mut self.transaction.changes);
        let mut sealed = std::mem::take(&mut self.transaction.sealed);
        let mut net = Vec::new();
        self.collect_net(&changes[sealed.changes..], &mut net);
        sealed.group_count += self.write_groups(&net, &mut sealed.groups, &mut Vec::new());
        sealed.changes = changes.len();
        self.transaction.sealed = sealed;
        self.transaction.changes = changes;
    }

    // ---- The same live and in replay ------------------------------------------------------------------------------------

    /// Makes a table in memory what the catalog says of it. Gives how to take that back, the last part last.
    pub(crate) fn apply_catalog(
        &mut self,
        table: TableId,
        tick: Tick<'_>,
    ) -> Result<Vec<SchemaUndo>, SchemaError> {
        if table.0 <= SYSTEM_TABLE_ID_MAX {
            return Err(inconsistent(table, "a system table never changes"));
        }
        match (self.slot(table).ok(), self.describe(table)?) {
            (None, None) => Ok(Vec::new()),
            (None, Some(described)) => {
                let slot = self.add_table(described.into_state());
                Ok(vec![SchemaUndo::Created(slot)])
            }
            (Some(slot), None) => Ok(vec![self.drop_table(slot)]),
            (Some(slot), Some(described)) => self.change_table(slot, described, tick),
        }
    }

    /// Fills a table with the rows of another.
    pub(crate) fn apply_copy(
        &mut self,
        (from, to): (TableId, TableId),
        suffix: &[u8],
        tick: Tick<'_>,
    ) -> Result<(), SchemaError> {
        if to.0 <= SYSTEM_TABLE_ID_MAX {
            return Err(inconsistent(to, "a system table is no copy of another"));
        }
        let is_there = |slot| {
            self.slot(slot)
                .map_err(|_| inconsistent(slot, "the table does not exist"))
        };
        let (from, to) = (is_there(from)?, is_there(to)?);
        if from == to {
            let table = self.at(to).table.schema.id;
            return Err(inconsistent(table, "a table cannot be copied into itself"));
        }
        // Tables are separate; the one that is filled is taken out for as long.
        let mut state = self.tables[to.index()].take().expect("it is there");
        let source = &self.at(from).table;
        let filled = fill(source, &mut state.table, suffix, tick);
        self.tables[to.index()] = Some(state);
        filled
    }

    fn drop_table(&mut self, slot: TableSlot) -> SchemaUndo {
        let state = self.remove_table(slot).expect("the slot is in use");
        SchemaUndo::Dropped(slot, Box::new(state))
    }

    fn change_table(
        &mut self,
        slot: TableSlot,
        described: Described,
        tick: Tick<'_>,
    ) -> Result<Vec<SchemaUndo>, SchemaError> {
        let state = self.at(slot);
        if *state.table.schema == described.schema {
            return Ok(Vec::new());
        }
        if !state.table.keeps_rows(&described.schema) {
            return self.replace_table(slot, described, tick);
        }
        let undo = self.alter_table(slot, described, tick)?;
        Ok(vec![undo])
    }

    /// The rows stay where they are.
    fn alter_table(
        &mut self,
        slot: TableSlot,
        described: Described,
        tick: Tick<'_>,
    ) -> Result<SchemaUndo, SchemaError> {
        let new = described.into_state();
        let schema = new.table.schema.clone();
        let state = self.at_mut(slot);
        let altered = match state.table.alter(schema.clone(), tick) {
            Ok(altered) => altered,
            Err(error) => return Err(schema_error(&state.table, &schema, error)),
        };
        let sequences = sequences_after(&state.sequences, new.sequences);
        let before = StateBefore {
            table: altered,
            sequences: std::mem::replace(&mut state.sequences, sequences),
            schedule: std::mem::replace(&mut state.schedule, new.schedule),
            outbox: std::mem::replace(&mut state.outbox, new.outbox),
            declared: std::mem::replace(&mut state.declared, new.declared),
            is_writable: std::mem::replace(&mut state.is_writable, new.is_writable),
        };
        self.has_schedules |= self.at(slot).schedule.is_some();
        self.has_outboxes |= self.at(slot).outbox.is_some();
        self.has_event_tables |= self.at(slot).table.schema.is_event;
        self.register_indexes(slot, Some(before.table.schema()), &schema);
        self.exchange_names(before.table.schema(), &schema);
        Ok(SchemaUndo::Altered(slot, Box::new(before)))
    }

    /// The rows do not fit the pages of the new schema: they move to a table of the same id.
    fn replace_table(
        &mut self,
        slot: TableSlot,
        described: Described,
        tick: Tick<'_>,
    ) -> Result<Vec<SchemaUndo>, SchemaError> {
        let mut new = described.into_state();
        let old = self.at(slot);
        new.sequences = sequences_after(&old.sequences, new.sequences);
        (new.watched, new.is_read) = (old.watched, old.is_read);
        fill(&old.table, &mut new.table, &[], tick)?;
        new.table.hold_as(&old.table);
        let dropped = self.drop_table(slot);
        let slot = self.add_table(new);
        Ok(vec![dropped, SchemaUndo::Created(slot)])
    }
}

/// Sequences that stay go on where they are.
fn sequences_after(old: &[Sequence], new: Vec<Sequence>) -> Vec<Sequence> {
    let same = |new: &Sequence| old.iter().find(|old| old.schema.id == new.schema.id);
    let mut sequences = new;
    for sequence in &mut sequences {
        if let Some(old) = same(sequence) {
            *sequence = sequence.going_on(old);
        }
    }
    sequences
}

fn fill(from: &Table, to: &mut Table, suffix: &[u8], tick: Tick<'_>) -> Result<(), SchemaError> {
    let schema = to.schema.clone();
    to.fill_from(from, suffix, tick)
        .map_err(|error| schema_error(to, &schema, error))
}

fn inconsistent(table: TableId, detail: &str) -> SchemaError {
    let detail = detail.to_owned();
    SchemaError::Catalog { table, detail }
}

/// `table` has the rows that an error names.
fn schema_error(table: &Table, schema: &TableSchema, error: AlterError) -> SchemaError {
    match error {
        AlterError::NotUnique { index, clashes } => {
            not_unique(table, &schema.indexes[index], clashes)
        }
        AlterError::Stopped => SchemaError::Stopped,
        AlterError::Other(error) => SchemaError::Rows {
            table: schema.name.clone(),
            detail: error.to_string(),
        },
    }
}

fn not_unique(table: &Table, index: &IndexSchema, clashes: Clashes) -> SchemaError {
    let columns = index.algorithm.columns();
    let name = |column: &lightcone_types::ColId| match table.schema.column(*column) {
        Some(column) => column.name.clone(),
        None => column.0.to_string(),
    };
    let groups = clashes.groups.iter().map(|(row, count)| {
        let row = table.row(*row);
        let values = columns.iter().map(|column| {
            let column = usize::from(column.0);
            shown(table.layout(), row, column)
        });
        (values.collect::<Vec<_>>().join(", "), *count)
    });
    SchemaError::NotUnique {
        table: table.schema.name.clone(),
        index: index.name.clone(),
        columns: columns.iter().map(name).collect(),
        groups: groups.collect(),
        has_more: clashes.has_more,
    }
}

/// A value of a row, for people.
pub(crate) fn shown(layout: &RowLayout, row: &[u8], column: usize) -> String {
    let ty = layout.column_type(column);
    let bytes = layout.column(row, column);
    let value = decode_value(&Default::default(), ty, &mut Reader::new(bytes));
    let shown = match value {
        Ok(value) => text::format_value(&Default::default(), ty, &value),
        Err(error) => error.to_string(),
    };
    lightcone_types::cut(&shown, SHOWN_KEY_BYTES_MAX).to_string()
}
