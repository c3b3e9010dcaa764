//! Tables for a migration function (02 §14.8): the old ones, which are renamed and read only, and the counters of those that take
//! their places.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use lightcone_schema::{MigrationPlan, ModuleDef, SequenceSchema, TableAccess, TableSchema};
use lightcone_types::TableId;

use super::work::{Done, MigrationError, MigrationWork};
use crate::catalog::schema_of;
use crate::datastore::Datastore;
use crate::sequence::Sequence;

/// What the names of parts begin with that only the old table has.
const OLD_PREFIX: &str = "__old_";

/// A table under the names by which its migration function knows it. All indexes and constraints stay, so that none has to be built
/// anew.
fn renamed(schema: &TableSchema, declared: TableSchema) -> TableSchema {
    let mut renamed = TableSchema {
        name: declared.name,
        accessor: declared.accessor,
        columns: declared.columns,
        primary_key: declared.primary_key,
        access: TableAccess::Private,
        schedule: None,
        outbox: None,
        is_event: false,
        ..schema.clone()
    };
    let mut constraints = declared.constraints;
    for constraint in &mut renamed.constraints {
        let mut same = constraints.iter();
        constraint.name = match same.position(|c| c.columns == constraint.columns) {
            Some(at) => constraints.remove(at).name,
            None => format!("{OLD_PREFIX}{}", constraint.name),
        };
    }
    renamed.constraints.append(&mut constraints);
    let mut indexes = declared.indexes;
    for index in &mut renamed.indexes {
        let mut same = indexes.iter();
        (index.name, index.accessor) = match same.position(|i| i.algorithm == index.algorithm) {
            Some(at) => {
                let declared = indexes.remove(at);
                (declared.name, declared.accessor)
            }
            None => {
                let name = format!("{OLD_PREFIX}{}", index.name);
                (name.clone(), Some(name))
            }
        };
    }
    renamed.indexes.append(&mut indexes);
    for sequence in &mut renamed.sequences {
        sequence.name.insert_str(0, OLD_PREFIX);
    }
    renamed
}

impl Datastore {
    /// Gives a table the name and the names of indexes by which the migration function knows it. Its rows and indexes stay.
    pub(super) fn set_aside(
        &mut self,
        table: &str,
        old: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let mut known = new
            .migration
            .iter()
            .flat_map(|migration| &migration.old_tables);
        let def = known.find(|def| def.name == old).ok_or_else(|| {
            MigrationError::Plan(format!("the new definition has no old table `{old}`"))
        })?;
        if def.columns.len() != schema.columns.len() {
            return Err(MigrationError::Plan(format!("`{old}` has other columns")));
        }
        let has_same_types = schema
            .columns
            .iter()
            .zip(&def.columns)
            .all(|(a, b)| a.ty == b.ty);
        if !has_same_types {
            // Rows may have to move.
            work.take_bytes(table, self.row_bytes(schema.id)?)?;
        }
        self.rewrite_table(&schema, renamed(&schema, schema_of(def)))?;
        self.follow(schema.id, work)?;
        let slot = self.slot(schema.id)?;
        self.at_mut(slot).is_writable = false;
        Ok(())
    }

    /// Before the function runs: counters of columns that keep their name go on where they are in the old table.
    ///
    /// # Errors
    /// A table of the plan is not there, or a counter is at a value that its new column cannot hold.
    pub fn carry_counters(&mut self, plan: &MigrationPlan) -> Done {
        for (table, old) in plan.set_aside() {
            let Ok(new) = self.stored_table(table) else {
                continue;
            };
            let old = self.stored_table(old)?;
            self.carry_counters_of(&new, &old, plan.is_backfill())?;
        }
        Ok(())
    }

    /// `keeps_ahead`: those that have gone further themselves stay where they are.
    pub(crate) fn carry_counters_of(
        &mut self,
        new: &TableSchema,
        old: &TableSchema,
        keeps_ahead: bool,
    ) -> Done {
        let from = self.state(old.id)?.sequences.clone();
        let slot = self.slot(new.id)?;
        let column = |schema: &TableSchema, sequence: &SequenceSchema| {
            schema
                .column(sequence.column)
                .map(|column| column.name.clone())
        };
        let mut some_unsaved = false;
        for sequence in &mut self.at_mut(slot).sequences {
            let name = column(new, &sequence.schema);
            let mut from = from.iter();
            let same = from.find(|other| column(old, &other.schema) == name);
            let Some(same) = same else { continue };
            if keeps_ahead && sequence.is_ahead_of(same) {
                continue;
            }
            if !sequence.can_follow(same) {
                return Err(MigrationError::CounterTooHigh {
                    table: new.name.clone(),
                    column: name.unwrap_or_default(),
                    value: same.position(),
                });
            }
            if let Some(moved) = sequence.from(same.position()) {
                *sequence = moved;
                some_unsaved = true;
            }
        }
        if some_unsaved {
            self.save_sequences_of(slot);
        }
        Ok(())
    }

    /// The migration function begins: notes which tables it reads.
    pub fn note_reads(&mut self) {
        self.noted_reads = Some(Mutex::default());
    }

    /// The function has ended. Of the tables that were set aside, those with rows that others take the places of must have been
    /// read, so that no rows are lost that the function has not seen.
    ///
    /// # Errors
    /// One was not.
    pub fn check_reads(&mut self, plan: &MigrationPlan) -> Done {
        let noted = self.noted_reads.take().unwrap_or_default();
        let noted = noted.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.missed = &noted & &self.left_out;
        for (table, old) in plan.set_aside() {
            let is_replaced = self.table_id_from_name(table).is_some();
            let id = self.stored_table(old)?.id;
            let rows = self.state(id)?.table.rows().row_count();
            if is_replaced && rows > 0 && !noted.contains(&id) {
                return Err(MigrationError::NotRead {
                    table: table.to_owned(),
                    old: old.to_owned(),
                    rows,
                });
            }
        }
        Ok(())
    }

    /// When the function has run: no counter of a new table issues a value again that it wrote itself.
    ///
    /// # Errors
    /// `work` has ended.
    pub fn settle_counters(
        &mut self,
        tables: &BTreeSet<&str>,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        for table in tables {
            let schema = self.stored_table(table)?;
            for sequence in &schema.sequences {
                let slot = self.slot(schema.id)?;
                let mut sequences = self.at(slot).sequences.iter();
                let counter = sequences.find(|counter| counter.schema.id == sequence.id);
                let range = counter.map_or(0..=0, Sequence::range);
                let Some(highest) = self.highest(schema.id, (sequence, range), work)? else {
                    continue;
                };
                let mut sequences = self.at_mut(slot).sequences.iter_mut();
                let counter = sequences.find(|counter| counter.schema.id == sequence.id);
                let counter = counter.expect("a table has the counters of its schema");
                if let Some(moved) = counter.past(highest) {
                    *counter = moved;
                    self.save_sequences_of(slot);
                }
            }
        }
        Ok(())
    }

    /// The highest value in a counted column behind which there is another in the range. Of the last one of a type, which
    /// programs use for what is none, a counter knows nothing.
    fn highest(
        &self,
        id: TableId,
        (sequence, range): (&SequenceSchema, RangeInclusive<i128>),
        work: &mut MigrationWork<'_>,
    ) -> Result<Option<i128>, MigrationError> {
        /// Rows between two questions whether to go on.
        const ASKED_ROWS: u64 = 1024;
        let table = &self.state(id)?.table;
        let column = usize::from(sequence.column.0);
        let integer = table.layout().column_type(column).integer();
        let (mut highest, mut rows) = (None, 0_u64);
        let may_go_on = work.ticking(|tick| {
            let mut may_go_on = true;
            table.rows().walk(None, |_, row| {
                let value = integer.and_then(|ty| ty.to_i128(table.layout().column(row, column)));
                let counts = |value: &i128| range.contains(value) && value < range.end();
                highest = highest.max(value.filter(counts));
                rows += 1;
                if rows.is_multiple_of(ASKED_ROWS) {
                    may_go_on = tick(ASKED_ROWS);
                }
                may_go_on
            });
            may_go_on
        });
        match may_go_on {
            true => Ok(highest),
            false => Err(MigrationError::TooLong),
        }
    }
}
