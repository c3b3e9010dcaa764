//! How many rows a key of an index has, about.

use std::collections::HashMap;

use lightcone_table::TableView;
use lightcone_types::TableId;

/// Rows of a table that are looked up again to learn how many rows a key has.
const SAMPLES: usize = 8;
/// Rows of one key that are counted at most.
const SAMPLE_ROWS_MAX: usize = 64;

/// What was learnt of tables, each time for all relations that read one.
#[derive(Default)]
pub(crate) struct Samples(HashMap<(TableId, usize), f64>);

impl Samples {
    /// How many rows a key of an index has, about: some keys are looked up.
    pub fn rows_per_key(&mut self, table: &TableView, position: usize) -> f64 {
        let place = (table.schema.id, position);
        *self
            .0
            .entry(place)
            .or_insert_with(|| sample_keys(table, position))
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
