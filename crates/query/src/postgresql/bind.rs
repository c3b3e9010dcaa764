//! From a question to a plan: names become places, and every column of the answer gets its type.
//!
//! The structs of `sqlparser` are taken apart without `..`: what is not looked at is refused, and no new part of a question is
//! passed over.

mod calls;
mod draft;
mod expressions;
mod from;
mod grouping;
mod scope;
mod syntax;
mod tables;
mod writes;

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_types::AlgebraicType;
use sqlparser::ast::*;

use self::draft::Draft;
pub use self::draft::TableRead;
use self::scope::{Scope, ScopeColumn};
use self::syntax::{apart, direction, folded, name_of, names, parts, refuse_if, Part as _};
use super::cells::COLUMNS_MAX;
use super::column_type::{common, Type};
use super::failure::{state, Done, Failure};
use super::plan::*;
use super::session::Session;
use super::value::Value as Known;

/// Questions inside of questions, together: each is bound once for every place where it stands.
const PLANS_MAX: usize = 256;
/// Columns of one question, with those of all that it reads.
const WIDTH_MAX: usize = 4_096;

/// Bytes of the names of one question's columns.
const NAMES_BYTES_MAX: usize = 64 << 10;

/// Columns of a question without its order, what they are made of, and what it is ordered by.
type BoundCore = (Columns, Body, Vec<SortKey>);

/// Refuses columns that are too many, or whose names are too long, before there are more of them.
fn check_names(columns: &[(String, Type)]) -> Done<()> {
    let bytes: usize = columns.iter().map(|(name, _)| name.len()).sum();
    if columns.len() > COLUMNS_MAX || bytes > NAMES_BYTES_MAX {
        return Err(format!(
            "it has more than {COLUMNS_MAX} columns, or names of more than {NAMES_BYTES_MAX} bytes"
        )
        .into());
    }
    Ok(())
}

/// A question that can be run, when the tables of the module that it needs are read.
pub struct Question {
    pub plan: Plan,
    pub tables: Vec<TableRead>,
    /// What parameters meet, by their numbers from 0.
    pub parameters: HashMap<u16, Type>,
}

pub fn bind(query: &Query, session: &dyn Session, is_described: bool) -> Done<Question> {
    let mut binder = Binder::new(session, is_described);
    let plan = binder.query(query, None)?;
    Ok(binder.question(plan))
}

struct Binder<'b> {
    session: &'b dyn Session,
    parameters: HashMap<u16, Type>,
    /// The tables of the module that are read.
    drafts: Vec<Draft>,
    is_described: bool,
    plans: usize,
    /// Expressions around the one that is being bound.
    height: usize,
    /// Columns that were looked at for names.
    looked: usize,
    /// Names that were found so far mean columns of scopes in so many others, or more.
    reached: usize,
    /// Named questions, the innermost last.
    with: Vec<(String, Arc<Plan>)>,
    /// What is gathered while the items of a question are bound. None: there can be none here.
    extras: Option<Vec<Extra>>,
}

/// A statement that can be run, in a transaction.
pub struct Write {
    /// For the rows that are changed, or inserted.
    pub question: Question,
    /// None: it is a question as any other.
    pub change: Option<TableChange>,
}

/// Binds a statement that changes rows.
pub fn bind_write(statement: &Statement, session: &dyn Session, is_described: bool) -> Done<Write> {
    let mut binder = Binder::new(session, is_described);
    let (plan, change) = match statement {
        Statement::Insert(insert) => binder.insert(insert)?,
        Statement::Update(update) => binder.update(update)?,
        Statement::Delete(delete) => binder.delete(delete)?,
        _ => return Err("a statement that changes no rows".into()),
    };
    Ok(Write {
        question: binder.question(plan),
        change: Some(change),
    })
}

impl<'b> Binder<'b> {
    fn new(session: &'b dyn Session, is_described: bool) -> Binder<'b> {
        Binder {
            session,
            parameters: HashMap::new(),
            drafts: Vec::new(),
            is_described,
            plans: 0,
            height: 0,
            looked: 0,
            reached: usize::MAX,
            with: Vec::new(),
            extras: None,
        }
    }

    /// A plan with all that was bound for it.
    fn question(self, plan: Plan) -> Question {
        let tables = self.drafts.iter().enumerate();
        let tables = tables.filter(|(_, draft)| !draft.is_joined);
        Question {
            plan,
            tables: tables.map(|(number, draft)| draft.table(number)).collect(),
            parameters: self.parameters,
        }
    }
}

impl Binder<'_> {
    fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Done<Plan> {
        self.plans += 1;
        if self.plans > PLANS_MAX {
            return Err(format!("it consists of more than {PLANS_MAX} questions").into());
        }
        let (known, around) = (self.with.len(), self.extras.take());
        let cte_tables = match &query.with {
            None => &[][..],
            Some(with) => {
                apart!(with, With { cte_tables } without { recursive } passing { with_token }, "WITH RECURSIVE");
                &cte_tables[..]
            }
        };
        for cte in cte_tables {
            apart!(cte, Cte { alias query } without { from } passing { materialized closing_paren_token }, "FROM behind WITH");
            let mut plan = self.query(query, None)?;
            renamed(&mut plan.columns, alias);
            self.with.push((folded(&alias.name), Arc::new(plan)));
        }
        let reached = std::mem::replace(&mut self.reached, usize::MAX);
        let plan = self.query_with(query, outer);
        let is_closed = self.reached > outer.map_or(0, Scope::depth);
        if is_closed || self.reached > reached {
            self.reached = reached;
        }
        self.with.truncate(known);
        self.extras = around;
        plan.map(|plan| Plan { is_closed, ..plan })
    }

    /// Binds where there is one row, and no function of several.
    fn plainly<T>(&mut self, bind: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        let around = self.extras.take();
        let bound = bind(self);
        self.extras = around;
        bound
    }

    fn query_with(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Done<Plan> {
        apart!(query, Query { body order_by limit_clause fetch }
            without { locks for_clause settings format_clause pipe_operators } passing { with }, "what stands behind the question");
        let (mut first, mut operations) = (&**body, Vec::new());
        while let SetExpr::SetOperation {
            op,
            set_quantifier,
            left,
            right,
        } = first
        {
            operations.push((operation(*op, *set_quantifier)?, &**right));
            first = left;
        }
        // Of one question, rows are ordered by whatever it reads; of several, by what comes out.
        let order = order_of(order_by.as_ref())?;
        let is_one = operations.is_empty();
        let (mut columns, mut body, mut keys) =
            self.core(first, if is_one { order } else { &[] }, outer)?;
        let mut others = Vec::new();
        for (operation, core) in operations.into_iter().rev() {
            let (of, mut other, _) = self.core(core, &[], outer)?;
            if of.len() != columns.len() {
                return Err("each UNION query must have the same number of columns".into());
            }
            for (at, ((_, ty), (_, of))) in columns.iter_mut().zip(&of).enumerate() {
                if ty == of {
                    continue;
                }
                // What is written out has the type of the other, unless it was already put together with one.
                let first = match others.is_empty() {
                    true => literal(&mut body, at),
                    false => None,
                };
                let literals = [first, literal(&mut other, at)];
                *ty = self.unified([ty.operand(), of.operand()], literals)?;
            }
            others.push((operation, Plan::new(of, other)));
        }
        if !is_one {
            keys = keys_of(
                order,
                &columns,
                "ORDER BY of a UNION takes columns of the result",
            )?;
        }
        let (limit, offset) = self.limits(limit_clause.as_ref(), fetch.as_ref())?;
        if is_one {
            self.read_first(&body, &keys, limit.as_ref(), offset.as_ref());
        }
        Ok(Plan {
            others,
            order: keys,
            limit,
            offset,
            ..Plan::new(columns, body)
        })
    }

    /// The type of what both parts of a UNION have in a column. A text that is written out in one of them becomes what the other has.
    fn unified(&self, types: [Type; 2], literals: [Option<&mut Known>; 2]) -> Done<Type> {
        let is_strict = |ty: &Type| ty.is_number() || *ty == Type::BOOL;
        let is_alike = types.iter().all(Type::is_number);
        let is_known = types.iter().all(|ty| is_strict(ty) || *ty == Type::TEXT);
        if is_alike || !is_known || !types.iter().any(is_strict) || types[0] == types[1] {
            return Ok(common(&types));
        }
        for ((literal, ty), other) in literals.into_iter().zip(&types).zip(types.iter().rev()) {
            if let (Some(value), &Type::TEXT) = (literal, ty) {
                *value = value.clone().cast(ty, other, self.session)?;
                return Ok(other.clone());
            }
        }
        let [one, other] = types.each_ref().map(Type::name);
        let message = format!("UNION types {one} and {other} cannot be matched");
        Err(Failure::new(state::DATATYPE_MISMATCH, message))
    }

    /// How many rows there are to be, and how many are left out before them.
    fn limits(
        &mut self,
        clause: Option<&LimitClause>,
        fetch: Option<&Fetch>,
    ) -> Done<(Option<Bound>, Option<Bound>)> {
        let (mut rows, mut before) = (None, None);
        let scope = Scope::new(None);
        let count = Type::Of(AlgebraicType::U64);
        let mut number = |expr: &Expr| {
            let (bound, ty) = self.expr(expr, &scope)?;
            Ok::<_, Failure>(match ty {
                Type::Parameter(_) => self.compared(bound, &ty, &count),
                _ => bound,
            })
        };
        match clause {
            None => {}
            Some(clause @ LimitClause::LimitOffset { .. }) => {
                apart!(clause, LimitClause::LimitOffset { limit offset } without { limit_by } passing {}, "LIMIT BY");
                rows = limit.as_ref().map(&mut number).transpose()?;
                let offset = offset.as_ref().map(|offset| &offset.value);
                before = offset.map(&mut number).transpose()?;
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                return Err("LIMIT with a comma".into());
            }
        }
        if let Some(fetch) = fetch {
            apart!(fetch, Fetch { quantity } without { with_ties percent } passing {}, "FETCH WITH TIES");
            rows = match quantity {
                Some(rows) => Some(number(rows)?),
                None => Some(Bound::Constant(Known::Int(1))),
            };
        }
        Ok((rows, before))
    }

    fn core(
        &mut self,
        core: &SetExpr,
        order: &[OrderByExpr],
        outer: Option<&Scope<'_>>,
    ) -> Done<BoundCore> {
        let by_output =
            |columns: &[(String, Type)]| keys_of(order, columns, "ORDER BY takes columns here");
        match core {
            SetExpr::Query(query) => {
                let plan = self.query(query, outer)?;
                let columns = plan.columns.clone();
                let keys = by_output(&columns)?;
                Ok((columns, Body::Nested(Box::new(plan)), keys))
            }
            SetExpr::Values(values) => {
                let scope = Scope::new(outer);
                let mut columns: Columns = Vec::new();
                let mut bound = Vec::new();
                for row in &values.rows {
                    let (values, types) = self.list(row.iter(), &scope)?;
                    for (nth, ty) in types.into_iter().enumerate() {
                        match columns.get_mut(nth) {
                            Some(column) => column.1 = common(&[column.1.clone(), ty]),
                            None => columns.push((format!("column{}", nth + 1), ty)),
                        }
                    }
                    bound.push(values);
                }
                if bound.iter().any(|row| row.len() != columns.len()) {
                    return Err("VALUES lists must all be the same length".into());
                }
                let keys = by_output(&columns)?;
                Ok((columns, Body::Values(bound), keys))
            }
            SetExpr::Select(select) => self.select(select, order, outer),
            SetExpr::SetOperation { .. } => {
                Err("INTERSECT behind UNION or EXCEPT: put it in parentheses".into())
            }
            SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => Err("a statement that is no SELECT".into()),
        }
    }

    /// The rows of FROM for which WHERE holds.
    fn filtered(
        &mut self,
        steps: Vec<Step>,
        selection: Option<&Expr>,
        scope: &mut Scope<'_>,
    ) -> Done<CorePlan> {
        let mut plan = CorePlan {
            steps,
            width: scope.columns.len(),
            ..CorePlan::default()
        };
        if let Some(filter) = selection {
            plan.filter = self.conditions(filter, scope)?;
        }
        plan.is_filtered_before = self.read_where(&plan.filter, scope, 0);
        self.read_joined(&mut plan, scope);
        Ok(plan)
    }

    fn select(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        outer: Option<&Scope<'_>>,
    ) -> Done<BoundCore> {
        apart!(select, Select { distinct projection from selection group_by having flavor }
            without { optimizer_hints select_modifiers top exclude into lateral_views prewhere connect_by cluster_by distribute_by
                sort_by named_window qualify value_table_mode }
            passing { select_token top_before_distinct window_before_qualify }, "a clause of SELECT");
        refuse_if(*flavor != SelectFlavor::Standard, "a clause of SELECT")?;
        refuse_if(projection.is_empty(), "SELECT of nothing")?;
        let GroupByExpr::Expressions(group_by, modifiers) = group_by else {
            return Err("GROUP BY ALL".into());
        };
        refuse_if(!modifiers.is_empty(), "a modifier of GROUP BY")?;

        let mut scope = Scope::new(outer);
        let steps = self.from(from, &mut scope)?;
        let mut plan = self.filtered(steps, selection.as_ref(), &mut scope)?;
        scope.meant_inside.take();
        self.extras = Some(Vec::new());
        let (columns, items) = self.items(projection, &scope)?;
        plan.items = items;
        for expr in group_by {
            // A place, or the name of an item.
            let item = output(expr, &columns).and_then(|at| projection.get(at));
            let is_column = names(expr).is_some_and(|names| self.column(names, &scope).is_ok());
            let expr = match item {
                Some(SelectItem::UnnamedExpr(item)) if !is_column => item,
                Some(SelectItem::ExprWithAlias { expr: item, .. }) if !is_column => item,
                _ => expr,
            };
            let bind = || self.plainly(|binder| binder.expr(expr, &scope));
            plan.group.push(scope.of_all_rows(bind)?.0);
        }
        if let Some(having) = having {
            let (bound, _) = self.expr(having, &scope)?;
            plan.having = Some(bound);
        }
        check_names(&columns)?;
        let mut keys = Vec::new();
        for by in order {
            let at = match output(&by.expr, &columns) {
                Some(at) => at,
                None => {
                    let (bound, _) = self.expr(&by.expr, &scope)?;
                    plan.items.push(bound);
                    plan.items.len() - 1
                }
            };
            keys.push(key(at, by)?);
        }
        plan.distinct = match distinct {
            None | Some(Distinct::All) => None,
            Some(Distinct::Distinct) => Some((0..columns.len()).collect()),
            Some(Distinct::On(list)) => {
                let (bound, _) = self.list(list.iter(), &scope)?;
                let first = plan.items.len();
                plan.items.extend(bound);
                Some((first..plan.items.len()).collect())
            }
        };
        plan.extras = self.extras.take().unwrap_or_default();
        let mut extras = plan.extras.iter();
        let aggregates = extras.any(|extra| matches!(extra, Extra::Aggregate { .. }));
        plan.is_grouped = aggregates || !plan.group.is_empty() || plan.having.is_some();
        if plan.is_grouped {
            grouping::check(&plan, &scope)?;
        }
        self.note_used(&scope);
        Ok((columns, Body::Core(Box::new(plan)), keys))
    }

    /// What stands between SELECT and FROM, or behind RETURNING.
    fn items(&mut self, list: &[SelectItem], scope: &Scope<'_>) -> Done<(Columns, Vec<Bound>)> {
        let (mut columns, mut items) = (Columns::new(), Vec::new());
        for item in list {
            check_names(&columns)?;
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(folded(alias))),
                item => {
                    for (at, column) in starred(item, scope)? {
                        columns.push((column.name.clone(), column.ty.clone()));
                        items.push(Bound::Column { up: 0, at });
                    }
                    continue;
                }
            };
            let (bound, mut ty) = self.expr(expr, scope)?;
            if let Bound::Column { up: 0, at } = bound {
                ty = scope.columns[at].ty.clone();
            }
            columns.push((alias.unwrap_or_else(|| name_of(expr)), ty));
            items.push(bound);
        }
        Ok((columns, items))
    }
}

/// The value that is written out for a column.
fn literal(body: &mut Body, at: usize) -> Option<&mut Known> {
    match body {
        Body::Core(core) => match core.items.get_mut(at) {
            Some(Bound::Constant(value)) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

fn operation(operator: SetOperator, quantifier: SetQuantifier) -> Done<SetOperation> {
    use {SetOperator as O, SetQuantifier as Q};
    Ok(match (operator, quantifier) {
        (O::Union, Q::None | Q::Distinct) => SetOperation::Union,
        (O::Union, Q::All) => SetOperation::UnionAll,
        (O::Except, Q::None | Q::Distinct) => SetOperation::Except,
        (O::Intersect, Q::None | Q::Distinct) => SetOperation::Intersect,
        (operator, quantifier) => {
            return Err(format!("{operator} {quantifier} is not supported").into())
        }
    })
}

fn order_of(order: Option<&OrderBy>) -> Done<&[OrderByExpr]> {
    match order {
        None => Ok(&[]),
        Some(OrderBy {
            kind: OrderByKind::Expressions(list),
            interpolate: None,
        }) => Ok(list),
        Some(_) => Err("ORDER BY ALL".into()),
    }
}

/// The columns that a star stands for, with their places.
fn starred<'s>(item: &SelectItem, scope: &'s Scope<'_>) -> Done<Vec<(usize, &'s ScopeColumn)>> {
    let (table, options) = match item {
        SelectItem::Wildcard(options) => (None, options),
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(name),
            options,
        ) => (Some(qualifier(name, scope)?), options),
        _ => return Err("a star behind an expression".into()),
    };
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike: None,
        opt_exclude: None,
        opt_except: None,
        opt_replace: None,
        opt_rename: None,
        opt_alias: None,
    } = options
    else {
        return Err("an option of a star".into());
    };
    let is_meant = |loose: &&String| table.as_ref().is_none_or(|table| table == *loose);
    if let Some(loose) = scope.loose.iter().find(is_meant) {
        return Err(
            format!("the columns of {loose} are not known: name those that you want").into(),
        );
    }
    let is_meant = |(_, column): &(usize, &ScopeColumn)| match &table {
        Some(table) => column.table == *table,
        None => !column.is_hidden,
    };
    let meant: Vec<_> = scope.columns.iter().enumerate().filter(is_meant).collect();
    meant
        .iter()
        .for_each(|(_, column)| column.is_used.set(true));
    Ok(meant)
}

/// The table whose columns a star stands for: as it is written, or else as PostgreSQL folds it.
fn qualifier(name: &ObjectName, scope: &Scope<'_>) -> Done<String> {
    let folded = parts(name)?.pop().unwrap_or_default();
    let written = name.0.last().and_then(|part| part.as_ident());
    let written = written.map(|name| name.value.clone());
    let is_there = |table: &String| {
        scope.loose.contains(table) || scope.columns.iter().any(|column| column.table == *table)
    };
    if let Some(found) = written.into_iter().chain([folded.clone()]).find(is_there) {
        return Ok(found);
    }
    let message = format!("missing FROM-clause entry for table \"{folded}\"");
    Err(Failure::new(state::NO_SUCH_TABLE, message))
}

fn renamed(columns: &mut [(String, Type)], alias: &TableAlias) {
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        column.0 = folded(&name.name);
    }
}

/// Which column of the result a number or a name means.
fn output(expr: &Expr, columns: &[(String, Type)]) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Value::Number(number, _),
            ..
        }) => {
            let at = number.parse::<usize>().ok()?.checked_sub(1)?;
            (at < columns.len()).then_some(at)
        }
        Expr::Identifier(name) => {
            let name = folded(name);
            columns.iter().position(|(known, _)| *known == name)
        }
        _ => None,
    }
}

fn key(at: usize, by: &OrderByExpr) -> Done<SortKey> {
    let (is_descending, nulls_first) = direction(by)?;
    Ok(SortKey {
        at,
        is_descending,
        nulls_first,
    })
}

/// Keys that are columns of the result.
fn keys_of(order: &[OrderByExpr], columns: &[(String, Type)], refusal: &str) -> Done<Vec<SortKey>> {
    let key = |by: &OrderByExpr| key(output(&by.expr, columns).ok_or(Failure::from(refusal))?, by);
    order.iter().map(key).collect()
}
