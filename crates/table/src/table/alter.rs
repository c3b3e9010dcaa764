//! Another schema for a table that has rows, and the way back. Rows stay where they are; indexes that stay are not built again.

use std::sync::Arc;

use lightcone_schema::{IndexSchema, TableSchema};
use lightcone_types::bsatn::DecodeError;

use super::held::{held_index, HeldIndex};
use super::{unique_positions, InsertError, RowSet, Table, TableView};
use crate::error::Error;
use crate::index::Index;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;

/// Groups of rows with one key that an error names at most.
pub const CLASHES_MAX: usize = 10;
/// Rows between two questions whether to go on.
const TICK_ROWS: u64 = 1024;

/// Called now and then, with how many rows were looked at since the last time: false ends the work.
pub type Tick<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Why a table cannot have another schema, or the rows of another table.
#[derive(Debug, thiserror::Error)]
pub enum AlterError {
    /// The unique index at this position of the new schema would hold several rows with one key.
    #[error("several rows have the same key in unique index {index}")]
    NotUnique { index: usize, clashes: Clashes },
    /// `tick` said no.
    #[error("it was stopped")]
    Stopped,
    #[error(transparent)]
    Other(#[from] Error),
}

/// Rows that have one key.
#[derive(Debug, Default)]
pub struct Clashes {
    /// The first row with the key, and how many there are; at most [`CLASHES_MAX`] groups.
    pub groups: Vec<(RowId, u64)>,
    /// There are more groups.
    pub has_more: bool,
}

impl Clashes {
    fn note(&mut self, first: RowId) {
        if let Some((_, count)) = self.groups.iter_mut().find(|(row, _)| *row == first) {
            *count += 1;
        } else if self.groups.len() < CLASHES_MAX {
            self.groups.push((first, 2));
        } else {
            self.has_more = true;
        }
    }
}

/// The parts of a table before [`Table::alter`].
pub struct Altered {
    schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    unique: Vec<usize>,
    row_set: RowSetBefore,
    /// In the order of the old schema.
    indexes: Vec<IndexBefore>,
}

impl Altered {
    /// The schema that the table had.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }
}

enum IndexBefore {
    /// Its position now.
    Kept(usize),
    Gone(Box<Index>),
}

enum RowSetBefore {
    AsNow,
    Gone(RowSet),
    None,
}

/// Calls `visit` with each row until it returns false, and `tick` now and then.
fn walk_ticking(
    rows: &RowStore,
    tick: Tick<'_>,
    mut visit: impl FnMut(RowId, &[u8]) -> bool,
) -> Result<(), AlterError> {
    let (mut count, mut is_stopped) = (0, false);
    rows.walk(None, |id, row| {
        if !visit(id, row) {
            return false;
        }
        count += 1;
        if count == TICK_ROWS {
            count = 0;
            is_stopped = !tick(TICK_ROWS);
        }
        !is_stopped
    });
    match is_stopped || !tick(count) {
        true => Err(AlterError::Stopped),
        false => Ok(()),
    }
}

fn check_row(layout: &RowLayout, row: &[u8]) -> Result<(), Error> {
    match layout.validate(row)? {
        length if length == row.len() => Ok(()),
        length => Err(Error::Decode(DecodeError::InvalidLen {
            expected: length,
            given: row.len(),
        })),
    }
}

fn validate_rows(rows: &RowStore, layout: &RowLayout, tick: Tick<'_>) -> Result<(), AlterError> {
    let mut valid = Ok(());
    let walked = walk_ticking(rows, tick, |_, row| {
        valid = check_row(layout, row);
        valid.is_ok()
    });
    valid?;
    walked
}

/// An index over these rows.
fn build(
    (rows, layout): (&RowStore, &RowLayout),
    (position, schema): (usize, &IndexSchema),
    tick: Tick<'_>,
) -> Result<Index, AlterError> {
    let mut index = Index::new(&schema.algorithm, schema.unique, layout);
    let mut clashes = Clashes::default();
    walk_ticking(rows, tick, |id, row| {
        let first = match schema.unique {
            true => index.find_row(rows, layout, row),
            false => None,
        };
        match first {
            Some(first) => clashes.note(first),
            None => index.insert(rows, layout, id),
        }
        true
    })?;
    match clashes.groups.is_empty() {
        true => Ok(index),
        false => Err(AlterError::NotUnique {
            index: position,
            clashes,
        }),
    }
}

fn build_row_set(rows: &RowStore, tick: Tick<'_>) -> Result<RowSet, AlterError> {
    let mut set = RowSet::default();
    walk_ticking(rows, tick, |id, _| {
        set.insert(rows, id);
        true
    })?;
    Ok(set)
}

impl Table {
    /// Whether rows can stay where they are, and as they are, under another schema in which each of them is valid.
    pub fn keeps_rows(&self, schema: &TableSchema) -> bool {
        self.rows.is_for(&RowLayout::of(&schema.columns))
    }

    /// Indexes and sets that are built over all rows for another schema, whether rows stay or move.
    pub fn indexes_to_build(&self, schema: &TableSchema) -> usize {
        let rows_stay = self.keeps_rows(schema);
        let indexes_stay = rows_stay && self.has_types_of(schema);
        let is_built = |new: &&IndexSchema| !indexes_stay || self.position_kept(new).is_none();
        let built = schema.indexes.iter().filter(is_built).count();
        let is_set = !schema.indexes.iter().any(|index| index.unique);
        let builds_set = is_set && (self.row_set.is_none() || !rows_stay);
        let is_held = |held: &&HeldIndex| {
            let has_index = |index: &IndexSchema| *index.algorithm.columns() == [held.column];
            let is_there = held.index.is_some() && indexes_stay;
            held.holders > 0 && !is_there && !schema.indexes.iter().any(has_index)
        };
        built + usize::from(builds_set) + self.view.held.iter().filter(is_held).count()
    }

    /// Gives the table another schema, with which its rows may stay where they are ([`keeps_rows`](Self::keeps_rows)). Indexes that
    /// stay, by their ids, are not built again unless types of columns have changed.
    ///
    /// # Errors
    /// A row is none of the new types, rows have one key in an index that is to be unique, or `tick` has said no. Nothing has
    /// changed then.
    pub fn alter(
        &mut self,
        schema: Arc<TableSchema>,
        tick: Tick<'_>,
    ) -> Result<Altered, AlterError> {
        let has_same_types = self.has_types_of(&schema);
        let layout = match has_same_types {
            true => self.view.layout.clone(),
            false => Arc::new(RowLayout::of(&schema.columns)),
        };
        let rows = &self.view.rows;
        if !has_same_types {
            validate_rows(rows, &layout, tick)?;
        }
        let mut built = Vec::new();
        for (position, new) in schema.indexes.iter().enumerate() {
            let kept = self.position_kept(new).filter(|_| has_same_types);
            built.push(match kept {
                Some(old) => Err(old),
                None => Ok(build((rows, &layout), (position, new), tick)?),
            });
        }
        let needs_row_set = !schema.indexes.iter().any(|index| index.unique);
        let new_row_set = match (needs_row_set, &self.row_set) {
            (true, None) => Some(build_row_set(rows, tick)?),
            _ => None,
        };

        self.frozen = None;
        let old_indexes = std::mem::take(&mut self.view.indexes);
        let old_indexes = old_indexes.into_iter().map(Box::new);
        let mut before: Vec<IndexBefore> = old_indexes.map(IndexBefore::Gone).collect();
        let indexes = built.into_iter().enumerate().map(|(position, index)| {
            index.unwrap_or_else(|old| {
                match std::mem::replace(&mut before[old], IndexBefore::Kept(position)) {
                    IndexBefore::Gone(index) => *index,
                    IndexBefore::Kept(_) => unreachable!("ids of indexes are different"),
                }
            })
        });
        self.view.indexes = indexes.collect();
        let unique = unique_positions(&self.view.indexes);
        let row_set = match (needs_row_set, new_row_set) {
            (true, Some(made)) => {
                self.row_set = Some(made);
                RowSetBefore::None
            }
            (true, None) => RowSetBefore::AsNow,
            (false, _) => match self.row_set.take() {
                Some(gone) => RowSetBefore::Gone(gone),
                None => RowSetBefore::None,
            },
        };
        let altered = Altered {
            schema: std::mem::replace(&mut self.view.schema, schema),
            layout: std::mem::replace(&mut self.view.layout, layout),
            unique: std::mem::replace(&mut self.unique, unique),
            row_set,
            indexes: before,
        };
        self.fit_held(has_same_types);
        Ok(altered)
    }

    /// Builds the held indexes of columns for which the schema has none, and drops those of columns for which it has one.
    pub(super) fn fit_held(&mut self, has_same_types: bool) {
        // What is built elsewhere may be of other rows.
        self.building.clear();
        let mut held = std::mem::take(&mut self.view.held);
        for known in &mut held {
            let has_index = self.position_on(known.column).is_some();
            let is_good = known.index.is_some() && has_same_types;
            if has_index || known.holders == 0 {
                known.index = None;
            } else if !is_good {
                let view = &self.view;
                let built = held_index(known.column, &view.rows, &view.layout);
                known.index = Some(built);
            }
        }
        held.retain(|held| held.holders > 0);
        self.view.held = held;
    }

    /// Undoes an [`alter`](Self::alter), of which nothing else was altered since. `rows_changed`: rows may have other ids than then.
    pub fn undo_alter(&mut self, altered: Altered, rows_changed: bool) {
        let Altered {
            schema,
            layout,
            unique,
            row_set,
            indexes,
        } = altered;
        self.frozen = None;
        let has_same_types = self.has_types_of(&schema);
        let TableView {
            rows, indexes: now, ..
        } = &mut self.view;
        let mut now: Vec<Option<Index>> = std::mem::take(now).into_iter().map(Some).collect();
        let rebuilt = |(position, before): (usize, IndexBefore)| match before {
            IndexBefore::Kept(position) => now[position].take().expect("an index is kept once"),
            IndexBefore::Gone(index) if !rows_changed => *index,
            IndexBefore::Gone(_) => {
                let of = (position, &schema.indexes[position]);
                build((rows, &layout), of, &mut |_| true)
                    .expect("the rows were in this index before")
            }
        };
        let indexes = indexes.into_iter().enumerate().map(rebuilt).collect();
        match row_set {
            RowSetBefore::AsNow => {}
            RowSetBefore::None => self.row_set = None,
            RowSetBefore::Gone(set) if !rows_changed => self.row_set = Some(set),
            RowSetBefore::Gone(_) => {
                let set = build_row_set(rows, &mut |_| true);
                self.row_set = Some(set.expect("it is never stopped"));
            }
        }
        self.view.indexes = indexes;
        self.view.schema = schema;
        self.view.layout = layout;
        self.unique = unique;
        self.fit_held(has_same_types);
    }

    /// Takes in all rows of another table, each with the same bytes behind it.
    ///
    /// # Errors
    /// A row does not fit this table, two have one key, there are too many, or `tick` said no. Some rows are here then.
    pub fn fill_from(
        &mut self,
        other: &TableView,
        suffix: &[u8],
        tick: Tick<'_>,
    ) -> Result<(), AlterError> {
        let mut row_of_this = Vec::new();
        let mut failed = None;
        let layout = self.view.layout.clone();
        let walked = walk_ticking(other.rows(), tick, |_, row| {
            row_of_this.clear();
            row_of_this.extend_from_slice(row);
            row_of_this.extend_from_slice(suffix);
            let valid = check_row(&layout, &row_of_this).map_err(InsertError::from);
            failed = valid.and_then(|()| self.insert(&row_of_this)).err();
            failed.is_none()
        });
        match failed {
            None => walked,
            Some(InsertError::Other(error)) => Err(error.into()),
            Some(InsertError::NotUnique { index, row }) => {
                let mut clashes = Clashes::default();
                clashes.note(row);
                Err(AlterError::NotUnique { index, clashes })
            }
        }
    }

    fn has_types_of(&self, schema: &TableSchema) -> bool {
        let (now, other) = (&self.schema.columns, &schema.columns);
        let mut pairs = now.iter().zip(other);
        now.len() == other.len() && pairs.all(|(a, b)| a.ty == b.ty)
    }

    /// Where the index is that this one is to be, if only its names have changed.
    fn position_kept(&self, new: &IndexSchema) -> Option<usize> {
        let is_kept = |old: &IndexSchema| {
            old.id == new.id && old.algorithm == new.algorithm && old.unique == new.unique
        };
        self.schema.indexes.iter().position(is_kept)
    }
}
