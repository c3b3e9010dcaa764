//! From a question to a plan: names become places, and every column of the answer gets its type.

mod expressions;
mod from;
mod grouping;
mod scope;
mod unbound;

use std::rc::Rc;

use self::scope::{Scope, ScopeColumn};
use self::unbound::Done;
pub(super) use self::unbound::Unbound;
use super::super::table::COLUMNS_MAX;
use super::functions::common;
use super::plan::*;
use super::seen::Seen;
use super::syntax::*;
use super::values::Type;

/// Questions inside of questions, together: each is bound once for every place where it stands.
const PLANS_MAX: usize = 256;
/// Columns of one question, with those of all that it reads.
const WIDTH_MAX: usize = 4_096;

/// Bytes of the names of one question's columns.
const NAMES_BYTES_MAX: usize = 64 << 10;
/// Values that the tables of the catalogue have which a question reads, each counted where it stands.
const READ_VALUES_MAX: usize = 4_000_000;

/// Columns of a question without its order, what they are made of, and what it is ordered by.
type BoundCore = (Vec<(String, Type)>, Body, Vec<SortKey>);

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

pub(super) fn bind(select: &Select, seen: &Seen<'_>, is_described: bool) -> Done<Plan> {
    let mut binder = Binder {
        seen,
        is_described,
        plans: 0,
        read_values: 0,
        with: Vec::new(),
    };
    binder.select(select, None)
}

struct Binder<'b> {
    seen: &'b Seen<'b>,
    is_described: bool,
    plans: usize,
    read_values: usize,
    /// Named questions, the innermost last.
    with: Vec<(String, Rc<Plan>)>,
}

/// What is gathered while the items of a question are bound. None: there can be none here.
type Extras<'e> = Option<&'e mut Vec<Extra>>;

impl Binder<'_> {
    fn select(&mut self, select: &Select, outer: Option<&Scope<'_>>) -> Done<Plan> {
        self.plans += 1;
        if self.plans > PLANS_MAX {
            return Err(format!("it consists of more than {PLANS_MAX} questions").into());
        }
        let known = self.with.len();
        for (name, columns, inner) in &select.with {
            let mut plan = self.select(inner, None)?;
            renamed(&mut plan.columns, columns);
            self.with.push((name.clone(), Rc::new(plan)));
        }
        let plan = self.select_with(select, outer);
        self.with.truncate(known);
        plan
    }

    fn select_with(&mut self, select: &Select, outer: Option<&Scope<'_>>) -> Done<Plan> {
        // Of one question, rows are ordered by whatever it reads; of several, by what comes out.
        let order = if select.others.is_empty() {
            &select.order[..]
        } else {
            &[]
        };
        let (columns, body, mut keys) = self.core(&select.first, order, outer)?;
        let mut others = Vec::new();
        for (operation, core) in &select.others {
            let (of, body, _) = self.core(core, &[], outer)?;
            if of.len() != columns.len() {
                return Err("each UNION query must have the same number of columns".into());
            }
            let plan = Plan {
                columns: of,
                body,
                is_closed: outer.is_none(),
                others: Vec::new(),
                order: Vec::new(),
                limit: None,
                offset: None,
            };
            others.push((*operation, plan));
        }
        let mut columns = columns;
        for (_, plan) in &others {
            for (column, (_, other)) in columns.iter_mut().zip(&plan.columns) {
                column.1 = common(&[column.1, *other]);
            }
        }
        if !select.others.is_empty() {
            for by in &select.order {
                let at = output(&by.expr, &columns);
                let at = at.ok_or(Unbound::from(
                    "ORDER BY of a UNION takes columns of the result",
                ))?;
                keys.push(key(at, by));
            }
        }
        let empty = Scope {
            columns: Vec::new(),
            loose: Vec::new(),
            keys: Vec::new(),
            outer: None,
        };
        let mut number = |expr: &Option<Expr>| match expr {
            Some(expr) => self
                .expr(expr, &empty, &mut None)
                .map(|(bound, _)| Some(bound)),
            None => Ok(None),
        };
        Ok(Plan {
            limit: number(&select.limit)?,
            offset: number(&select.offset)?,
            columns,
            body,
            is_closed: outer.is_none(),
            others,
            order: keys,
        })
    }

    fn core(&mut self, core: &Core, order: &[Order], outer: Option<&Scope<'_>>) -> Done<BoundCore> {
        let by_output = |columns: &[(String, Type)]| {
            let key_of = |by: &Order| {
                let at = output(&by.expr, columns);
                at.map(|at| key(at, by))
                    .ok_or(Unbound::from("ORDER BY takes columns here"))
            };
            order.iter().map(key_of).collect::<Done<Vec<_>>>()
        };
        match core {
            Core::Nested(select) => {
                let plan = self.select(select, outer)?;
                let columns = plan.columns.clone();
                let keys = by_output(&columns)?;
                Ok((columns, Body::Nested(Box::new(plan)), keys))
            }
            Core::Values(rows) => {
                let scope = Scope {
                    columns: Vec::new(),
                    loose: Vec::new(),
                    keys: Vec::new(),
                    outer,
                };
                let mut columns: Vec<(String, Type)> = Vec::new();
                let mut bound = Vec::new();
                for row in rows {
                    let mut values = Vec::new();
                    for (nth, expr) in row.iter().enumerate() {
                        let (value, ty) = self.expr(expr, &scope, &mut None)?;
                        values.push(value);
                        match columns.get_mut(nth) {
                            Some(column) => column.1 = common(&[column.1, ty]),
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
            Core::Select(core) => self.select_core(core, order, outer),
        }
    }

    fn select_core(
        &mut self,
        core: &SelectCore,
        order: &[Order],
        outer: Option<&Scope<'_>>,
    ) -> Done<BoundCore> {
        let mut scope = Scope {
            columns: Vec::new(),
            loose: Vec::new(),
            keys: Vec::new(),
            outer,
        };
        let steps = self.from(&core.from, &mut scope)?;
        let mut plan = CorePlan {
            steps,
            width: scope.columns.len(),
            ..CorePlan::default()
        };
        if let Some(filter) = &core.filter {
            plan.filter = self.conditions(filter, &scope)?;
        }
        let mut extras = Vec::new();
        let mut columns: Vec<(String, Type)> = Vec::new();
        for item in &core.items {
            check_names(&columns)?;
            match item {
                Item::All(table) => {
                    let is_meant =
                        |loose: &String| table.as_ref().is_none_or(|table| table == loose);
                    if let Some(loose) = scope.loose.iter().find(|loose| is_meant(loose)) {
                        return Err(format!(
                            "the columns of {loose} are not known: name those that you want"
                        )
                        .into());
                    }
                    let is_meant = |column: &ScopeColumn| match table {
                        Some(table) => column.table == *table,
                        None => !column.is_hidden,
                    };
                    for (at, column) in scope
                        .columns
                        .iter()
                        .enumerate()
                        .filter(|(_, c)| is_meant(c))
                    {
                        columns.push((column.name.clone(), column.ty));
                        plan.items.push(Bound::Column { up: 0, at });
                    }
                }
                Item::Expr(expr, alias) => {
                    let (bound, ty) = self.expr(expr, &scope, &mut Some(&mut extras))?;
                    let name = alias.clone().unwrap_or_else(|| name_of(expr));
                    columns.push((name, ty));
                    plan.items.push(bound);
                }
            }
        }
        for expr in &core.group {
            // A place, or the name of an item.
            let item = output(expr, &columns).and_then(|at| core.items.get(at));
            let is_column = matches!(expr, Expr::Column(parts) if scope.column(parts).is_ok());
            let (bound, _) = match item {
                Some(Item::Expr(item, _)) if !is_column => self.expr(item, &scope, &mut None)?,
                _ => self.expr(expr, &scope, &mut None)?,
            };
            plan.group.push(bound);
        }
        if let Some(having) = &core.having {
            let (bound, _) = self.expr(having, &scope, &mut Some(&mut extras))?;
            plan.having = Some(bound);
        }
        check_names(&columns)?;
        let mut keys = Vec::new();
        for by in order {
            let at = match output(&by.expr, &columns) {
                Some(at) => at,
                None => {
                    let (bound, _) = self.expr(&by.expr, &scope, &mut Some(&mut extras))?;
                    plan.items.push(bound);
                    plan.items.len() - 1
                }
            };
            keys.push(key(at, by));
        }
        plan.distinct = match &core.distinct {
            Distinct::No => None,
            Distinct::Rows => Some((0..columns.len()).collect()),
            Distinct::On(list) => {
                let mut places = Vec::new();
                for expr in list {
                    let (bound, _) = self.expr(expr, &scope, &mut Some(&mut extras))?;
                    plan.items.push(bound);
                    places.push(plan.items.len() - 1);
                }
                Some(places)
            }
        };
        let aggregates = extras
            .iter()
            .any(|extra| matches!(extra, Extra::Aggregate { .. }));
        plan.is_grouped = aggregates || !plan.group.is_empty() || plan.having.is_some();
        plan.extras = extras;
        if plan.is_grouped {
            grouping::check(&plan, &scope)?;
        }
        Ok((columns, Body::Core(Box::new(plan)), keys))
    }
}

fn renamed(columns: &mut [(String, Type)], names: &[String]) {
    for (column, name) in columns.iter_mut().zip(names) {
        column.0.clone_from(name);
    }
}

/// Which column of the result a number or a name means.
fn output(expr: &Expr, columns: &[(String, Type)]) -> Option<usize> {
    match expr {
        Expr::Int(number) => {
            let at = usize::try_from(*number).ok()?.checked_sub(1)?;
            (at < columns.len()).then_some(at)
        }
        Expr::Column(parts) => match &parts[..] {
            [name] => columns.iter().position(|(known, _)| known == name),
            _ => None,
        },
        _ => None,
    }
}

fn key(at: usize, by: &Order) -> SortKey {
    SortKey {
        at,
        is_descending: by.is_descending,
        nulls_first: by.nulls_first.unwrap_or(by.is_descending),
    }
}

/// The name of a column that has no other.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Column(parts) => parts.last().cloned().unwrap_or_default(),
        Expr::Call(call) => call.name.clone(),
        Expr::Field(_, name) => name.clone(),
        Expr::Cast(inner, ty) => match name_of(inner) {
            unnamed if unnamed == "?column?" => ty.trim_end_matches("[]").to_owned(),
            name => name,
        },
        Expr::Case { otherwise, .. } => match otherwise.as_deref().map(name_of) {
            Some(name) if name != "?column?" => name,
            _ => "case".to_owned(),
        },
        Expr::Exists(_) => "exists".to_owned(),
        Expr::Array(_) | Expr::ArrayOfSelect(_) => "array".to_owned(),
        Expr::Element(two) => name_of(&two.0),
        Expr::Bool(_) => "bool".to_owned(),
        _ => "?column?".to_owned(),
    }
}
