//! From text to a checked plan, and what the engine reads off a plan.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::{TableAccess, TableKind, TableSchema, ViewSchema};
use lightcone_table::RowLayout;
use lightcone_types::{view_args_hash, AlgebraicType, ColId, Hash, Identity, ProductType, TableId};

use crate::ast::{self, Select};
use crate::check::{check_condition, Scope};
use crate::condition::Condition;
use crate::error::{SqlError, QUERY_BYTES_MAX};
use crate::lexer::lex;
use crate::literal;
use crate::parser::{parse, Language};
use crate::predicate::Predicate;
use crate::scalar::Scalar;

/// The tables a query can name. Who may read what is decided here in `query`, not by the catalog.
pub trait Catalog {
    /// The table of this name as written, dot-joined: canonical names come first, then accessor names (08 §3).
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;

    /// Do row-level security rules limit who sees which rows of this table?
    fn has_row_level_security(&self, _table: TableId) -> bool {
        false
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
    /// The text mentions `:sender`, or the rows of a view do that are the caller's own.
    pub reads_sender: bool,
    /// The text mentions `:sender`.
    pub mentions_sender: bool,
    /// The text the plan was made from.
    pub text: String,
    condition: Arc<Condition>,
}

impl SelectPlan {
    /// What is left of the predicate for rows that were found by the [`equalities`](Self::equalities) of these columns.
    pub fn residual(&self, handled: &[ColId]) -> Option<Predicate> {
        let mut dropped = HashSet::new();
        for (position, column, _) in first_equalities(&self.condition) {
            if handled.contains(&column) {
                dropped.insert(position);
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
        Predicate::compile(&self.condition, &kept, &layout(&self.table))
    }

    /// Bytes of memory that are this plan's own.
    pub fn memory_bytes(&self) -> usize {
        let predicate = self.predicate.as_ref().map_or(0, Predicate::memory_bytes);
        let values = self.equalities.iter().map(|(_, value)| value.len());
        size_of::<SelectPlan>()
            + self.equalities.capacity() * size_of::<(ColId, Box<[u8]>)>()
            + values.sum::<usize>()
            + self.text.len()
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

/// A checked statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Select(SelectPlan),
}

/// Compiles a query in the subscription language: WebSocket `Subscribe` and `OneOffQuery` (08 §5.2).
///
/// # Errors
/// Everything 08 says is refused; what is accepted there and not here yet ends in a code.
pub fn compile_subscription(
    text: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<SelectPlan, SqlError> {
    match read(text, Language::Subscription)? {
        ast::Statement::Select(select) => {
            plan_select(text, &select, catalog, caller, Language::Subscription)
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
            plan_select(text, &select, catalog, caller, Language::AdHoc).map(Statement::Select)
        }
        ast::Statement::Dml(dml) => Err(refuse_dml(&dml, catalog, caller)),
        ast::Statement::Set(name) => Err(refuse_variable("SET", name)),
        ast::Statement::Show(name) => Err(refuse_variable("SHOW", name)),
    }
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
    let ast::Statement::Select(select) = read(text, Language::Subscription)? else {
        return Err(SqlError::NotSelect);
    };
    let caller = Caller {
        identity: owner,
        is_owner: true,
    };
    let scope = scope_of(&select, catalog, &caller)?;
    if let Some(condition) = &select.condition {
        check_condition(condition, &scope, owner)?;
    }
    if plan_projection(&select.projection, &scope)? != Projection::Row {
        return Err(SqlError::ProjectionInSubscription);
    }
    let returned = match &select.projection {
        ast::Projection::RelationStar(relation) => scope.relation(relation)?,
        _ => 0,
    };
    let table = scope.table(returned);
    match table.access {
        TableAccess::Public => Ok(table.clone()),
        TableAccess::Private => Err(SqlError::RuleOnPrivateTable(table.name.clone())),
    }
}

/// Is this plan admissible as a subscription (08 §13)? A query on one relation always is.
///
/// # Errors
/// Those of 08 §13, once plans can have several relations.
pub fn admit_subscription(plan: &SelectPlan) -> Result<(), SqlError> {
    match plan.projection {
        Projection::Row => Ok(()),
        Projection::Columns(_) | Projection::Count(_) => Err(SqlError::ProjectionInSubscription),
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

fn may_read(access: TableAccess, caller: &Caller) -> bool {
    caller.is_owner || access == TableAccess::Public
}

/// The table of this name, if the caller may read it; a table it may not read is as good as absent (08 §8).
fn find_table(
    name: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Arc<TableSchema>, SqlError> {
    match catalog.table(name) {
        Some(table) if may_read(table.access, caller) => {
            // A view runs with the rights of the database.
            let is_limited = table.view.is_none() && catalog.has_row_level_security(table.id);
            if !caller.is_owner && is_limited {
                return Err(SqlError::RowLevelSecurityNotYet(name.to_owned()));
            }
            Ok(table)
        }
        _ => Err(SqlError::NoSuchTable(name.to_owned())),
    }
}

/// Which instance of a view a caller sees: what the hidden column of its rows holds (08 §10.1).
pub fn view_instance(view: ViewSchema, caller: Identity) -> Hash {
    match view.is_anonymous {
        true => view_args_hash(&[]),
        false => view_args_hash(caller.as_le_bytes()),
    }
}

fn layout(table: &TableSchema) -> RowLayout {
    let types: Vec<AlgebraicType> = table.columns.iter().map(|c| c.ty.clone()).collect();
    RowLayout::new(&types)
}

/// The equalities of a condition, the first one per column.
fn first_equalities(condition: &Condition) -> impl Iterator<Item = (usize, ColId, &[u8])> {
    let mut seen = HashSet::new();
    condition
        .equalities()
        .filter(move |(_, column, _)| seen.insert(*column))
}

/// The relations of a query, with their joins checked.
fn scope_of(select: &Select, catalog: &dyn Catalog, caller: &Caller) -> Result<Scope, SqlError> {
    let mut scope = Scope::new(!select.joins.is_empty());
    scope.add(
        &select.from.alias,
        find_table(&select.from.name, catalog, caller)?,
    )?;
    for join in &select.joins {
        scope.add(
            &join.table.alias,
            find_table(&join.table.name, catalog, caller)?,
        )?;
        if let Some((left, right)) = &join.on {
            scope.check_join(left, right)?;
        }
    }
    Ok(scope)
}

fn plan_select(
    text: &str,
    select: &Select,
    catalog: &dyn Catalog,
    caller: &Caller,
    language: Language,
) -> Result<SelectPlan, SqlError> {
    let scope = scope_of(select, catalog, caller)?;
    let condition = match &select.condition {
        Some(expressions) => check_condition(expressions, &scope, caller.identity)?,
        None => Condition::default(),
    };
    let projection = plan_projection(&select.projection, &scope)?;
    if language == Language::Subscription && projection != Projection::Row {
        return Err(SqlError::ProjectionInSubscription);
    }
    let limit = match &select.limit {
        Some(number) => Some(
            literal::limit(number).ok_or_else(|| SqlError::InvalidLiteral {
                text: number.clone(),
                ty: AlgebraicType::U64.type_name(),
            })?,
        ),
        None => None,
    };
    if scope.len() > 1 {
        return Err(SqlError::JoinNotYet {
            relations: scope.len(),
        });
    }
    let table = Arc::clone(scope.table(0));
    let condition = match table.view {
        Some(view) => {
            let instance = view_instance(view, caller.identity);
            condition.and_equal(ColId(0), Scalar::U256, &instance.0)
        }
        None => condition,
    };
    let predicate = Predicate::compile(&condition, &condition.conjuncts, &layout(&table));
    let equalities = first_equalities(&condition)
        .map(|(_, column, constant)| (column, constant.into()))
        .collect();
    let mentions_sender = select
        .condition
        .as_ref()
        .is_some_and(|e| e.0.iter().any(|e| matches!(e, ast::Expression::Sender)));
    let reads_sender = mentions_sender || table.view.is_some_and(|view| !view.is_anonymous);
    Ok(SelectPlan {
        table,
        predicate,
        projection,
        limit,
        equalities,
        reads_sender,
        mentions_sender,
        text: text.to_owned(),
        condition: Arc::new(condition),
    })
}

fn plan_projection(projection: &ast::Projection, scope: &Scope) -> Result<Projection, SqlError> {
    match projection {
        ast::Projection::Star if scope.len() > 1 => Err(SqlError::WildcardOnJoin),
        ast::Projection::Star => Ok(Projection::Row),
        ast::Projection::RelationStar(relation) => {
            scope.relation(relation).map(|_| Projection::Row)
        }
        ast::Projection::Count(alias) => Ok(Projection::Count(alias.clone())),
        ast::Projection::Columns(items) => {
            let mut names = HashSet::new();
            let mut columns = Vec::with_capacity(items.len());
            for item in items {
                let column = scope.column(&item.column)?;
                let name = item.alias.as_ref().unwrap_or(&item.column.name);
                if !names.insert(name) {
                    return Err(SqlError::DuplicateName(name.clone()));
                }
                columns.push((column.id, name.clone()));
            }
            Ok(Projection::Columns(columns))
        }
    }
}

fn refuse_dml(dml: &ast::Dml, catalog: &dyn Catalog, caller: &Caller) -> SqlError {
    let found = match catalog.table(&dml.table) {
        Some(table) if may_read(table.access, caller) && table.view.is_some() => {
            return SqlError::DmlOnView(dml.table.clone())
        }
        Some(table) => may_read(table.access, caller),
        None => false,
    };
    if !found {
        SqlError::NoSuchTable(dml.table.clone())
    } else if !caller.is_owner {
        SqlError::NotAuthorized(caller.identity)
    } else {
        SqlError::DmlNotYet {
            statement: dml.kind,
        }
    }
}

fn refuse_variable(statement: &'static str, name: String) -> SqlError {
    if name == "row_limit" {
        SqlError::VariableNotYet { statement }
    } else {
        SqlError::UnknownVariable(name)
    }
}
