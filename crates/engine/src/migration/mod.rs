//! The steps of a migration (02 §14.5): each changes rows of the catalog, in the open transaction, and has the tables follow.
//!
//! A step that fails leaves the transaction good for a rollback only, which takes back all of them.

mod check;
mod columns;
mod copy;
mod parts;
mod set_aside;
mod stored;
mod tables;
mod views;
mod work;

use lightcone_schema::{ModuleDef, Step};

use crate::datastore::Datastore;

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
            Step::RemoveIndex { table, index } => self.remove_index(table, index, work),
            Step::RemoveConstraint { table, constraint } => {
                self.remove_constraint(table, constraint, work)
            }
            Step::RemoveSequence { table, sequence } => self.remove_sequence(table, sequence, work),
            Step::RemoveSchedule { table } => self.remove_schedule(table, work),
            Step::RemoveView { view } => self.remove_view(view, work),
            Step::RemoveRowLevelSecurity { sql } => self.remove_row_level_security(sql),
            Step::RemoveTable { table } => self.remove_user_table(table, work),
            Step::ChangeColumns { table } => self.change_columns(table, new, work),
            Step::ReschemaEventTable { table } => self.reschema_event_table(table, new, work),
            Step::AddColumns { table } => self.add_columns(table, new, work),
            Step::ChangeIndexSourceName { table, index } => {
                self.change_index_source_name(table, index, new, work)
            }
            Step::ChangeTableAccessorName { table } => self.change_table_accessor(table, new, work),
            Step::ChangeColumnAccessorName { table, column } => {
                self.change_column_accessor(table, column, new, work)
            }
            Step::AddTable { table } => self.add_user_table(table, new, work),
            Step::AddIndex { table, index } => self.add_index(table, index, new, work),
            Step::AddConstraint { table, constraint } => {
                self.add_constraint(table, constraint, new, work)
            }
            Step::AddSequence { table, sequence } => self.add_sequence(table, sequence, new, work),
            Step::AddSchedule { table } => self.add_schedule(table, new, work),
            Step::AddView { view } => self.add_view(view, new),
            Step::ChangeAccess { table } => self.change_access(table, new, work),
            Step::ChangePrimaryKey { table } => self.change_primary_key(table, new, work),
            Step::UpdateView { view } => self.update_view(view, new),
            Step::SetAsideTable { table, old } => self.set_aside(table, old, new, work),
            Step::RemoveOldTable { table } => self.remove_old_table(table, work),
            Step::AddRowLevelSecurity { .. }
            | Step::RunMigration
            | Step::Backfill
            | Step::DisconnectAllUsers => Ok(()),
        }
    }
}
