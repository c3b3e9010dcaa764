//! Which queries are live, and what a transaction's deltas mean for them. Owned by fan-out.

use std::sync::Arc;

use lightcone_engine::{DeltaBatch, DeltaKind, DeltaOp};
use lightcone_query::{Predicate, SelectPlan};
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, TableId};
use lightcone_wire::rows::RowSize;
use lightcone_wire::server::{event_rows, persistent_rows};
use rustc_hash::FxHashMap;

use crate::evaluate::row_size;

/// Position of a query in the registry; reused after the last subscriber leaves.
type QueryIndex = u32;

/// One live query set's reference to a query.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subscriber {
    connection: u64,
    query_set_id: u32,
}

/// A query, shared by all query sets with the same plan.
struct Query {
    plan: Arc<SelectPlan>,
    key: QueryKey,
    /// What is left to check for rows found through the query's equality.
    residual: Option<Predicate>,
    equality: Option<(ColId, Box<[u8]>)>,
    subscribers: Vec<Subscriber>,
    /// Position in `Transaction::hits` if the present transaction concerns this query.
    hit: Option<u32>,
}

/// Plans with the same key match the same rows: the text, and the caller where the text depends on it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct QueryKey {
    text: String,
    table: TableId,
    sender_value: Option<Vec<u8>>,
}

impl QueryKey {
    fn of(plan: &SelectPlan, caller: &lightcone_types::Identity) -> QueryKey {
        let sender_value = plan.reads_sender.then(|| caller.as_le_bytes().to_vec());
        QueryKey {
            text: plan.text.clone(),
            table: plan.table.id,
            sender_value,
        }
    }
}

/// Queries by the BSATN that a column must have.
type QueriesByValue = FxHashMap<Box<[u8]>, Vec<QueryIndex>>;

/// Queries over one table.
struct TableQueries {
    layout: RowLayout,
    row_size: RowSize,
    is_event: bool,
    name: String,
    /// Queries that every changed row is checked against.
    scans: Vec<QueryIndex>,
    /// Queries by the value a column must have: one map lookup however many there are.
    by_value: Vec<(ColId, QueriesByValue)>,
}

/// All live queries.
#[derive(Default)]
pub(crate) struct Subscriptions {
    queries: Vec<Option<Query>>,
    free: Vec<QueryIndex>,
    by_key: FxHashMap<QueryKey, QueryIndex>,
    tables: FxHashMap<TableId, TableQueries>,
    sets: FxHashMap<(u64, u32), Vec<QueryIndex>>,
    sets_of: FxHashMap<u64, Vec<u32>>,
    scratch: Scratch,
}

/// Reused from transaction to transaction.
#[derive(Default)]
struct Scratch {
    hits: Vec<Hit>,
    targets: Vec<Target>,
    candidates: Vec<QueryIndex>,
}

/// A query that a transaction concerns, with the changed rows as indexes into the transaction's operations.
#[derive(Default)]
struct Hit {
    query: QueryIndex,
    inserts: Vec<u32>,
    deletes: Vec<u32>,
    encoded: Vec<u8>,
}

/// One entry to be sent: sorted, these are the messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    connection: u64,
    query_set_id: u32,
    table: TableId,
    hit: u32,
}

/// The updates of one transaction for one connection: `QuerySetUpdate`s, encoded.
pub(crate) struct ConnectionUpdate<'a> {
    pub connection: u64,
    pub set_count: u32,
    pub sets: &'a [u8],
}

impl Subscriptions {
    pub fn subscribe(
        &mut self,
        connection: u64,
        query_set_id: u32,
        plans: &[Arc<SelectPlan>],
        caller: &lightcone_types::Identity,
    ) {
        let subscriber = Subscriber {
            connection,
            query_set_id,
        };
        let mut set = Vec::with_capacity(plans.len());
        for plan in plans {
            let key = QueryKey::of(plan, caller);
            let index = match self.by_key.get(&key) {
                Some(&index) => index,
                None => self.add_query(plan.clone(), key),
            };
            self.query_mut(index).subscribers.push(subscriber);
            set.push(index);
        }
        self.sets.insert((connection, query_set_id), set);
        self.sets_of
            .entry(connection)
            .or_default()
            .push(query_set_id);
    }

    /// Drops all query sets of a connection that is gone.
    pub fn unsubscribe_all(&mut self, connection: u64) {
        for query_set_id in self.sets_of.remove(&connection).unwrap_or_default() {
            self.unsubscribe(connection, query_set_id);
        }
    }

    pub fn unsubscribe(&mut self, connection: u64, query_set_id: u32) {
        let Some(set) = self.sets.remove(&(connection, query_set_id)) else {
            return;
        };
        if let Some(sets) = self.sets_of.get_mut(&connection) {
            sets.retain(|other| *other != query_set_id);
        }
        let subscriber = Subscriber {
            connection,
            query_set_id,
        };
        for index in set {
            let subscribers = &mut self.query_mut(index).subscribers;
            if let Some(position) = subscribers.iter().position(|other| *other == subscriber) {
                subscribers.swap_remove(position);
            }
            if subscribers.is_empty() {
                self.remove_query(index);
            }
        }
    }

    /// The number of distinct live queries.
    pub fn query_count(&self) -> usize {
        self.by_key.len()
    }

    fn query_mut(&mut self, index: QueryIndex) -> &mut Query {
        self.queries[index as usize]
            .as_mut()
            .expect("query sets and tables name live queries")
    }

    fn add_query(&mut self, plan: Arc<SelectPlan>, key: QueryKey) -> QueryIndex {
        let equality = plan
            .equalities
            .iter()
            .find(|(column, _)| compares_bytewise(&plan, *column))
            .cloned();
        let residual = match &equality {
            Some((column, _)) => plan.residual(&[*column]),
            None => plan.predicate.clone(),
        };
        let table = self
            .tables
            .entry(plan.table.id)
            .or_insert_with(|| TableQueries::new(&plan));
        let index = self.free.pop().unwrap_or(self.queries.len() as QueryIndex);
        match &equality {
            Some((column, value)) => table
                .map_of(*column)
                .entry(value.clone())
                .or_default()
                .push(index),
            None => table.scans.push(index),
        }
        self.by_key.insert(key.clone(), index);
        let query = Query {
            plan,
            key,
            residual,
            equality,
            subscribers: Vec::new(),
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
        self.by_key.remove(&query.key);
        self.free.push(index);
        let id = query.plan.table.id;
        let Some(table) = self.tables.get_mut(&id) else {
            return;
        };
        match &query.equality {
            Some((column, value)) => {
                let map = table.map_of(*column);
                if let Some(queries) = map.get_mut(value) {
                    queries.retain(|other| *other != index);
                    if queries.is_empty() {
                        map.remove(value);
                    }
                }
            }
            None => table.scans.retain(|other| *other != index),
        }
        table.by_value.retain(|(_, map)| !map.is_empty());
        if table.scans.is_empty() && table.by_value.is_empty() {
            self.tables.remove(&id);
        }
    }

    /// Matches a transaction's changes to the queries and calls `send` once per concerned connection.
    pub fn evaluate(
        &mut self,
        deltas: &DeltaBatch,
        ops: &[DeltaOp],
        mut send: impl FnMut(ConnectionUpdate<'_>),
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let Scratch {
            hits,
            targets,
            candidates,
        } = &mut scratch;
        let mut used = 0;
        for (position, op) in ops.iter().enumerate() {
            let Some(table) = self.tables.get(&op.table) else {
                continue;
            };
            let row = deltas.row(op);
            candidates.clear();
            table.candidates(row, candidates);
            for &index in candidates.iter() {
                let query = self.queries[index as usize]
                    .as_mut()
                    .expect("tables name live queries");
                if query
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
                match op.kind {
                    DeltaKind::Insert => hit.inserts.push(position as u32),
                    DeltaKind::Delete => hit.deletes.push(position as u32),
                }
            }
        }
        if used > 0 {
            self.collect_targets(&mut hits[..used], deltas, ops, targets);
            self.send_updates(&hits[..used], targets, &mut send);
        }
        self.scratch = scratch;
    }

    fn collect_targets(
        &mut self,
        hits: &mut [Hit],
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
            let id = query.plan.table.id;
            let table = &self.tables[&id];
            hit.encode(table, deltas, ops);
            targets.extend(query.subscribers.iter().map(|subscriber| Target {
                connection: subscriber.connection,
                query_set_id: subscriber.query_set_id,
                table: id,
                hit: number as u32,
            }));
        }
        targets.sort_unstable();
    }

    fn send_updates(
        &self,
        hits: &[Hit],
        targets: &[Target],
        send: &mut impl FnMut(ConnectionUpdate<'_>),
    ) {
        let mut sets = Vec::new();
        for of_connection in targets.chunk_by(|a, b| a.connection == b.connection) {
            sets.clear();
            let mut set_count = 0;
            for of_set in of_connection.chunk_by(|a, b| a.query_set_id == b.query_set_id) {
                set_count += 1;
                self.write_set(hits, of_set, &mut sets);
            }
            send(ConnectionUpdate {
                connection: of_connection[0].connection,
                set_count,
                sets: &sets,
            });
        }
    }

    /// One `QuerySetUpdate`: the set's id and its tables, each with one entry per query (05 §7.4).
    fn write_set(&self, hits: &[Hit], targets: &[Target], out: &mut Vec<u8>) {
        use lightcone_types::Encode;
        targets[0].query_set_id.encode(out);
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

impl TableQueries {
    fn new(plan: &SelectPlan) -> TableQueries {
        let types: Vec<_> = plan
            .table
            .columns
            .iter()
            .map(|column| column.ty.clone())
            .collect();
        TableQueries {
            layout: RowLayout::new(&types),
            row_size: row_size(plan),
            is_event: plan.table.is_event,
            name: plan.table.name.clone(),
            scans: Vec::new(),
            by_value: Vec::new(),
        }
    }

    fn map_of(&mut self, column: ColId) -> &mut QueriesByValue {
        let position = match self.by_value.iter().position(|(other, _)| *other == column) {
            Some(position) => position,
            None => {
                self.by_value.push((column, FxHashMap::default()));
                self.by_value.len() - 1
            }
        };
        &mut self.by_value[position].1
    }

    #[inline]
    fn candidates(&self, row: &[u8], out: &mut Vec<QueryIndex>) {
        out.extend_from_slice(&self.scans);
        for (column, map) in &self.by_value {
            if let Some(queries) = map.get(self.layout.column(row, usize::from(column.0))) {
                out.extend_from_slice(queries);
            }
        }
    }
}

impl Hit {
    fn start(&mut self, query: QueryIndex) {
        self.query = query;
        self.inserts.clear();
        self.deletes.clear();
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
        // Lists beyond 4 GiB cannot be: the transaction's own limit is far below.
        if table.is_event {
            let mut list = event_rows(encoded);
            inserts
                .iter()
                .for_each(|position| list.push(deltas.row(&ops[*position as usize])));
            list.finish().expect("a transaction's rows fit a list");
            return;
        }
        let mut entry = persistent_rows(encoded);
        if !inserts.is_empty() {
            entry
                .inserts(table.row_size, rows_at(inserts, deltas, ops))
                .expect("a transaction's rows fit a list");
        }
        if !deletes.is_empty() {
            entry
                .deletes(table.row_size, rows_at(deletes, deltas, ops))
                .expect("a transaction's rows fit a list");
        }
    }
}

/// The rows at these positions of a transaction's operations.
fn rows_at<'r>(
    positions: &'r [u32],
    deltas: &'r DeltaBatch,
    ops: &'r [DeltaOp],
) -> impl Iterator<Item = &'r [u8]> + Clone {
    positions
        .iter()
        .map(move |position| deltas.row(&ops[*position as usize]))
}

/// Equal values of the column have equal bytes; not so for floats (-0 and +0, the NaNs).
fn compares_bytewise(plan: &SelectPlan, column: ColId) -> bool {
    fn no_floats(ty: &AlgebraicType) -> bool {
        match ty {
            AlgebraicType::F32 | AlgebraicType::F64 | AlgebraicType::Ref(_) => false,
            AlgebraicType::Array(element) => no_floats(element),
            AlgebraicType::Product(product) => product
                .elements
                .iter()
                .all(|e| no_floats(&e.algebraic_type)),
            AlgebraicType::Sum(sum) => sum.variants.iter().all(|v| no_floats(&v.algebraic_type)),
            _ => true,
        }
    }
    plan.table
        .column(column)
        .is_some_and(|column| no_floats(&column.ty))
}
