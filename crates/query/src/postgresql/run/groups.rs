//! What is made of several rows: aggregates of groups, and the numbers of rows.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::super::failure::{state, Done, Failure};
use super::super::functions::Aggregate;
use super::super::plan::*;
use super::super::value::{weight, List, Value};
use super::{Env, Row, Runner};
use crate::exact_sum::ExactSum;

/// What a total takes, an exact one of floats, and a key or a value beside its bytes, in steps of 16 bytes.
const TOTAL_STEPS: usize = size_of::<Total>() / 16;
const EXACT_STEPS: usize = size_of::<ExactSum>() / 16;
const ENTRY_STEPS: usize = 4;

/// What the rows of each group have come to so far.
#[derive(Default)]
pub(super) struct Groups {
    places: HashMap<Vec<u8>, usize>,
    /// The first row of each, and what it has for each extra.
    groups: Vec<(Row, Vec<Total>)>,
}

#[derive(Default)]
struct Total {
    /// Values that were counted.
    count: i64,
    integers: i128,
    /// Of all that are no integers of 64 bits.
    others: Option<Box<ExactSum>>,
    is_float: bool,
    is_too_large: bool,
    best: Value,
    /// Of those that need all values: these, behind what they are sorted by.
    kept: Vec<(Vec<u8>, Vec<Value>)>,
    known: HashSet<Vec<u8>>,
}

impl Total {
    fn sum(&self) -> f64 {
        let others = self.others.as_ref().map_or(0.0, |sum| sum.value());
        self.integers as f64 + others
    }

    /// Takes a value that is the first, or stands so to the one that there is, and gives the steps of what it keeps more.
    fn take_if(&mut self, value: &Value, wanted: Ordering) -> usize {
        if !self.best.is_null() && value.order(&self.best) != wanted {
            return 0;
        }
        let before = std::mem::replace(&mut self.best, value.clone());
        value.weight().saturating_sub(before.weight())
    }
}

impl Groups {
    fn begin(&mut self, key: Vec<u8>, first: Row, core: &CorePlan) -> usize {
        self.places.insert(key, self.groups.len());
        let totals = core.extras.iter().map(|_| Total::default());
        self.groups.push((first, totals.collect()));
        self.groups.len() - 1
    }
}

impl Runner<'_> {
    /// No rows so far. None: rows are not grouped.
    pub(super) fn groups_of(&self, core: &CorePlan) -> Option<Groups> {
        let mut groups = Groups::default();
        // Without keys there is one group, also if it is of no rows.
        if core.group.is_empty() {
            groups.begin(Vec::new(), vec![Value::Null; core.width], core);
        }
        core.is_grouped.then_some(groups)
    }

    /// Adds a row to its group, and gives the steps of what is kept of it.
    pub(super) fn add(
        &self,
        core: &CorePlan,
        groups: &mut Groups,
        row: Row,
        outer: Option<&Env<'_>>,
    ) -> Done<usize> {
        let env = Env::new(&row, outer);
        let key = self.key(&self.values(&core.group, &env)?)?;
        let mut held = 0;
        let place = groups.places.get(&key).copied().unwrap_or_else(|| {
            held = weight(&row) + core.extras.len() * TOTAL_STEPS + ENTRY_STEPS + key.len() / 16;
            groups.begin(key, row.clone(), core)
        });
        for (extra, total) in core.extras.iter().zip(&mut groups.groups[place].1) {
            held += self.aggregate(extra, total, &env)?;
        }
        Ok(held)
    }

    fn aggregate(&self, extra: &Extra, total: &mut Total, env: &Env<'_>) -> Done<usize> {
        let Extra::Aggregate {
            aggregate,
            arguments,
            is_distinct,
            order,
            filter,
        } = extra
        else {
            return Ok(0);
        };
        if let Some(filter) = filter {
            if self.value(filter, env)?.truth() != Some(true) {
                return Ok(0);
            }
        }
        let values = self.values(arguments, env)?;
        // Without arguments, rows are counted.
        let value = values.first().unwrap_or(&Value::Bool(true));
        if value.is_null() && *aggregate != Aggregate::ListOf {
            return Ok(0);
        }
        let mut held = 0;
        if *is_distinct {
            let key = self.key(&values)?;
            held += ENTRY_STEPS + key.len() / 16;
            if !total.known.insert(key) {
                return Ok(0);
            }
        }
        total.count += 1;
        self.work(value.weight())?;
        let truth = Value::Bool(value.truth() == Some(true));
        match aggregate {
            Aggregate::Count => {}
            Aggregate::Min => held += total.take_if(value, Ordering::Less),
            Aggregate::Max => held += total.take_if(value, Ordering::Greater),
            Aggregate::AllTrue => held += total.take_if(&truth, Ordering::Less),
            Aggregate::AnyTrue => held += total.take_if(&truth, Ordering::Greater),
            Aggregate::Sum | Aggregate::Average => {
                let no_number = || Failure::new(state::INVALID_TEXT, "a sum is of numbers");
                let number = value.float().ok_or_else(no_number)?;
                let is_float = matches!(value, Value::Float(_));
                match value.int().filter(|_| !is_float) {
                    Some(integer) => total.integers += i128::from(integer),
                    None => {
                        let is_first = total.others.is_none();
                        held += if is_first { EXACT_STEPS } else { 0 };
                        total.others.get_or_insert_default().add(number);
                    }
                }
                total.is_float |= is_float;
                total.is_too_large |= value.int().is_none();
            }
            Aggregate::ListOf | Aggregate::Joined => {
                let key = self.order_key(order, env)?;
                held += ENTRY_STEPS + key.len() / 16 + weight(&values);
                total.kept.push((key, values));
            }
        }
        Ok(held)
    }

    /// The first row of each group, with its aggregates.
    pub(super) fn made_of(&self, core: &CorePlan, groups: Groups) -> Done<Vec<(Row, Vec<Value>)>> {
        let made = groups.groups.into_iter().map(|(first, totals)| {
            let extras = core.extras.iter().zip(totals);
            let extras = extras.map(|(extra, total)| self.total(extra, total));
            Ok((first, extras.collect::<Done<_>>()?))
        });
        made.collect()
    }

    /// What a group has for an aggregate. NULL if it is none.
    fn total(&self, extra: &Extra, mut total: Total) -> Done<Value> {
        let Extra::Aggregate { aggregate, .. } = extra else {
            return Ok(Value::Null);
        };
        let kept = self.sorted(std::mem::take(&mut total.kept))?;
        Ok(match aggregate {
            Aggregate::Count => total.count.into(),
            _ if total.count == 0 => Value::Null,
            Aggregate::Average => Value::Float(total.sum() / total.count as f64),
            Aggregate::Sum if total.is_float => Value::Float(total.sum()),
            Aggregate::Sum => {
                let sum = i64::try_from(total.integers).ok();
                let sum = sum.filter(|_| !total.is_too_large);
                sum.ok_or_else(Failure::out_of_range)?.into()
            }
            Aggregate::ListOf => {
                let firsts = kept.iter().filter_map(|(_, values)| values.first());
                self.list(firsts.cloned().collect::<List>())?
            }
            Aggregate::Joined => {
                // A separator stands before the value that it came with.
                let mut joined = String::new();
                for (nth, (_, values)) in kept.iter().enumerate() {
                    self.work(weight(values))?;
                    let shown = |at: usize| values.get(at).map(Value::shown).unwrap_or_default();
                    if nth > 0 {
                        joined.push_str(&shown(1));
                    }
                    joined.push_str(&shown(0));
                }
                joined.into()
            }
            _ => total.best,
        })
    }

    /// By what rows of a group are sorted.
    fn order_key(&self, order: &[Sorted], env: &Env<'_>) -> Done<Vec<u8>> {
        let mut key = Vec::new();
        for (by, descends, nulls_first) in order {
            let value = self.value(by, env)?;
            self.sort_key([(&value, *descends, *nulls_first)], &mut key)?;
        }
        Ok(key)
    }

    /// Gives rows their numbers.
    pub(super) fn number(
        &self,
        core: &CorePlan,
        rows: &mut [(Row, Vec<Value>)],
        outer: Option<&Env<'_>>,
    ) -> Done<()> {
        for (nth, extra) in core.extras.iter().enumerate() {
            let Extra::RowNumber { partition, order } = extra else {
                continue;
            };
            let mut keyed = Vec::new();
            for (at, (row, extras)) in rows.iter().enumerate() {
                let env = Env { row, extras, outer };
                let mut key = self.key(&self.values(partition, &env)?)?;
                let of_partition = key.len();
                key.extend(self.order_key(order, &env)?);
                keyed.push((key, (of_partition, at)));
            }
            let (mut number, mut last) = (0, None);
            for (key, (of_partition, at)) in self.sorted(keyed)? {
                let partition = Some(key[..of_partition].to_vec());
                number = if partition == last { number + 1 } else { 1 };
                last = partition;
                rows[at].1[nth] = Value::Int(number);
            }
        }
        Ok(())
    }
}
