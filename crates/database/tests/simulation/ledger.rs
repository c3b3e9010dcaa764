//! What the clients of a database know of it, and whether that is so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::guest::{ABOVE, ACCOUNTS, BALANCE};
use super::history::{anomalies, Transaction};

/// The planned calls, read when all else had been.
pub const JOBS_LATER: &str = "jobs later";

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// It has left nothing.
    Refused,
    Unknown,
}

/// A value that one client writes, each time a larger one.
#[derive(Clone, Debug, Default)]
pub struct Register {
    pub tried: u64,
    pub acknowledged: u64,
    /// A client with confirmed reads was told.
    pub seen: u64,
    refused: BTreeSet<u64>,
}

impl Register {
    pub fn next(&mut self) -> u64 {
        self.tried += 2;
        self.tried
    }

    pub fn answered(&mut self, value: u64, answer: Answer) {
        match answer {
            Answer::Done => self.acknowledged = value,
            Answer::Refused => drop(self.refused.insert(value)),
            Answer::Unknown => {}
        }
    }

    /// # Panics
    /// If this cannot be what is there.
    pub fn check(&mut self, what: &str, value: u64) {
        let known = self.acknowledged.max(self.seen);
        assert!(value >= known, "{what}: {value} is there after {known}");
        assert!(value <= self.tried, "{what}: {value} was never written");
        assert!(
            !self.refused.contains(&value),
            "{what}: {value} was refused, and is there"
        );
        self.acknowledged = value;
    }
}

#[derive(Default)]
pub struct Ledger {
    /// By writer, of both of his cells.
    pub cells: BTreeMap<u32, Register>,
    pub items: BTreeMap<u32, Register>,
    pub notes: BTreeMap<u32, Register>,
    pub secrets: BTreeMap<u32, Register>,
    /// Those that append and read. Their numbers are their places.
    pub lists: Vec<Transaction>,
    /// Counts what clients begin and hear.
    clock: u64,
    owners: u64,
    /// Owners of tickets who were told that they have one.
    pub receipts: BTreeSet<u64>,
    refused_receipts: BTreeSet<u64>,
    /// By number of a ticket, the owner, as a client with confirmed reads was told.
    pub seen_receipts: BTreeMap<u64, u64>,
    planned: u64,
    /// Planned calls that were acknowledged.
    pub plans: BTreeSet<u64>,
    /// How often each had run when that was last looked at, and those that were planned then.
    runs: BTreeMap<u64, u64>,
    waiting: BTreeSet<u64>,
    /// The number of the program that was published last, and of the one that was tried last.
    pub published: u64,
    pub publishing: u64,
}

impl Ledger {
    pub fn time(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn begin_list(&mut self, make: impl FnOnce(u64, &mut Transaction)) -> usize {
        let mut transaction = Transaction {
            begun: self.time(),
            ..Transaction::default()
        };
        let number = self.lists.len();
        make(number as u64, &mut transaction);
        self.lists.push(transaction);
        number
    }

    pub fn end_list(&mut self, number: usize, answer: Answer) {
        let time = self.time();
        let transaction = &mut self.lists[number];
        // What is not known may still be done later.
        transaction.ended = (answer != Answer::Unknown).then_some(time);
        transaction.is_done = match answer {
            Answer::Done => Some(true),
            Answer::Refused => Some(false),
            Answer::Unknown => None,
        };
    }

    pub fn next_owner(&mut self) -> u64 {
        self.owners += 1;
        self.owners
    }

    pub fn owner_answered(&mut self, owner: u64, answer: Answer) {
        match answer {
            Answer::Done => drop(self.receipts.insert(owner)),
            Answer::Refused => drop(self.refused_receipts.insert(owner)),
            Answer::Unknown => {}
        }
    }

    pub fn next_plan(&mut self) -> u64 {
        self.planned += 1;
        self.planned
    }

    /// Compares the tables of a database with what clients know: by name, the rows.
    ///
    /// # Panics
    /// If something that was acknowledged, or seen, is gone, or half of something is there. `at_rest`: nothing has been killed since
    /// the last time.
    pub fn check(&mut self, tables: &Tables, at_rest: bool) {
        let cells = tables.numbers("cells");
        let cells = cells.iter().map(|row| (row[0] as u32, row[1]));
        for (writer, value) in pairs(cells) {
            let register = self.cells.entry(writer).or_default();
            register.check(&format!("cells of {writer}"), value);
        }
        let balances = tables.numbers("accounts");
        let sum: u64 = balances.iter().map(|row| row[2]).sum();
        assert_eq!(balances.len() as u32, ACCOUNTS, "accounts");
        assert_eq!(sum, u64::from(ACCOUNTS) * BALANCE, "{balances:?}");
        for row in tables.numbers("items") {
            let (low, high) = (row[1].min(row[2]), row[1].max(row[2]));
            assert_eq!(low + u64::from(ABOVE), high, "a half of an item");
            let register = self.items.entry(row[0] as u32).or_default();
            register.check(&format!("item {}", row[0]), low);
        }
        let all = self.items.keys().copied().collect::<Vec<_>>();
        tables.has("items", &all, |id| self.items[&id].acknowledged > 0);
        for (name, registers) in [("notes", &mut self.notes), ("secrets", &mut self.secrets)] {
            for row in tables.numbers(name) {
                let register = registers.entry(row[0] as u32).or_default();
                register.check(&format!("{name} {}", row[0]), row[1]);
            }
            let all = registers.keys().copied().collect::<Vec<_>>();
            tables.has(name, &all, |id| registers[&id].acknowledged > 0);
        }
        self.check_tickets(tables);
        self.check_plans(tables, at_rest);
        self.check_lists(tables);
    }

    fn check_tickets(&mut self, tables: &Tables) {
        let mut owners = BTreeMap::new();
        for row in tables.numbers("receipts") {
            let (owner, number) = (row[0], row[1]);
            let other = owners.insert(number, owner);
            assert_eq!(other, None, "ticket {number} was issued twice, to {owner}");
            assert!(owner <= self.owners, "{owner} never asked for a ticket");
            assert!(
                !self.refused_receipts.contains(&owner) || self.receipts.contains(&owner),
                "{owner} was refused, and has a ticket"
            );
        }
        for (number, owner) in &self.seen_receipts {
            assert_eq!(owners.get(number), Some(owner), "ticket {number} was seen");
        }
        let there: BTreeSet<u64> = owners.into_values().collect();
        let lost = self.receipts.difference(&there).collect::<Vec<_>>();
        assert!(lost.is_empty(), "tickets of {lost:?} are lost");
        self.receipts = there;
    }

    /// A planned call runs once while the database runs; once more if it was killed between the call and the end of its row.
    fn check_plans(&mut self, tables: &Tables, at_rest: bool) {
        let waiting = tables.numbers("jobs").into_iter().map(|row| row[0]);
        let waiting: BTreeSet<u64> = waiting.collect();
        let later = tables.numbers(JOBS_LATER).into_iter().map(|row| row[0]);
        let later: BTreeSet<u64> = later.collect();
        let mut runs = BTreeMap::new();
        for row in tables.numbers("ticked") {
            *runs.entry(row[1]).or_default() += 1;
        }
        for id in &self.plans {
            assert!(
                waiting.contains(id) || runs.contains_key(id),
                "the planned call {id} is lost"
            );
        }
        for (id, times) in &runs {
            let before = self.runs.get(id).copied().unwrap_or(0);
            assert!(*times >= before, "a run of {id} is lost");
            assert!(
                *times <= before + 1,
                "{id} has run {times} times, {before} before"
            );
            let may_run = *times == before || before == 0 || self.waiting.contains(id);
            assert!(may_run, "{id} has run again");
            let is_left = at_rest && *times > before && later.contains(id);
            assert!(!is_left, "{id} has run, and its row is there");
            let is_back = before > 0 && !self.waiting.contains(id) && waiting.contains(id);
            assert!(!is_back, "{id} has run, and its row is there again");
            assert!(*id <= self.planned, "{id} was never planned");
        }
        self.plans.retain(|id| waiting.contains(id));
        (self.runs, self.waiting) = (runs, waiting);
    }

    fn check_lists(&self, tables: &Tables) {
        let mut rows = tables.numbers("lists");
        rows.sort();
        let mut lists: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for row in rows {
            lists.entry(row[1] as u32).or_default().push(row[2]);
        }
        let mut history = self.lists.clone();
        for row in tables.rows("reads") {
            let id = row[0].as_u64().expect("a number");
            let key = row[1].as_u64().expect("a number") as u32;
            let found = row[2].as_str().expect("a text").split(',');
            let found = found.filter(|value| !value.is_empty());
            let found = found.map(|value| value.parse().expect("a number"));
            let transaction = &mut history[(id / 16) as usize];
            transaction.reads.push((key, found.collect()));
            // Its rows are there, so it was committed.
            assert_ne!(transaction.is_done, Some(false), "{transaction:?}");
            transaction.is_done = Some(true);
        }
        let found = anomalies(&history, &lists);
        assert!(found.is_empty(), "{found:?} in {}", shown(&history, &lists));
    }
}

fn shown(history: &[Transaction], lists: &BTreeMap<u32, Vec<u64>>) -> String {
    let history = history.iter().enumerate();
    let lines = history.map(|(nth, of)| format!("{nth}: {of:?}"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    format!("{lists:?} of\n{lines}")
}

/// What is in both cells of each writer that is among these.
///
/// # Panics
/// If they differ.
pub fn pairs(cells: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
    let cells: BTreeMap<u32, u64> = cells.collect();
    let writers: BTreeSet<u32> = cells.keys().map(|cell| cell / 2).collect();
    let both = writers.into_iter().map(|writer| {
        let cell = |place| cells.get(&(2 * writer + place));
        assert_eq!(cell(0), cell(1), "a half of a transaction: {cells:?}");
        (writer, *cell(0).expect("it has one of them"))
    });
    both.collect()
}

/// The rows of all tables at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables(pub BTreeMap<&'static str, Vec<Vec<Value>>>);

impl Tables {
    fn rows(&self, name: &str) -> &[Vec<Value>] {
        &self.0[name]
    }

    pub fn numbers(&self, name: &str) -> Vec<Vec<u64>> {
        let rows = self.rows(name).iter();
        let numbers = |row: &Vec<Value>| row.iter().filter_map(Value::as_u64).collect();
        rows.map(numbers).collect()
    }

    fn has(&self, name: &str, ids: &[u32], is_known: impl Fn(u32) -> bool) {
        let rows = self.numbers(name);
        for id in ids.iter().filter(|id| is_known(**id)) {
            let is_there = rows.iter().any(|row| row[0] == u64::from(*id));
            assert!(is_there, "{name} {id} is lost");
        }
    }
}
