//! Indexes that the database makes for live queries, beside those of the module: how much building them may take.

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_schema::TableSchema;
use lightcone_types::{ColId, TableId};
use rustc_hash::FxHashSet;

/// Rows for which indexes are built at once, and how many more there may be after each second: building takes the writer some
/// 300 ns for each.
const INDEX_ROWS_MAX: u64 = 4_000_000;
const INDEX_ROWS_PER_SECOND: u64 = 100_000;
/// Indexes that one table has for live queries, beside its own: each makes a change of the table dearer.
const HELD_INDEXES_MAX: usize = 4;
/// How many it has if the module itself needs more, for its rules and views: whoever asks for what takes the places above
/// takes none of these.
const HELD_INDEXES_OF_MODULE_MAX: usize = 8;

/// Columns that the module's own rules look rows up by, with their tables.
pub(crate) type RuleColumns = FxHashSet<(TableId, ColId)>;

/// Who asks for an index.
#[derive(Clone, Copy)]
pub(crate) enum Asker<'r> {
    /// Through a query, into which the module's rules may be drawn.
    Client(&'r RuleColumns),
    /// For a view.
    Module,
}

impl Asker<'_> {
    fn indexes_max(self, table: TableId, column: ColId) -> usize {
        match self {
            Asker::Client(rules) if !rules.contains(&(table, column)) => HELD_INDEXES_MAX,
            _ => HELD_INDEXES_OF_MODULE_MAX,
        }
    }
}

/// What building indexes has taken.
#[derive(Default)]
pub(crate) struct IndexBuilding {
    /// Rows that indexes were built for, less what has been forgiven since.
    rows: u64,
    forgiven_at: Option<Instant>,
}

impl IndexBuilding {
    /// Whether indexes on these columns are there, or may be built now.
    ///
    /// # Errors
    /// What the client is told who asked for what needs them.
    pub fn check<'s>(
        &mut self,
        datastore: &Datastore,
        columns: impl Iterator<Item = (&'s Arc<TableSchema>, ColId)>,
        asker: Asker<'_>,
        now: Instant,
    ) -> Result<(), String> {
        self.forgive(now);
        let mut rows = self.rows;
        let mut built = Vec::new();
        for (schema, column) in columns {
            let Some(table) = datastore.table(schema.id) else {
                continue;
            };
            if table.index_on(column).is_some() || built.contains(&(schema.id, column)) {
                continue;
            }
            let of_table = built.iter().filter(|(table, _)| *table == schema.id);
            let indexes = table.held_indexes() + of_table.count();
            built.push((schema.id, column));
            rows += table.rows().row_count();
            if rows > INDEX_ROWS_MAX || indexes >= asker.indexes_max(schema.id, column) {
                let name = schema.column(column).map_or("", |column| &column.name);
                return Err(format!("the subscription needs an index on the column `{name}` of `{}`, which has none, and building it would take too long now: add an index to the module, or try again later [LC0716]", schema.name));
            }
        }
        Ok(())
    }

    /// Holds an index on a column, and counts what building it takes, if it is not there.
    pub fn hold(&mut self, datastore: &mut Datastore, table: TableId, column: ColId) {
        let missing = datastore.table(table);
        let missing = missing.filter(|table| table.index_on(column).is_none());
        self.rows += missing.map_or(0, |table| table.rows().row_count());
        datastore.hold_index(table, column);
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
