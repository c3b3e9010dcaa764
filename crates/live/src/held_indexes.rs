//! Indexes that the database makes for live queries, beside those of the module: how much building them may take, and who has how
//! many. Those of large tables that clients need are built beside the writer ([`crate::index_build`]).

use std::sync::Arc;
use std::time::Instant;

use lightcone_schema::TableSchema;
use lightcone_table::CurrentTables;
use lightcone_types::{ColId, Identity, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Rows for which indexes are built at once, and how many more there may be after each second: building takes the writer some
/// 300 ns for each.
const INDEX_ROWS_MAX: u64 = 4_000_000;
const INDEX_ROWS_PER_SECOND: u64 = 100_000;
/// Indexes that one table has for live queries, beside its own: each makes a change of the table dearer. One client takes no more
/// than are left for the others.
const HELD_INDEXES_MAX: usize = 8;
/// How many it has if the module itself needs more, for its rules and views. Those that clients need are not among the last ones.
const HELD_INDEXES_OF_MODULE_MAX: usize = 12;

/// An index on a table with at most so many rows is built where it is needed: that takes the writer less than a millisecond.
pub const BUILT_AT_ONCE_ROWS_MAX: u64 = 2048;
/// Indexes that views want at a time.
const WANTED_MAX: usize = 64;

/// Columns that the module's own rules look rows up by, with their tables.
pub type RuleColumns = FxHashSet<(TableId, ColId)>;

/// For whom an index is.
#[derive(Clone, Copy)]
pub enum IndexUser<'r> {
    /// Through a query, into which the module's rules may be drawn.
    Client(&'r RuleColumns),
    /// For a view.
    Module,
}

impl IndexUser<'_> {
    fn indexes_max(self, table: TableId, column: ColId) -> usize {
        match self {
            IndexUser::Client(rules) if !rules.contains(&(table, column)) => HELD_INDEXES_MAX,
            _ => HELD_INDEXES_OF_MODULE_MAX,
        }
    }
}

/// What a client is told.
pub fn no_index(schema: &TableSchema, column: ColId) -> String {
    let name = schema.column(column).map_or("", |column| &column.name);
    format!("the subscription needs an index on the column `{name}` of `{}`, which has none; building it would take too long now, or the table has as many for you as are left for others: add an index to the module, or try again later [LC0716]", schema.name)
}

/// Which client was the first to ask for an index that is held, or is being built.
#[derive(Default)]
pub struct Takers(FxHashMap<(TableId, ColId), Identity>);

impl Takers {
    /// Notes that a client asks for an index that is not there. `building` are those that are being built.
    ///
    /// # Errors
    /// What it is told if it has as many on the table as are left for others.
    pub fn take(
        &mut self,
        tables: &dyn CurrentTables,
        building: &[(TableId, ColId)],
        (schema, column): (&TableSchema, ColId),
        client: Identity,
    ) -> Result<(), String> {
        let Some(table) = tables.current(schema.id) else {
            return Ok(());
        };
        let known = &mut self.0;
        known.retain(|taken, _| {
            let table = tables.current(taken.0);
            building.contains(taken) || table.is_some_and(|table| table.holds_index(taken.1))
        });
        let of_table = known.iter().filter(|((of, _), _)| *of == schema.id);
        let own = of_table.filter(|(_, taker)| **taker == client).count() + 1;
        let under_way = building.iter().filter(|(of, _)| *of == schema.id).count();
        let used = table.held_indexes() + under_way + 1;
        if used > HELD_INDEXES_MAX || own > HELD_INDEXES_MAX - used {
            return Err(no_index(schema, column));
        }
        known.insert((schema.id, column), client);
        Ok(())
    }
}

/// What building indexes on the writer has taken, and which ones are to be built beside it.
#[derive(Default)]
pub struct IndexBuilding {
    /// Rows that indexes were built for, less what has been forgiven since.
    rows: u64,
    forgiven_at: Option<Instant>,
    /// Those that views want: until they are there, their queries are evaluated again each time.
    wanted: Vec<(TableId, ColId)>,
}

impl IndexBuilding {
    /// Whether indexes on these columns are there, or may be built now.
    ///
    /// # Errors
    /// What the client is told who asked for what needs them.
    pub fn check<'s>(
        &mut self,
        tables: &dyn CurrentTables,
        columns: impl Iterator<Item = (&'s Arc<TableSchema>, ColId)>,
        user: IndexUser<'_>,
        now: Instant,
    ) -> Result<(), String> {
        self.forgive(now);
        let mut rows = self.rows;
        let (mut built, mut wanted) = (Vec::new(), None);
        for (schema, column) in columns {
            let Some(table) = tables.current(schema.id) else {
                continue;
            };
            if table.index_on(column).is_some() || built.contains(&(schema.id, column)) {
                continue;
            }
            let of_table = built.iter().filter(|(table, _)| *table == schema.id);
            let indexes = table.held_indexes() + of_table.count();
            built.push((schema.id, column));
            let of_index = table.rows().row_count();
            // Building beside the writer takes nothing of its time.
            let is_beside = matches!(user, IndexUser::Module) && of_index > BUILT_AT_ONCE_ROWS_MAX;
            if !is_beside {
                rows += of_index;
            }
            if rows > INDEX_ROWS_MAX || indexes >= user.indexes_max(schema.id, column) {
                return Err(no_index(schema, column));
            }
            if is_beside {
                self.want((schema.id, column));
                wanted.get_or_insert_with(|| no_index(schema, column));
            }
        }
        wanted.map_or(Ok(()), Err)
    }

    fn want(&mut self, place: (TableId, ColId)) {
        if !self.wanted.contains(&place) && self.wanted.len() < WANTED_MAX {
            self.wanted.push(place);
        }
    }

    /// An index that a view wants, and that is to be built beside the writer.
    pub fn next_wanted(&mut self) -> Option<(TableId, ColId)> {
        self.wanted.pop()
    }

    /// Holds an index on a column, and counts what building it takes, if it is not there.
    pub fn hold(&mut self, tables: &mut dyn CurrentTables, table: TableId, column: ColId) {
        let missing = tables.current(table);
        let missing = missing.filter(|table| table.index_on(column).is_none());
        self.rows += missing.map_or(0, |table| table.rows().row_count());
        tables.hold_index(table, column);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::Items;

    #[test]
    fn views_want_all_indexes_on_large_tables_at_once() {
        let items = Items::new(BUILT_AT_ONCE_ROWS_MAX as u32 + 1, 1);
        let table = items.datastore.table_id_from_name("items").expect("items");
        let schema = items.datastore.schema(table).expect("items");
        // Nothing is left of what may be built on the writer.
        let mut indexes = IndexBuilding {
            rows: INDEX_ROWS_MAX,
            ..IndexBuilding::default()
        };
        let columns = || [ColId(1), ColId(2)].map(|column| (schema, column));
        let (no_rules, now) = (RuleColumns::default(), Instant::now());
        let mut check = |user| {
            let columns = columns().into_iter();
            indexes.check(&items.datastore, columns, user, now)
        };
        assert!(check(IndexUser::Client(&no_rules)).is_err());
        assert!(check(IndexUser::Module).is_err());
        let wanted = [indexes.next_wanted(), indexes.next_wanted()];
        assert_eq!(
            wanted,
            [ColId(2), ColId(1)].map(|column| Some((table, column)))
        );
        assert_eq!(indexes.next_wanted(), None);
    }
}
