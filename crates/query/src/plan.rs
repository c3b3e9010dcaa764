//! From text to checked queries.

use std::ops::Range;
use std::sync::Arc;

use lightcone_schema::{TableAccess, TableKind, TableSchema, ViewSchema};
use lightcone_types::{AsOf, Identity};

use crate::ast;
use crate::block::{instance_of, Names};
use crate::catalog::{may_read, Caller, Catalog};
use crate::condition::ViewArguments;
use crate::dml::{self, WritePlan};
use crate::error::{Result, SqlError};
use crate::parser::{parse, Language};
use crate::query::{Output, Query};
use crate::select::{check_select, compile_rule};
use crate::words::quoted;

/// A checked statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Select(Query),
    Write(WritePlan),
    /// A query on a state of the past: which one, and its text without that clause, to be compiled with the tables of then.
    Past(AsOf, String),
}

impl Statement {
    /// The query, if it is one.
    pub fn into_query(self) -> Option<Query> {
        match self {
            Statement::Select(query) => Some(query),
            Statement::Write(_) | Statement::Past(..) => None,
        }
    }
}

/// Compiles a query in the subscription language: WebSocket `Subscribe` and `OneOffQuery` (08 §5.2).
///
/// # Errors
/// Everything 08 says is refused; what is accepted there and not here yet ends in a code.
pub fn compile_subscription(text: &str, catalog: &dyn Catalog, caller: &Caller) -> Result<Query> {
    match parse(text, Language::Subscription)? {
        ast::Statement::Select(select) => {
            let names = Names { catalog, caller };
            let checked = check_select(text, &select, names)?;
            if !matches!(checked.output, Output::Row(_)) {
                return Err(SqlError::ProjectionInSubscription);
            }
            checked.with_rules(names)
        }
        _ => Err(SqlError::NotSelect),
    }
}

/// Compiles a statement in the ad hoc language: HTTP `/sql` (08 §5.3).
///
/// # Errors
/// Everything 08 says is refused; what is accepted there and not here yet ends in a code.
pub fn compile_statement(text: &str, catalog: &dyn Catalog, caller: &Caller) -> Result<Statement> {
    compile(text, Language::AdHoc, catalog, caller)
}

/// Compiles a statement of a program that takes us for PostgreSQL: in the ad hoc language, in which tables may have their schema
/// before them, counts no name, and counts a sign (08 §19).
///
/// # Errors
/// As [`compile_statement`].
pub fn compile_postgresql(text: &str, catalog: &dyn Catalog, caller: &Caller) -> Result<Statement> {
    compile(text, Language::PostgreSql, catalog, caller)
}

fn compile(
    text: &str,
    language: Language,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Statement> {
    let names = Names { catalog, caller };
    let query = |select: &ast::Select| {
        let query = check_select(text, select, names)?.with_rules(names)?;
        Ok::<_, SqlError>(Query {
            counts_have_a_sign: language == Language::PostgreSql,
            ..query
        })
    };
    let statement = parse(text, language)?;
    if let ast::Statement::Select(select) | ast::Statement::Explain(select) = &statement {
        if let Some((moment, clause)) = &select.as_of {
            return past(text, moment, clause);
        }
    }
    match statement {
        ast::Statement::Select(select) => query(&select).map(Statement::Select),
        ast::Statement::Explain(select) => Ok(Statement::Select(Query {
            explain: true,
            ..query(&select)?
        })),
        ast::Statement::Write(write) => dml::plan_write(text, write, names).map(Statement::Write),
        ast::Statement::Set(name, value) => {
            dml::plan_set(&name, &value, names).map(Statement::Write)
        }
        ast::Statement::Show(name) => query(&dml::read_variable(&name)?).map(Statement::Select),
    }
}

/// The clause is blanked, so that errors name the places of the text as it was written.
fn past(text: &str, moment: &str, clause: &Range<usize>) -> Result<Statement> {
    let as_of = moment.parse().map_err(|_| SqlError::InvalidLiteral {
        text: moment.to_owned(),
        ty: "Timestamp".to_owned(),
    })?;
    let blank = text[clause.clone()].chars().map(|c| match c {
        '\n' => '\n',
        _ => ' ',
    });
    let (before, behind) = (&text[..clause.start], &text[clause.end..]);
    let text = before.chars().chain(blank).chain(behind.chars()).collect();
    Ok(Statement::Past(as_of, text))
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
pub fn check_rule(text: &str, catalog: &dyn Catalog, owner: Identity) -> Result<Arc<TableSchema>> {
    let caller = &Caller {
        identity: owner,
        is_owner: true,
    };
    let checked = compile_rule(text, Names { catalog, caller })?;
    let table = &checked.tables[usize::from(checked.own[0])];
    match table.access {
        TableAccess::Public => Ok(table.clone()),
        TableAccess::Private => Err(SqlError::RuleOnPrivateTable(table.name.clone())),
    }
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
pub fn read_subscribe_text(text: &str) -> Result<SubscribeText<'_>> {
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
    let query = |schema: &Arc<TableSchema>| format!("SELECT * FROM {}", quoted(&schema.name));
    schemas.into_iter().filter(wanted).map(query).collect()
}

/// Which instance of a view a caller sees with these arguments: what the hidden column of its rows holds (08 §10.1).
pub fn view_instance(view: ViewSchema, arguments: &ViewArguments, caller: &Identity) -> Box<[u8]> {
    instance_of(view, arguments).bound(caller)
}
