//! The tables of a backfill: made, filled, dropped, and put in the place of the old ones.

use std::sync::Arc;

use lightcone_schema::{
    ColumnDef, IndexAlgorithm, IndexDef, MigrationPlan, ModuleDef, TableAccess, TableDef,
    TableSchema, UniqueConstraintDef,
};
use lightcone_table::RowId;
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{AlgebraicType, ColId, TableId, TypeRef};

use crate::catalog::schema_of;
use crate::datastore::Datastore;
use crate::hidden::{is_hidden, new_name, shown, AGAIN, DONE, NEW, STATE};
use crate::migration::{table_of, Done, MigrationError, MigrationWork};
use crate::table_state::TableSlot;
use crate::transaction::TRANSACTION_BYTES_MAX;

/// The rows of `$backfill`, by their keys.
const HEAD: u8 = 0;
const PROGRAM: u8 = 1;
const ENVIRONMENT: u8 = 2;

/// What is known of a backfill beside its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRecord {
    /// Microseconds since 1970: the time that all calls of its functions see.
    pub started_us: i64,
    /// As in `st_module`.
    pub program_kind: u8,
    pub program: Vec<u8>,
    /// What is changed of the environment with it, in a form of the database's; may be empty.
    pub environment: Vec<u8>,
}

/// A table whose rows are migrated one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillTable {
    pub table: TableId,
    /// Where it is noted which of its rows were.
    pub(super) done: TableId,
    /// By which the new definition knows its rows.
    pub old: String,
}

/// Rows of one table, one behind the other.
#[derive(Default)]
pub struct OldRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The last row that was looked at; none: the table ends here.
    pub last: Option<RowId>,
}

impl OldRows {
    /// Keeps memory for as many rows, but not that of one huge transaction.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(1 << 20);
        self.ends.shrink_to(1 << 16);
    }

    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// # Panics
    /// If there are not so many rows.
    pub fn get(&self, position: usize) -> &[u8] {
        let start = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[position]]
    }
}

impl Datastore {
    /// Makes the tables of a backfill in the open transaction, and notes the program. Those of another one go.
    ///
    /// # Errors
    /// A counter cannot go on in its new column; the program is over the transaction's size limit. The transaction is only good
    /// for a rollback then.
    pub fn begin_backfill(
        &mut self,
        new: &ModuleDef,
        plan: &MigrationPlan,
        record: &BackfillRecord,
    ) -> Done {
        self.require_transaction()?;
        // What another one has left.
        let mut may_go_on = || true;
        self.drop_backfill(&mut MigrationWork::new(u64::MAX, &mut may_go_on))?;
        for table in plan.added_tables() {
            let def = table_of(new, table)?;
            if def.schedule.is_none() && !def.is_event && def.outbox.is_none() {
                self.create_table(&hidden(def))?;
            }
        }
        // Rows of one size take less.
        let counts =
            |schema: &Arc<TableSchema>| is_hidden(&schema.name) && !schema.sequences.is_empty();
        let columns = 1 + usize::from(self.schemas().any(counts));
        let done = [
            ("row", AlgebraicType::U128),
            ("generated", AlgebraicType::bytes()),
        ];
        for (table, _) in plan.set_aside().filter(|(_, old)| has_function(new, old)) {
            self.create_table(&keyed(&format!("{DONE}{table}"), &done[..columns]))?;
        }
        let again = [("row", AlgebraicType::U128), ("count", AlgebraicType::U32)];
        self.create_table(&keyed(AGAIN, &again))?;
        let state = [
            ("key", AlgebraicType::U8),
            ("value", AlgebraicType::bytes()),
        ];
        let state = self.create_table(&keyed(STATE, &state))?;
        let slot = self.slot(state)?;
        let head = (record.started_us, record.program_kind).to_vec();
        self.insert_found(slot, &(HEAD, head).to_vec(), &mut Vec::new())?;
        self.insert_found(slot, &(PROGRAM, &record.program).to_vec(), &mut Vec::new())?;
        if !record.environment.is_empty() {
            let row = (ENVIRONMENT, &record.environment).to_vec();
            self.insert_found(slot, &row, &mut Vec::new())?;
        }
        for (table, _) in plan.set_aside() {
            let (old, new) = (
                self.stored_table(table)?,
                self.stored_table(&new_name(table)),
            );
            if let Ok(new) = new {
                self.carry_counters_of(&new, &old, true)?;
            }
        }
        Ok(())
    }

    /// The backfill that goes on in this database.
    pub fn backfill_record(&self) -> Option<BackfillRecord> {
        let (head, program) = (self.backfill_value(HEAD)?, self.backfill_value(PROGRAM)?);
        let (started_us, program_kind) = Decode::from_slice(&head).ok()?;
        Some(BackfillRecord {
            started_us,
            program_kind,
            program,
            environment: self.backfill_value(ENVIRONMENT).unwrap_or_default(),
        })
    }

    fn backfill_value(&self, key: u8) -> Option<Vec<u8>> {
        let table = self.state(self.table_id_from_name(STATE)?).ok()?;
        let table = &table.table;
        let index = table.indexes().first()?;
        let found = index.find_point(table.rows(), table.layout(), &[key]);
        let (_, value): (u8, Vec<u8>) = Decode::from_slice(table.row(found.ok()??)).ok()?;
        Some(value)
    }

    /// Whether there are tables of a backfill, also of one that has ended.
    pub fn has_backfill_tables(&self) -> bool {
        self.schemas().any(|schema| is_hidden(&schema.name))
    }

    /// The tables whose rows a plan migrates (those of others just go), if those are there that take the rows in.
    ///
    /// # Errors
    /// They are not, or not as the new definition has them.
    pub fn backfill_tables(
        &self,
        new: &ModuleDef,
        plan: &MigrationPlan,
    ) -> Result<Vec<BackfillTable>, MigrationError> {
        for table in plan.added_tables() {
            let def = table_of(new, table)?;
            if def.schedule.is_some() || def.is_event || def.outbox.is_some() {
                continue;
            }
            let made = self.stored_table(&new_name(table))?;
            let types = made.columns.iter().map(|column| &column.ty);
            if !types.eq(def.columns.iter().map(|column| &column.ty)) {
                return Err(MigrationError::Plan(format!("`{table}` has other columns")));
            }
        }
        let migrated = plan.set_aside().filter(|(_, old)| has_function(new, old));
        let tables = migrated.map(|(table, old)| {
            Ok(BackfillTable {
                table: self.stored_table(table)?.id,
                done: self.stored_table(&format!("{DONE}{table}"))?.id,
                old: old.to_owned(),
            })
        });
        tables.collect()
    }

    /// How many rows were migrated, and how many there are.
    pub fn backfilled(&self) -> (u64, u64) {
        let of = |schema: &Arc<TableSchema>| {
            let table = self.table_id_from_name(schema.name.strip_prefix(DONE)?)?;
            let rows = |id| self.table(id).map_or(0, |table| table.rows().row_count());
            Some((rows(schema.id), rows(table)))
        };
        let each = self.schemas().filter_map(of);
        each.fold((0, 0), |(done, rows), (more_done, more)| {
            (done + more_done, rows + more)
        })
    }

    /// The same of one table.
    pub fn backfilled_of(&self, of: &BackfillTable) -> (u64, u64) {
        let rows = |id| self.table(id).map_or(0, |table| table.rows().row_count());
        (rows(of.done), rows(of.table))
    }

    /// Takes rows of an old table behind `after`: at most `rows_max` and about `bytes_max` bytes. `out.last` is where to go on; none:
    /// the table is at its end.
    pub fn old_rows(
        &self,
        of: &BackfillTable,
        after: Option<RowId>,
        (rows_max, bytes_max): (usize, usize),
        out: &mut OldRows,
    ) {
        out.clear();
        out.last = None;
        let Some(table) = self.table(of.table) else {
            return;
        };
        table.rows().walk(after, |id, row| {
            out.push(row);
            let is_full = out.len() >= rows_max || out.bytes.len() >= bytes_max;
            if is_full {
                out.last = Some(id);
            }
            !is_full
        });
    }

    /// Notes that no backfill goes on any more, in the open transaction. Its tables are garbage from then on.
    pub fn end_backfill(&mut self) {
        let Some(slot) = self.hidden_slot(STATE) else {
            return;
        };
        let table = &self.at(slot).table;
        let mut head = Vec::new();
        table.rows().for_each(|id, row| {
            if row.first() == Some(&HEAD) {
                head.push(id);
            }
        });
        // A few bytes: whether a backfill goes on must not depend on the size of the transaction that ends it.
        let bytes_max = std::mem::replace(&mut self.transaction_bytes_max, usize::MAX);
        let deleted = self.delete_found(slot, &head);
        self.transaction_bytes_max = bytes_max;
        deleted.expect("a small row is deleted without a limit");
    }

    /// Drops all tables of a backfill, in the open transaction. Those that took their places are none any more.
    ///
    /// # Errors
    /// `work` has ended, or the catalog is damaged.
    pub fn drop_backfill(&mut self, work: &mut MigrationWork<'_>) -> Done {
        // Rows of the catalog only, whose number does not depend on what the tables hold.
        let bytes_max = std::mem::replace(&mut self.transaction_bytes_max, TRANSACTION_BYTES_MAX);
        let dropped = self.drop_hidden_tables(work);
        self.transaction_bytes_max = bytes_max;
        dropped
    }

    fn drop_hidden_tables(&mut self, work: &mut MigrationWork<'_>) -> Done {
        let schemas = self.schemas().filter(|schema| is_hidden(&schema.name));
        let hidden: Vec<Arc<TableSchema>> = schemas.cloned().collect();
        for schema in hidden {
            self.delete_table_rows(&schema)?;
            self.follow(schema.id, work)?;
        }
        Ok(())
    }

    /// Gives a table of a backfill, if there is one, the name that it was made for: it has its rows, and its id.
    pub(crate) fn reveal(
        &mut self,
        def: &TableDef,
        work: &mut MigrationWork<'_>,
    ) -> Result<bool, MigrationError> {
        let Ok(hidden) = self.stored_table(&new_name(&def.name)) else {
            return Ok(false);
        };
        let declared = schema_of(def);
        let mut named = TableSchema {
            name: declared.name,
            accessor: declared.accessor,
            columns: declared.columns,
            access: declared.access,
            ..TableSchema::clone(&hidden)
        };
        for constraint in &mut named.constraints {
            constraint.name = shown(&constraint.name);
        }
        for index in &mut named.indexes {
            index.name = shown(&index.name);
            index.accessor = index.accessor.as_deref().map(shown);
        }
        for sequence in &mut named.sequences {
            sequence.name = shown(&sequence.name);
        }
        self.rewrite_table(&hidden, named)?;
        self.follow(hidden.id, work)?;
        Ok(true)
    }

    pub(super) fn hidden_slot(&self, name: &str) -> Option<TableSlot> {
        self.slot(self.table_id_from_name(name)?).ok()
    }
}

/// Whether the rows of an old table are given to a function.
fn has_function(new: &ModuleDef, old: &str) -> bool {
    let migration = new.migration.as_ref();
    migration.is_some_and(|migration| migration.row_function(old).is_some())
}

/// A new table before it takes its place.
fn hidden(def: &TableDef) -> TableDef {
    let mut hidden = def.clone();
    let rename = |name: &mut String| name.insert_str(0, NEW);
    rename(&mut hidden.name);
    rename(&mut hidden.source_name);
    for index in &mut hidden.indexes {
        rename(&mut index.name);
        rename(&mut index.source_name);
    }
    for constraint in &mut hidden.constraints {
        rename(&mut constraint.name);
    }
    for sequence in &mut hidden.sequences {
        rename(&mut sequence.name);
    }
    hidden.access = TableAccess::Private;
    hidden
}

/// A table whose first column is its key.
fn keyed(name: &str, columns: &[(&str, AlgebraicType)]) -> TableDef {
    let key = || vec![ColId(0)];
    TableDef {
        name: name.to_owned(),
        source_name: name.to_owned(),
        row_type: TypeRef(0),
        columns: columns
            .iter()
            .map(|(name, ty)| ColumnDef {
                name: (*name).to_owned(),
                source_name: (*name).to_owned(),
                ty: ty.clone(),
                default: None,
            })
            .collect(),
        primary_key: Some(ColId(0)),
        indexes: vec![IndexDef {
            name: format!("{name}_key_idx_hash"),
            source_name: format!("{name}_key_idx_hash"),
            accessor_name: None,
            algorithm: IndexAlgorithm::Hash(key()),
            unique: true,
        }],
        constraints: vec![UniqueConstraintDef {
            name: format!("{name}_key"),
            columns: key(),
        }],
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Private,
        is_event: false,
    }
}
