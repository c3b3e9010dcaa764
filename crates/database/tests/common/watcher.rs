//! A client that keeps what it was sent, as the published clients do: rows with counts, by query set and table. It panics where
//! they would.

use std::collections::{BTreeMap, BTreeSet};

use lightcone_database::DatabaseHandle;
use lightcone_types::{Encode, Identity};
use lightcone_wire::{
    ClientMessage, QueryRows, QuerySetUpdate, ReducerOutcome, ServerMessage, SubscribeSet,
    TableUpdateRows,
};

use serde_json::Value;

use super::requests::{one_off, subscribe};
use super::Client;

/// Rows with how often they were sent.
pub type Bag = BTreeMap<Vec<u8>, i64>;

pub struct Watcher {
    pub client: Client,
    pub identity: Identity,
    held: Held,
}

/// What a client keeps of messages.
#[derive(Default)]
pub struct Held {
    rows: BTreeMap<(u32, String), Bag>,
    /// Updates since they were last taken: the tables of each.
    updates: Vec<Vec<String>>,
    /// Errors of query sets since they were last taken.
    errors: Vec<(u32, String)>,
    /// Rows of event tables.
    events: Vec<Vec<u8>>,
    /// Query sets that were applied and not ended.
    sets: BTreeSet<u32>,
}

impl Watcher {
    pub async fn connect(database: &DatabaseHandle, identity: Identity, id: u128) -> Watcher {
        Watcher {
            client: Client::connect(database, identity, id).await,
            identity,
            held: Held::default(),
        }
    }

    /// Subscribes to `SELECT * FROM` each of these.
    pub async fn watch(&mut self, set: u32, tables: &[&str]) {
        let texts: Vec<String> = tables
            .iter()
            .map(|t| format!("SELECT * FROM {t}"))
            .collect();
        let texts = texts.iter().map(String::as_str).collect();
        self.client.send(&[subscribe(set, texts)]).await;
        self.settle().await;
    }

    /// Subscribes to `SELECT * FROM` each of these, in a batch with a set for each: the first one has the id `set`.
    pub async fn watch_each(&mut self, set: u32, tables: &[&str]) {
        let texts: Vec<String> = tables
            .iter()
            .map(|t| format!("SELECT * FROM {t}"))
            .collect();
        let sets = (set..)
            .zip(&texts)
            .map(|(query_set_id, text)| SubscribeSet {
                query_set_id,
                query_strings: vec![text],
            });
        let batch = ClientMessage::SubscribeBatch {
            request_id: set,
            sets: sets.collect(),
        };
        self.client.send(&[batch]).await;
        self.settle().await;
    }

    /// Subscribes to one text.
    pub async fn subscribe(&mut self, set: u32, text: &str) {
        self.client.send(&[subscribe(set, vec![text])]).await;
        self.settle().await;
    }

    /// One transaction of a module that is nothing but tables.
    pub async fn change(&mut self, changes: &Value) {
        let mut args = Vec::new();
        changes.to_string().encode(&mut args);
        assert_eq!(self.call("change", &args).await, None, "{changes}");
    }

    /// The rows of a one-off query, which are found from scratch.
    pub async fn ask(&mut self, text: &str) -> Bag {
        self.client.send(&[one_off(78, text)]).await;
        loop {
            match self.client.next().await {
                ServerMessage::OneOffQueryResult {
                    request_id: 78,
                    result,
                } => {
                    let rows = result.unwrap_or_else(|error| panic!("{text}: {error}"));
                    return bag_of(&rows);
                }
                message => self.held.take(message),
            }
        }
    }

    /// Calls a reducer. Returns the text of its failure.
    pub async fn call(&mut self, reducer: &str, args: &[u8]) -> Option<String> {
        self.client
            .send(&[ClientMessage::CallReducer {
                request_id: 1,
                reducer,
                args,
            }])
            .await;
        loop {
            let message = self.client.next().await;
            if let ServerMessage::ReducerResult { result, .. } = message {
                match result {
                    ReducerOutcome::Ok { query_sets, .. } => self.held.update(query_sets),
                    ReducerOutcome::OkEmpty => {}
                    ReducerOutcome::Err(text) => return Some(ReducerOutcome::error_text(&text)),
                    ReducerOutcome::InternalError(text) => return Some(text),
                }
                return None;
            }
            self.held.take(message);
        }
    }

    /// Takes in all that happened before now.
    pub async fn settle(&mut self) {
        self.client
            .send(&[one_off(77, "SELECT * FROM st_var")])
            .await;
        loop {
            match self.client.next().await {
                ServerMessage::OneOffQueryResult { request_id: 77, .. } => return,
                message => self.held.take(message),
            }
        }
    }

    /// The query sets that it has.
    pub fn sets(&self) -> Vec<u32> {
        self.held.sets()
    }

    /// Drops the rows of a query set.
    pub fn forget(&mut self, set: u32) {
        self.held.forget(set);
    }

    /// Rows of event tables, in the order in which they came.
    pub fn events(&self) -> &[Vec<u8>] {
        &self.held.events
    }

    /// What it has of a table in a set.
    pub fn rows(&self, set: u32, table: &str) -> Bag {
        self.held.rows(set, table)
    }

    /// The tables of a query set of which there were rows.
    pub fn tables(&self, set: u32) -> Vec<&str> {
        let of_set = self.held.rows.keys().filter(|(of, _)| *of == set);
        of_set.map(|(_, table)| table.as_str()).collect()
    }

    /// The tables of each update since the last time.
    pub fn take_updates(&mut self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.held.updates)
    }

    pub fn take_errors(&mut self) -> Vec<(u32, String)> {
        self.held.take_errors()
    }

    /// Ends a query set.
    pub async fn unsubscribe(&mut self, set: u32) {
        let message = ClientMessage::Unsubscribe {
            request_id: 3,
            query_set_id: set,
            send_dropped_rows: false,
        };
        self.client.send(&[message]).await;
        self.settle().await;
    }
}

impl Held {
    /// # Panics
    /// If it is none that a client expects.
    pub fn take(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::SubscribeApplied {
                query_set_id, rows, ..
            } => {
                self.sets.insert(query_set_id);
                self.add(query_set_id, rows);
            }
            ServerMessage::SubscribeBatchApplied { results, .. } => {
                for result in results {
                    let id = result.query_set_id;
                    match result.outcome {
                        Ok(rows) => {
                            self.sets.insert(id);
                            self.add(id, rows);
                        }
                        Err(error) => self.errors.push((id, error)),
                    }
                }
            }
            ServerMessage::TransactionUpdate { query_sets } => self.update(query_sets),
            ServerMessage::SubscriptionError {
                query_set_id,
                error,
                ..
            } => {
                self.sets.remove(&query_set_id);
                self.errors.push((query_set_id, error));
            }
            ServerMessage::UnsubscribeApplied { query_set_id, .. } => {
                self.sets.remove(&query_set_id);
                self.forget(query_set_id);
            }
            ServerMessage::ProcedureResult { .. } => {}
            // Of a call that was sent with other messages.
            ServerMessage::ReducerResult {
                result: ReducerOutcome::Ok { query_sets, .. },
                ..
            } => self.update(query_sets),
            ServerMessage::ReducerResult {
                result: ReducerOutcome::OkEmpty,
                ..
            } => {}
            other => panic!("{other:?}"),
        }
    }

    fn add(&mut self, set: u32, rows: QueryRows) {
        for table in rows.tables {
            let bag = self.rows.entry((set, table.table)).or_default();
            for row in table.rows.iter() {
                *bag.entry(row.to_vec()).or_default() += 1;
            }
        }
    }

    fn update(&mut self, query_sets: Vec<QuerySetUpdate>) {
        let mut tables = Vec::new();
        for set in query_sets {
            for table in set.tables {
                let bag = self
                    .rows
                    .entry((set.query_set_id, table.table_name.clone()))
                    .or_default();
                for rows in table.rows {
                    let (inserts, deletes) = match rows {
                        TableUpdateRows::Persistent { inserts, deletes } => (inserts, deletes),
                        TableUpdateRows::Event { events } => {
                            self.events.extend(events.iter().map(<[u8]>::to_vec));
                            continue;
                        }
                    };
                    for row in inserts.iter() {
                        *bag.entry(row.to_vec()).or_default() += 1;
                    }
                    for row in deletes.iter() {
                        *bag.entry(row.to_vec()).or_default() -= 1;
                    }
                }
                assert!(bag.values().all(|count| *count >= 0), "a row was not there");
                bag.retain(|_, count| *count > 0);
                tables.push(table.table_name);
            }
        }
        tables.sort();
        tables.dedup();
        self.updates.push(tables);
    }

    /// The query sets that it has.
    pub fn sets(&self) -> Vec<u32> {
        self.sets.iter().copied().collect()
    }

    /// Drops the rows of a query set.
    pub fn forget(&mut self, set: u32) {
        self.rows.retain(|(of, _), _| *of != set);
    }

    /// What it has of a table in a set.
    pub fn rows(&self, set: u32, table: &str) -> Bag {
        let rows = self.rows.get(&(set, table.to_owned()));
        rows.cloned().unwrap_or_default()
    }

    pub fn take_errors(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.errors)
    }
}

/// The rows of an answer.
pub fn bag_of(rows: &QueryRows) -> Bag {
    let rows = rows.tables.iter().flat_map(|table| table.rows.iter());
    let mut bag = Bag::new();
    rows.for_each(|row| *bag.entry(row.to_vec()).or_default() += 1);
    bag
}
