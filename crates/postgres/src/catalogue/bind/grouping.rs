//! A grouped question may only use values that are the same in all rows of a group, and aggregates.

use super::super::super::failure::{state, Failure};
use super::super::plan::*;
use super::scope::Scope;
use super::unbound::Done;

/// What the rows of a group agree in.
struct Grouped<'g> {
    scope: &'g Scope<'g>,
    group: &'g [Bound],
    columns: Vec<bool>,
}

/// Refuses a question whose answer would depend on which row of a group is looked at.
pub(super) fn check(plan: &CorePlan, scope: &Scope<'_>) -> Done<()> {
    let mut columns = vec![false; plan.width];
    for bound in &plan.group {
        if let Bound::Column { up: 0, at } = bound {
            columns[*at] = true;
        }
    }
    for of in &scope.keys {
        if !of.key.is_empty() && of.key.iter().all(|at| columns[*at]) {
            columns[of.columns.clone()].fill(true);
        }
    }
    let grouped = Grouped {
        scope,
        group: &plan.group,
        columns,
    };
    for item in plan.items.iter().chain(&plan.having) {
        grouped.check(item, 0)?;
    }
    for extra in &plan.extras {
        let arguments = match extra {
            // Of these all rows are looked at.
            Extra::Aggregate { .. } => continue,
            Extra::RowNumber { partition, order } => {
                for (by, _) in order {
                    grouped.check(by, 0)?;
                }
                partition
            }
            Extra::Series { arguments, .. } => arguments,
        };
        for argument in arguments {
            grouped.check(argument, 0)?;
        }
    }
    Ok(())
}

impl Grouped<'_> {
    /// Looks at an expression in so many questions inside of the grouped one.
    fn check(&self, bound: &Bound, depth: usize) -> Done<()> {
        match bound {
            Bound::Constant(_) => return Ok(()),
            Bound::Column { up, at } => {
                let is_agreed = *up != depth || self.columns[*at];
                return if is_agreed { Ok(()) } else { self.refuse(*at) };
            }
            bound if depth == 0 && self.group.contains(bound) => return Ok(()),
            Bound::InSelect(one, plan) => {
                self.check(one, depth)?;
                return self.check_plan(plan, depth + 1);
            }
            Bound::Exists(plan) | Bound::Scalar(plan) | Bound::ArrayOfSelect(plan) => {
                return self.check_plan(plan, depth + 1);
            }
            _ => {}
        }
        let mut checked = Ok(());
        bound.each(&mut |inner| {
            if checked.is_ok() {
                checked = self.check(inner, depth);
            }
        });
        checked
    }

    fn refuse(&self, at: usize) -> Done<()> {
        let column = &self.scope.columns[at];
        let name = match column.table.is_empty() {
            true => column.name.clone(),
            false => format!("{}.{}", column.table, column.name),
        };
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        Err(Failure::new(state::GROUPING, message).into())
    }

    fn check_all<'b>(&self, list: impl IntoIterator<Item = &'b Bound>, depth: usize) -> Done<()> {
        list.into_iter()
            .try_for_each(|bound| self.check(bound, depth))
    }

    /// Looks at all expressions of a question.
    fn check_plan(&self, plan: &Plan, depth: usize) -> Done<()> {
        if plan.is_closed {
            return Ok(());
        }
        match &plan.body {
            Body::Nested(plan) => self.check_plan(plan, depth)?,
            Body::Values(rows) => self.check_all(rows.iter().flatten(), depth)?,
            Body::Core(core) => self.check_core(core, depth)?,
        }
        for (_, other) in &plan.others {
            self.check_plan(other, depth)?;
        }
        Ok(())
    }

    fn check_core(&self, core: &CorePlan, depth: usize) -> Done<()> {
        self.check_steps(&core.steps, depth)?;
        self.check_all(core.filter.iter().map(|condition| &condition.bound), depth)?;
        let inner = core.group.iter().chain(&core.having).chain(&core.items);
        self.check_all(inner, depth)?;
        for extra in &core.extras {
            match extra {
                Extra::Aggregate {
                    arguments,
                    order,
                    filter,
                    ..
                } => {
                    let order = order.iter().map(|(by, _)| by);
                    self.check_all(arguments.iter().chain(order).chain(filter), depth)?;
                }
                Extra::RowNumber { partition, order } => {
                    let order = order.iter().map(|(by, _)| by);
                    self.check_all(partition.iter().chain(order), depth)?;
                }
                Extra::Series { arguments, .. } => self.check_all(arguments, depth)?,
            }
        }
        Ok(())
    }

    fn check_steps(&self, steps: &[Step], depth: usize) -> Done<()> {
        for step in steps {
            self.check_all(step.on.iter().map(|condition| &condition.bound), depth)?;
            match &step.source {
                PlanSource::Rows(_) | PlanSource::Stored(_) => {}
                PlanSource::Select { plan, is_lateral } => {
                    self.check_plan(plan, depth + usize::from(*is_lateral))?;
                }
                PlanSource::Function { arguments, .. } => self.check_all(arguments, depth)?,
                PlanSource::Group(steps) => self.check_steps(steps, depth)?,
            }
        }
        Ok(())
    }
}
