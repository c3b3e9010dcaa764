//! Indexes that the database makes for live queries, beside those of the module: how much building them may take.

use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_schema::TableSchema;
use lightcone_types::ColId;

/// Rows for which indexes are built at once, and how many more there may be after each second: building takes the writer some
/// 300 ns for each.
const INDEX_ROWS_MAX: u64 = 4_000_000;
const INDEX_ROWS_PER_SECOND: u64 = 100_000;
/// Indexes that one table has for live queries, beside its own: each makes a change of the table dearer.
const HELD_INDEXES_MAX: usize = 4;

/// What building indexes has taken.
#[derive(Default)]
pub(crate) struct IndexBuilding {
    /// Rows that indexes were built for, less what has been forgiven since.
    rows: u64,
    forgiven_at: Option<Instant>,
}

impl IndexBuilding {
    /// Takes what building an index on a column takes, unless it is there.
    ///
    /// # Errors
    /// What the client is told who asked for what needs it: building it would be too much now.
    pub fn take(
        &mut self,
        datastore: &Datastore,
        schema: &TableSchema,
        column: ColId,
        now: Instant,
    ) -> Result<(), String> {
        let Some(table) = datastore.table(schema.id) else {
            return Ok(());
        };
        if table.index_on(column).is_some() {
            return Ok(());
        }
        self.forgive(now);
        let rows = self.rows + table.rows().row_count();
        if rows > INDEX_ROWS_MAX || table.held_indexes() >= HELD_INDEXES_MAX {
            let name = schema.column(column).map_or("", |column| &column.name);
            return Err(format!("the subscription needs an index on the column `{name}` of `{}`, which has none, and building it for the subscription would take too long now: add an index to the module, or try again later [LC0716]", schema.name));
        }
        self.rows = rows;
        Ok(())
    }

    fn forgive(&mut self, now: Instant) {
        let since = *self.forgiven_at.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs();
        if seconds > 0 {
            let rows = seconds.saturating_mul(INDEX_ROWS_PER_SECOND);
            self.rows = self.rows.saturating_sub(rows);
            self.forgiven_at = Some(now);
        }
    }
}
