//! What live windows have in common: all that differ in the values of their parameters are one shape.

use std::sync::Arc;

use lightcone_query::{LiveWindow, Predicate, RowOrder};
use lightcone_schema::{IndexAlgorithm, TableSchema};
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, TableId};

use super::source::{Source, SourceKeys, SourcePlan};
use super::window::{Extent, Weight};
use crate::joins::{JoinShape, JoinShapes, Reading, STEPS_PER_ROW};
use crate::registry::Registry;
use crate::shape_id::ShapeId;

/// Steps of a shape for each changed row, before those of its predicate: its key, its place in the order.
const LOOK_UP_STEPS: usize = 32;
/// The same for each column of key and order.
const COLUMN_STEPS: usize = 8;
/// Rows that a window keeps for which a step is counted: those behind a row that comes or goes are moved.
const MOVED_ROWS_PER_STEP: usize = 8;

/// So many sources are asked about a row for as much as looking at another one, beside their conditions and matches.
pub(super) const SOURCES_PER_ROW: usize = 8;

/// A window over one table, but for the values of its parameters.
pub struct WindowShape {
    /// Stands in the place of a table: changes of the window's rows are those of this "table".
    pub id: TableId,
    _id: ShapeId,
    pub table: Arc<TableSchema>,
    pub layout: RowLayout,
    predicate: Option<Predicate>,
    parameters: Vec<ColId>,
    order: RowOrder,
    /// The column that rows are sorted by first.
    pub first_column: ColId,
    pub descending: bool,
    pub extent: Extent,
    /// Ways of finding rows, the best first.
    pub accesses: Vec<Access>,
    /// What gives its rows, if these alone do not decide about themselves.
    pub(super) sources: Vec<Source>,
}

/// A way of finding the rows of a window.
#[derive(Clone, Debug)]
pub enum Access {
    /// An index whose first columns are parameters, and the next one is the first of the order. Without a position, it is held.
    Ordered {
        index: Option<usize>,
        prefix: Vec<usize>,
    },
    /// An index on parameters alone. Without a position, it is held on the first one.
    Point {
        index: Option<usize>,
        columns: Vec<usize>,
    },
    /// The query is evaluated, which begins with its sources.
    Query,
}

impl WindowShape {
    fn new(window: &LiveWindow, sources: Vec<Source>) -> Option<WindowShape> {
        let columns = window.table.columns.iter();
        let types: Vec<AlgebraicType> = columns.map(|column| column.ty.clone()).collect();
        let parameters = window.parameters.iter().map(|(column, _)| *column);
        let parameters: Vec<ColId> = parameters.collect();
        let (first_column, descending) = window.order.first()?;
        let to_usize = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let start = to_usize(window.offset);
        let id = ShapeId::take();
        let mut accesses = accesses(&window.table, &parameters, first_column)?;
        if !sources.is_empty() {
            accesses.push(Access::Query);
        }
        Some(WindowShape {
            id: id.as_table(),
            _id: id,
            accesses,
            sources,
            table: window.table.clone(),
            layout: RowLayout::new(&types),
            predicate: window.predicate.clone(),
            parameters,
            order: window.order.clone(),
            first_column,
            descending,
            extent: Extent::new(start, start.saturating_add(to_usize(window.limit))),
        })
    }

    /// Whether a row may be in one of the windows.
    pub fn admits(&self, row: &[u8]) -> bool {
        let predicate = self.predicate.as_ref();
        predicate.is_none_or(|predicate| predicate.matches(&self.layout, row))
    }

    /// Writes what the parameters are for a row.
    pub fn write_key(&self, row: &[u8], key: &mut Vec<u8>) {
        key.clear();
        for column in &self.parameters {
            key.extend_from_slice(self.layout.column(row, usize::from(column.0)));
        }
    }

    /// Writes the row behind its sort key, whose length it gives.
    pub fn write_entry(&self, row: &[u8], entry: &mut Vec<u8>) -> usize {
        self.write_sort_key(row, entry);
        let key_len = entry.len();
        entry.extend_from_slice(row);
        key_len
    }

    /// Writes the sort key of a row.
    pub fn write_sort_key(&self, row: &[u8], entry: &mut Vec<u8>) {
        entry.clear();
        self.order.push_key(&self.layout, row, entry);
    }

    /// How often its sources give a row of the table to the window with this key. None: there would be more to look at than may be.
    pub(super) fn weight(
        &self,
        reading: &mut Reading<'_>,
        key: &[u8],
        row: &[u8],
    ) -> Option<Weight> {
        reading.spend(self.sources.len() / SOURCES_PER_ROW)?;
        let mut weight = Weight::default();
        for (source, key) in self.sources.iter().zip(self.source_keys(key)) {
            weight.add(source.weight(&self.layout, reading, (row, key))?);
        }
        Some(weight)
    }

    /// The values of the window's own parameters in its key.
    pub(super) fn own_key<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let lengths = self.values(key).map(<[u8]>::len);
        &key[..lengths.sum::<usize>()]
    }

    /// The keys of the sources in the key of a window.
    pub fn source_keys<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = &'k [u8]> + use<'k> {
        SourceKeys(&key[self.own_key(key).len()..])
    }

    /// The joins among its sources, with their keys.
    pub fn joins<'s>(
        &'s self,
        key: &'s [u8],
    ) -> impl Iterator<Item = (&'s Arc<JoinShape>, &'s [u8])> {
        let sources = self.sources.iter().zip(self.source_keys(key));
        sources.filter_map(|(source, key)| Some((source.join()?, key)))
    }

    /// The table or join by whose changes it hears of each of its sources.
    pub(super) fn read_by_sources(&self) -> impl Iterator<Item = TableId> + '_ {
        let of_source = |source: &Source| source.join().map_or(self.table.id, |join| join.id);
        let own = self.sources.is_empty().then_some(self.table.id);
        own.into_iter().chain(self.sources.iter().map(of_source))
    }

    /// The value of a parameter in a key.
    pub fn value<'k>(&self, key: &'k [u8], parameter: usize) -> &'k [u8] {
        self.values(key).nth(parameter).unwrap_or_default()
    }

    /// The values of the parameters in a key.
    fn values<'s, 'k>(&'s self, key: &'k [u8]) -> impl Iterator<Item = &'k [u8]> + use<'s, 'k> {
        let mut rest = key;
        self.parameters.iter().map(move |column| {
            let length = self.layout.check_column(usize::from(column.0), rest);
            let length = length.expect("keys are values of the parameters' types");
            let (value, behind) = rest.split_at(length);
            rest = behind;
            value
        })
    }

    /// The tables and columns whose indexes have to be held for its windows, and for what decides about their rows.
    pub fn held_columns(&self) -> impl Iterator<Item = (&Arc<TableSchema>, ColId)> {
        let own = self.held_column().map(|column| (&self.table, column));
        let joins = self.sources.iter().filter_map(Source::join);
        own.into_iter()
            .chain(joins.flat_map(|join| join.looked_up_by()))
    }

    /// The column whose index has to be held to find rows in their order or by a parameter, if the table has none that helps.
    pub fn held_column(&self) -> Option<ColId> {
        match self.accesses.first()? {
            Access::Ordered { index: None, .. } => Some(self.first_column),
            Access::Point { index: None, .. } => self.parameters.first().copied(),
            _ => None,
        }
    }

    /// Whether the first way gives the rows of a window in their order, and no others.
    pub fn is_walked_in_order(&self) -> bool {
        let is_all = |prefix: &[usize]| {
            let mut parameters = 0..self.parameters.len();
            parameters.all(|parameter| {
                let column = self.parameters[parameter];
                prefix.iter().any(|place| self.parameters[*place] == column)
            })
        };
        match self.accesses.first() {
            Some(Access::Ordered { prefix, .. }) => {
                self.sources.is_empty() && self.predicate.is_none() && is_all(prefix)
            }
            _ => false,
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let predicate = self.predicate.as_ref().map_or(0, Predicate::memory_bytes);
        let sources = self.sources.iter().map(Source::memory_bytes);
        size_of::<WindowShape>()
            + predicate
            + sources.sum::<usize>()
            + self.order.0.len() * size_of::<(ColId, bool)>()
            + self.parameters.len() * size_of::<ColId>()
    }

    /// What looking at a row of a table costs, counted in rows without a condition.
    #[inline]
    pub fn cost_in_rows(&self, row_bytes: usize) -> usize {
        let predicate = self.predicate.as_ref();
        1 + predicate.map_or(0, |predicate| predicate.steps(row_bytes) / STEPS_PER_ROW)
    }

    /// What a changed row costs that is looked at for this shape.
    pub fn steps(&self, row_bytes: usize) -> usize {
        let columns = self.order.0.len() + self.parameters.len();
        let predicate = self.predicate.as_ref();
        let predicate = predicate.map_or(0, |predicate| predicate.steps(row_bytes));
        let moved = self.extent.kept_rows() / MOVED_ROWS_PER_STEP;
        let sources = self.sources.iter().map(|source| source.steps(row_bytes));
        LOOK_UP_STEPS + columns * COLUMN_STEPS + predicate + moved + sources.sum::<usize>()
    }
}

/// None if the only index on the column to be walked has no order.
fn accesses(table: &TableSchema, parameters: &[ColId], first: ColId) -> Option<Vec<Access>> {
    let place = |column: &ColId| parameters.iter().position(|parameter| parameter == column);
    let (mut ordered, mut points) = (Vec::new(), Vec::new());
    for (position, index) in table.indexes.iter().enumerate() {
        let columns = index.algorithm.columns();
        let index_position = Some(position);
        let leading = columns.iter().take_while(|column| **column != first);
        let prefix: Option<Vec<usize>> = leading.map(place).collect();
        let is_ordered = !matches!(index.algorithm, IndexAlgorithm::Hash(_));
        match prefix {
            Some(prefix) if is_ordered && prefix.len() < columns.len() => {
                ordered.push(Access::Ordered {
                    index: index_position,
                    prefix,
                });
            }
            _ => {}
        }
        let all: Option<Vec<usize>> = columns.iter().map(place).collect();
        points.extend(all.map(|columns| Access::Point {
            index: index_position,
            columns,
        }));
    }
    let prefix_len = |access: &Access| match access {
        Access::Ordered { prefix, .. } => prefix.len(),
        Access::Point { .. } | Access::Query => 0,
    };
    ordered.sort_by_key(|access| std::cmp::Reverse(prefix_len(access)));
    let has_prefix = |access: &Access| prefix_len(access) > 0;
    let (narrow, wide): (Vec<_>, Vec<_>) = ordered.into_iter().partition(has_prefix);
    let mut accesses: Vec<Access> = narrow.into_iter().take(1).chain(points).collect();
    if accesses.is_empty() && !parameters.is_empty() {
        accesses.push(Access::Point {
            index: None,
            columns: vec![0],
        });
    }
    accesses.extend(wide.into_iter().take(1));
    if accesses.is_empty() {
        // No other can be held beside an index on the same column.
        if table.has_index_on(first) {
            return None;
        }
        accesses.push(Access::Ordered {
            index: None,
            prefix: Vec::new(),
        });
    }
    Some(accesses)
}

/// The shapes of all live windows of one version of a module.
#[derive(Default)]
pub struct WindowShapes(Registry<Plan, WindowShape>);

/// What makes a shape: a window without the values of its parameters.
#[derive(PartialEq, Eq, Hash)]
struct Plan {
    table: TableId,
    parameters: Vec<ColId>,
    predicate: Option<Predicate>,
    order: RowOrder,
    rows: (u64, u64),
    sources: Vec<SourcePlan>,
}

impl WindowShapes {
    /// The shape of a window, and the key that its parameters have, with those of its sources. None if no index helps to keep it up
    /// to date.
    pub fn shape_of(
        &self,
        window: &LiveWindow,
        joins: &JoinShapes,
    ) -> Option<(Arc<WindowShape>, Box<[u8]>)> {
        let parameters = window.parameters.iter();
        let values = parameters.clone().flat_map(|(_, value)| value.iter());
        let mut key: Vec<u8> = values.copied().collect();
        let mut sources = Vec::with_capacity(window.sources.len());
        for source in &window.sources {
            let (source, of_source) = Source::new(source, joins);
            SourceKeys::push(&of_source, &mut key);
            sources.push(source);
        }
        let plan = Plan {
            table: window.table.id,
            parameters: parameters.map(|(column, _)| *column).collect(),
            predicate: window.predicate.clone(),
            order: window.order.clone(),
            rows: (window.offset, window.limit),
            sources: sources.iter().map(Source::plan).collect(),
        };
        let make = || WindowShape::new(window, sources);
        Some((self.0.find_or_make(plan, make)?, key.into()))
    }
}
