//! What is made of several rows: aggregates of groups, and the numbers of rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::failure::{state, Done, Failure};
use super::super::functions::Aggregate;
use super::super::plan::*;
use super::super::value::Value;
use super::{Env, Row, Runner};

impl Runner<'_> {
    /// The first row of each group, with its aggregates.
    pub(super) fn groups(
        &self,
        core: &CorePlan,
        rows: Vec<Row>,
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<(Row, Vec<Value>)>> {
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut groups: Vec<Vec<Row>> = Vec::new();
        if core.group.is_empty() {
            places.insert(Vec::new(), 0);
            groups.push(Vec::new());
        }
        for row in rows {
            let env = Env::new(&row, outer);
            let key = self.key(&self.values(&core.group, &env)?)?;
            let at = *places.entry(key).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(row);
        }
        let mut made = Vec::new();
        for group in groups {
            let extras = core.extras.iter();
            let extras = extras.map(|extra| self.aggregate(extra, &group, outer));
            let extras = extras.collect::<Done<_>>()?;
            let first = group.into_iter().next();
            let first = first.unwrap_or_else(|| vec![Value::Null; core.width]);
            made.push((first, extras));
        }
        Ok(made)
    }

    /// What a group has for an aggregate. NULL if it is none.
    fn aggregate(&self, extra: &Extra, rows: &[Row], outer: Option<&Env<'_>>) -> Done<Value> {
        let Extra::Aggregate {
            aggregate,
            arguments,
            is_distinct,
            order,
            filter,
        } = extra
        else {
            return Ok(Value::Null);
        };
        let (mut keyed, mut known) = (Vec::new(), HashSet::new());
        for row in rows {
            let env = Env::new(row, outer);
            if let Some(filter) = filter {
                if self.value(filter, &env)?.truth() != Some(true) {
                    continue;
                }
            }
            let value = self.values(arguments, &env)?;
            let is_counted = value
                .first()
                .is_none_or(|value| !value.is_null() || *aggregate == Aggregate::ListOf);
            if !is_counted || *is_distinct && !known.insert(self.key(&value)?) {
                continue;
            }
            keyed.push((self.order_key(order, &env)?, value));
        }
        if !order.is_empty() {
            keyed = self.sorted(keyed)?;
        }
        let separator = keyed.first().and_then(|(_, value)| value.get(1));
        let separator = separator.map(Value::shown).unwrap_or_default();
        let count = keyed.len();
        let firsts = keyed.iter().filter_map(|(_, value)| value.first());
        self.work(firsts.clone().map(Value::weight).sum())?;
        let not_a_number = || Failure::new(state::INVALID_TEXT, "a sum is of numbers");
        let sum = || {
            let mut numbers = firsts.clone().map(Value::float);
            let sum = numbers.try_fold(0.0, |sum, number| Some(sum + number?));
            sum.ok_or_else(not_a_number)
        };
        Ok(match aggregate {
            Aggregate::Count => (count as i64).into(),
            _ if count == 0 => Value::Null,
            Aggregate::Min => firsts.min_by(|a, b| a.order(b)).cloned().into(),
            Aggregate::Max => firsts.max_by(|a, b| a.order(b)).cloned().into(),
            Aggregate::Average => Value::Float(sum()? / count as f64),
            Aggregate::Sum if firsts.clone().any(|value| matches!(value, Value::Float(_))) => {
                Value::Float(sum()?)
            }
            Aggregate::Sum => {
                sum()?;
                let mut numbers = firsts.map(Value::int);
                let sum = numbers.try_fold(0, |sum: i64, number| sum.checked_add(number?));
                sum.ok_or_else(Failure::out_of_range)?.into()
            }
            Aggregate::ListOf => Value::List(firsts.cloned().collect()),
            Aggregate::Joined => {
                let shown: Vec<Arc<str>> = firsts.map(Value::shown).collect();
                self.work(count.saturating_mul(1 + separator.len() / 16))?;
                shown.join(&separator).into()
            }
            Aggregate::AnyTrue => firsts.clone().any(|v| v.truth() == Some(true)).into(),
            Aggregate::AllTrue => firsts.clone().all(|v| v.truth() == Some(true)).into(),
        })
    }

    /// By what rows of a group are sorted: where they descend, NULLs come first.
    fn order_key(&self, order: &[(Bound, bool)], env: &Env<'_>) -> Done<Vec<u8>> {
        let mut key = Vec::new();
        for (by, descends) in order {
            let value = self.value(by, env)?;
            self.sort_key([(&value, *descends, *descends)], &mut key)?;
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
