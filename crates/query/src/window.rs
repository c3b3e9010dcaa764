//! Live windows: what the first rows of an order are, for one caller.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, Identity};

use crate::grouping::OrderKey;
use crate::live_join::LiveJoin;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::{Fragment, Output, Query};
use crate::sort_key::push_sort_key;

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
    /// Where row-level security rules are several queries, or join: what may be in it, each row once. None if the row alone decides.
    pub sources: Vec<WindowSource>,
}

/// What gives rows of a window: a fragment of its query.
#[derive(Clone, Debug)]
pub enum WindowSource {
    /// Rows of the table alone, like [`LiveWindow`] has them.
    Rows {
        /// Columns with the values that they must have.
        parameters: Vec<(ColId, Box<[u8]>)>,
        /// What else must hold of a row.
        predicate: Option<Predicate>,
    },
    /// Rows that have a match.
    Join(LiveJoin),
}

/// What a row of one table must be: these values, and the rest.
type OwnCondition = (Vec<(ColId, Box<[u8]>)>, Option<Predicate>);

impl Query {
    /// How the window that the query is can be kept up to date, for this caller. It was admitted.
    pub fn live_window(&self, sender: &Identity) -> Option<LiveWindow> {
        if !self.is_window() {
            return None;
        }
        let order = self.order.iter().map(|order| match order.by {
            OrderKey::Column(at) => Some((at.column, order.descending)),
            OrderKey::Result(_) => None,
        });
        let order = RowOrder(order.collect::<Option<_>>()?);
        let (parameters, predicate, sources) = match &self.fragments[..] {
            [fragment] if fragment.tables.len() == 1 => {
                let (parameters, predicate) = fragment.own_condition(sender)?;
                (parameters, predicate, Vec::new())
            }
            fragments => {
                let source = |fragment| self.window_source(fragment, sender);
                let sources: Vec<_> = fragments.iter().map(source).collect::<Option<_>>()?;
                (common_parameters(&sources), None, sources)
            }
        };
        Some(LiveWindow {
            table: self.tables.first()?.clone(),
            parameters,
            predicate,
            order,
            offset: self.offset,
            limit: self.limit?,
            sources,
        })
    }

    fn window_source(&self, fragment: &Fragment, sender: &Identity) -> Option<WindowSource> {
        if fragment.tables.len() > 1 {
            let Output::Row(returned) = self.output else {
                return None;
            };
            let returned = fragment.own[usize::from(returned)];
            return Some(WindowSource::Join(fragment.live_join(returned, sender)?));
        }
        let (parameters, predicate) = fragment.own_condition(sender)?;
        Some(WindowSource::Rows {
            parameters,
            predicate,
        })
    }
}

impl Fragment {
    /// The condition of a fragment on one relation.
    fn own_condition(&self, sender: &Identity) -> Option<OwnCondition> {
        let [table] = &self.tables[..] else {
            return None;
        };
        let bound = self.condition.bind(sender);
        let (mut parameters, mut others) = (Vec::new(), Vec::new());
        for &id in &bound.conjuncts {
            // Two values of a Bool are no reason to look rows up by it.
            match self.condition.nodes[id as usize].equal_value() {
                Some((at, constant)) if !is_bool(table, at.column) => {
                    parameters.push((at.column, constant.bound(sender)));
                }
                _ => others.push(id),
            }
        }
        let layout = RowLayout::of(&table.columns);
        let compiler = PredicateCompiler::new(&bound, vec![&layout]);
        Some((parameters, compiler.compile(&others)))
    }
}

/// The values that rows of all sources have.
fn common_parameters(sources: &[WindowSource]) -> Vec<(ColId, Box<[u8]>)> {
    let of_source = |source: &WindowSource| match source {
        WindowSource::Rows { parameters, .. } => parameters.clone(),
        WindowSource::Join(join) => join.relations[join.returned].parameters.clone(),
    };
    let mut sources = sources.iter().map(of_source);
    let mut common = sources.next().unwrap_or_default();
    for other in sources {
        common.retain(|parameter| other.contains(parameter));
    }
    common
}

fn is_bool(table: &TableSchema, column: ColId) -> bool {
    let column = table.column(column);
    column.is_some_and(|column| column.ty == AlgebraicType::Bool)
}
