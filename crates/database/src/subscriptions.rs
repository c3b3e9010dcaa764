//! Which queries are live, and what a transaction's deltas mean for them. Owned by fan-out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_table::{DeltaBatch, DeltaKind, DeltaOp};
use lightcone_types::TableId;
use lightcone_wire::rows::RowSize;
use lightcone_wire::server::{event_rows, persistent_rows};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::evaluate::row_size;
use crate::live_shapes::{
    LiveShape, LiveShapes, MeasuredTime, QUERIES_LOOKED_AT_MAX, SHAPES_LISTED_MAX,
};
use crate::peer::{ConnectionNumber, SetKey};
use lightcone_live::{LiveQuery, QueryKey};
use lightcone_live::{Places, QueryIndex, QueryShape, Router};

/// One live query set's reference to a query.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subscriber {
    set: SetKey,
    /// Where the query stands in the set.
    place: u32,
}

/// A query of a set, and where the set stands among the query's subscribers.
struct Member {
    query: QueryIndex,
    place: u32,
}

/// A query, shared by all query sets with the same key.
struct Query {
    live: Arc<LiveQuery>,
    /// What it is on.
    table: TableId,
    /// Where its table's router has it.
    places: Places,
    subscribers: SmallVec<[Subscriber; 1]>,
    /// Transactions that concerned it, and the rows that came and went.
    changes: u64,
    changed_rows: u64,
    delivery: MeasuredTime,
    /// Position in `Transaction::hits` if the present transaction concerns this query.
    hit: Option<u32>,
}

/// Queries over one table, or joins of one shape.
struct TableQueries {
    layout: RowLayout,
    row_size: RowSize,
    is_event: bool,
    /// Bytes at the start of each row that subscribers do not get.
    hidden_bytes: usize,
    name: String,
    router: Router,
}

/// All live queries.
#[derive(Default)]
pub(crate) struct Subscriptions {
    queries: Vec<Option<Query>>,
    free: Vec<QueryIndex>,
    by_key: HashMap<Arc<QueryKey>, QueryIndex>,
    tables: FxHashMap<TableId, TableQueries>,
    sets: HashMap<SetKey, Vec<Member>>,
    sets_of: FxHashMap<ConnectionNumber, HashSet<u32>>,
    scratch: Scratch,
}

/// Reused from transaction to transaction.
#[derive(Default)]
struct Scratch {
    hits: Vec<Hit>,
    targets: Vec<Target>,
    candidates: Vec<QueryIndex>,
    /// Of several columns of a row.
    values: Vec<u8>,
    /// The query sets of one message.
    sets: Vec<u8>,
}

impl Scratch {
    /// One transaction that concerns very many does not keep its memory for all that follow.
    fn shrink(&mut self, used: usize) {
        self.hits[..used].iter_mut().for_each(Hit::shrink);
        if self.hits.len() > HITS_KEPT_MAX {
            self.hits.truncate(HITS_KEPT_MAX);
            self.hits.shrink_to_fit();
        }
        self.targets.clear();
        self.targets.shrink_to(ENTRIES_KEPT_MAX);
        self.candidates.clear();
        self.candidates.shrink_to(ENTRIES_KEPT_MAX);
        self.values.clear();
        self.values.shrink_to(ENTRIES_KEPT_MAX);
    }
}

/// A query that a transaction concerns, with the changed rows as indexes into the transaction's operations.
#[derive(Default)]
struct Hit {
    query: QueryIndex,
    inserts: Vec<u32>,
    deletes: Vec<u32>,
    /// What the rows take in a message, about.
    bytes: usize,
    /// It is sent to no client.
    muted: bool,
    encoded: Vec<u8>,
}

/// A hit whose rows take more does not keep its memory for the next transaction.
const HIT_KEPT_BYTES: usize = 64 << 10;
/// Hits, and other entries, that are kept for the next transaction.
const HITS_KEPT_MAX: usize = 1024;
const ENTRIES_KEPT_MAX: usize = 65_536;
/// Rows are looked at for who can take them only when all that were found so far take so much.
const LOOK_AT_ROOM_BYTES: usize = 1 << 20;
/// Bytes that a row takes in a message beside its own: its offset.
const ROW_EXTRA_BYTES: usize = 8;

/// One entry to be sent: sorted, these are the messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    set: SetKey,
    table: TableId,
    hit: u32,
}

/// The updates of one transaction for one connection: `QuerySetUpdate`s, encoded.
pub(crate) struct ConnectionUpdate<'a> {
    pub connection: ConnectionNumber,
    pub set_count: u32,
    pub sets: &'a [u8],
    /// The connection before this one was sent the same.
    pub is_as_before: bool,
}

/// Who gets the updates of a transaction.
pub(crate) trait Receivers {
    /// About how many bytes a connection can take now.
    fn free_bytes(&self, connection: ConnectionNumber) -> usize;
    fn send(&mut self, update: ConnectionUpdate<'_>);
    /// The connection would get more than it can take. It gets nothing, and is over.
    fn too_large(&mut self, connection: ConnectionNumber, bytes: usize);
}

impl Subscriptions {
    pub fn subscribe(&mut self, key: SetKey, queries: &[Arc<LiveQuery>]) {
        let connection = key.connection;
        let mut set = Vec::with_capacity(queries.len());
        for query in queries {
            let index = match self.by_key.get(&query.key) {
                Some(&index) => index,
                None => self.add_query(connection, query.clone()),
            };
            let subscribers = &mut self.query_mut(index).subscribers;
            let place = subscribers.len() as u32;
            subscribers.push(Subscriber {
                set: key,
                place: set.len() as u32,
            });
            set.push(Member {
                query: index,
                place,
            });
        }
        self.sets.insert(key, set);
        self.sets_of.entry(connection).or_default().insert(key.id);
    }

    /// Drops all query sets of a connection that is gone.
    pub fn unsubscribe_all(&mut self, connection: ConnectionNumber) {
        for id in self.sets_of.remove(&connection).unwrap_or_default() {
            self.unsubscribe(SetKey { connection, id });
        }
    }

    /// Takes as long as the set is large, however many others have the same queries.
    pub fn unsubscribe(&mut self, key: SetKey) {
        let Some(mut set) = self.sets.remove(&key) else {
            return;
        };
        if let Some(sets) = self.sets_of.get_mut(&key.connection) {
            sets.remove(&key.id);
            if sets.is_empty() {
                self.sets_of.remove(&key.connection);
            }
        }
        while let Some(member) = set.pop() {
            let subscribers = &mut self.query_mut(member.query).subscribers;
            subscribers.swap_remove(member.place as usize);
            let moved = subscribers.get(member.place as usize).copied();
            if subscribers.is_empty() {
                self.remove_query(member.query);
            }
            // The one that took the place of the removed one is told so.
            if let Some(moved) = moved {
                // Two texts of a set may be one query.
                let set = match moved.set == key {
                    true => Some(&mut set),
                    false => self.sets.get_mut(&moved.set),
                };
                let its = set.and_then(|set| set.get_mut(moved.place as usize));
                its.expect("subscribers are members of their sets").place = member.place;
            }
        }
    }

    /// The number of distinct live queries.
    pub fn query_count(&self) -> usize {
        self.by_key.len()
    }

    /// What clients are subscribed to, the shapes with most subscribers first.
    pub fn shapes(&self, upkeep: &FxHashMap<TableId, MeasuredTime>) -> LiveShapes {
        let mut kept_up = FxHashSet::default();
        let mut shapes = FxHashMap::<QueryShape, LiveShape>::default();
        let queries = self.queries.iter().flatten();
        for query in queries.take(QUERIES_LOOKED_AT_MAX) {
            let shape = query.live.shape();
            let of_shape = shapes
                .entry(shape)
                .or_insert_with(|| LiveShape::new(&shape, &query.live.table));
            of_shape.queries += 1;
            of_shape.subscribers += query.subscribers.len() as u64;
            of_shape.changes += query.changes;
            of_shape.changed_rows += query.changed_rows;
            of_shape.delivery.add(query.delivery);
            if let Some(time) = upkeep
                .get(&query.table)
                .filter(|_| kept_up.insert(query.table))
            {
                of_shape.upkeep.add(*time);
            }
        }
        let is_whole =
            shapes.len() <= SHAPES_LISTED_MAX && self.query_count() <= QUERIES_LOOKED_AT_MAX;
        let mut listed: Vec<_> = shapes.into_values().collect();
        listed.sort_by(|a, b| (b.subscribers, &a.table).cmp(&(a.subscribers, &b.table)));
        listed.truncate(SHAPES_LISTED_MAX);
        LiveShapes { listed, is_whole }
    }

    fn query_mut(&mut self, index: QueryIndex) -> &mut Query {
        self.queries[index as usize]
            .as_mut()
            .expect("query sets and tables name live queries")
    }

    fn add_query(&mut self, connection: ConnectionNumber, live: Arc<LiveQuery>) -> QueryIndex {
        let table = self
            .tables
            .entry(live.group.table)
            .or_insert_with(|| TableQueries::new(&live.table));
        let index = self.free.pop().unwrap_or(self.queries.len() as QueryIndex);
        let places = table.router.add(connection.0, index, &live);
        self.by_key.insert(live.key.clone(), index);
        let query = Query {
            table: live.group.table,
            live,
            places,
            subscribers: SmallVec::new(),
            changes: 0,
            changed_rows: 0,
            delivery: MeasuredTime::default(),
            hit: None,
        };
        match self.queries.get_mut(index as usize) {
            Some(place) => *place = Some(query),
            None => self.queries.push(Some(query)),
        }
        index
    }

    fn remove_query(&mut self, index: QueryIndex) {
        let Some(query) = self.queries[index as usize].take() else {
            return;
        };
        self.by_key.remove(&query.live.key);
        self.free.push(index);
        let Some(table) = self.tables.get_mut(&query.table) else {
            return;
        };
        let queries = &mut self.queries;
        table.router.remove(index, &query.places, |moved| {
            let other = queries[moved.query as usize].as_mut();
            // Of those with several values, it may be this one.
            if let Some(other) = other {
                other.places.note(&moved);
            }
        });
        if table.router.is_empty() {
            self.tables.remove(&query.table);
        }
    }

    /// Matches a transaction's changes to the queries and tells each concerned connection once. `took` is asked at the end, and gives
    /// how long that was if it is measured.
    pub fn evaluate(
        &mut self,
        deltas: &DeltaBatch,
        ops: &[DeltaOp],
        receivers: &mut impl Receivers,
        took: impl FnOnce() -> Option<Duration>,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let Scratch {
            hits,
            targets,
            candidates,
            values,
            sets,
        } = &mut scratch;
        let mut over = FxHashSet::default();
        let (mut used, mut bytes, mut look_at) = (0, 0, LOOK_AT_ROOM_BYTES);
        for (position, op) in ops.iter().enumerate() {
            let Some(table) = self.tables.get(&op.table) else {
                continue;
            };
            let row = deltas.row(op);
            candidates.clear();
            let (router, key) = (&table.router, deltas.key(op));
            router.candidates(&table.layout, key, row, values, candidates);
            for &index in candidates.iter() {
                let query = self.queries[index as usize]
                    .as_mut()
                    .expect("tables name live queries");
                if query
                    .places
                    .residual
                    .as_ref()
                    .is_some_and(|p| !p.matches(&table.layout, row))
                {
                    continue;
                }
                let hit = *query.hit.get_or_insert_with(|| {
                    if hits.len() == used {
                        hits.push(Hit::default());
                    }
                    hits[used].start(index);
                    used += 1;
                    used as u32 - 1
                });
                let hit = &mut hits[hit as usize];
                if hit.muted {
                    continue;
                }
                match op.kind {
                    DeltaKind::Insert => hit.inserts.push(position as u32),
                    DeltaKind::Delete => hit.deletes.push(position as u32),
                }
                hit.bytes += row.len() + ROW_EXTRA_BYTES;
                bytes += row.len() + ROW_EXTRA_BYTES;
            }
            if bytes > look_at {
                bytes = self.mute(&mut hits[..used], &mut over, receivers);
                look_at = LOOK_AT_ROOM_BYTES.max(2 * bytes);
            }
        }
        if used > 0 {
            if bytes > LOOK_AT_ROOM_BYTES {
                self.mute(&mut hits[..used], &mut over, receivers);
            }
            self.collect_targets(&mut hits[..used], &over, deltas, ops, targets);
            self.send_updates(&hits[..used], targets, sets, receivers);
            if let Some(took) = took() {
                self.note_time(&hits[..used], took);
            }
        }
        scratch.shrink(used);
        self.scratch = scratch;
    }

    /// Each query that was concerned has its part of the time, by its rows.
    fn note_time(&mut self, hits: &[Hit], took: Duration) {
        let rows = |hit: &Hit| 1 + hit.inserts.len() + hit.deletes.len();
        let of_row = took.as_nanos() as f64 / hits.iter().map(rows).sum::<usize>() as f64;
        for hit in hits {
            let ns = (of_row * rows(hit) as f64) as u64;
            let delivery = &mut self.query_mut(hit.query).delivery;
            delivery.add(MeasuredTime { ns, changes: 1 });
        }
    }

    /// Leaves out the connections for which there is too much so far, and what no other gets. Returns the bytes of the
    /// rest.
    fn mute(
        &self,
        hits: &mut [Hit],
        over: &mut FxHashSet<ConnectionNumber>,
        receivers: &mut impl Receivers,
    ) -> usize {
        let subscribers = |hit: &Hit| {
            let query = self.queries[hit.query as usize].as_ref();
            &query.expect("hits name live queries").subscribers
        };
        let mut of_connections = FxHashMap::<ConnectionNumber, usize>::default();
        for hit in hits.iter().filter(|hit| !hit.muted) {
            for subscriber in subscribers(hit) {
                *of_connections.entry(subscriber.set.connection).or_default() += hit.bytes;
            }
        }
        for (connection, bytes) in of_connections {
            if !over.contains(&connection) && bytes > receivers.free_bytes(connection) {
                over.insert(connection);
                receivers.too_large(connection, bytes);
            }
        }
        let mut left = 0;
        for hit in hits.iter_mut().filter(|hit| !hit.muted) {
            let mut subscribers = subscribers(hit).iter();
            if subscribers.all(|s| over.contains(&s.set.connection)) {
                hit.muted = true;
                (hit.inserts, hit.deletes) = Default::default();
            } else {
                left += hit.bytes;
            }
        }
        left
    }

    fn collect_targets(
        &mut self,
        hits: &mut [Hit],
        over: &FxHashSet<ConnectionNumber>,
        deltas: &DeltaBatch,
        ops: &[DeltaOp],
        targets: &mut Vec<Target>,
    ) {
        targets.clear();
        for (number, hit) in hits.iter_mut().enumerate() {
            let query = self.queries[hit.query as usize]
                .as_mut()
                .expect("hits name live queries");
            query.hit = None;
            query.changes += 1;
            query.changed_rows += (hit.inserts.len() + hit.deletes.len()) as u64;
            if hit.muted {
                continue;
            }
            let id = query.table;
            let table = &self.tables[&id];
            hit.encode(table, deltas, ops);
            let subscribers = query.subscribers.iter();
            targets.extend(
                subscribers
                    .filter(|s| over.is_empty() || !over.contains(&s.set.connection))
                    .map(|subscriber| Target {
                        set: subscriber.set,
                        table: id,
                        hit: number as u32,
                    }),
            );
        }
        targets.sort_unstable();
    }

    fn send_updates(
        &self,
        hits: &[Hit],
        targets: &[Target],
        sets: &mut Vec<u8>,
        receivers: &mut impl Receivers,
    ) {
        let mut before: &[Target] = &[];
        let mut set_count = 0;
        for of_connection in targets.chunk_by(|a, b| a.set.connection == b.set.connection) {
            let connection = of_connection[0].set.connection;
            let is_as_before = is_same(before, of_connection);
            if !is_as_before {
                let entries = of_connection.iter();
                let bytes: usize = entries
                    .map(|target| hits[target.hit as usize].encoded.len())
                    .sum();
                // Many sets of one connection may hold the same few rows.
                if bytes > LOOK_AT_ROOM_BYTES && bytes > receivers.free_bytes(connection) {
                    receivers.too_large(connection, bytes);
                    continue;
                }
                sets.clear();
                set_count = 0;
                for of_set in of_connection.chunk_by(|a, b| a.set == b.set) {
                    set_count += 1;
                    self.write_set(hits, of_set, sets);
                }
                before = of_connection;
            } else if sets.len() > LOOK_AT_ROOM_BYTES
                && sets.len() > receivers.free_bytes(connection)
            {
                receivers.too_large(connection, sets.len());
                continue;
            }
            receivers.send(ConnectionUpdate {
                connection,
                set_count,
                sets,
                is_as_before,
            });
        }
        if sets.capacity() > LOOK_AT_ROOM_BYTES {
            *sets = Vec::new();
        }
    }

    /// One `QuerySetUpdate`: the set's id and its tables, each with one entry per query (05 §7.4).
    fn write_set(&self, hits: &[Hit], targets: &[Target], out: &mut Vec<u8>) {
        use lightcone_types::Encode;
        targets[0].set.id.encode(out);
        let tables = targets.chunk_by(|a, b| a.table == b.table);
        (tables.clone().count() as u32).encode(out);
        for of_table in tables {
            self.tables[&of_table[0].table].name.encode(out);
            (of_table.len() as u32).encode(out);
            for target in of_table {
                out.extend_from_slice(&hits[target.hit as usize].encoded);
            }
        }
    }
}

/// Whether two connections get the same.
fn is_same(one: &[Target], other: &[Target]) -> bool {
    let content = |target: &Target| (target.set.id, target.table, target.hit);
    one.len() == other.len() && one.iter().map(content).eq(other.iter().map(content))
}

impl TableQueries {
    fn new(table: &TableSchema) -> TableQueries {
        let types: Vec<_> = table.columns.iter().map(|c| c.ty.clone()).collect();
        TableQueries {
            layout: RowLayout::new(&types),
            row_size: row_size(table),
            is_event: table.is_event,
            hidden_bytes: table.hidden_bytes(),
            name: table.name.clone(),
            router: Router::default(),
        }
    }
}

impl Hit {
    fn start(&mut self, query: QueryIndex) {
        self.query = query;
        self.inserts.clear();
        self.deletes.clear();
        self.bytes = 0;
        self.muted = false;
    }

    fn shrink(&mut self) {
        if self.bytes > HIT_KEPT_BYTES {
            *self = Hit::default();
        }
    }

    /// Encodes the entry once; every subscriber gets a copy.
    fn encode(&mut self, table: &TableQueries, deltas: &DeltaBatch, ops: &[DeltaOp]) {
        let Hit {
            inserts,
            deletes,
            encoded,
            ..
        } = self;
        encoded.clear();
        // Lists beyond 4 GiB cannot be: no connection has room for them, so they are muted.
        let inserts = rows_at(table, inserts, deltas, ops);
        let written = match table.is_event {
            true => event_rows(encoded, table.row_size, inserts),
            false => {
                let deletes = rows_at(table, deletes, deltas, ops);
                persistent_rows(encoded, table.row_size, inserts, deletes)
            }
        };
        written.expect("a transaction's rows fit a list");
    }
}

/// The rows at these positions of a transaction's operations.
fn rows_at<'r>(
    table: &TableQueries,
    positions: &'r [u32],
    deltas: &'r DeltaBatch,
    ops: &'r [DeltaOp],
) -> impl Iterator<Item = &'r [u8]> + Clone {
    let hidden = table.hidden_bytes;
    positions
        .iter()
        .map(move |position| &deltas.row(&ops[*position as usize])[hidden..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_transaction_does_not_keep_its_memory() {
        let mut scratch = Scratch::default();
        scratch.hits.resize_with(100_000, Hit::default);
        scratch.candidates.resize(1_000_000, 0);
        scratch.shrink(100_000);
        assert_eq!(scratch.hits.len(), HITS_KEPT_MAX);
        assert!(scratch.hits.capacity() < 2 * HITS_KEPT_MAX);
        assert!(scratch.candidates.capacity() < 2 * ENTRIES_KEPT_MAX);
    }
}
