//! Joining what a question reads: one source after the other, by the values that conditions compare.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::plan::*;
use super::super::values::Value;
use super::{kind, Done, Env, Key, Row, Runner};

impl Runner<'_> {
    /// Joins what is read, one after the other, to rows that there are.
    pub(super) fn read(
        &self,
        steps: &[Step],
        rows: Vec<Row>,
        filter: &[Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        let mut rows = rows;
        for step in steps {
            let end = step.start + step.width;
            // What can be looked at from here on.
            let ripe: Vec<&Condition> = filter
                .iter()
                .filter(|condition| condition.needs <= end && condition.needs > step.start)
                .collect();
            rows = self.join(step, rows, &ripe, outer)?;
        }
        Ok(rows)
    }

    fn join(
        &self,
        step: &Step,
        left: Vec<Row>,
        ripe: &[&Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        let depends = matches!(
            step.source,
            PlanSource::Function { .. }
                | PlanSource::Select {
                    is_lateral: true,
                    ..
                }
        );
        let all = match depends {
            true => Arc::default(),
            false => self.source(step, &[], outer)?,
        };
        let hashed = match depends {
            true => None,
            false => self.hashed(step, &all, ripe)?,
        };
        let mut matched = vec![false; if step.keeps_right { all.len() } else { 0 }];
        let mut rows = Vec::new();
        for left in left {
            let lateral;
            let right = match depends {
                true => {
                    lateral = self.source(step, &left, outer)?;
                    &lateral
                }
                false => &all,
            };
            let mut has_partner = false;
            let mut candidates = Candidates::All(0..right.len());
            if let Some(hashed) = &hashed {
                let env = Env::new(&left, outer);
                let wanted = self.value(hashed.left, &env)?;
                // Others may be equal, and are not written as these are.
                if kind_of_key(&wanted) == hashed.kind {
                    let found = hashed.rows.get(&self.key([&wanted])?);
                    candidates = Candidates::Some(found.map_or(&[][..], Vec::as_slice).iter());
                }
            }
            for at in candidates {
                let mut row = left.clone();
                row.extend(right[at].iter().cloned());
                self.work(row.len())?;
                let env = Env::new(&row, outer);
                if !self.holds(step.on.iter(), &env)? {
                    continue;
                }
                has_partner = true;
                if step.keeps_right {
                    matched[at] = true;
                }
                if self.holds(ripe.iter().copied(), &env)? {
                    rows.push(row);
                }
            }
            if !has_partner && step.keeps_left {
                let mut row = left;
                row.resize(step.start + step.width, Value::Null);
                self.work(row.len())?;
                let env = Env::new(&row, outer);
                if self.holds(ripe.iter().copied(), &env)? {
                    rows.push(row);
                }
            }
        }
        for (at, _) in matched.iter().enumerate().filter(|(_, is)| !**is) {
            let mut row = vec![Value::Null; step.start];
            row.extend(all[at].iter().cloned());
            self.work(row.len())?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn source(&self, step: &Step, left: &[Value], outer: Option<&Env<'_>>) -> Done<Arc<Vec<Row>>> {
        let env = Env::new(left, outer);
        Ok(match &step.source {
            PlanSource::Rows(rows) => {
                self.work(rows.len())?;
                rows.clone()
            }
            PlanSource::Stored(table) => {
                let rows = self.stored(*table)?;
                self.work(rows.len())?;
                rows
            }
            PlanSource::Select { plan, is_lateral } => {
                let outer = if *is_lateral { Some(&env) } else { outer };
                Arc::new(self.rows(plan, outer)?)
            }
            PlanSource::Function {
                series,
                arguments,
                is_numbered,
            } => {
                let mut rows = self.series(*series, arguments, &env)?;
                if *is_numbered {
                    for (number, row) in (1..).zip(&mut rows) {
                        row.push(Value::Int(number));
                    }
                }
                Arc::new(rows)
            }
            PlanSource::Group(steps) => {
                let before = vec![Value::Null; step.start];
                let mut rows = self.read(steps, vec![before], &[], outer)?;
                rows.iter_mut().for_each(|row| {
                    row.drain(..step.start);
                });
                Arc::new(rows)
            }
        })
    }

    /// The rows of a source by the value that a condition compares with one from the left.
    fn hashed<'s>(
        &self,
        step: &'s Step,
        rows: &[Row],
        ripe: &[&'s Condition],
    ) -> Done<Option<Hashed<'s>>> {
        let conditions = step.on.iter().chain(
            ripe.iter()
                .copied()
                .filter(|_| !step.keeps_left && !step.keeps_right),
        );
        let column = |bound: &Bound| match bound {
            Bound::Column { up: 0, at } if *at >= step.start && *at < step.start + step.width => {
                Some(at - step.start)
            }
            _ => None,
        };
        let is_left = |bound: &Bound| {
            step.start > 0 && bound.needs().is_some_and(|needs| needs <= step.start)
        };
        for condition in conditions {
            let Bound::Binary(Operator::Equal, both) = &condition.bound else {
                continue;
            };
            let (at, left) = match (column(&both.0), column(&both.1)) {
                (Some(at), None) if is_left(&both.1) => (at, &both.1),
                (None, Some(at)) if is_left(&both.0) => (at, &both.0),
                _ => continue,
            };
            // Only values of one kind are equal as they are written.
            let mut values = rows
                .iter()
                .map(|row| &row[at])
                .filter(|value| !value.is_null());
            let kind = values.clone().next().and_then(kind_of_key);
            if kind.is_none() || !values.all(|value| kind_of_key(value) == kind) {
                continue;
            }
            let mut hashed: HashMap<Key, Vec<usize>> = HashMap::new();
            for (nth, row) in rows.iter().enumerate() {
                hashed.entry(self.key([&row[at]])?).or_default().push(nth);
            }
            let rows = hashed;
            return Ok(Some(Hashed { left, rows, kind }));
        }
        Ok(None)
    }
}

/// Rows of a source by the text of a value.
struct Hashed<'s> {
    left: &'s Bound,
    rows: HashMap<Key, Vec<usize>>,
    /// What all of the values are.
    kind: Option<u8>,
}

/// Values of one kind are equal if they are written the same.
fn kind_of_key(value: &Value) -> Option<u8> {
    matches!(value, Value::Int(_) | Value::Text(_) | Value::Stored(_)).then(|| kind(value))
}

/// Places of rows that may be partners.
enum Candidates<'c> {
    All(std::ops::Range<usize>),
    Some(std::slice::Iter<'c, usize>),
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            Candidates::All(range) => range.next(),
            Candidates::Some(places) => places.next().copied(),
        }
    }
}
