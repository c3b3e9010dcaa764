//! How many rows a key of an index has, about.

use std::collections::HashMap;

use lightcone_table::TableView;
use lightcone_types::TableId;

/// Rows of a table that are looked up again to learn how many rows a key has.
const SAMPLES: usize = 8;
/// Rows of one key that are counted at most.
const SAMPLE_ROWS_MAX: usize = 64;

/// Rows of a key that the query names are counted up to this number.
const KEY_ROWS_MAX: usize = 4096;
/// And so many of all keys that it names; the others are taken to be like any key.
const NAMED_ROWS_MAX: usize = 1 << 16;
/// The part of the rows of a table that a key with more may have: it is taken to have the mean of that and what was counted, as a
/// factor. With a jump here, one row more would turn a plan round.
const PART_MANY: f64 = 0.1;

/// What was learnt of tables, each time for all relations that read one.
#[derive(Default)]
pub(crate) struct Samples {
    /// By table, and the position of its index.
    per_key: HashMap<(TableId, usize), f64>,
    of_key: HashMap<(TableId, usize, Box<[u8]>), f64>,
    /// Rows of named keys that were counted.
    counted: usize,
}

impl Samples {
    /// How many rows a key of an index has, about: some keys are looked up.
    pub fn rows_per_key(&mut self, table: &TableView, position: usize) -> f64 {
        let place = (table.schema.id, position);
        *self
            .per_key
            .entry(place)
            .or_insert_with(|| sample_keys(table, position))
    }

    /// How many rows this key of an index has: keys that queries name are often not like others.
    pub fn rows_of_key(&mut self, table: &TableView, position: usize, key: Vec<u8>) -> f64 {
        let place = (table.schema.id, position, key.into());
        if let Some(known) = self.of_key.get(&place) {
            return *known;
        }
        if self.counted >= NAMED_ROWS_MAX {
            return self.rows_per_key(table, position);
        }
        let count = count_rows(table, position, &place.2);
        self.counted += count;
        let found = match count < KEY_ROWS_MAX {
            true => count as f64,
            false => {
                let (count, rows) = (count as f64, table.rows().row_count() as f64);
                (count * rows * PART_MANY).sqrt().max(count)
            }
        };
        self.of_key.insert(place, found);
        found
    }
}

/// As far as they are counted.
fn count_rows(table: &TableView, position: usize, key: &[u8]) -> usize {
    let index = &table.indexes()[position];
    let mut count = 0;
    let walked = index.walk_point(table.rows(), table.layout(), key, None, |_| {
        count += 1;
        count < KEY_ROWS_MAX
    });
    walked.expect("keys are values of the columns");
    count
}

fn sample_keys(table: &TableView, position: usize) -> f64 {
    let (rows, layout) = (table.rows(), table.layout());
    let index = &table.indexes()[position];
    let (mut keys, mut found) = (0usize, 0usize);
    let mut key = Vec::new();
    let page_count = rows.page_count();
    // From pages all over the table, as neighbours often have the same key.
    let step = page_count.div_ceil(SAMPLES).max(1);
    for page in (0..page_count).step_by(step) {
        let mut sample = None;
        rows.for_each_of_page(page, |id, _| sample = sample.or(Some(id)));
        let Some(id) = sample else { continue };
        key.clear();
        index.point_of_row(layout, table.row(id), &mut key);
        let mut count = 0;
        let walked = index.walk_point(rows, layout, &key, None, |_| {
            count += 1;
            count < SAMPLE_ROWS_MAX
        });
        if walked.is_ok() {
            keys += 1;
            found += count;
        }
    }
    match keys {
        0 => 0.0,
        _ => found as f64 / keys as f64,
    }
}
