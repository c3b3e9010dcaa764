//! Queries that are registered, as the writer and fan-out have them.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use lightcone_query::{Fragment, Predicate, Query, Routing, SelectPlan, SqlError};
use lightcone_schema::TableSchema;
use lightcone_types::{ColId, Identity, TableId};

use crate::bound_query::{BoundQuery, BoundWindow, Shapes};
use crate::joins::JoinShape;

/// Stands in the place of a column for the key of a changed row of a join or window.
pub const KEY_COLUMN: ColId = ColId(u16::MAX);

/// Steps of a query for each row that it is checked against, before those of its predicate: finding it, and noting that it
/// matched.
const QUERY_STEPS: usize = 8;
/// Where a predicate's steps depend on the size of a row, which is not known yet, it has so many bytes.
const ROW_BYTES: usize = 512;

/// A query of a query set.
pub struct LiveQuery {
    /// What its rows are found with.
    pub query: BoundQuery,
    /// Whose rows come out.
    pub table: Arc<TableSchema>,
    /// The join that it is, if it is one: with its parameters' values as the group's.
    pub join: Option<Arc<JoinShape>>,
    pub key: Arc<QueryKey>,
    pub group: Arc<Group>,
    /// What is left to check for the rows of the group.
    pub residual: Option<Predicate>,
    /// How fan-out finds it, if it is by more than the value of its group. What it costs is counted by the group nevertheless, as one
    /// row may meet any part of those of a group.
    pub route: Option<Box<Routing>>,
}

/// Queries with the same key match the same rows, whatever their texts: the plan, with its constants and the caller.
#[derive(PartialEq, Eq)]
pub struct QueryKey {
    hash: u64,
    /// Or the shape of a join or window: a new version of the module has shapes of its own.
    table: TableId,
    predicate: Option<Predicate>,
    /// That of a shape.
    key: Option<Box<[u8]>>,
}

/// What queries ask for, without the values: those of many clients are of few shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueryShape {
    /// Whose rows come out.
    pub table: TableId,
    pub kind: QueryShapeKind,
    /// The column that must have one value.
    pub by: Option<ColId>,
    /// There are other conditions on the row.
    pub is_filtered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryShapeKind {
    /// Of one table.
    Rows,
    /// Of several tables, or with subqueries.
    Join,
    /// With an order and a limit.
    Window,
}

/// Queries that a changed row is checked against together: those of a table, join or window that need one value in a column, found by
/// it, or those without such a value.
#[derive(PartialEq, Eq)]
pub struct Group {
    hash: u64,
    pub table: TableId,
    pub equality: Option<(ColId, Box<[u8]>)>,
}

/// Clients choose values, also long ones: they are hashed once, when they are compiled, and with a secret, so that they cannot be made
/// to meet in one place.
fn hash_of(value: &impl Hash) -> u64 {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SECRET.hash_one(value)
}

impl Hash for QueryKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl QueryKey {
    fn new(table: TableId, predicate: Option<Predicate>, key: Option<Box<[u8]>>) -> QueryKey {
        QueryKey {
            hash: hash_of(&(table, &predicate, &key)),
            table,
            predicate,
            key,
        }
    }
}

impl Group {
    fn of(table: TableId, equality: Option<(ColId, Box<[u8]>)>) -> Group {
        Group {
            hash: hash_of(&(table, &equality)),
            table,
            equality,
        }
    }
}

impl LiveQuery {
    pub fn shape(&self) -> QueryShape {
        let kind = match &self.query {
            BoundQuery::Window(_) => QueryShapeKind::Window,
            _ if self.join.is_some() => QueryShapeKind::Join,
            BoundQuery::Table(_) | BoundQuery::Tables(..) => QueryShapeKind::Rows,
        };
        let equality = self.group.equality.as_ref();
        let column = equality.map(|(column, _)| *column);
        QueryShape {
            table: self.table.id,
            kind,
            by: column.filter(|column| *column != KEY_COLUMN),
            is_filtered: self.residual.is_some(),
        }
    }

    pub fn new(plan: SelectPlan) -> LiveQuery {
        let routing = plan.routing();
        let has_one_value = |(_, values): &&(ColId, Vec<Box<[u8]>>)| values.len() == 1;
        let first = plan.equalities.iter().find(|(column, _)| {
            let mut single = routing.equal.iter().filter(has_one_value);
            single.any(|(other, _)| other == column)
        });
        let equality = first.cloned();
        let residual = match &equality {
            Some((column, _)) => plan.residual(&[*column]),
            None => plan.predicate.clone(),
        };
        let found_by = routing.equal.len() + routing.between.len();
        let is_more = found_by > usize::from(equality.is_some());
        let key = QueryKey::new(plan.table.id, plan.predicate.clone(), None);
        LiveQuery {
            key: Arc::new(key),
            group: Arc::new(Group::of(plan.table.id, equality)),
            residual,
            route: is_more.then(|| Box::new(routing)),
            table: plan.table.clone(),
            join: None,
            query: BoundQuery::Table(Arc::new(plan)),
        }
    }

    /// The live query of a fragment that is admitted.
    ///
    /// # Errors
    /// It is none that can be kept up to date.
    pub fn of_fragment(
        query: &Query,
        fragment: &Fragment,
        caller: &Identity,
        shapes: &Shapes,
    ) -> Result<LiveQuery, String> {
        let live = LiveQuery::of_rows(query, fragment, caller, shapes);
        live.ok_or_else(|| "the query is not admissible".to_owned())
    }

    /// The live query of a window that is admitted: one of all its fragments.
    ///
    /// # Errors
    /// No index helps to keep it up to date.
    pub fn of_window(
        query: &Query,
        caller: &Identity,
        shapes: &Shapes,
    ) -> Result<LiveQuery, String> {
        let Some(rows) = BoundWindow::new(query, caller, shapes) else {
            return Err(SqlError::Window("the first column of ORDER BY has an index without an order, which is of the kind `hash`: make it `btree`").to_string());
        };
        let (table, key) = (rows.shape.table.clone(), rows.key.clone());
        let (shape, query) = (rows.shape.id, BoundQuery::Window(Arc::new(rows)));
        Ok(LiveQuery::of_shape((shape, key), table, None, query))
    }

    fn of_rows(
        query: &Query,
        fragment: &Fragment,
        caller: &Identity,
        shapes: &Shapes,
    ) -> Option<LiveQuery> {
        if let Some(plan) = query.select_plan(fragment, caller) {
            return Some(LiveQuery::new(plan));
        }
        let (shape, key) = shapes.joins.shape_of(&query.live_join(fragment, caller)?);
        let (id, table) = (shape.id, shape.returned_table().clone());
        let query = BoundQuery::Tables(Arc::new(query.of_fragment(fragment)), *caller);
        Some(LiveQuery::of_shape((id, key), table, Some(shape), query))
    }

    /// The live query with a key of a shape of joins or windows.
    fn of_shape(
        (shape, key): (TableId, Box<[u8]>),
        table: Arc<TableSchema>,
        join: Option<Arc<JoinShape>>,
        query: BoundQuery,
    ) -> LiveQuery {
        LiveQuery {
            key: Arc::new(QueryKey::new(shape, None, Some(key.clone()))),
            group: Arc::new(Group::of(shape, Some((KEY_COLUMN, key)))),
            residual: None,
            route: None,
            table,
            join,
            query,
        }
    }

    /// The tables whose changes concern it.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        let joined = self.joins().flat_map(|(shape, _)| shape.tables());
        joined.chain(self.join.is_none().then_some(self.table.id))
    }

    /// The joins whose changes concern it, and the keys of these: what it is, or what decides what is in it.
    pub fn joins(&self) -> impl Iterator<Item = (&Arc<JoinShape>, &[u8])> {
        let key = self.group.equality.as_ref().map(|(_, key)| &**key);
        let own = self.join.iter().zip(key);
        let window = self.window().into_iter();
        own.chain(window.flat_map(|window| window.shape.joins(&window.key)))
    }

    /// The keys of its sources, with their table, if it is a window with sources.
    pub fn window_keys(&self) -> impl Iterator<Item = (TableId, Box<[u8]>)> + '_ {
        let keys = |window: &'_ Arc<BoundWindow>| -> Vec<Box<[u8]>> {
            let keys = window.shape.source_keys(&window.key);
            keys.map(Box::from).collect()
        };
        let keys = self.window().map(keys).unwrap_or_default();
        keys.into_iter().map(move |key| (self.table.id, key))
    }

    /// All tables that it reads.
    pub fn read_tables(&self) -> Vec<TableId> {
        let asked = self.query.read_tables().into_iter().map(|table| table.id);
        self.tables().chain(asked).collect()
    }

    /// What a changed row costs that the query is checked against: so many steps of a few nanoseconds.
    pub fn steps(&self) -> usize {
        let residual = self.residual.as_ref();
        QUERY_STEPS + residual.map_or(0, |residual| residual.steps(ROW_BYTES))
    }

    /// The window that it is.
    pub fn window(&self) -> Option<&Arc<BoundWindow>> {
        match &self.query {
            BoundQuery::Window(rows) => Some(rows),
            _ => None,
        }
    }

    /// The columns by which its rows are found and for which the module has no index.
    pub fn held_columns(&self) -> impl Iterator<Item = (&Arc<TableSchema>, ColId)> {
        let of_joins = self.joins().flat_map(|(shape, _)| shape.looked_up_by());
        let window = self.window();
        let of_window =
            window.and_then(|rows| Some((&rows.shape.table, rows.shape.held_column()?)));
        let held = of_joins.chain(of_window);
        held.filter(|(table, column)| !table.has_index_on(*column))
    }

    /// What it has in common with queries that are kept up to date together with it.
    pub fn shape_id(&self) -> Option<TableId> {
        let join = self.join.as_ref().map(|shape| shape.id);
        join.or_else(|| self.window().map(|window| window.shape.id))
    }

    /// Whether changed rows are tried for it although others have its shape.
    pub fn is_tried_by_itself(&self) -> bool {
        self.join.as_ref().is_some_and(|shape| shape.tries_all_keys)
    }

    /// What a changed row costs that is looked at for its shape.
    pub fn shape_steps(&self) -> usize {
        let join = self.join.as_ref().map(|shape| shape.steps(ROW_BYTES));
        let window = self.window().map(|window| window.shape.steps(ROW_BYTES));
        join.or(window).unwrap_or(0)
    }

    /// What counts of these for its connection: none, if finding the query by its value is all there is to do.
    pub fn steps_of_connection(&self) -> usize {
        let is_only_found = self.group.equality.is_some() && self.residual.is_none();
        let own = if is_only_found { 0 } else { self.steps() };
        own + self.shape_steps()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let value = self.group.equality.as_ref().map_or(0, |(_, v)| v.len());
        // Without a value, this is the plan's own predicate.
        let residual = match &self.group.equality {
            Some(_) => self.residual.as_ref().map_or(0, Predicate::memory_bytes),
            None => 0,
        };
        size_of::<LiveQuery>()
            + size_of::<QueryKey>()
            + size_of::<Group>()
            + self.query.memory_bytes()
            + self.join.as_ref().map_or(0, |shape| shape.memory_bytes())
            + self
                .window()
                .map_or(0, |window| window.shape.memory_bytes())
            + 2 * value
            + residual
            + self.route.as_ref().map_or(0, |route| route.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, DefaultHasher};

    use super::*;
    use crate::items::Items;

    #[test]
    fn values_are_hashed_with_a_secret() {
        let query = LiveQuery::new(Items::new(0, 0).plan("id = 1"));
        let key = (query.key.table, &query.key.predicate, &query.key.key);
        let group = (query.group.table, &query.group.equality);
        let without = BuildHasherDefault::<DefaultHasher>::default();
        assert_ne!(query.key.hash, without.hash_one(key));
        assert_ne!(query.group.hash, without.hash_one(group));
        let fast = rustc_hash::FxBuildHasher;
        assert_ne!(query.key.hash, fast.hash_one(key));
        assert_ne!(query.group.hash, fast.hash_one(group));
    }
}
