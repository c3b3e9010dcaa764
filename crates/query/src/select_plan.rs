//! Queries on one table, ready to be evaluated for one caller: what subscriptions are made of.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, Identity, ProductType};

use crate::condition::{ColumnAt, Condition, ConstantConjunct, ViewArguments};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::{Fragment, Output, Query};

/// What a query gives for every matching row, or for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// The row as it is stored.
    Row,
    /// These columns under these names.
    Columns(Vec<(ColId, String)>),
    /// One row with one U64 of this name: how many rows match.
    Count(String),
}

/// A checked query over one table.
///
/// `:sender` is already bound: plans of a text with [`reads_sender`](Self::reads_sender) are the caller's own.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    pub table: Arc<TableSchema>,
    /// What a row must fulfil; `None` if every row does.
    pub predicate: Option<Predicate>,
    pub projection: Projection,
    /// At most so many result rows. Above a count, it limits the one row that holds the count.
    pub limit: Option<u64>,
    /// Columns that must equal a constant, which is in BSATN as a value of the column: the key of an index lookup, or
    /// of a map from values to queries. At most one entry per column.
    pub equalities: Vec<(ColId, Box<[u8]>)>,
    /// Those of its table, if that is a view's.
    pub arguments: ViewArguments,
    /// The text mentions `:sender`, or a rule does that is drawn in.
    pub reads_sender: bool,
    /// Row-level security rules were drawn in, and it is the so manieth part of the query.
    pub fragment: Option<u16>,
    /// The text the plan was made from.
    pub text: String,
    condition: Arc<Condition>,
}

impl SelectPlan {
    /// The plan of a fragment on one table, for one caller.
    fn new(
        query: &Query,
        fragment: &Fragment,
        table: &Arc<TableSchema>,
        projection: Projection,
        sender: &Identity,
    ) -> SelectPlan {
        let condition = fragment.condition.bind(sender);
        let layout = RowLayout::of(&table.columns);
        let compiler = PredicateCompiler::new(&condition, vec![&layout]);
        let predicate = compiler.compile(&condition.conjuncts);
        let equalities = first_equalities(&condition)
            .map(|equality| (equality.column.column, equality.constant.bound(sender)))
            .collect();
        SelectPlan {
            table: table.clone(),
            predicate,
            projection,
            limit: query.limit,
            equalities,
            arguments: query.arguments.clone(),
            reads_sender: fragment.reads_sender(),
            fragment: fragment.number,
            text: query.text.clone(),
            condition,
        }
    }

    /// What is left of the predicate for rows that were found by the [`equalities`](Self::equalities) of these columns.
    pub fn residual(&self, handled: &[ColId]) -> Option<Predicate> {
        let mut dropped = HashSet::new();
        for equality in first_equalities(&self.condition) {
            if handled.contains(&equality.column.column) {
                dropped.insert(equality.position);
            }
        }
        if dropped.is_empty() {
            return self.predicate.clone();
        }
        let kept = self
            .condition
            .conjuncts
            .iter()
            .enumerate()
            .filter(|(position, _)| !dropped.contains(position));
        let kept: Vec<_> = kept.map(|(_, conjunct)| *conjunct).collect();
        PredicateCompiler::new(&self.condition, vec![&RowLayout::of(&self.table.columns)])
            .compile(&kept)
    }

    pub(crate) fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Bytes of memory that are this plan's own.
    pub fn memory_bytes(&self) -> usize {
        let predicate = self.predicate.as_ref().map_or(0, Predicate::memory_bytes);
        let values = self.equalities.iter().map(|(_, value)| value.len());
        size_of::<SelectPlan>()
            + self.equalities.capacity() * size_of::<(ColId, Box<[u8]>)>()
            + values.sum::<usize>()
            + self.text.len()
            + self.arguments.as_ref().map_or(0, |given| given.len())
            + predicate
            + self.condition.memory_bytes()
    }

    /// The names and types of the result's columns (08 §3).
    pub fn output_type(&self) -> ProductType {
        let columns = self.table.declared_columns();
        match &self.projection {
            Projection::Row => {
                ProductType::new(columns.iter().map(|c| (c.name.as_str(), c.ty.clone())))
            }
            Projection::Columns(listed) => {
                let element = |(column, name): &(ColId, String)| {
                    let schema = self
                        .table
                        .column(*column)
                        .expect("columns of a plan are the table's");
                    (name.clone(), schema.ty.clone())
                };
                ProductType::new(listed.iter().map(element))
            }
            Projection::Count(name) => ProductType::new([(name.as_str(), AlgebraicType::U64)]),
        }
    }
}

impl Query {
    /// The plan of a fragment on one relation, for one caller. `None` if it is a join.
    pub fn select_plan(&self, fragment: &Fragment, sender: &Identity) -> Option<SelectPlan> {
        let [table] = &fragment.tables[..] else {
            return None;
        };
        if self.explain || self.distinct || !self.order.is_empty() || self.offset > 0 {
            return None;
        }
        let columns = |listed: &[(ColumnAt, String)]| -> Vec<(ColId, String)> {
            let column = |(at, name): &(ColumnAt, String)| (at.column, name.clone());
            listed.iter().map(column).collect()
        };
        let projection = match &self.output {
            Output::Row(_) => Projection::Row,
            Output::Columns(listed) => Projection::Columns(columns(listed)),
            Output::Count(name) if !self.counts_have_a_sign => Projection::Count(name.clone()),
            Output::Count(_) | Output::Groups(_) => return None,
        };
        Some(SelectPlan::new(self, fragment, table, projection, sender))
    }

    /// The plan of the rows that a query on one relation looks at, whatever it makes of them.
    pub fn rows_plan(&self, sender: &Identity) -> Option<SelectPlan> {
        let [fragment] = &self.fragments[..] else {
            return None;
        };
        let [table] = &fragment.tables[..] else {
            return None;
        };
        let projection = Projection::Row;
        Some(SelectPlan::new(self, fragment, table, projection, sender))
    }

    /// The plan of a query on one relation that no rule multiplies.
    pub fn only_select_plan(&self, sender: &Identity) -> Option<SelectPlan> {
        match &self.fragments[..] {
            [fragment] => self.select_plan(fragment, sender),
            _ => None,
        }
    }
}

/// The equalities of a condition on one relation, the first one per column.
fn first_equalities(condition: &Condition) -> impl Iterator<Item = ConstantConjunct<'_>> {
    let mut seen = HashSet::new();
    condition
        .equalities()
        .filter(move |equality| seen.insert(equality.column))
}
