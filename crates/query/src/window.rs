//! Live windows: what the first rows of an order are, for one caller.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, Identity};

use crate::collect::push_sort_key;
use crate::condition::Node;
use crate::lexer::Comparison;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::{Fragment, Query};
use crate::select_plan::layout;
use crate::shape::OrderKey;

/// The order of rows of one table: columns, and whether each descends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowOrder(pub Vec<(ColId, bool)>);

impl RowOrder {
    /// Appends bytes that sort as the rows do. Those of one row are never the beginning of another's, unless they are equal.
    pub fn push_key(&self, layout: &RowLayout, row: &[u8], out: &mut Vec<u8>) {
        for (column, descending) in &self.0 {
            let column = usize::from(column.0);
            let ty = layout.column_type(column);
            push_sort_key(ty, layout.column(row, column), *descending, out);
        }
    }

    /// The column that rows are sorted by first, and whether it descends.
    pub fn first(&self) -> Option<(ColId, bool)> {
        self.0.first().copied()
    }
}

/// The first rows of an order as live evaluation needs them. But for the values of its parameters, it is the same for many
/// queries.
#[derive(Clone, Debug)]
pub struct LiveWindow {
    pub table: Arc<TableSchema>,
    /// Columns that must equal the caller or a constant, with their values for the caller in BSATN.
    pub parameters: Vec<(ColId, Box<[u8]>)>,
    /// What else must hold of a row.
    pub predicate: Option<Predicate>,
    pub order: RowOrder,
    pub offset: u64,
    pub limit: u64,
}

impl Query {
    /// How the window that a fragment on one relation is can be kept up to date, for this caller.
    pub fn live_window(&self, fragment: &Fragment, sender: &Identity) -> Option<LiveWindow> {
        let ([table], true) = (&fragment.tables[..], self.is_window()) else {
            return None;
        };
        let bound = fragment.condition.bind(sender);
        let (mut parameters, mut others) = (Vec::new(), Vec::new());
        for &id in &bound.conjuncts {
            match &fragment.condition.nodes[id as usize] {
                // Equal values of a column have equal bytes, but for floats. Two values of a Bool are no reason to look rows up
                // by it.
                Node::ColumnConstant {
                    column,
                    scalar,
                    comparison: Comparison::Equal,
                    constant,
                } if !scalar.is_float() && !is_bool(table, column.column) => {
                    parameters.push((column.column, constant.bound(sender)));
                }
                _ => others.push(id),
            }
        }
        let order = self.order.iter().map(|order| match order.by {
            OrderKey::Column(at) => Some((at.column, order.descending)),
            OrderKey::Result(_) => None,
        });
        let layout = layout(table);
        Some(LiveWindow {
            table: table.clone(),
            parameters,
            predicate: PredicateCompiler::new(&bound, vec![&layout]).compile(&others),
            order: RowOrder(order.collect::<Option<_>>()?),
            offset: self.offset,
            limit: self.limit?,
        })
    }
}

fn is_bool(table: &TableSchema, column: ColId) -> bool {
    let column = table.column(column);
    column.is_some_and(|column| column.ty == AlgebraicType::Bool)
}
