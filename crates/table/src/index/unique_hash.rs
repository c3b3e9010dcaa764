//! The unique hash index: row ids by the hash of their key; keys are compared in the rows.

use lightcone_types::bsatn::DecodeError;

use super::reader::{IntegerColumn, KeyReader};
use crate::id_table::IdTable;
use crate::layout::RowLayout;
use crate::row_id::RowId;
use crate::rows::RowStore;
use crate::seed::Seed;

/// Where the keys of an index are.
#[derive(Clone, Copy)]
pub(super) struct Keys<'k> {
    pub reader: &'k KeyReader,
    pub rows: &'k RowStore,
    pub layout: &'k RowLayout,
}

/// Row ids by the hash of their key.
#[derive(Default)]
pub(super) struct UniqueHash {
    ids: IdTable,
    seed: Seed,
}

impl UniqueHash {
    fn hash_row(&self, keys: Keys<'_>, row: &[u8]) -> u64 {
        let (reader, seed) = (keys.reader, &self.seed);
        if let Some(column) = reader.integer {
            return seed.hash_integer(column.load(&row[column.start..]));
        }
        if reader.bitwise {
            let columns = reader.columns.iter();
            return seed.hash_parts(columns.map(|&column| keys.layout.column(row, column)));
        }
        reader.with_row_bytes(keys.layout, row, |key| seed.hash_bytes(key))
    }

    pub fn insert(&mut self, keys: Keys<'_>, id: RowId) {
        self.ids.insert(self.hash_row(keys, keys.rows.get(id)), id);
    }

    pub fn remove(&mut self, keys: Keys<'_>, id: RowId) {
        self.ids.remove(self.hash_row(keys, keys.rows.get(id)), id);
    }

    #[inline]
    fn find_integer(&self, keys: Keys<'_>, column: IntegerColumn, key: u64) -> Option<RowId> {
        let hash = self.seed.hash_integer(key);
        let same = |id: RowId| column.load(&keys.rows.get(id)[column.start..]) == key;
        self.ids.find(hash, same)
    }

    fn find_key(&self, keys: Keys<'_>, key: &[u8]) -> Option<RowId> {
        let Keys {
            reader,
            rows,
            layout,
        } = keys;
        let same = |id: RowId| reader.with_row_bytes(layout, rows.get(id), |other| other == key);
        self.ids.find(self.seed.hash_bytes(key), same)
    }

    #[inline]
    pub fn find_row(&self, keys: Keys<'_>, row: &[u8]) -> Option<RowId> {
        let Keys {
            reader,
            rows,
            layout,
        } = keys;
        if let Some(column) = reader.integer {
            return self.find_integer(keys, column, column.load(&row[column.start..]));
        }
        if reader.bitwise {
            let same = |id: RowId| {
                let (other, mut columns) = (rows.get(id), reader.columns.iter());
                columns.all(|&column| layout.column(other, column) == layout.column(row, column))
            };
            return self.ids.find(self.hash_row(keys, row), same);
        }
        reader.with_row_bytes(layout, row, |key| self.find_key(keys, key))
    }

    #[inline]
    pub fn find_point(&self, keys: Keys<'_>, point: &[u8]) -> Result<Option<RowId>, DecodeError> {
        let reader = keys.reader;
        if let Some(column) = reader.integer {
            if point.len() >= column.bytes {
                return Ok(self.find_integer(keys, column, column.load(point)));
            }
        }
        if reader.bitwise {
            return self.find_bits(keys, point);
        }
        reader.with_point_bytes(keys.layout, point, |key| self.find_key(keys, key))
    }

    fn find_bits(&self, keys: Keys<'_>, point: &[u8]) -> Result<Option<RowId>, DecodeError> {
        let Keys {
            reader,
            rows,
            layout,
        } = keys;
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
