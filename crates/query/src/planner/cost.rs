//! What a strategy costs, about, to compare it with another one for the same query.

use super::strategy::{Access, GroupKind, Strategy};

/// Costs are in rows of a scan, of which one takes some 4 ns: a lookup in an index or a hash table, a row that one finds, and a value
/// that is compared with those that came already.
const LOOKUP: f64 = 50.0;
pub(super) const FOUND_ROW: f64 = 10.0;
const DISTINCT_VALUE: f64 = 25.0;

/// What a lookup costs that finds so many rows.
pub(super) fn lookup_cost(rows: f64) -> f64 {
    LOOKUP + FOUND_ROW * rows
}

/// The cost of all matches.
pub(super) fn cost(strategy: &Strategy) -> f64 {
    costs(strategy).0
}

/// The cost of so many matches, if they are as dense everywhere.
pub(super) fn cost_of_first(strategy: &Strategy, wanted: u64) -> f64 {
    let (cost, matches) = costs(strategy);
    let built: f64 = strategy.steps.iter().map(|step| step.built).sum();
    let once = FOUND_ROW * built;
    once + (cost - once) * (wanted as f64 / matches.max(1.0)).min(1.0)
}

/// The cost of all matches, and how many there are.
fn costs(strategy: &Strategy) -> (f64, f64) {
    let (mut cost, mut matches) = (0.0, 1.0_f64);
    let mut before_group = vec![0.0; strategy.groups.len()];
    for (at, step) in strategy.steps.iter().enumerate() {
        if let Some(group) = step.opens {
            before_group[group] = matches;
        }
        let each = match &step.access {
            Access::Scan => step.looked_at,
            _ => lookup_cost(step.looked_at),
        };
        // Its first match is all that is wanted.
        let each = if step.is_once {
            each / step.rows.max(1.0)
        } else {
            each
        };
        cost += FOUND_ROW * step.built + matches * each;
        matches *= match step.is_once {
            true => step.rows.min(1.0),
            false => step.rows,
        };
        for &group in &step.closes {
            let before = before_group[group];
            matches = match strategy.groups[group].kind {
                GroupKind::Outer => matches.max(before),
                GroupKind::Exists => matches.min(before),
                GroupKind::NotExists | GroupKind::Whether => before,
            };
        }
        let is_led = strategy.leading.as_ref();
        if is_led.is_some_and(|leading| leading.last == at && !leading.is_single) {
            cost += DISTINCT_VALUE * matches;
        }
    }
    (cost, matches)
}
