//! From text to checked queries, and what a caller may read.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableAccess, TableKind, TableSchema, ViewSchema};
use lightcone_types::{AlgebraicType, ColId, Identity, TableId};

use crate::ast::{self, Select};
use crate::block::{instance_of, may_read, Block, Names};
use crate::condition::ColumnAt;
use crate::dml::{self, WritePlan};
use crate::error::{SqlError, QUERY_BYTES_MAX};
use crate::lexer::lex;
use crate::literal;
use crate::parser::{parse, Language};
use crate::query::{Fragment, JoinOn, Output, Query};
use crate::rules::apply_rules;
use crate::scope::Scope;
use crate::shape::{self, check_shape, Order, OrderKey};

/// The tables a query can name. Who may read what is decided here in `query`, not by the catalog.
pub trait Catalog {
    /// The table of this name as written, dot-joined: canonical names come first, then accessor names (08 §3).
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;

    /// The row-level security rules of this table: others than the owner see the rows that at least one of them gives
    /// (08 §9). None for a table without rules, whose rows everybody sees.
    fn rules(&self, _table: TableId) -> &[String] {
        &[]
    }
}

/// On whose behalf a query runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What `:sender` stands for.
    pub identity: Identity,
    /// The database's owner reads private tables too.
    pub is_owner: bool,
}

/// A checked statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Select(Query),
    Write(WritePlan),
}

impl Statement {
    /// The query, if it is one.
    pub fn into_query(self) -> Option<Query> {
        match self {
            Statement::Select(query) => Some(query),
            Statement::Write(_) => None,
        }
    }
}

/// Compiles a query in the subscription language: WebSocket `Subscribe` and `OneOffQuery` (08 §5.2).
///
/// # Errors
/// Everything 08 says is refused; what is accepted there and not here yet ends in a code.
pub fn compile_subscription(
    text: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Query, SqlError> {
    match read(text, Language::Subscription)? {
        ast::Statement::Select(select) => {
            let checked = check_select(&select, catalog, caller)?;
            if !matches!(checked.output, Output::Row(_)) {
                return Err(SqlError::ProjectionInSubscription);
            }
            finish(text, checked, catalog, caller)
        }
        _ => Err(SqlError::NotSelect),
    }
}

/// Compiles a statement in the ad hoc language: HTTP `/sql` (08 §5.3).
///
/// # Errors
/// Everything 08 says is refused; what is accepted there and not here yet ends in a code.
pub fn compile_statement(
    text: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Statement, SqlError> {
    match read(text, Language::AdHoc)? {
        ast::Statement::Select(select) => {
            plan_select(text, &select, catalog, caller).map(Statement::Select)
        }
        ast::Statement::Explain(select) => {
            let query = plan_select(text, &select, catalog, caller)?;
            Ok(Statement::Select(Query {
                explain: true,
                ..query
            }))
        }
        ast::Statement::Write(write) => {
            dml::plan_write(text, write, catalog, caller).map(Statement::Write)
        }
        ast::Statement::Set(name, value) => {
            dml::plan_set(&name, &value, catalog, caller).map(Statement::Write)
        }
        ast::Statement::Show(name) => {
            let select = dml::read_variable(&name)?;
            plan_select(text, &select, catalog, caller).map(Statement::Select)
        }
    }
}

/// Compiles a query whose rows are results of aggregates, which is what views return beyond the subscription language. None if
/// the text is no such query.
pub fn compile_aggregate(text: &str, catalog: &dyn Catalog, caller: &Caller) -> Option<Query> {
    let query = compile_statement(text, catalog, caller)
        .ok()?
        .into_query()?;
    let is_aggregate = matches!(query.output, Output::Count(_) | Output::Groups(_));
    (is_aggregate && !query.explain).then_some(query)
}

/// Checks a row-level security rule with the owner's rights: a query in the subscription language, over any number of
/// relations (08 §9.1). Gives the table whose rows the rule lets through.
///
/// # Errors
/// Everything 08 says is refused, and rules for private tables.
pub fn check_rule(
    text: &str,
    catalog: &dyn Catalog,
    owner: Identity,
) -> Result<Arc<TableSchema>, SqlError> {
    let caller = Caller {
        identity: owner,
        is_owner: true,
    };
    let checked = compile_rule(text, catalog, &caller)?;
    let table = &checked.tables[usize::from(checked.own[0])];
    match table.access {
        TableAccess::Public => Ok(table.clone()),
        TableAccess::Private => Err(SqlError::RuleOnPrivateTable(table.name.clone())),
    }
}

/// A rule as a part of queries. What it returns takes the place of the only relation of a text.
pub(crate) fn compile_rule(
    text: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Fragment, SqlError> {
    let ast::Statement::Select(select) = read(text, Language::Subscription)? else {
        return Err(SqlError::NotSelect);
    };
    let checked = check_select(&select, catalog, caller)?;
    let Output::Row(returned) = checked.output else {
        return Err(SqlError::ProjectionInSubscription);
    };
    if !checked.order.is_empty() {
        return Err(SqlError::Inconsistent(
            "a row-level security rule has no ORDER BY and no LIMIT",
        ));
    }
    Ok(Fragment {
        own: vec![returned],
        rules: vec![text.into()],
        ..checked.fragment
    })
}

/// One string of a `Subscribe` message (08 §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeText<'a> {
    /// `SELECT * FROM *`: see [`expand_subscribe_all`].
    AllTables,
    /// A query, without the white space around it.
    Query(&'a str),
}

/// Reads one string of a `Subscribe` message as far as what kind of request it is.
///
/// # Errors
/// If the string is blank.
pub fn read_subscribe_text(text: &str) -> Result<SubscribeText<'_>, SqlError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SqlError::EmptySubscription);
    }
    let mut words = text.split_whitespace();
    let is_all = ["select", "*", "from", "*"]
        .iter()
        .all(|w| words.next().is_some_and(|t| t.eq_ignore_ascii_case(w)));
    if is_all && words.next().is_none() {
        return Ok(SubscribeText::AllTables);
    }
    Ok(SubscribeText::Query(text))
}

/// The queries that `SELECT * FROM *` stands for: one per user table the caller may read, without event tables
/// (08 §13.5).
pub fn expand_subscribe_all<'a>(
    schemas: impl IntoIterator<Item = &'a Arc<TableSchema>>,
    caller: &Caller,
) -> Vec<String> {
    let wanted = |schema: &&Arc<TableSchema>| {
        schema.kind == TableKind::User && !schema.is_event && may_read(schema.access, caller)
    };
    let query = |schema: &Arc<TableSchema>| {
        format!("SELECT * FROM \"{}\"", schema.name.replace('"', "\"\""))
    };
    schemas.into_iter().filter(wanted).map(query).collect()
}

fn read(text: &str, language: Language) -> Result<ast::Statement, SqlError> {
    if text.len() > QUERY_BYTES_MAX {
        let prefix = text.chars().take(120).collect();
        return Err(SqlError::TooLong { prefix });
    }
    parse(text, &lex(text)?, language)
}

/// Which instance of a view a caller sees: what the hidden column of its rows holds (08 §10.1).
pub fn view_instance(view: ViewSchema, caller: &Identity) -> Box<[u8]> {
    instance_of(view).bound(caller)
}

/// A query as its text says it, before rules are drawn in.
struct Checked {
    fragment: Fragment,
    optional: Vec<bool>,
    output: Output,
    distinct: bool,
    joined: usize,
    order: Vec<Order>,
    offset: u64,
    limit: Option<u64>,
}

fn check_select(
    select: &Select,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Checked, SqlError> {
    let mut scope = Scope::new(!select.joins.is_empty());
    let mut outer = Vec::new();
    let names = Names { catalog, caller };
    let Block { condition, joins } = names.check_block(select, &mut scope, &mut outer)?;
    let (plain, items) = match &select.projection {
        ast::Projection::Items(items) => (None, &items[..]),
        projection => (Some(check_output(projection, &scope)?), &[][..]),
    };
    let shape::Checked { output, mut order } = check_shape(&select.shape, plain, items, &scope)?;
    if matches!(output, Output::Row(_)) && scope.joined_count() == 1 {
        order.extend(tie_break(&order, scope.table(0)));
    }
    let limit = select.limit.as_deref().map(check_count).transpose()?;
    let offset = select.shape.offset.as_deref().map(check_count);
    let on = |(left, right, _)| JoinOn { left, right };
    let optional = (0..scope.len() as u16).map(|relation| scope.is_optional(relation));
    let optional = optional.collect();
    let joined = scope.joined_count();
    let tables = scope.into_tables();
    Ok(Checked {
        fragment: Fragment {
            own: (0..tables.len() as u16).collect(),
            tables,
            condition: Arc::new(condition),
            joins: joins.into_iter().map(on).collect(),
            outer,
            number: None,
            rules: Vec::new(),
            guarded: Vec::new(),
        },
        optional,
        output,
        distinct: select.shape.distinct,
        joined,
        order,
        offset: offset.transpose()?.unwrap_or(0),
        limit,
    })
}

/// Rows of one table that an order leaves equal come in the order of their primary key. What is still equal is ordered by the
/// rows' bytes.
fn tie_break(order: &[Order], table: &TableSchema) -> Option<Order> {
    if order.is_empty() {
        return None;
    }
    let by = OrderKey::Column(ColumnAt {
        relation: 0,
        column: table.primary_key?,
    });
    let is_new = order.iter().all(|known| known.by != by);
    is_new.then_some(Order {
        by,
        descending: false,
    })
}

/// A number of rows.
fn check_count(number: &str) -> Result<u64, SqlError> {
    literal::limit(number).ok_or_else(|| SqlError::InvalidLiteral {
        text: number.to_owned(),
        ty: AlgebraicType::U64.type_name(),
    })
}

/// Checks a query of the ad hoc language.
pub(crate) fn plan_select(
    text: &str,
    select: &Select,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Query, SqlError> {
    let checked = check_select(select, catalog, caller)?;
    finish(text, checked, catalog, caller)
}

/// Draws in the rules for the caller.
fn finish(
    text: &str,
    checked: Checked,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Query, SqlError> {
    Ok(Query {
        text: text.to_owned(),
        tables: checked.fragment.tables.clone(),
        fragments: apply_rules(checked.fragment, catalog, caller)?,
        optional: checked.optional,
        output: checked.output,
        distinct: checked.distinct,
        joined: checked.joined,
        order: checked.order,
        offset: checked.offset,
        limit: checked.limit,
        explain: false,
    })
}

fn check_output(projection: &ast::Projection, scope: &Scope) -> Result<Output, SqlError> {
    match projection {
        ast::Projection::Star if scope.joined_count() > 1 => Err(SqlError::WildcardOnJoin),
        ast::Projection::Star => Ok(Output::Row(0)),
        ast::Projection::RelationStar(relation) => {
            let relation = scope.relation(relation)? as u16;
            if !scope.is_optional(relation) {
                return Ok(Output::Row(relation));
            }
            let columns = scope.table(relation).columns.iter().enumerate();
            let column = |(column, schema): (usize, &ColumnSchema)| {
                let column = ColId(column as u16);
                (ColumnAt { relation, column }, schema.name.clone())
            };
            Ok(Output::Columns(columns.map(column).collect()))
        }
        ast::Projection::Count(alias) => Ok(Output::Count(alias.clone())),
        ast::Projection::Items(_) => unreachable!("groups are checked elsewhere"),
        ast::Projection::Columns(items) => {
            let mut names = HashSet::new();
            let mut columns = Vec::with_capacity(items.len());
            for item in items {
                let column = scope.column(&item.column)?;
                let name = item.alias.as_ref().unwrap_or(&item.column.name);
                if !names.insert(name) {
                    return Err(SqlError::DuplicateName(name.clone()));
                }
                columns.push((column.at, name.clone()));
            }
            Ok(Output::Columns(columns))
        }
    }
}
