//! What live queries cost for each changed row. Counted on the writer, so that one too many is refused before it is there.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use crate::live_query::{Group, LiveQuery, QueryKey};

/// The live queries of a database.
#[derive(Default)]
pub struct QueryLoad {
    /// How many query sets hold a query.
    holders: HashMap<Arc<QueryKey>, usize>,
    /// Steps of the different queries of a group, together.
    steps: HashMap<Arc<Group>, usize>,
    /// How many different queries are of a shape of joins or windows.
    shapes: FxHashMap<TableId, usize>,
    /// Steps of the different shapes that read a table, together.
    shape_steps: FxHashMap<TableId, usize>,
    /// How many windows of a table hear of each row that one of their sources gives for a key. Clients choose keys: they are
    /// hashed with a secret.
    windows: HashMap<(TableId, Box<[u8]>), usize>,
}

/// Steps of each further window that hears of a changed row: its place among the window's rows.
const WINDOW_STEPS: usize = 16;

impl QueryLoad {
    /// Counts the queries of a set.
    ///
    /// # Errors
    /// The query with which a group has more than `steps_max`. Nothing is counted then.
    pub fn add<'q>(
        &mut self,
        queries: &'q [Arc<LiveQuery>],
        steps_max: usize,
    ) -> Result<(), &'q LiveQuery> {
        for (position, query) in queries.iter().enumerate() {
            if !self.add_query(query, steps_max) {
                self.remove(&queries[..position]);
                return Err(query);
            }
        }
        Ok(())
    }

    /// Whether some query set holds this query.
    pub fn has(&self, query: &LiveQuery) -> bool {
        self.holders.contains_key(&query.key)
    }

    fn add_query(&mut self, query: &LiveQuery, steps_max: usize) -> bool {
        // One more who holds it costs no more evaluation.
        if let Some(holders) = self.holders.get_mut(&query.key) {
            *holders += 1;
            return true;
        }
        let steps = self.steps.get(&query.group).copied().unwrap_or_default() + query.steps();
        let is_too_much = steps > steps_max || self.has_too_many_windows(query, steps_max);
        if is_too_much || !self.add_shape(query, steps_max) {
            return false;
        }
        for key in query.window_keys() {
            *self.windows.entry(key).or_default() += 1;
        }
        self.steps.insert(query.group.clone(), steps);
        self.holders.insert(query.key.clone(), 1);
        true
    }

    /// Whether a changed row would be compared with too many windows: those that share a source and its key hear of the same rows.
    fn has_too_many_windows(&self, query: &LiveQuery, steps_max: usize) -> bool {
        query.window_keys().any(|key| {
            let others = self.windows.get(&key).copied().unwrap_or_default();
            (others + 1).saturating_mul(WINDOW_STEPS) > steps_max
        })
    }

    /// Joins, and windows, of one shape cost their tables what one of them does, unless each has to be tried.
    fn add_shape(&mut self, query: &LiveQuery, steps_max: usize) -> bool {
        let Some(shape) = query.shape_id() else {
            return true;
        };
        let holders = self.shapes.entry(shape).or_default();
        *holders += 1;
        if *holders > 1 && !query.is_tried_by_itself() {
            return true;
        }
        let of_table = |table| self.shape_steps.get(&table).copied().unwrap_or_default();
        let is_too_much = query
            .tables()
            .any(|table| of_table(table) + query.shape_steps() > steps_max);
        if is_too_much {
            take(&mut self.shapes, &shape, 1);
            return false;
        }
        for table in query.tables() {
            *self.shape_steps.entry(table).or_default() += query.shape_steps();
        }
        true
    }

    /// Takes the queries of a set out again.
    pub fn remove(&mut self, queries: &[Arc<LiveQuery>]) {
        for query in queries {
            if take(&mut self.holders, &query.key, 1) != Some(0) {
                continue;
            }
            self.remove_shape(query);
            for key in query.window_keys() {
                take(&mut self.windows, &key, 1);
            }
            take(&mut self.steps, &query.group, query.steps());
        }
    }

    fn remove_shape(&mut self, query: &LiveQuery) {
        let Some(shape) = query.shape_id() else {
            return;
        };
        let is_last = take(&mut self.shapes, &shape, 1).is_none_or(|left| left == 0);
        if is_last || query.is_tried_by_itself() {
            for table in query.tables() {
                take(&mut self.shape_steps, &table, query.shape_steps());
            }
        }
    }
}

/// Takes some of what is counted, and forgets it if nothing is left. Gives what is left; none if it was not there.
fn take<K: Hash + Eq, S: BuildHasher>(
    counts: &mut HashMap<K, usize, S>,
    key: &K,
    less: usize,
) -> Option<usize> {
    let count = counts.get_mut(key)?;
    *count -= less;
    let left = *count;
    if left == 0 {
        counts.remove(key);
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::Items;

    fn queries(items: &Items, conditions: &[&str]) -> Vec<Arc<LiveQuery>> {
        let live = |condition: &&str| LiveQuery::new(items.plan(condition));
        conditions.iter().map(live).map(Arc::new).collect()
    }

    #[test]
    fn what_a_row_meets_together_is_bounded_together() {
        let items = Items::new(0, 0);
        let mut load = QueryLoad::default();
        let two = queries(&items, &["id <> 1", "id <> 2"]);
        let third = queries(&items, &["id = 1", "id <> 3"]);
        let steps_max = 2 * two[0].steps() + 1;
        assert!(load.add(&two, steps_max).is_ok());
        assert!(load.add(&two, steps_max).is_ok(), "the same cost no more");
        let refused = load.add(&third, steps_max).err();
        assert!(refused.is_some_and(|query| query.query.text().ends_with("id <> 3")));
        // Different values never meet in a row; the same ones do.
        for id in 0..100 {
            let found = queries(&items, &[&format!("id = {id}")]);
            assert!(load.add(&found, steps_max).is_ok());
            load.remove(&found);
        }
        let same = ["id = 1", "id  = 1", "id   = 1"];
        let same = queries(&items, &same);
        assert!(load.add(&same, steps_max).is_ok(), "they are one query");
        load.remove(&same);
        load.remove(&two);
        assert!(load.add(&third, steps_max).is_err(), "they are held");
        load.remove(&two);
        assert!(load.add(&third, steps_max).is_ok());
        load.remove(&third);
        assert!(load.holders.is_empty() && load.steps.is_empty());
    }

    #[test]
    fn long_conditions_and_long_values_count() {
        let items = Items::new(0, 0);
        let long = format!("id <> 1{}", " AND id <> 1".repeat(999));
        let texts = format!("one <> two{}", " AND one <> two".repeat(99));
        let found = format!("id = 1{}", " AND key <> 1".repeat(1000));
        let queries = queries(&items, &["id <> 1", &long, &texts, "id = 1", &found]);
        let steps: Vec<_> = queries.iter().map(|query| query.steps()).collect();
        assert_eq!(steps[1], steps[0] + 999);
        assert!(steps[2] > 100 * 50, "{steps:?}");
        let of_connection = |place: usize| queries[place].steps_of_connection();
        assert_eq!(of_connection(3), 0);
        assert!(of_connection(4) >= 1000);
        assert!(queries[1].memory_bytes() > 999 * 40);
    }
}
