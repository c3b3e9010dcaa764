//! How many rows a query is estimated to look at, by the arithmetic of 08 §16: what `row_limit` is compared with.
//!
//! It goes by the text's order of joins and by lookups of whole keys, as the limit's users know them, and not by what the
//! planner does.

use lightcone_table::TableView;

use crate::admission::probe_index;
use crate::condition::{ColumnAt, Condition};
use crate::planner::rows_per_key;
use crate::query::{Fragment, JoinOn, Output, Query};
use crate::results::Tables;

/// Indexes of more columns are not looked up in by the reference.
const LOOKUP_COLUMNS_MAX: usize = 3;

/// What comes out of a part of a plan, and what it looks at for it.
#[derive(Clone, Copy)]
struct Estimate {
    rows: u64,
    scanned: u64,
}

impl Estimate {
    fn of_table(rows: u64) -> Estimate {
        Estimate {
            rows,
            scanned: rows,
        }
    }

    fn filtered(self) -> Estimate {
        Estimate {
            rows: self.rows,
            scanned: self.scanned.saturating_add(self.rows),
        }
    }
}

/// Relations, of all fragments together, for which rows are estimated.
const ESTIMATED_RELATIONS_MAX: usize = 64;

impl Query {
    /// Row-level security rules are drawn in: numbers of rows are not for the caller.
    pub fn has_rules(&self) -> bool {
        let mut fragments = self.fragments.iter();
        fragments.any(|fragment| !fragment.rules.is_empty())
    }

    /// The rows that are looked at, about. Tables that are gone have none.
    ///
    /// A query over very many relations is taken for endless: finding out more would hold others up.
    pub fn estimated_rows(&self, tables: &dyn Tables) -> u64 {
        if self.read_tables().count() > ESTIMATED_RELATIONS_MAX {
            return u64::MAX;
        }
        let of_fragment = |fragment| self.estimate_fragment(fragment, tables);
        let fragments = self.fragments.iter().map(of_fragment);
        fragments.fold(0, u64::saturating_add)
    }

    fn estimate_fragment(&self, fragment: &Fragment, tables: &dyn Tables) -> u64 {
        let views = fragment.tables.iter().map(|table| tables.table(table.id));
        let Some(views) = views.collect::<Option<Vec<_>>>() else {
            return 0;
        };
        let relations = fragment.condition.relations_of_conjuncts();
        let own = |relation: usize| {
            let is_own = |read: &&Vec<u16>| read[..] == [relation as u16];
            relations.iter().filter(is_own).count()
        };
        let limit = match (&self.output, &views[..]) {
            (Output::Count(_), _) => None,
            // The limit is pushed down to a table that nothing filters or joins.
            (_, [_]) => self.limit,
            _ => None,
        };
        let first = estimate_relation(fragment, 0, views[0], own(0), limit);
        let joined = (1..views.len()).fold(first, |left, relation| {
            let right =
                || estimate_relation(fragment, relation, views[relation], own(relation), None);
            estimate_join(fragment, relation, views[relation], left, right)
        });
        let on_pairs = fragment.joins.len();
        let of_several = relations.iter().filter(|read| read.len() > 1).count();
        match of_several > on_pairs {
            true => joined.filtered().scanned,
            false => joined.scanned,
        }
    }
}

/// One relation with the conditions on it alone.
fn estimate_relation(
    fragment: &Fragment,
    relation: usize,
    table: &TableView,
    conjuncts: usize,
    limit: Option<u64>,
) -> Estimate {
    let rows = table.rows().row_count();
    let lookup = best_lookup(&fragment.condition, relation as u16, table);
    let (found, handled) = lookup.unwrap_or((rows, 0));
    let is_filtered = conjuncts > handled;
    let found = match limit {
        Some(limit) if !is_filtered => found.min(limit),
        _ => found,
    };
    let found = Estimate::of_table(found);
    match is_filtered {
        true => found.filtered(),
        false => found,
    }
}

/// The rows that an index finds of which all columns are fixed, and how many conditions that takes the place of.
fn best_lookup(condition: &Condition, relation: u16, table: &TableView) -> Option<(u64, usize)> {
    let is_fixed = |column: &lightcone_types::ColId| {
        let at = ColumnAt {
            relation,
            column: *column,
        };
        condition.equalities().any(|equality| equality.column == at)
    };
    let indexes = table.schema.indexes.iter().enumerate();
    let usable = indexes.filter(|(_, index)| {
        let columns = index.algorithm.columns();
        columns.len() <= LOOKUP_COLUMNS_MAX && columns.iter().all(is_fixed)
    });
    let (position, index) = usable.max_by_key(|(_, index)| index.algorithm.columns().len())?;
    let columns = index.algorithm.columns().len();
    Some((found_by_key(table, position), columns))
}

/// Rows divided by distinct keys, which are sampled unless each row has its own.
fn found_by_key(table: &TableView, position: usize) -> u64 {
    match table.schema.indexes[position].unique {
        true => table.rows().row_count().min(1),
        false => rows_per_key(table, position) as u64,
    }
}

/// One more relation on the right side.
fn estimate_join(
    fragment: &Fragment,
    relation: usize,
    table: &TableView,
    left: Estimate,
    right: impl Fn() -> Estimate,
) -> Estimate {
    let is_here = |on: &&JoinOn| {
        let last = on.left.relation.max(on.right.relation);
        usize::from(last) == relation
    };
    let on = fragment.joins.iter().find(is_here);
    let own = on.map(|on| match usize::from(on.left.relation) == relation {
        true => on.left,
        false => on.right,
    });
    let Some(own) = own else {
        let right = right();
        return nested(left, right, left.rows.saturating_mul(right.rows));
    };
    match probe_index(fragment, own) {
        Some(index) if table.schema.indexes[index].unique => Estimate {
            rows: left.rows,
            scanned: left.scanned.saturating_add(left.rows),
        },
        Some(index) => {
            let rows = left.rows.saturating_mul(found_by_key(table, index));
            Estimate {
                rows,
                scanned: left.scanned.saturating_add(rows),
            }
        }
        None => {
            let right = right();
            nested(left, right, left.rows.saturating_mul(right.rows))
        }
    }
}

fn nested(left: Estimate, right: Estimate, rows: u64) -> Estimate {
    Estimate {
        rows,
        scanned: left
            .scanned
            .saturating_add(right.scanned)
            .saturating_add(rows),
    }
}
