//! A grouped question may only use values that are the same in all rows of a group, and aggregates.

use super::super::failure::{state, Done, Failure};
use super::super::plan::*;
use super::scope::Scope;

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
    for at in scope.meant_inside.borrow().iter() {
        grouped.check_column(*at)?;
    }
    for bound in plan.items.iter().chain(&plan.having) {
        grouped.check(bound)?;
    }
    for extra in &plan.extras {
        match extra {
            // Of these all rows are looked at.
            Extra::Aggregate { .. } => {}
            Extra::RowNumber { partition, order } => {
                let order = order.iter().map(|(by, ..)| by);
                let mut all = partition.iter().chain(order);
                all.try_for_each(|bound| grouped.check(bound))?;
            }
            Extra::Series { arguments, .. } => {
                arguments
                    .iter()
                    .try_for_each(|bound| grouped.check(bound))?;
            }
        }
    }
    Ok(())
}

impl Grouped<'_> {
    fn check(&self, bound: &Bound) -> Done<()> {
        match bound {
            Bound::Column { up: 0, at } => self.check_column(*at),
            bound if self.group.contains(bound) => Ok(()),
            bound => bound.parts().try_for_each(|part| self.check(part)),
        }
    }

    fn check_column(&self, at: usize) -> Done<()> {
        if self.columns[at] {
            return Ok(());
        }
        let column = &self.scope.columns[at];
        let name = match column.table.is_empty() {
            true => column.name.clone(),
            false => format!("{}.{}", column.table, column.name),
        };
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        Err(Failure::new(state::GROUPING, message))
    }
}
