//! How many rows a key of an index has, about.

use std::collections::HashMap;

use lightcone_table::TableView;
use lightcone_types::TableId;

/// Rows of a table that are looked up again to learn how many rows a key has.
const SAMPLES: usize = 8;
/// Rows of one key that are counted at most.
const SAMPLE_ROWS_MAX: usize = 64;

/// Rows of a key that the query names are counted up to this number.
const KEY_ROWS_MAX: usize = 1024;
/// The part of the rows of a table that a key with more is taken to have.
const PART_MANY: f64 = 0.1;

/// What was learnt of tables, each time for all relations that read one.
#[derive(Default)]
pub(crate) struct Samples {
    /// By table, and the position of its index.
    per_key: HashMap<(TableId, usize), f64>,
    of_key: HashMap<(TableId, usize, Box<[u8]>), f64>,
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
        let entry = self.of_key.entry(place);
        *entry.or_insert_with_key(|(_, _, key)| count_rows(table, position, key))
    }
}

fn count_rows(table: &TableView, position: usize, key: &[u8]) -> f64 {
    let rows = table.rows();
    let mut count = 0;
    let walked = table.indexes()[position].walk_point(rows, table.layout(), key, None, |_| {
        count += 1;
        count < KEY_ROWS_MAX
    });
    walked.expect("keys are values of the columns");
    let many = rows.row_count() as f64 * PART_MANY;
    match count < KEY_ROWS_MAX {
        true => count as f64,
        false => many.max(count as f64),
    }
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
