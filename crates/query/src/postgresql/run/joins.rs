//! Joining what a question reads: one source after the other, by the values that conditions compare.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::failure::Done;
use super::super::plan::*;
use super::super::value::Value;
use super::{Env, Row, Rows, Runner};

/// Rows of a source by the value that a condition compares with one from the left.
struct Hashed<'s> {
    left: &'s Bound,
    rows: HashMap<Vec<u8>, Vec<usize>>,
    /// What all of the values are.
    sort: u8,
}

impl Runner<'_> {
    /// Joins what is read, one after the other, to rows that there are.
    pub(super) fn read(
        &self,
        steps: &[Step],
        mut rows: Vec<Row>,
        filter: &[Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        for step in steps {
            let ripe = step.ripe(filter);
            let compared = compared(step, &ripe);
            let right = match step.depends() {
                true => Rows::default(),
                false => self.source(step, &[], &compared, outer)?,
            };
            rows = self.joined(step, rows, right, &compared, &ripe, outer)?;
        }
        Ok(rows)
    }

    /// Joins rows with those of a source, unless it depends on them.
    pub(super) fn joined(
        &self,
        step: &Step,
        left: Vec<Row>,
        mut right: Rows,
        compared: &[(usize, &Bound)],
        ripe: &[&Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        let depends = step.depends();
        let hashed = match depends || left.len() < 2 {
            true => None,
            false => self.hashed(step, &right, compared)?,
        };
        let mut matched = vec![false; if step.keeps_right { right.len() } else { 0 }];
        let mut rows = Vec::new();
        let mut take = |row: Row| -> Done<()> {
            if self.holds(ripe.iter().copied(), &Env::new(&row, outer))? {
                rows.push(row);
            }
            Ok(())
        };
        for left in left {
            if depends {
                right = self.source(step, &left, &[], outer)?;
            }
            let found = match &hashed {
                Some(hashed) => self.partners(hashed, &Env::new(&left, outer))?,
                None => None,
            };
            let mut has_partner = false;
            let count = found.map_or(right.len(), <[usize]>::len);
            for at in (0..count).map(|nth| found.map_or(nth, |found| found[nth])) {
                let row = [&left[..], &right[at]].concat();
                self.work(row.len())?;
                if !self.holds(step.on.iter(), &Env::new(&row, outer))? {
                    continue;
                }
                has_partner = true;
                if step.keeps_right {
                    matched[at] = true;
                }
                take(row)?;
            }
            if !has_partner && step.keeps_left {
                let mut row = left;
                row.resize(step.start + step.width, Value::Null);
                self.work(row.len())?;
                take(row)?;
            }
        }
        for (at, _) in matched.iter().enumerate().filter(|(_, is)| !**is) {
            let mut row = vec![Value::Null; step.start];
            row.extend_from_slice(&right[at]);
            self.work(row.len())?;
            take(row)?;
        }
        Ok(rows)
    }

    /// Where rows are that may be partners. None: any may.
    fn partners<'h>(&self, hashed: &'h Hashed<'_>, env: &Env<'_>) -> Done<Option<&'h [usize]>> {
        let wanted = self.value(hashed.left, env)?;
        // Values of other sorts may be equal, and have other keys.
        if wanted.sort() != hashed.sort {
            return Ok(None);
        }
        let found = hashed.rows.get(&self.key([&wanted])?);
        Ok(Some(found.map_or(&[], Vec::as_slice)))
    }

    fn source(
        &self,
        step: &Step,
        left: &[Value],
        compared: &[(usize, &Bound)],
        outer: Option<&Env<'_>>,
    ) -> Done<Rows> {
        let env = Env::new(left, outer);
        let rows = match &step.source {
            Source::Virtual(table) => {
                let fixed = compared.iter().find(|(_, to)| to.needs() == Some(0));
                let wanted = match fixed.filter(|_| !step.keeps_right) {
                    Some((at, to)) => Some((*at, self.value(to, &env)?)),
                    None => None,
                };
                self.made(table, wanted.as_ref().map(|(at, value)| (*at, value)))?
            }
            Source::Stored(table) => self.stored(*table)?,
            Source::Select { plan, is_lateral } => {
                self.inner(plan, if *is_lateral { Some(&env) } else { outer })?
            }
            Source::Function {
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
                Rc::new(rows)
            }
            Source::Group(steps) => {
                // What none of them follows from may be missing.
                let mut before = left.to_vec();
                before.resize(step.start, Value::Null);
                let mut rows = self.read(steps, vec![before], &[], outer)?;
                rows.iter_mut().for_each(|row| {
                    row.drain(..step.start);
                });
                Rc::new(rows)
            }
        };
        self.work(rows.len())?;
        Ok(rows)
    }

    /// The rows of a source by the value that a condition compares with one from the left.
    fn hashed<'s>(
        &self,
        step: &Step,
        rows: &[Row],
        compared: &[(usize, &'s Bound)],
    ) -> Done<Option<Hashed<'s>>> {
        for (at, left) in compared {
            // Only values of one sort are equal as their keys are.
            let mut sorts = rows.iter().map(|row| &row[*at]);
            let mut sorts = sorts.by_ref().filter(|v| !v.is_null()).map(Value::sort);
            let sort = sorts.next().filter(|sort| matches!(sort, 2 | 3 | 5));
            let Some(sort) =
                sort.filter(|first| step.start > 0 && sorts.all(|sort| sort == *first))
            else {
                continue;
            };
            let mut hashed: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
            for (nth, row) in rows.iter().enumerate() {
                hashed.entry(self.key([&row[*at]])?).or_default().push(nth);
            }
            return Ok(Some(Hashed {
                left,
                rows: hashed,
                sort,
            }));
        }
        Ok(None)
    }
}

/// Columns of a step that must equal what is known before it.
fn compared<'s>(step: &'s Step, ripe: &[&'s Condition]) -> Vec<(usize, &'s Bound)> {
    let mut compared = Vec::new();
    // A row that has no partner is looked at without one.
    let is_inner = !step.keeps_left && !step.keeps_right;
    let ripe = ripe.iter().copied().filter(|_| is_inner);
    let column = |bound: &Bound| match bound {
        Bound::Column { up: 0, at } if *at < step.start + step.width => at.checked_sub(step.start),
        _ => None,
    };
    let is_before = |bound: &Bound| bound.needs().is_some_and(|needs| needs <= step.start);
    for condition in step.on.iter().chain(ripe) {
        if let Bound::Call(Call::Operator(Operator::EQUAL), both) = &condition.bound {
            match (column(&both[0]), column(&both[1])) {
                (Some(at), None) if is_before(&both[1]) => compared.push((at, &both[1])),
                (None, Some(at)) if is_before(&both[0]) => compared.push((at, &both[0])),
                _ => {}
            }
        }
    }
    compared
}
