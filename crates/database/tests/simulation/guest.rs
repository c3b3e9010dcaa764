//! The module of a simulated database: tables as in `common/tables.rs`, and a reducer that reads before it writes, takes time that is
//! counted and not measured, and refuses, traps or panics when it is told to. Its program is JSON, and has its [`Shape`].

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_host::{
    HostEnv, HostError, InstanceOptions, Interrupt, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ReadSet, ReadView, ReducerCall,
    ReducerOutcome, SuspendableInstance, Suspended, Transactions, ViewCall, ViewOutcome,
};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{Decode as _, Reader, TableId};
use serde_json::{json, Value};

use super::common::tables::TablesEngine;
use super::world::Simulated;

/// What is said by a guest that was told to panic.
pub const PANICS: &str = "the guest panics, as it was told to";
pub const ACCOUNTS: u32 = 8;
pub const ROOMS: u32 = 3;
pub const BALANCE: u64 = 100;
pub const KEYS: u32 = 3;
/// So many tickets wait: more than a window of the first few keeps.
const QUEUE: usize = 24;
/// What an item has in its second column beyond the first one.
pub const ABOVE: u32 = 100_000;

/// What changes from one program to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Programs of a database count up.
    pub number: u64,
    /// Columns that were added to `notes`.
    pub added: usize,
    pub is_indexed: bool,
    /// The order of the columns of `items`.
    pub is_swapped: bool,
    /// It gets the rows of `items` one by one, from the other order.
    pub by_rows: bool,
    pub has_procedures: bool,
}

fn items(is_swapped: bool) -> Value {
    match is_swapped {
        false => json!([["id", "U32"], ["low", "U32"], ["high", "U32"]]),
        true => json!([["id", "U32"], ["high", "U32"], ["low", "U32"]]),
    }
}

impl Shape {
    pub fn of(program: &[u8]) -> Shape {
        let program: Value = serde_json::from_slice(program).expect("the program is JSON");
        let shape = serde_json::from_value(program["shape"].clone());
        let (number, added, [is_indexed, is_swapped, by_rows, has_procedures]) =
            shape.expect("it has a shape");
        Shape {
            number,
            added,
            is_indexed,
            is_swapped,
            by_rows,
            has_procedures,
        }
    }

    /// One that may follow.
    pub fn next(&self, world: &Simulated) -> Shape {
        let mut next = Shape {
            number: self.number + 1,
            by_rows: false,
            ..self.clone()
        };
        match world.draw(3) {
            0 => next.added += 1,
            1 => next.is_indexed = !next.is_indexed,
            _ => {
                next.is_swapped = !next.is_swapped;
                next.by_rows = true;
            }
        }
        next
    }

    pub fn program(&self) -> Value {
        let mut notes = vec![json!(["id", "U32"]), json!(["n", "U64"])];
        let added = |nth: usize| format!("added_{nth}");
        notes.extend((0..self.added).map(|nth| json!([added(nth), "U64"])));
        let defaults = (0..self.added).map(|nth| (added(nth), json!(7)));
        let defaults: serde_json::Map<String, Value> = defaults.collect();
        let mut program = json!({
            "shape": [self.number, self.added, [self.is_indexed, self.is_swapped, self.by_rows, self.has_procedures]],
            "tables": {
                "accounts": [["id", "U32"], ["room", "U32"], ["balance", "U64"]],
                "cells": [["id", "U32"], ["value", "U64"]],
                "items": items(self.is_swapped),
                "jobs": [["id", "U64"], ["at", "ScheduleAt"]],
                "lists": [["id", "U64"], ["key", "U32"], ["value", "U64"]],
                "notes": notes,
                "reads": [["id", "U64"], ["key", "U32"], ["found", "String"]],
                "receipts": [["owner", "U64"], ["number", "U64"]],
                "rooms": [["id", "U32"], ["open", "Bool"]],
                "secrets": [["id", "U32"], ["value", "U64"]],
                "ticked": [["number", "U64"], ["id", "U64"]],
                "tickets": [["number", "U64"], ["owner", "U64"]],
            },
            "uniqueKeys": {
                "accounts": "id", "cells": "id", "items": "id", "jobs": "id", "lists": "id", "notes": "id", "reads": "id",
                "receipts": "owner", "rooms": "id", "secrets": "id", "ticked": "number", "tickets": "number",
            },
            "indexes": { "accounts": [["room"], ["balance"]], "lists": [["key"]] },
            "autoInc": { "lists": "id", "ticked": "number", "tickets": "number" },
            "defaults": { "notes": defaults },
            "private": ["secrets"],
            "schedules": "jobs",
            "views": {
                "totals": {
                    "columns": [["room", "U32"], ["n", "U64"], ["total", "U128"]],
                    "query": "SELECT room, COUNT(*) AS n, SUM(balance) AS total FROM accounts GROUP BY room",
                },
                "richest": { "table": "accounts", "query": "SELECT * FROM accounts ORDER BY balance DESC LIMIT 3" },
                "in_room": {
                    "table": "accounts", "anonymous": true, "params": [["room", "U32"]],
                    "query": "SELECT * FROM accounts WHERE room = {room}",
                },
                "receipt_count": { "columns": [["n", "U64"]], "countsRows": "receipts" },
            },
        });
        if self.is_indexed {
            program["indexes"]["notes"] = json!([["n"]]);
        }
        if self.by_rows {
            program["tables"]["__old_items"] = items(!self.is_swapped);
            program["uniqueKeys"]["__old_items"] = json!("id");
            program["rows"] = json!({ "items": { "into": [["items", [0, 2, 1]]] } });
        }
        if self.has_procedures {
            program["procedures"] = json!(true);
            program["suspends"] = json!(true);
        }
        program
    }
}

pub struct SimEngine(pub Simulated);

struct Module {
    tables: Box<dyn LoadedModule>,
    program: Arc<Value>,
    world: Simulated,
}

impl ModuleEngine for SimEngine {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        Ok(Box::new(Module {
            tables: TablesEngine.load(program, options)?,
            program: Arc::new(serde_json::from_slice(program).expect("the program is JSON")),
            world: self.0.clone(),
        }))
    }
}

impl LoadedModule for Module {
    fn describe(&self) -> &[u8] {
        self.tables.describe()
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        Ok(Box::new(Guest {
            tables: self.tables.instantiate(env)?,
            program: self.program.clone(),
            world: self.world.clone(),
            has_trapped: false,
        }))
    }

    fn suspends(&self) -> bool {
        self.tables.suspends()
    }

    fn instantiate_suspendable(
        &self,
        env: HostEnv,
    ) -> Option<Suspended<'_, Result<Box<dyn SuspendableInstance>, HostError>>> {
        self.tables.instantiate_suspendable(env)
    }
}

struct Guest {
    tables: Box<dyn ModuleInstance>,
    program: Arc<Value>,
    world: Simulated,
    has_trapped: bool,
}

impl ModuleInstance for Guest {
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        assert!(!self.has_trapped, "it is replaced before the next call");
        let mut reader = Reader::new(call.args);
        let what = match &**call.name {
            "tick" => {
                let id = u64::decode(&mut reader).expect("a row of jobs");
                json!({ "ops": [["ticked", id]] })
            }
            "change" => {
                let text = String::decode(&mut reader).expect("a text");
                serde_json::from_str(&text).expect("JSON")
            }
            _ => Value::Null,
        };
        let Some(ops) = what["ops"].as_array() else {
            return self.tables.call_reducer(transaction, call);
        };
        self.world.spend(what["us"].as_u64().unwrap_or(10));
        let datastore = transaction.into_datastore();
        for op in ops {
            if let Err(text) = self.op(datastore, op) {
                return ReducerOutcome::UserError(text);
            }
        }
        match what["ends"].as_str() {
            Some("refuses") => ReducerOutcome::UserError("as it was told to".to_owned()),
            Some("traps") => {
                self.has_trapped = true;
                let message = "a trap".to_owned();
                ReducerOutcome::Fatal { message }
            }
            Some("panics") => panic!("{PANICS}"),
            _ => ReducerOutcome::Ok,
        }
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        self.tables.call_procedure(transactions, call)
    }

    fn call_view(
        &mut self,
        view: ReadView<'_>,
        call: &ViewCall<'_>,
        reads: &mut ReadSet,
    ) -> ViewOutcome {
        self.tables.call_view(view, call, reads)
    }

    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        self.tables.interrupt()
    }

    fn is_poisoned(&self) -> bool {
        self.has_trapped
    }
}

/// A table of the module, by name.
fn table(datastore: &Datastore, name: &str) -> TableId {
    datastore.table_id_from_name(name).expect("a table")
}

/// The columns of all rows for which `is_wanted` holds of the first one.
fn rows(datastore: &Datastore, name: &str, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<Vec<u8>>> {
    let of = datastore
        .table(table(datastore, name))
        .expect("it is there");
    let columns = of.schema.columns.len();
    let mut found = Vec::new();
    of.rows().for_each(|_, row| {
        let column = |nth| of.layout().column(row, nth).to_vec();
        if is_wanted(of.layout().column(row, 0)) {
            found.push((0..columns).map(column).collect());
        }
    });
    found
}

fn small(column: &[u8]) -> u32 {
    u32::from_le_bytes(column.try_into().expect("a U32"))
}

fn large(column: &[u8]) -> u64 {
    u64::from_le_bytes(column.try_into().expect("a U64"))
}

fn insert(datastore: &mut Datastore, name: &str, row: &[u8]) -> Result<Vec<u8>, String> {
    let (id, mut generated) = (table(datastore, name), Vec::new());
    let inserted = datastore.insert(id, row, &mut generated);
    inserted
        .map(|()| generated)
        .map_err(|error| error.to_string())
}

/// A row with the next number of a sequence, which it gives.
///
/// # Panics
/// If another row has that.
fn insert_next(datastore: &mut Datastore, name: &str, row: &[u8]) -> Vec<u8> {
    let inserted = insert(datastore, name, row);
    inserted.unwrap_or_else(|error| panic!("a number of {name} is issued again: {error}"))
}

/// In the place of the row with the same key, or anew.
fn put(datastore: &mut Datastore, name: &str, row: &[u8]) -> Result<(), String> {
    if rows(datastore, name, |key| row.starts_with(key)).is_empty() {
        return insert(datastore, name, row).map(drop);
    }
    let id = table(datastore, name);
    let index = datastore.schema(id).expect("a table").indexes[0].id;
    let updated = datastore.update(id, index, row, &mut Vec::new());
    updated.map(drop).map_err(|error| error.to_string())
}

impl Guest {
    /// # Errors
    /// The call is to be refused.
    fn op(&self, datastore: &mut Datastore, op: &Value) -> Result<(), String> {
        let number = |nth: usize| op[nth].as_u64().expect("a number");
        let key = |nth: usize| number(nth) as u32;
        match op[0].as_str().expect("what to do") {
            "move" => {
                let amount = number(3);
                for (id, is_taken) in [(key(1), true), (key(2), false)] {
                    let found = rows(datastore, "accounts", |of| small(of) == id);
                    let [_, room, balance] = &found[0][..] else {
                        panic!("three columns");
                    };
                    let balance = match is_taken {
                        true => large(balance).checked_sub(amount),
                        false => large(balance).checked_add(amount),
                    };
                    let balance = balance.ok_or("there is not so much")?;
                    put(datastore, "accounts", &(id, small(room), balance).to_vec())?;
                }
            }
            "room" => put(datastore, "rooms", &(key(1), op[2] == true).to_vec())?,
            "secret" => put(datastore, "secrets", &(key(1), number(2)).to_vec())?,
            "append" => {
                insert_next(datastore, "lists", &(0_u64, key(1), number(2)).to_vec());
            }
            "read" => {
                let mut found = rows(datastore, "lists", |_| true);
                found.retain(|row| small(&row[1]) == key(2));
                found.sort_by_key(|row| large(&row[0]));
                let values = found.iter().map(|row| large(&row[2]).to_string());
                let values = values.collect::<Vec<_>>().join(",");
                insert(datastore, "reads", &(number(1), key(2), values).to_vec())?;
            }
            "ticket" => {
                let owner = number(1);
                let generated = insert_next(datastore, "tickets", &(0_u64, owner).to_vec());
                insert(datastore, "receipts", &(owner, large(&generated)).to_vec())?;
                let mut waiting = rows(datastore, "tickets", |_| true);
                waiting.sort_by_key(|row| large(&row[0]));
                let served = waiting.len().saturating_sub(QUEUE);
                for row in &waiting[..served] {
                    let mut listed = 1_u32.to_vec();
                    listed.extend(row.concat());
                    let id = table(datastore, "tickets");
                    let deleted = datastore.delete_all_by_eq(id, &listed);
                    deleted.map_err(|error| error.to_string())?;
                }
            }
            "ticked" => {
                insert_next(datastore, "ticked", &(0_u64, number(1)).to_vec());
            }
            "item" => {
                let (low, high) = (key(2), key(2) + ABOVE);
                let row = match self.program["tables"]["items"][1][0] == "low" {
                    true => (key(1), low, high),
                    false => (key(1), high, low),
                };
                put(datastore, "items", &row.to_vec())?;
            }
            "note" => {
                let mut row = (key(1), number(2)).to_vec();
                let columns = self.program["tables"]["notes"].as_array();
                for _ in 2..columns.expect("columns").len() {
                    number(2).encode(&mut row);
                }
                put(datastore, "notes", &row)?;
            }
            unknown => panic!("no operation {unknown}"),
        }
        Ok(())
    }
}
