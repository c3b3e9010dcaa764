//! Checked queries: which relations they read, what must hold, what comes out. Names are resolved, `:sender` is not.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::{TableView, Tables};
use lightcone_types::{AlgebraicType, ProductType};

use crate::condition::{ColumnAt, Condition, ViewArguments};
use crate::grouping::{Grouping, Order};
use crate::scalar::Scalar;

/// The columns of an `ON`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinOn {
    pub left: ColumnAt,
    pub right: ColumnAt,
}

/// A relation that comes without a row where it has no partner: its own column, and the one that it equals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OuterJoin {
    pub own: ColumnAt,
    pub other: ColumnAt,
    pub scalar: Scalar,
}

/// What a query gives for every match, or for all of them. Relations are those of the text.
#[derive(Clone, Debug)]
pub enum Output {
    /// The row of this relation as it is stored.
    Row(u16),
    /// These columns under these names.
    Columns(Vec<(ColumnAt, String)>),
    /// One row with one U64 of this name: how many matches there are.
    Count(String),
    /// One row for each group of matches.
    Groups(Arc<Grouping>),
}

/// A part of a query: the query is the union of its fragments, equal rows counted as often as they come (08 §9.2).
///
/// A query has one, unless row-level security rules take the place of tables in it.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// In the order in which they are joined. One table may stand here several times.
    pub tables: Vec<Arc<TableSchema>>,
    /// What must hold, the equalities of `ON` included.
    pub(crate) condition: Arc<Condition>,
    pub(crate) joins: Vec<JoinOn>,
    pub(crate) outer: Vec<OuterJoin>,
    /// Where the relations of the text are among the tables.
    pub(crate) own: Vec<u16>,
    /// It is the so manieth of a query that rules were drawn into.
    pub number: Option<u16>,
    /// The texts of the rules that were drawn in.
    pub(crate) rules: Vec<Arc<str>>,
    /// The relations that rules stand for, and those that only rules read.
    pub(crate) guarded: Vec<u16>,
}

/// A checked query. One is good for every caller with the same rights.
#[derive(Clone, Debug)]
pub struct Query {
    /// The text it was made from.
    pub text: String,
    pub fragments: Vec<Fragment>,
    /// The tables that the text names.
    pub(crate) tables: Vec<Arc<TableSchema>>,
    /// By these tables: it may have no row. Columns are options then.
    pub(crate) optional: Vec<bool>,
    pub output: Output,
    /// Equal rows come out once.
    pub(crate) distinct: bool,
    /// The tables that the text joins, those of subqueries left out.
    pub(crate) joined: usize,
    pub(crate) order: Vec<Order>,
    /// So many rows are left out at the start.
    pub(crate) offset: u64,
    /// At most so many result rows. Above a count, it limits the one row that holds the count.
    pub limit: Option<u64>,
    /// Those of its only relation.
    pub arguments: ViewArguments,
    /// Not the rows are wanted but how they are found: rows of one text.
    pub(crate) explain: bool,
    /// Counts are numbers of 64 bits with a sign, as those of PostgreSQL.
    pub(crate) counts_have_a_sign: bool,
}

impl Fragment {
    /// The tables of its relations. None if one is gone.
    pub(crate) fn read<'t>(&self, tables: &'t dyn Tables) -> Option<Vec<&'t TableView>> {
        let of_fragment = self.tables.iter();
        of_fragment.map(|schema| tables.table(schema.id)).collect()
    }

    /// The place of a column of the text.
    pub(crate) fn column(&self, of_text: ColumnAt) -> ColumnAt {
        ColumnAt {
            relation: self.own[usize::from(of_text.relation)],
            column: of_text.column,
        }
    }

    /// The relations that are not of a subquery.
    pub(crate) fn relations_of_no_subquery(&self) -> Vec<u16> {
        let subqueries = &self.condition.subqueries;
        let is_own = |relation: &u16| !subqueries.iter().any(|s| s.relations.contains(relation));
        (0..self.tables.len() as u16).filter(is_own).collect()
    }

    /// The result depends on the caller's identity.
    pub fn reads_sender(&self) -> bool {
        self.condition.reads_sender()
    }
}

impl Query {
    /// So many matches are enough, if not all of them are needed.
    pub(crate) fn matches_wanted(&self) -> Option<u64> {
        let is_counted = matches!(self.output, Output::Count(_) | Output::Groups(_));
        if is_counted || self.distinct || !self.order.is_empty() {
            return None;
        }
        self.limit.map(|limit| limit.saturating_add(self.offset))
    }

    /// The tables that the text names, in its order.
    pub fn named_tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.tables.iter()
    }

    /// The tables that are read, one for each relation of each fragment.
    pub fn read_tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.fragments.iter().flat_map(|fragment| &fragment.tables)
    }

    /// Whether rows come out although one of the tables has none: it is read in a subquery, or behind `LEFT JOIN`.
    pub fn has_optional_tables(&self) -> bool {
        let is_optional =
            |of: &Fragment| !of.outer.is_empty() || !of.condition.subqueries.is_empty();
        self.fragments.iter().any(is_optional)
    }

    /// The table whose rows come out, if rows of a table do.
    pub fn returned_table(&self) -> Option<&Arc<TableSchema>> {
        match self.output {
            Output::Row(relation) => self.tables.get(usize::from(relation)),
            Output::Columns(_) | Output::Count(_) | Output::Groups(_) => None,
        }
    }

    /// The names and types of the result's columns (08 §3).
    pub fn output_type(&self) -> ProductType {
        if self.explain {
            return ProductType::new([("plan", AlgebraicType::String)]);
        }
        self.row_type()
    }

    /// The columns of the rows that are found.
    pub(crate) fn row_type(&self) -> ProductType {
        match &self.output {
            Output::Row(relation) => {
                let columns = self.tables[usize::from(*relation)]
                    .declared_columns()
                    .iter();
                ProductType::new(columns.map(|c| (c.name.as_str(), c.ty.clone())))
            }
            Output::Columns(listed) => {
                let element =
                    |(at, name): &(ColumnAt, String)| (name.clone(), self.column_type(*at));
                ProductType::new(listed.iter().map(element))
            }
            Output::Count(name) => ProductType::new([(name.as_str(), self.count_type())]),
            Output::Groups(grouping) => {
                let columns = grouping.row.columns.iter().zip(&grouping.items);
                let columns = columns.take(grouping.shown).map(|(column, item)| {
                    let is_count = item.is_count();
                    let ty = if is_count {
                        self.count_type()
                    } else {
                        column.ty.clone()
                    };
                    (column.name.as_str(), ty)
                });
                ProductType::new(columns)
            }
        }
    }

    fn count_type(&self) -> AlgebraicType {
        match self.counts_have_a_sign {
            true => AlgebraicType::I64,
            false => AlgebraicType::U64,
        }
    }

    pub(crate) fn column_type(&self, at: ColumnAt) -> AlgebraicType {
        let table = &self.tables[usize::from(at.relation)];
        let column = table.column(at.column);
        let ty = &column.expect("columns of a query are its tables'").ty;
        match self.is_optional(at) && ty.as_option().is_none() {
            true => AlgebraicType::option(ty.clone()),
            false => ty.clone(),
        }
    }

    /// May the column's relation have no row?
    pub(crate) fn is_optional(&self, at: ColumnAt) -> bool {
        self.optional[usize::from(at.relation)]
    }

    /// The part of the query that is this fragment.
    pub fn of_fragment(&self, fragment: &Fragment) -> Query {
        Query {
            text: self.text.clone(),
            fragments: vec![fragment.clone()],
            tables: self.tables.clone(),
            optional: self.optional.clone(),
            output: self.output.clone(),
            distinct: self.distinct,
            joined: self.joined,
            order: self.order.clone(),
            offset: self.offset,
            arguments: self.arguments.clone(),
            explain: self.explain,
            counts_have_a_sign: self.counts_have_a_sign,
            limit: self.limit,
        }
    }

    /// Its rows are those of one table in an order, and row-level security rules decide about them: each comes once, however many
    /// rules, and matches of them, give it.
    pub(crate) fn is_order_of_rows(&self) -> bool {
        let is_of_rows = matches!(self.output, Output::Row(_)) && self.joined == 1;
        is_of_rows && !self.order.is_empty() && self.has_rules()
    }

    /// Its rows are the first of an order.
    pub fn is_window(&self) -> bool {
        let is_of_rows = matches!(self.output, Output::Row(_)) && !self.distinct && !self.explain;
        is_of_rows && self.limit.is_some() && !self.order.is_empty()
    }

    /// The first rows of the order, as many as these.
    pub fn first_rows(&self, rows: u64) -> Query {
        Query {
            offset: 0,
            limit: Some(rows),
            ..self.clone()
        }
    }

    /// Bytes of memory, but for the tables' schemas.
    pub fn memory_bytes(&self) -> usize {
        let of_fragment = |fragment: &Fragment| {
            size_of::<Fragment>()
                + fragment.condition.memory_bytes()
                + fragment.tables.len() * size_of::<Arc<TableSchema>>()
                + fragment.own.len() * size_of::<u16>()
                + fragment.joins.len() * size_of::<JoinOn>()
        };
        let fragments: usize = self.fragments.iter().map(of_fragment).sum();
        let arguments = self.arguments.as_ref().map_or(0, |given| given.len());
        size_of::<Query>() + self.text.len() + fragments + arguments
    }
}
