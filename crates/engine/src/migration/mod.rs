//! The steps of a migration (02 §14.5): each changes rows of the catalog, in the open transaction, and has the tables follow.
//!
//! A step that fails leaves the transaction good for a rollback only, which takes back all of them.

mod changes;
mod check;
mod copy;
mod set_aside;
mod stored;
mod views;
mod work;

use lightcone_schema::{ModuleDef, Step};
use lightcone_types::ColId;

use self::changes::{declared, remove};
use self::stored::{part, part_mut};
use crate::catalog::schema_of;
use crate::datastore::Datastore;
use crate::system::ST_ROW_LEVEL_SECURITY_ID;

pub(crate) use stored::table_of;
pub(crate) use work::Done;
pub use work::{MigrationError, MigrationWork};

impl Datastore {
    /// Takes one step towards the definition `new`, in the open transaction. Rules of row-level security are added with
    /// [`put_row_level_security`](Self::put_row_level_security) instead; running the migration function is the caller's, between
    /// [`carry_counters`](Self::carry_counters) and [`settle_counters`](Self::settle_counters), and so is what comes before and after
    /// a backfill; disconnecting is nothing that tables know of.
    ///
    /// # Errors
    /// The rows do not allow it, or `work` has ended. The transaction is only good for a rollback then.
    pub fn migrate(&mut self, step: &Step, new: &ModuleDef, work: &mut MigrationWork<'_>) -> Done {
        self.require_transaction()?;
        work.ask()?;
        match step {
            Step::RemoveIndex { table, index } => {
                self.change(table, work, |schema| remove(&mut schema.indexes, index))
            }
            Step::RemoveConstraint { table, constraint } => self.change(table, work, |schema| {
                remove(&mut schema.constraints, constraint)
            }),
            Step::RemoveSequence { table, sequence } => self.change(table, work, |schema| {
                remove(&mut schema.sequences, sequence)
            }),
            Step::RemoveSchedule { table } => self.change(table, work, |schema| {
                let removed = schema.schedule.take();
                removed
                    .map(drop)
                    .ok_or_else(|| plan(table, "has no schedule"))
            }),
            Step::RemoveView { view } => self.remove_view(view, work),
            Step::RemoveRowLevelSecurity { sql } => {
                let rules = (ST_ROW_LEVEL_SECURITY_ID, ColId(1));
                self.delete_catalog_rows(rules, sql)?;
                Ok(())
            }
            Step::RemoveTable { table } => self.remove_user_table(table, work),
            Step::ChangeColumns { table } => self.change_columns(table, new, work),
            Step::ReschemaEventTable { table } => self.reschema_event_table(table, new, work),
            Step::AddColumns { table } => self.add_columns(table, new, work),
            Step::ChangeIndexSourceName { table, index } => {
                let def = declared(new, table)?;
                let changed = part(&def.indexes, index)?;
                self.change(table, work, |schema| {
                    part_mut(&mut schema.indexes, index)?.accessor = changed.accessor.clone();
                    Ok(())
                })
            }
            Step::ChangeTableAccessorName { table } => {
                let def = declared(new, table)?;
                self.change(table, work, |schema| {
                    schema.accessor = def.accessor;
                    Ok(())
                })
            }
            Step::ChangeColumnAccessorName { table, column } => {
                let def = declared(new, table)?;
                let changed = part(&def.columns, column)?;
                self.change(table, work, |schema| {
                    part_mut(&mut schema.columns, column)?.accessor = changed.accessor.clone();
                    Ok(())
                })
            }
            Step::AddTable { table } => self.add_user_table(table, new, work),
            Step::AddIndex { table, index } => self.add_index(table, index, new, work),
            Step::AddConstraint { table, constraint } => {
                self.add_constraint(table, constraint, new, work)
            }
            Step::AddSequence { table, sequence } => {
                let def = schema_of(table_of(new, table)?);
                let added = part(&def.sequences, sequence)?;
                self.change(table, work, |schema| {
                    schema.sequences.push(added.clone());
                    Ok(())
                })
            }
            Step::AddSchedule { table } => {
                let added = schema_of(table_of(new, table)?).schedule;
                self.change(table, work, |schema| {
                    schema.schedule = added;
                    match schema.schedule {
                        Some(_) => Ok(()),
                        None => Err(plan(table, "gets no schedule")),
                    }
                })
            }
            Step::ChangeOutbox { table } => {
                let outbox = schema_of(table_of(new, table)?).outbox;
                self.change(table, work, |schema| {
                    schema.outbox = outbox;
                    Ok(())
                })
            }
            Step::AddView { view } => self.add_view(view, new),
            Step::ChangeAccess { table } => {
                let def = declared(new, table)?;
                self.change(table, work, |schema| {
                    schema.access = def.access;
                    Ok(())
                })
            }
            Step::ChangePrimaryKey { table } => {
                let primary_key = table_of(new, table)?.primary_key;
                self.change(table, work, |schema| {
                    schema.primary_key = primary_key;
                    Ok(())
                })
            }
            Step::UpdateView { view } => self.update_view(view, new),
            Step::SetAsideTable { table, old } => self.set_aside(table, old, new, work),
            Step::RemoveOldTable { table } => self.remove_table_of(table, work),
            Step::AddRowLevelSecurity { .. }
            | Step::RunMigration
            | Step::Backfill
            | Step::DisconnectAllUsers => Ok(()),
        }
    }
}

fn plan(table: &str, detail: &str) -> MigrationError {
    MigrationError::Plan(format!("`{table}` {detail}"))
}
