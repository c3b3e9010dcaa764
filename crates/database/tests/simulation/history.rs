//! What is wrong with a history of transactions that append to lists and read them, if anything is: the anomalies of Adya, as Elle finds
//! them. A list has the order of all that was appended to it, so each read says which versions were before it.

use std::collections::{BTreeMap, BTreeSet};

/// What a client knows of a transaction. Each value is appended once.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Whether it was committed, if that is known.
    pub is_done: Option<bool>,
    /// To which key, and what, in this order.
    pub appends: Vec<(u32, u64)>,
    /// What it found at a key. Its own appends may be among that.
    pub reads: Vec<(u32, Vec<u64>)>,
    /// When it was asked for, and when its answer came, by a clock that all share.
    pub begun: u64,
    pub ended: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A value is in a list twice.
    Twice(u64),
    /// It was committed, and is not there.
    Lost(u64),
    /// Some of what a transaction has appended is there.
    Half(usize),
    /// What was found is no beginning of the list as it is now.
    NoPrefix(usize, u32),
    /// G1a: a value of a transaction that was taken back, or of none.
    Aborted(u64),
    /// G1b: what another transaction had in between.
    Intermediate(usize, u64),
    /// G0: writes depend on each other in a circle.
    Writes(Vec<usize>),
    /// G1c: writes, and reads of them, do.
    Flow(Vec<usize>),
    /// G-single: so do they with one read that missed a write: read skew, or a lost update.
    Single(usize, usize),
    /// G2: with several such reads: write skew.
    Several(Vec<usize>),
}

/// All histories that are serial, in an order that time allows, have none.
pub fn anomalies(transactions: &[Transaction], lists: &BTreeMap<u32, Vec<u64>>) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let writers: BTreeMap<u64, usize> = (0..)
        .zip(transactions)
        .flat_map(|(nth, of)| of.appends.iter().map(move |(_, value)| (*value, nth)))
        .collect();
    let mut there = BTreeSet::new();
    for value in lists.values().flatten() {
        if !there.insert(*value) {
            found.push(Anomaly::Twice(*value));
        }
    }
    let is_from_nowhere = |value: &u64| match writers.get(value) {
        Some(writer) => transactions[*writer].is_done == Some(false),
        None => true,
    };
    let read = transactions.iter().flat_map(|of| &of.reads);
    let seen = read.flat_map(|(_, values)| values).chain(&there);
    let from_nowhere: BTreeSet<u64> = seen
        .filter(|value| is_from_nowhere(value))
        .copied()
        .collect();
    found.extend(from_nowhere.into_iter().map(Anomaly::Aborted));
    for (nth, of) in transactions.iter().enumerate() {
        let missing = of
            .appends
            .iter()
            .filter(|(_, value)| !there.contains(value));
        let missing: Vec<u64> = missing.map(|(_, value)| *value).collect();
        if of.is_done == Some(true) {
            found.extend(missing.iter().map(|value| Anomaly::Lost(*value)));
        } else if !missing.is_empty() && missing.len() < of.appends.len() {
            found.push(Anomaly::Half(nth));
        }
        for (key, values) in &of.reads {
            let now = lists.get(key).map_or(&[][..], Vec::as_slice);
            if !now.starts_with(values) {
                found.push(Anomaly::NoPrefix(nth, *key));
            }
            let others = values
                .iter()
                .rev()
                .find(|value| writers.get(*value) != Some(&nth));
            let last = |value: &&u64| {
                let writer = transactions.get(*writers.get(*value)?)?;
                writer.appends.iter().rev().find(|(of, _)| of == key)
            };
            if let Some((value, (_, last))) = others.and_then(|value| Some((value, last(&value)?)))
            {
                if value != last {
                    found.push(Anomaly::Intermediate(nth, *value));
                }
            }
        }
    }
    if found.is_empty() {
        found.extend(circle(transactions, lists, &writers));
    }
    found
}

type Edge = (usize, usize);

/// The first kind of circle that there is.
fn circle(
    transactions: &[Transaction],
    lists: &BTreeMap<u32, Vec<u64>>,
    writers: &BTreeMap<u64, usize>,
) -> Option<Anomaly> {
    let mut edges = in_time(transactions);
    for list in lists.values() {
        let order = list.iter().map(|value| writers[value]).collect::<Vec<_>>();
        edges.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
    }
    edges.retain(|(from, to)| from != to);
    let of_transactions = |knot: Vec<usize>| {
        let known = knot.into_iter().filter(|nth| *nth < transactions.len());
        known.collect::<Vec<_>>()
    };
    let knot = knot(&edges);
    if !knot.is_empty() {
        return Some(Anomaly::Writes(of_transactions(knot)));
    }
    let mut missed = Vec::new();
    for (nth, of) in transactions.iter().enumerate() {
        for (key, values) in &of.reads {
            let of_others = |value: &&u64| writers[*value] != nth;
            edges.extend(
                values
                    .iter()
                    .rev()
                    .find(of_others)
                    .map(|value| (writers[value], nth)),
            );
            let rest = lists.get(key).map_or(&[][..], |list| &list[values.len()..]);
            missed.extend(
                rest.iter()
                    .find(of_others)
                    .map(|value| (nth, writers[value])),
            );
        }
    }
    let knot = self::knot(&edges);
    if !knot.is_empty() {
        return Some(Anomaly::Flow(of_transactions(knot)));
    }
    let all: Vec<Edge> = edges.iter().chain(&missed).copied().collect();
    let knot = self::knot(&all);
    if knot.is_empty() {
        return None;
    }
    let is_single = |(reader, writer): &&Edge| reaches(&edges, *writer, *reader);
    Some(match missed.iter().find(is_single) {
        Some((reader, writer)) => Anomaly::Single(*reader, *writer),
        None => Anomaly::Several(of_transactions(knot)),
    })
}

/// What had ended comes before what began later. The moments are nodes behind the transactions, so that there are few edges.
fn in_time(transactions: &[Transaction]) -> Vec<Edge> {
    let times = transactions
        .iter()
        .flat_map(|of| of.ended.into_iter().chain([of.begun]));
    let times: BTreeSet<u64> = times.collect();
    let moment = |time: u64| transactions.len() + times.range(..time).count();
    let mut edges: Vec<Edge> = (1..times.len())
        .map(|nth| (transactions.len() + nth - 1, transactions.len() + nth))
        .collect();
    for (nth, of) in transactions.iter().enumerate() {
        edges.push((moment(of.begun), nth));
        // Of one that was taken back nothing is known.
        let ended = of.ended.filter(|_| of.is_done == Some(true));
        edges.extend(ended.map(|ended| (nth, moment(ended))));
    }
    edges
}

/// The nodes that are left when all that nothing leads to, or that lead to nothing, are taken away again and again.
fn knot(edges: &[Edge]) -> Vec<usize> {
    let turned = |(from, to): Edge| (to, from);
    let left = without_sources(edges.to_vec());
    let left = without_sources(left.into_iter().map(turned).collect());
    let nodes: BTreeSet<usize> = left.into_iter().map(|(from, _)| from).collect();
    nodes.into_iter().collect()
}

fn without_sources(mut edges: Vec<Edge>) -> Vec<Edge> {
    let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, to) in &edges {
        next.entry(*from).or_default().push(*to);
        *before.entry(*to).or_default() += 1;
    }
    let sources = next.keys().filter(|node| !before.contains_key(*node));
    let mut sources: Vec<usize> = sources.copied().collect();
    let mut gone = BTreeSet::new();
    while let Some(source) = sources.pop() {
        gone.insert(source);
        for to in next.get(&source).into_iter().flatten() {
            let left = before.get_mut(to).expect("an edge leads there");
            *left -= 1;
            if *left == 0 {
                sources.push(*to);
            }
        }
    }
    edges.retain(|(from, _)| !gone.contains(from));
    edges
}

fn reaches(edges: &[Edge], from: usize, to: usize) -> bool {
    let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    edges
        .iter()
        .for_each(|(a, b)| next.entry(*a).or_default().push(*b));
    let (mut seen, mut left) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = left.pop() {
        if at == to {
            return true;
        }
        let further = next.get(&at).into_iter().flatten();
        left.extend(further.filter(|node| seen.insert(**node)));
    }
    false
}

/// What a transaction appends, and the lists that it reads.
type Ops<'h> = (&'h [(u32, u64)], &'h [(u32, &'h [u64])]);

/// One after the other in time, unless it says otherwise.
fn of(what: &[Ops<'_>], at_once: bool) -> Vec<Transaction> {
    let transactions = (1..).zip(what).map(|(nth, (appends, reads))| Transaction {
        is_done: Some(true),
        appends: appends.to_vec(),
        reads: reads
            .iter()
            .map(|(key, values)| (*key, values.to_vec()))
            .collect(),
        begun: if at_once { 1 } else { 2 * nth },
        ended: Some(if at_once { 100 } else { 2 * nth + 1 }),
    });
    transactions.collect()
}

fn lists(of: &[(u32, &[u64])]) -> BTreeMap<u32, Vec<u64>> {
    of.iter()
        .map(|(key, values)| (*key, values.to_vec()))
        .collect()
}

#[test]
fn a_serial_history_has_no_anomalies() {
    let history = of(
        &[
            (&[(1, 10), (2, 11)], &[(1, &[])]),
            (&[(1, 20), (1, 21)], &[(1, &[10]), (1, &[10, 20, 21])]),
            (&[], &[(1, &[10, 20, 21]), (2, &[11])]),
        ],
        false,
    );
    let now = lists(&[(1, &[10, 20, 21]), (2, &[11])]);
    assert_eq!(anomalies(&history, &now), []);
}

#[test]
fn what_is_lost_doubled_or_halved_is_found() {
    let mut history = of(&[(&[(1, 10), (2, 11)], &[])], false);
    let now = |values: &[u64]| lists(&[(1, values), (2, &[11])]);
    assert_eq!(anomalies(&history, &now(&[])), [Anomaly::Lost(10)]);
    assert_eq!(anomalies(&history, &now(&[10, 10])), [Anomaly::Twice(10)]);
    history[0].is_done = None;
    assert_eq!(anomalies(&history, &now(&[])), [Anomaly::Half(0)]);
    assert_eq!(anomalies(&history, &lists(&[])), [], "it never was");
}

#[test]
fn reads_of_what_was_never_committed_are_found() {
    let mut history = of(&[(&[(1, 10)], &[]), (&[], &[(1, &[10])])], false);
    history[0].is_done = Some(false);
    let aborted = Anomaly::Aborted(10);
    let now = lists(&[(1, &[10])]);
    assert_eq!(anomalies(&history, &now), std::slice::from_ref(&aborted));
    let found = anomalies(&history, &lists(&[]));
    assert_eq!(found, [aborted, Anomaly::NoPrefix(1, 1)]);
    let history = of(&[(&[(1, 10), (1, 11)], &[]), (&[], &[(1, &[10])])], true);
    let now = lists(&[(1, &[10, 11])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Intermediate(1, 10)]);
}

#[test]
fn circles_are_found() {
    // Each overwrites the other.
    let history = of(
        &[(&[(1, 10), (2, 11)], &[]), (&[(1, 20), (2, 21)], &[])],
        true,
    );
    let now = lists(&[(1, &[10, 20]), (2, &[21, 11])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Writes(vec![0, 1])]);
    // The second one had ended before the first one began.
    let history = of(&[(&[(1, 10)], &[]), (&[(1, 20)], &[])], false);
    let now = lists(&[(1, &[20, 10])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Writes(vec![0, 1])]);
    // Each reads what the other one wrote.
    let history = of(
        &[(&[(1, 10)], &[(2, &[20])]), (&[(2, 20)], &[(1, &[10])])],
        true,
    );
    let now = lists(&[(1, &[10]), (2, &[20])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Flow(vec![0, 1])]);
    // A half of the first one is read.
    let history = of(
        &[(&[(1, 10), (2, 11)], &[]), (&[], &[(1, &[10]), (2, &[])])],
        true,
    );
    let now = lists(&[(1, &[10]), (2, &[11])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Single(1, 0)]);
    // An update is lost: both have read the same.
    let history = of(
        &[(&[(1, 10)], &[(1, &[])]), (&[(1, 20)], &[(1, &[])])],
        true,
    );
    let now = lists(&[(1, &[10, 20])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Single(1, 0)]);
    // A read that is late.
    let history = of(&[(&[(1, 10)], &[]), (&[], &[(1, &[])])], false);
    assert_eq!(
        anomalies(&history, &lists(&[(1, &[10])])),
        [Anomaly::Single(1, 0)]
    );
    // Write skew.
    let history = of(
        &[(&[(1, 10)], &[(2, &[])]), (&[(2, 20)], &[(1, &[])])],
        true,
    );
    let now = lists(&[(1, &[10]), (2, &[20])]);
    assert_eq!(anomalies(&history, &now), [Anomaly::Several(vec![0, 1])]);
}
