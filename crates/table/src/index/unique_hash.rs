//! The unique hash index: row ids by the hash of their key; keys are compared in the rows.

use lightcone_types::bsatn::DecodeError;

use super::reader::{IntegerColumn, KeyReader};
use crate::id_table::IdTable;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;
use crate::seed::Seed;

/// Row ids by the hash of their key.
#[derive(Default)]
pub(super) struct UniqueHash {
    ids: IdTable,
    seed: Seed,
}

fn hash_row(seed: &Seed, reader: &KeyReader, layout: &RowLayout, row: &[u8]) -> u64 {
    if let Some(column) = reader.integer {
        return seed.hash_integer(column.load(&row[column.start..]));
    }
    if reader.bitwise {
        return seed.hash_parts(
            reader
                .columns
                .iter()
                .map(|&column| layout.column(row, column)),
        );
    }
    reader.with_row_bytes(layout, row, |key| seed.hash_bytes(key))
}

impl UniqueHash {
    pub fn insert(&mut self, reader: &KeyReader, rows: &RowStore, layout: &RowLayout, id: RowId) {
        let hash = hash_row(&self.seed, reader, layout, rows.get(id));
        self.ids.insert(hash, id);
    }

    pub fn remove(&mut self, reader: &KeyReader, layout: &RowLayout, row: &[u8], id: RowId) {
        let hash = hash_row(&self.seed, reader, layout, row);
        self.ids.remove(hash, id);
    }

    #[inline]
    fn find_integer(&self, column: IntegerColumn, rows: &RowStore, key: u64) -> Option<RowId> {
        let hash = self.seed.hash_integer(key);
        let same = |id: RowId| column.load(&rows.get(id)[column.start..]) == key;
        self.ids.find(hash, same)
    }

    fn find_key(
        &self,
        reader: &KeyReader,
        rows: &RowStore,
        layout: &RowLayout,
        key: &[u8],
    ) -> Option<RowId> {
        let same = |id: RowId| reader.with_row_bytes(layout, rows.get(id), |other| other == key);
        self.ids.find(self.seed.hash_bytes(key), same)
    }

    #[inline]
    pub fn find_row(
        &self,
        reader: &KeyReader,
        rows: &RowStore,
        layout: &RowLayout,
        row: &[u8],
    ) -> Option<RowId> {
        if let Some(column) = reader.integer {
            return self.find_integer(column, rows, column.load(&row[column.start..]));
        }
        if reader.bitwise {
            let hash = hash_row(&self.seed, reader, layout, row);
            let same = |id: RowId| {
                let other = rows.get(id);
                reader
                    .columns
                    .iter()
                    .all(|&column| layout.column(other, column) == layout.column(row, column))
            };
            return self.ids.find(hash, same);
        }
        reader.with_row_bytes(layout, row, |key| self.find_key(reader, rows, layout, key))
    }

    #[inline]
    pub fn find_point(
        &self,
        reader: &KeyReader,
        rows: &RowStore,
        layout: &RowLayout,
        point: &[u8],
    ) -> Result<Option<RowId>, DecodeError> {
        if let Some(column) = reader.integer {
            if point.len() >= column.bytes {
                return Ok(self.find_integer(column, rows, column.load(point)));
            }
        }
        if reader.bitwise {
            return self.find_bits(reader, rows, layout, point);
        }
        reader.with_point_bytes(layout, point, |key| {
            self.find_key(reader, rows, layout, key)
        })
    }

    fn find_bits(
        &self,
        reader: &KeyReader,
        rows: &RowStore,
        layout: &RowLayout,
        point: &[u8],
    ) -> Result<Option<RowId>, DecodeError> {
        let mut hash = self.seed.start();
        let mut rest = point;
        for &column in &reader.columns {
            let (part, after) = rest.split_at(layout.check_column(column, rest)?);
            hash = self.seed.add_part(hash, part);
            rest = after;
        }
        let same = |id: RowId| {
            let row = rows.get(id);
            let mut rest = point;
            // Values delimit themselves, so a column that is a prefix of the rest is the whole value.
            reader.columns.iter().all(|&column| {
                match rest.strip_prefix(layout.column(row, column)) {
                    Some(after) => {
                        rest = after;
                        true
                    }
                    None => false,
                }
            })
        };
        Ok(self.ids.find(hash, same))
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn freeze(&mut self) -> UniqueHash {
        UniqueHash {
            ids: self.ids.freeze(),
            seed: self.seed,
        }
    }

    pub fn released_bytes(&self) -> u64 {
        self.ids.released_bytes()
    }

    pub fn clear(&mut self) {
        self.ids.clear();
    }

    pub fn heap_bytes(&self) -> usize {
        self.ids.heap_bytes()
    }
}
