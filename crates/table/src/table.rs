//! One table: rows, their indexes, and the primitive changes of transactions.

pub(crate) mod alter;
pub(crate) mod held;
pub(crate) mod hold;

use std::sync::Arc;

use lightcone_schema::{IndexSchema, TableKind, TableSchema};
use lightcone_types::ColId;

use self::held::{Building, HeldIndex};
use crate::error::Error;
use crate::id_table::IdTable;
use crate::index::Index;
use crate::layout::RowLayout;
use crate::page::{FrozenPage, PageHash};
use crate::row_id::{RowId, ROW_IDS_MAX};
use crate::rows::RowStore;
use crate::seed::Seed;

/// The rows and indexes of one table, to read.
///
/// A [`Table`] shows itself as one. A frozen one, from [`Table::freeze`], stays as it is and can be read on any thread.
pub struct TableView {
    pub schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    rows: RowStore,
    /// In the order of `schema.indexes`.
    indexes: Vec<Index>,
    /// Indexes that the catalog does not know, on one column each, as long as they are held. Frozen tables have none.
    held: Vec<HeldIndex>,
}

/// The rows and indexes of one table.
pub struct Table {
    view: TableView,
    /// Positions of unique indexes.
    unique: Vec<usize>,
    /// Finds equal rows where no unique index does it (set semantics, 03 §8.4).
    row_set: Option<RowSet>,
    /// The view of what is there now, if it was frozen since the last change.
    frozen: Option<Arc<TableView>>,
    /// Columns on which indexes are being built elsewhere.
    building: Vec<Building>,
}

impl std::ops::Deref for Table {
    type Target = TableView;

    #[inline]
    fn deref(&self) -> &TableView {
        &self.view
    }
}

/// The result of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    New(RowId),
    /// An identical row is there already; nothing changed.
    Same(RowId),
}

/// Why a row was not inserted.
#[derive(Debug, thiserror::Error)]
pub enum InsertError {
    /// Another row has the same key in the unique index at this position.
    #[error("unique index {index} holds another row with the same key")]
    NotUnique { index: usize, row: RowId },
    #[error(transparent)]
    Other(#[from] Error),
}

/// Builds one index of a table whose rows are loaded.
pub type PartBuild<'t> = Box<dyn FnOnce() -> Result<(), Error> + Send + 't>;

/// Puts all rows into something that takes each of them, unless the table is damaged.
fn build(
    table: &str,
    rows: &RowStore,
    mut takes: impl FnMut(RowId, &[u8]) -> bool,
) -> Result<(), Error> {
    let mut clash = None;
    rows.for_each(|id, row| {
        if !takes(id, row) {
            clash.get_or_insert(id);
        }
    });
    match clash {
        None => Ok(()),
        Some(id) => {
            let detail = format!("row {id} is there twice or violates a unique index");
            Err(Error::bad_page(table, detail))
        }
    }
}

/// Pages in a row of a table that is loaded, on any thread.
pub struct TablePart {
    schema: Arc<TableSchema>,
    layout: Arc<RowLayout>,
    first_page: usize,
    /// Knows what pages look like.
    empty: RowStore,
    pages: Vec<FrozenPage>,
}

impl TablePart {
    /// Adds the next page image, and what a snapshot calls it.
    ///
    /// # Errors
    /// It is not a possible page of this table.
    pub fn load(&mut self, image: &[u8], hash: Option<PageHash>) -> Result<(), Error> {
        let number = self.first_page + self.pages.len();
        let checked = self.empty.check_page(image, &self.layout);
        checked.map_err(|detail| bad_page(&self.schema, number, &detail))?;
        let page = FrozenPage::of_image(image);
        if let Some(hash) = hash {
            page.set_hash(hash);
        }
        self.pages.push(page);
        Ok(())
    }
}

fn bad_page(schema: &TableSchema, number: usize, detail: &str) -> Error {
    Error::bad_page(&schema.name, format!("page {number}: {detail}"))
}

/// Frozen rows of a table, without indexes.
pub struct TableSnapshot {
    pub schema: Arc<TableSchema>,
    pub rows: RowStore,
}

/// Row ids by the hash of the whole row.
#[derive(Default)]
struct RowSet {
    ids: IdTable,
    seed: Seed,
}

impl RowSet {
    fn find(&self, rows: &RowStore, row: &[u8]) -> Option<RowId> {
        self.ids
            .find(self.seed.hash_bytes(row), |id| rows.get(id) == row)
    }

    fn insert(&mut self, rows: &RowStore, id: RowId) {
        self.ids.insert(self.seed.hash_bytes(rows.get(id)), id);
    }

    fn remove(&mut self, rows: &RowStore, id: RowId) {
        self.ids.remove(self.seed.hash_bytes(rows.get(id)), id);
    }
}

impl TableView {
    pub fn is_system(&self) -> bool {
        self.schema.kind == TableKind::System
    }

    #[inline]
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    #[inline]
    pub fn rows(&self) -> &RowStore {
        &self.rows
    }

    #[inline]
    pub fn row(&self, id: RowId) -> &[u8] {
        self.rows.get(id)
    }

    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// An index on this column and no other.
    pub fn index_on(&self, column: ColId) -> Option<&Index> {
        let held = || self.held.iter().find(|held| held.column == column);
        match self.position_on(column) {
            Some(position) => Some(&self.indexes[position]),
            None => held()?.index.as_ref(),
        }
    }

    fn position_on(&self, column: ColId) -> Option<usize> {
        let is_on = |index: &IndexSchema| *index.algorithm.columns() == [column];
        self.schema.indexes.iter().position(is_on)
    }
}

fn unique_positions(indexes: &[Index]) -> Vec<usize> {
    (0..indexes.len())
        .filter(|&position| indexes[position].is_unique())
        .collect()
}

/// The indexes of the schema, and the held ones.
fn all<'t>(
    indexes: &'t mut [Index],
    held: &'t mut [HeldIndex],
) -> impl Iterator<Item = &'t mut Index> {
    let held = held.iter_mut().filter_map(|held| held.index.as_mut());
    indexes.iter_mut().chain(held)
}

impl Table {
    pub fn new(schema: Arc<TableSchema>) -> Table {
        let layout = Arc::new(RowLayout::of(&schema.columns));
        let rows = RowStore::new(&layout);
        let indexes: Vec<Index> = schema
            .indexes
            .iter()
            .map(|i| Index::new(&i.algorithm, i.unique, &layout))
            .collect();
        let unique = unique_positions(&indexes);
        let row_set = unique.is_empty().then(RowSet::default);
        Table {
            view: TableView {
                schema,
                layout,
                rows,
                indexes,
                held: Vec::new(),
            },
            unique,
            row_set,
            frozen: None,
            building: Vec::new(),
        }
    }

    /// The first unique index: it decides what "the same row" is when the log replaces or deletes by key.
    pub fn identity_index(&self) -> Option<&Index> {
        self.unique.first().map(|&i| &self.indexes[i])
    }

    /// Its position among the indexes.
    pub fn identity_position(&self) -> Option<usize> {
        self.unique.first().copied()
    }

    /// The visible row that equals `row` byte for byte.
    pub fn find_equal(&self, row: &[u8]) -> Option<RowId> {
        match &self.row_set {
            Some(set) => set.find(&self.rows, row),
            None => {
                let index = self
                    .identity_index()
                    .expect("a table without row set has a unique index");
                index
                    .find_row(&self.rows, &self.layout, row)
                    .filter(|&id| self.rows.get(id) == row)
            }
        }
    }

    /// Inserts a valid row (03 §8.4, steps 3 and 4).
    ///
    /// # Errors
    /// A unique index has another row with the same key, or the table is full; nothing changed then.
    #[inline]
    pub fn insert(&mut self, row: &[u8]) -> Result<Inserted, InsertError> {
        self.insert_by(row, |rows| rows.insert(row))
    }

    /// Inserts a row that was deleted as `id`, and is to be where it was: a transaction that is taken back leaves the order of
    /// rows as it found it.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn put_back(&mut self, id: RowId, row: &[u8]) -> Result<Inserted, InsertError> {
        self.insert_by(row, |rows| rows.put_back(id, row))
    }

    #[inline]
    fn insert_by(
        &mut self,
        row: &[u8],
        store: impl FnOnce(&mut RowStore) -> Option<RowId>,
    ) -> Result<Inserted, InsertError> {
        for (nth, &index) in self.unique.iter().enumerate() {
            if let Some(id) = self.indexes[index].find_row(&self.rows, &self.layout, row) {
                return match nth == 0 && self.rows.get(id) == row {
                    true => Ok(Inserted::Same(id)),
                    false => Err(InsertError::NotUnique { index, row: id }),
                };
            }
        }
        if self.row_set.is_some() {
            if let Some(id) = self.find_equal(row) {
                return Ok(Inserted::Same(id));
            }
        }
        self.frozen = None;
        let id = store(&mut self.view.rows).ok_or_else(|| self.full())?;
        self.index_row(id);
        Ok(Inserted::New(id))
    }

    /// The unique index, other than the one at `found_in`, in which `row` would meet a row that is not `replaced`.
    #[inline]
    pub fn conflict(&self, row: &[u8], replaced: RowId, found_in: usize) -> Option<usize> {
        self.unique
            .iter()
            .copied()
            .filter(|&index| index != found_in)
            .find(|&index| {
                let found = self.indexes[index].find_row(&self.rows, &self.layout, row);
                found.is_some_and(|id| id != replaced)
            })
    }

    /// Replaces the row `id` by `row`, whose unique keys are free or its own. Returns the row's id, which may be new.
    ///
    /// # Errors
    /// The row had to move and the table is full; nothing changed then.
    #[inline]
    pub fn replace(&mut self, id: RowId, row: &[u8]) -> Result<RowId, Error> {
        if self.layout.fixed_size().is_none() || self.row_set.is_some() {
            return self.replace_moving(id, row);
        }
        self.frozen = None;
        let TableView {
            rows,
            indexes,
            layout,
            held,
            ..
        } = &mut self.view;
        let mut changed = 0_u64;
        for (position, index) in all(indexes, held).enumerate() {
            if !index.same_key(layout, rows.get(id), row) {
                index.remove(rows, layout, id);
                changed |= 1 << (position % 64);
            }
        }
        for building in &mut self.building {
            building.note_replaced(layout, id, rows.get(id), row);
        }
        let replaced = rows.replace(id, row);
        debug_assert_eq!(replaced, Some(id), "rows of one size never move");
        if changed != 0 {
            for (position, index) in all(indexes, held).enumerate() {
                // A bit may stand for two indexes of a table with more than 64: putting a row in again is harmless.
                if changed >> (position % 64) & 1 == 1 {
                    index.reinsert(rows, layout, id);
                }
            }
        }
        Ok(id)
    }

    fn replace_moving(&mut self, id: RowId, row: &[u8]) -> Result<RowId, Error> {
        self.unindex_row(id);
        match self.view.rows.replace(id, row) {
            Some(new) => {
                self.index_row(new);
                Ok(new)
            }
            None => {
                self.index_row(id);
                Err(self.full())
            }
        }
    }

    /// Deletes a live row.
    pub fn delete(&mut self, id: RowId) {
        self.unindex_row(id);
        self.view.rows.delete(id);
    }

    fn index_row(&mut self, id: RowId) {
        self.note_row(id, true);
    }

    fn unindex_row(&mut self, id: RowId) {
        self.frozen = None;
        self.note_row(id, false);
    }

    /// Puts a stored row into all indexes, or takes it out.
    #[inline]
    fn note_row(&mut self, id: RowId, is_insert: bool) {
        let Table {
            view,
            row_set,
            building,
            ..
        } = self;
        let TableView {
            rows,
            indexes,
            layout,
            held,
            ..
        } = view;
        for index in all(indexes, held) {
            match is_insert {
                true => index.insert(rows, layout, id),
                false => index.remove(rows, layout, id),
            }
        }
        for building in building {
            building.note(layout, rows.get(id), id, is_insert);
        }
        match (row_set, is_insert) {
            (Some(set), true) => set.insert(rows, id),
            (Some(set), false) => set.remove(rows, id),
            (None, _) => {}
        }
    }

    fn full(&self) -> Error {
        Error::TableFull {
            table: self.schema.name.clone(),
            rows_max: ROW_IDS_MAX,
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.frozen = None;
        self.view.rows.clear();
        all(&mut self.view.indexes, &mut self.view.held).for_each(Index::clear);
        self.building.clear();
        if let Some(set) = &mut self.row_set {
            *set = RowSet::default();
        }
    }

    /// The table as it is now: its rows and indexes. Nothing is copied but lists of pages, and not even these if nothing has
    /// changed since the last time. Later changes copy what the view still holds, page by page and node by node.
    pub fn freeze(&mut self) -> Arc<TableView> {
        let view = &mut self.view;
        let frozen = self.frozen.get_or_insert_with(|| {
            Arc::new(TableView {
                schema: view.schema.clone(),
                layout: view.layout.clone(),
                rows: view.rows.freeze(),
                indexes: view.indexes.iter_mut().map(Index::freeze).collect(),
                held: Vec::new(),
            })
        });
        frozen.clone()
    }

    /// Freezes the rows alone.
    pub fn snapshot(&mut self) -> TableSnapshot {
        TableSnapshot {
            schema: self.schema.clone(),
            rows: self.view.rows.freeze(),
        }
    }

    /// Bytes that frozen copies may hold alone, as they were copied or removed here; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        let indexes = self.indexes.iter().map(Index::released_bytes);
        self.rows.released_bytes() + indexes.sum::<u64>()
    }

    /// Fills an empty table with page images of a snapshot and builds its indexes.
    ///
    /// # Errors
    /// A page is not a possible page of this table, or two rows violate a unique index.
    pub fn load<'p>(&mut self, pages: impl Iterator<Item = &'p [u8]>) -> Result<(), Error> {
        let mut part = self.part(0);
        for page in pages {
            part.load(page, None)?;
        }
        self.append(part)?;
        self.build_indexes()
    }

    /// For the pages from this one on, to be loaded apart from the table.
    pub fn part(&self, first_page: usize) -> TablePart {
        TablePart {
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            first_page,
            empty: RowStore::new(&self.layout),
            pages: Vec::new(),
        }
    }

    /// Appends what was loaded; call [`build_indexes`](Self::build_indexes) after the last.
    ///
    /// # Errors
    /// The table has more pages than row ids can name.
    pub fn append(&mut self, part: TablePart) -> Result<(), Error> {
        self.frozen = None;
        for page in part.pages {
            if !self.view.rows.append(page) {
                let number = self.view.rows.page_count();
                let detail = "the table has more pages than row ids can name";
                return Err(bad_page(&self.schema, number, detail));
            }
        }
        Ok(())
    }

    /// Builds all indexes over the loaded rows.
    ///
    /// # Errors
    /// Two rows violate a unique index.
    pub fn build_indexes(&mut self) -> Result<(), Error> {
        let mut builds = self.index_builds().into_iter();
        builds.try_for_each(|build| build())
    }

    /// The same in parts, one for each index, which may be done at the same time, on any threads.
    pub fn index_builds(&mut self) -> Vec<PartBuild<'_>> {
        let Table { view, row_set, .. } = self;
        let TableView {
            rows,
            indexes,
            layout,
            schema,
            held,
        } = view;
        let (rows, layout, table) = (&*rows, &**layout, &*schema.name);
        let held = held.iter_mut().filter_map(|held| held.index.as_mut());
        let builds = indexes
            .iter_mut()
            .chain(held)
            .map(|index| -> PartBuild<'_> {
                Box::new(move || {
                    build(table, rows, |id, row| {
                        let is_free =
                            !index.is_unique() || index.find_row(rows, layout, row).is_none();
                        if is_free {
                            index.insert(rows, layout, id);
                        }
                        is_free
                    })
                })
            });
        // Rows are a set: the writer never stores one twice.
        let set = row_set.as_mut().map(|set| -> PartBuild<'_> {
            Box::new(move || {
                build(table, rows, |id, row| {
                    let is_new = set.find(rows, row).is_none();
                    if is_new {
                        set.insert(rows, id);
                    }
                    is_new
                })
            })
        });
        builds.chain(set).collect()
    }

    /// Memory of rows and indexes in bytes; ordered indexes are estimated.
    pub fn heap_bytes(&self) -> usize {
        let held = self.held.iter().filter_map(|held| held.index.as_ref());
        let indexes = self.indexes.iter().chain(held).map(Index::heap_bytes);
        let set_bytes = self.row_set.as_ref().map_or(0, |set| set.ids.heap_bytes());
        self.rows.heap_bytes() + indexes.sum::<usize>() + set_bytes
    }
}
