//! Tables for a migration function (02 §14.8): the old ones, which are renamed and read only, and the counters of those that take
//! their places.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use lightcone_schema::{
    ConstraintSchema, IndexSchema, MigrationPlan, ModuleDef, SequenceSchema, TableAccess, TableDef,
    TableSchema,
};
use lightcone_types::TableId;

use super::work::{Done, MigrationError, MigrationWork};
use crate::datastore::Datastore;
use crate::sequence::Sequence;

/// What the names of parts begin with that only the old table has.
const OLD_PREFIX: &str = "__old_";

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
        self.rename(&schema, def)?;
        self.follow(schema.id, work)?;
        let slot = self.slot(schema.id)?;
        self.at_mut(slot).is_writable = false;
        Ok(())
    }

    /// Writes the catalog rows of a table anew, with the id that it has.
    fn rename(&mut self, schema: &TableSchema, def: &TableDef) -> Done {
        let id = schema.id;
        let allocated: Vec<i128> = schema
            .sequences
            .iter()
            .map(|s| self.allocated(id, s.id))
            .collect();
        self.delete_table_rows(schema)?;
        let renamed = TableSchema {
            name: def.name.clone(),
            primary_key: def.primary_key,
            access: TableAccess::Private,
            ..schema.clone()
        };
        self.put_table_row(&renamed)?;
        self.put_table_accessor(&def.name, &def.source_name)?;
        self.put_columns(id, def)?;
        self.rename_constraints(schema, def)?;
        self.rename_indexes(schema, def)?;
        for (sequence, allocated) in schema.sequences.iter().zip(allocated) {
            let renamed = SequenceSchema {
                name: format!("{OLD_PREFIX}{}", sequence.name),
                ..sequence.clone()
            };
            self.put_sequence(id, &renamed, allocated)?;
        }
        Ok(())
    }

    /// All that there are stay, so that no index has to be built anew.
    fn rename_constraints(&mut self, schema: &TableSchema, def: &TableDef) -> Done {
        let mut declared: Vec<_> = def.constraints.iter().collect();
        for constraint in &schema.constraints {
            let same = declared
                .iter()
                .position(|d| d.columns == constraint.columns);
            let name = match same {
                Some(at) => declared.remove(at).name.clone(),
                None => format!("{OLD_PREFIX}{}", constraint.name),
            };
            let renamed = ConstraintSchema {
                name,
                ..constraint.clone()
            };
            self.put_constraint(schema.id, &renamed)?;
        }
        for constraint in declared {
            self.create_constraint(schema.id, constraint)?;
        }
        Ok(())
    }

    fn rename_indexes(&mut self, schema: &TableSchema, def: &TableDef) -> Done {
        let mut declared: Vec<_> = def.indexes.iter().collect();
        for index in &schema.indexes {
            let same = declared.iter().position(|d| d.algorithm == index.algorithm);
            let (name, accessor) = match same {
                Some(at) => {
                    let declared = declared.remove(at);
                    (declared.name.clone(), declared.source_name.clone())
                }
                None => {
                    let name = format!("{OLD_PREFIX}{}", index.name);
                    (name.clone(), name)
                }
            };
            let renamed = IndexSchema {
                name: name.clone(),
                ..index.clone()
            };
            self.put_index(schema.id, &renamed)?;
            self.put_index_accessor(&name, &accessor)?;
        }
        for index in declared {
            self.create_index(schema.id, index)?;
        }
        Ok(())
    }

    pub(super) fn remove_old_table(&mut self, old: &str, work: &mut MigrationWork<'_>) -> Done {
        let schema = self.stored_table(old)?;
        self.delete_table_rows(&schema)?;
        self.follow(schema.id, work)
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
