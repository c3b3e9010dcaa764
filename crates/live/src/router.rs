//! Which live queries of a table a changed row may concern.
//!
//! Queries that need values in the same columns, and ranges of the same columns, have one *pattern*, which costs a changed row one look
//! into a map by the values, and one into a tree of boxes by the ranges, however many queries there are.

use lightcone_query::{ColumnOrder, Predicate, Routing};
use lightcone_table::RowLayout;
use lightcone_types::ColId;
use smallvec::{smallvec, SmallVec};

use crate::area_tree::{AreaTree, Extent};
use crate::bound_query::BoundQuery;
use crate::key::Key;
use crate::live_query::{LiveQuery, KEY_COLUMN};

/// Position of a query in the registry; reused after the last subscriber leaves.
pub type QueryIndex = u32;

/// Patterns of one table, of which one client brings no more than are left for others. Without one of its own, a query is found by
/// the pattern that has most of its columns.
const PATTERNS_MAX: usize = 32;

/// So many columns with ranges tell queries apart; more are checked row by row.
const DIMENSIONS: usize = 3;

/// Queries by the BSATN that their columns must have. Clients choose these values: hashed without a secret, they could all be made
/// to meet in one place.
type ByValues<Q> = hashbrown::HashMap<Key, Q>;

/// By which columns queries are found.
#[derive(Clone, PartialEq, Eq)]
struct Columns {
    /// Those that must have a value; none for queries that each changed row is checked against.
    equal: SmallVec<[ColId; 1]>,
    /// Those that must be in a range.
    between: SmallVec<[(ColId, ColumnOrder); 1]>,
}

/// The queries that are found by the same columns.
struct Pattern {
    columns: Columns,
    /// Who brought it.
    client: u64,
    lists: ByValues<SmallVec<[Entry; 1]>>,
    /// Those with ranges.
    boxes: ByValues<AreaTree<Extent<DIMENSIONS>, QueryIndex>>,
}

/// A query in a list, and the so manieth of its places that this is.
#[derive(Clone, Copy)]
struct Entry {
    query: QueryIndex,
    number: u32,
}

/// Where a query is.
pub struct Places {
    columns: Columns,
    /// The values, for each of its places.
    keys: SmallVec<[Key; 1]>,
    /// By key, for those in lists.
    positions: SmallVec<[u32; 1]>,
    extent: Extent<DIMENSIONS>,
    /// What is left to check of a row that the query is found for.
    pub residual: Option<Predicate>,
}

/// A query that stands elsewhere in a list now.
pub struct Moved {
    pub query: QueryIndex,
    number: u32,
    position: u32,
}

/// All queries of a table, or joins or windows of one shape.
#[derive(Default)]
pub struct Router {
    patterns: Vec<Pattern>,
}

impl Router {
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Adds a query of a client. Gives where it is, which `remove` wants to know.
    pub fn add(&mut self, client: u64, query: QueryIndex, live: &LiveQuery) -> Places {
        let mut places = self.places_of(client, live);
        let pattern = match self.position(&places.columns) {
            Some(position) => &mut self.patterns[position],
            None => {
                self.patterns.push(Pattern {
                    columns: places.columns.clone(),
                    client,
                    lists: ByValues::default(),
                    boxes: ByValues::default(),
                });
                self.patterns.last_mut().expect("it was just added")
            }
        };
        for (number, key) in (0..).zip(&places.keys) {
            if places.columns.between.is_empty() {
                let list = pattern.lists.entry(key.clone()).or_default();
                places.positions.push(list.len() as u32);
                list.push(Entry { query, number });
            } else {
                let boxes = pattern.boxes.entry(key.clone()).or_default();
                boxes.insert(places.extent, query);
            }
        }
        places
    }

    /// Removes a query. `moved` is told which others have moved.
    pub fn remove(&mut self, query: QueryIndex, places: &Places, mut moved: impl FnMut(Moved)) {
        let Some(position) = self.position(&places.columns) else {
            return;
        };
        let pattern = &mut self.patterns[position];
        for (number, key) in places.keys.iter().enumerate() {
            if let Some(boxes) = pattern.boxes.get_mut(&key[..]) {
                boxes.remove(&places.extent, query);
                if boxes.is_empty() {
                    pattern.boxes.remove(&key[..]);
                }
            } else if let Some(list) = pattern.lists.get_mut(&key[..]) {
                let position = places.positions[number];
                list.swap_remove(position as usize);
                match list.get(position as usize) {
                    Some(&Entry { query, number }) => moved(Moved {
                        query,
                        number,
                        position,
                    }),
                    None if list.is_empty() => drop(pattern.lists.remove(&key[..])),
                    None => {}
                }
            }
        }
        if pattern.lists.is_empty() && pattern.boxes.is_empty() {
            self.patterns.swap_remove(position);
        }
    }

    /// Appends the queries that a changed row may concern, each once. `key` is that of the change, where a shape has keys.
    #[inline]
    pub fn candidates(
        &self,
        layout: &RowLayout,
        key: &[u8],
        row: &[u8],
        values: &mut Vec<u8>,
        out: &mut Vec<QueryIndex>,
    ) {
        let value = |column: ColId| layout.column(row, usize::from(column.0));
        for pattern in &self.patterns {
            let key = match &*pattern.columns.equal {
                [] => &[],
                [KEY_COLUMN] => key,
                [column] => value(*column),
                columns => {
                    values.clear();
                    columns
                        .iter()
                        .for_each(|column| values.extend_from_slice(value(*column)));
                    &values[..]
                }
            };
            if pattern.columns.between.is_empty() {
                if let Some(list) = pattern.lists.get(key) {
                    out.extend(list.iter().map(|entry| entry.query));
                }
            } else if let Some(boxes) = pattern.boxes.get(key) {
                let mut point = [0; DIMENSIONS];
                for (place, (column, order)) in point.iter_mut().zip(&pattern.columns.between) {
                    *place = order.number(value(*column));
                }
                boxes.containing(&point, |query| out.push(query));
            }
        }
    }

    fn position(&self, columns: &Columns) -> Option<usize> {
        let mut patterns = self.patterns.iter();
        patterns.position(|pattern| pattern.columns == *columns)
    }

    fn places_of(&self, client: u64, live: &LiveQuery) -> Places {
        if let (Some(route), BoundQuery::Table(plan)) = (&live.route, &live.query) {
            let columns = Columns::of(route);
            if self.position(&columns).is_some() || self.has_room_for(client) {
                return Places::new(columns, route, route.residual.clone());
            }
            let known = self.patterns.iter().map(|pattern| &pattern.columns);
            let best = known
                .filter(|known| columns.have(known))
                .max_by_key(|c| c.count());
            let of_group = usize::from(live.group.equality.is_some());
            if let Some(best) = best.filter(|best| best.count() > of_group) {
                return Places::new(best.clone(), route, plan.predicate.clone());
            }
        }
        let (equal, key) = match &live.group.equality {
            Some((column, value)) => (smallvec![*column], &value[..]),
            None => (SmallVec::new(), &[][..]),
        };
        Places {
            columns: Columns {
                equal,
                between: SmallVec::new(),
            },
            keys: smallvec![Key::from(key)],
            positions: SmallVec::new(),
            extent: Extent::ALL,
            residual: live.residual.clone(),
        }
    }

    fn has_room_for(&self, client: u64) -> bool {
        let own = self.patterns.iter().filter(|p| p.client == client).count() + 1;
        own + self.patterns.len() < PATTERNS_MAX
    }
}

impl Columns {
    fn of(route: &Routing) -> Columns {
        let between = route.between.iter().take(DIMENSIONS);
        Columns {
            equal: route.equal.iter().map(|(column, _)| *column).collect(),
            between: between.map(|range| (range.column, range.order)).collect(),
        }
    }

    fn have(&self, others: &Columns) -> bool {
        let mut equal = others.equal.iter();
        let mut between = others.between.iter();
        equal.all(|other| self.equal.contains(other))
            && between.all(|other| self.between.contains(other))
    }

    fn count(&self) -> usize {
        self.equal.len() + self.between.len()
    }
}

impl Places {
    /// Where a query with a route is found by some of its columns.
    fn new(columns: Columns, route: &Routing, residual: Option<Predicate>) -> Places {
        let mut keys: SmallVec<[Key; 1]> = smallvec![Key::new()];
        for (_, values) in (route.equal.iter()).filter(|(column, _)| columns.equal.contains(column))
        {
            let longer = |key: &Key| {
                let of_key = values.iter().map(|value| [&key[..], value].concat());
                of_key.map(Key::from).collect::<Vec<_>>()
            };
            keys = keys.iter().flat_map(longer).collect();
        }
        let mut extent = Extent::ALL;
        let is_known = |column| columns.between.iter().any(|(known, _)| *known == column);
        let ranges = route.between.iter().filter(|range| is_known(range.column));
        for (dimension, range) in ranges.enumerate() {
            extent.low[dimension] = range.low;
            extent.high[dimension] = range.high;
        }
        Places {
            columns,
            keys,
            positions: SmallVec::new(),
            extent,
            residual,
        }
    }

    /// Notes where the query stands now.
    pub fn note(&mut self, moved: &Moved) {
        self.positions[moved.number as usize] = moved.position;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use lightcone_types::{AlgebraicType as T, Encode};
    use proptest::prelude::*;

    use super::*;
    use crate::bound_query::BoundQuery;
    use crate::items::Items;

    fn layout() -> RowLayout {
        RowLayout::new(&[T::U32, T::U128, T::String, T::String])
    }

    fn row(id: u32, key: u128, one: &str, two: &str) -> Vec<u8> {
        let mut row = id.to_vec();
        key.encode(&mut row);
        one.encode(&mut row);
        two.encode(&mut row);
        row
    }

    /// Queries in a router, as the registry has them.
    #[derive(Default)]
    struct Registry {
        router: Router,
        queries: Vec<Option<(LiveQuery, Places)>>,
        scratch: Vec<u8>,
    }

    impl Registry {
        fn add(&mut self, client: u64, items: &Items, condition: &str) {
            let live = LiveQuery::new(items.plan(condition));
            let index = self.queries.len() as QueryIndex;
            let places = self.router.add(client, index, &live);
            self.queries.push(Some((live, places)));
        }

        fn remove(&mut self, query: usize) {
            let Some((_, places)) = self.queries[query].take() else {
                return;
            };
            self.router.remove(query as QueryIndex, &places, |moved| {
                let other = self.queries[moved.query as usize].as_mut();
                other.expect("it is in the router").1.note(&moved);
            });
        }

        fn candidates(&mut self, row: &[u8]) -> Vec<QueryIndex> {
            let mut found = Vec::new();
            self.router
                .candidates(&layout(), &[], row, &mut self.scratch, &mut found);
            found
        }

        fn matching(&mut self, row: &[u8]) -> Vec<QueryIndex> {
            let mut found = self.candidates(row);
            found.retain(|query| {
                let query = self.queries[*query as usize].as_ref();
                let (_, places) = query.expect("candidates are there");
                let residual = places.residual.as_ref();
                residual.is_none_or(|residual| residual.matches(&layout(), row))
            });
            found.sort_unstable();
            found
        }
    }

    fn term() -> impl Strategy<Value = String> {
        let value = |column: &str, n: u32| match column {
            "one" | "two" => format!("'{}'", ["", "a", "ab", "b"][n as usize]),
            _ => n.to_string(),
        };
        let column = || prop_oneof![Just("id"), Just("key"), Just("one"), Just("two")];
        let comparison = prop_oneof![4 => Just("="), 1 => Just("<>"), 1 => Just("<"), 1 => Just("<="), 1 => Just(">"), 1 => Just(">=")];
        prop_oneof![
            3 => (column(), comparison, 0_u32..4).prop_map(move |(c, op, n)| format!("{c} {op} {}", value(c, n))),
            1 => (column(), prop::collection::vec(0_u32..4, 1..4)).prop_map(move |(c, list)| {
                let any: Vec<String> = list.iter().map(|n| format!("{c} = {}", value(c, *n))).collect();
                format!("({})", any.join(" OR "))
            }),
            1 => (column(), column(), 0_u32..4).prop_map(move |(c, d, n)| format!("({c} = {} OR {d} = {})", value(c, n), value(d, n))),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// A router with what is left to check finds what the whole conditions say.
        #[test]
        fn finds_the_queries_that_match(
            conditions in prop::collection::vec(prop::collection::vec(term(), 1..5), 1..60),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            rows in prop::collection::vec((0_u32..5, 0_u128..5, "[ab]{0,2}", "[ab]{0,2}"), 1..12),
        ) {
            let items = Items::new(0, 0);
            let mut registry = Registry::default();
            for (number, condition) in (0..).zip(&conditions) {
                registry.add(number % 3, &items, &condition.join(" AND "));
            }
            for query in removed {
                registry.remove(query.index(conditions.len()));
            }
            for (id, key, one, two) in rows {
                let row = row(id, key, &one, &two);
                let whole = |query: &Option<(LiveQuery, Places)>| {
                    let (live, _) = query.as_ref()?;
                    let BoundQuery::Table(plan) = &live.query else {
                        return None;
                    };
                    let matches = plan.predicate.as_ref().is_none_or(|p| p.matches(&layout(), &row));
                    matches.then_some(())
                };
                let all = (0..).zip(&registry.queries);
                let expected: Vec<QueryIndex> = all.filter(|(_, query)| whole(query).is_some()).map(|(n, _)| n).collect();
                prop_assert_eq!(registry.matching(&row), expected);
            }
            (0..conditions.len()).for_each(|query| registry.remove(query));
            prop_assert!(registry.router.is_empty());
        }
    }

    /// How many queries are looked at for a changed row does not depend on how many there are that it does not concern.
    #[test]
    fn a_row_meets_the_queries_that_it_concerns() {
        let items = Items::new(0, 0);
        type Shape = fn(u32) -> String;
        let shapes: [(&str, Shape); 6] = [
            ("one value", |n| format!("id = {n}")),
            ("two conditions", |n| format!("two = 'open' AND id = {n}")),
            ("a list", |n| {
                format!("(id = {n} OR id = {})", n + 1_000_000)
            }),
            ("a range", |n| {
                format!("id >= {} AND id < {}", n * 10, n * 10 + 10)
            }),
            ("a range beside a value", |n| {
                format!(
                    "one = '{}' AND id > {} AND id < {}",
                    n % 7,
                    n * 10,
                    n * 10 + 10
                )
            }),
            ("texts", |n| {
                format!("one >= '{n:08}' AND one < '{:08}'", n + 1)
            }),
        ];
        for (name, shape) in shapes {
            for count in [100, 1000] {
                let mut registry = Registry::default();
                (0..count).for_each(|n| registry.add(0, &items, &shape(n)));
                for n in (0..count).step_by(count as usize / 50) {
                    let (id, one) = match name {
                        "a range" => (n * 10 + 5, String::new()),
                        "a range beside a value" => (n * 10 + 5, (n % 7).to_string()),
                        "texts" => (0, format!("{n:08}")),
                        _ => (n, String::new()),
                    };
                    let row = row(id, 0, &one, "open");
                    let found = registry.candidates(&row);
                    // Where a range ends, its neighbour begins.
                    assert!(
                        found.contains(&n) && found.len() <= 2,
                        "{name}, {count}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_client_with_very_many_patterns_leaves_some_to_others() {
        let items = Items::new(0, 0);
        let mut registry = Registry::default();
        let columns = ["id", "key", "one", "two"];
        let comparisons = ["=", ">="];
        let value = |column: &str| {
            if column.len() == 3 && column != "key" {
                "'a'"
            } else {
                "1"
            }
        };
        let mut count = 0;
        for choice in 1..81_u32 {
            let digits = [choice % 3, choice / 3 % 3, choice / 9 % 3, choice / 27 % 3];
            let terms = columns.iter().zip(digits).filter(|(_, digit)| *digit < 2);
            let terms = terms.map(|(column, digit)| {
                format!("{column} {} {}", comparisons[digit as usize], value(column))
            });
            let terms: Vec<String> = terms.collect();
            if !terms.is_empty() {
                registry.add(7, &items, &terms.join(" AND "));
                count += 1;
            }
        }
        assert!(registry.router.patterns.len() <= PATTERNS_MAX);
        assert_eq!(registry.matching(&row(1, 1, "a", "a")).len(), count);
        let range = |n: usize| format!("id >= {} AND id < {}", n * 10, n * 10 + 10);
        (0..100).for_each(|n| registry.add(8, &items, &range(n)));
        let mut found = registry.candidates(&row(105, 1, "", ""));
        found.retain(|query| *query as usize >= count);
        assert_eq!(found, [(count + 10) as QueryIndex]);
        (0..count + 100).for_each(|query| registry.remove(query));
        assert!(registry.router.is_empty());
    }

    #[test]
    fn values_that_clients_choose_do_not_meet_in_one_place() {
        // Without a secret, these 16 bytes all have one hash.
        let values: Vec<Vec<u8>> = (0..1000_u64)
            .map(|n| [0x243f_6a88_85a3_08d3, n].map(u64::to_le_bytes).concat())
            .collect();
        let plain = rustc_hash::FxBuildHasher;
        let hashes: HashSet<u64> = values.iter().map(|v| plain.hash_one(&v[..])).collect();
        assert_eq!(hashes.len(), 1);
        let map = ByValues::<()>::default();
        let hashes: HashSet<u64> = values
            .iter()
            .map(|value| map.hasher().hash_one(&value[..]))
            .collect();
        assert_eq!(hashes.len(), 1000);
    }
}
