//! From a question to a plan: names become places, and every column of the answer gets its type.

use std::rc::Rc;

use super::functions::{aggregate, common, function, series};
use super::parser::Refusal;
use super::patterns::Pattern;
use super::plan::*;
use super::relations::relation;
use super::seen::Seen;
use super::syntax::*;
use super::values::{Type, Value};

/// Questions inside of questions, together: each is bound once for every place where it stands.
const PLANS_MAX: usize = 256;
/// Columns of one question, with those of all that it reads.
const WIDTH_MAX: usize = 4_096;

type Done<T> = Result<T, Refusal>;

pub(super) fn bind(select: &Select, seen: &Seen<'_>, is_described: bool) -> Done<Plan> {
    let mut binder = Binder {
        seen,
        is_described,
        plans: 0,
        with: Vec::new(),
    };
    binder.select(select, None)
}

struct Binder<'b> {
    seen: &'b Seen<'b>,
    is_described: bool,
    plans: usize,
    /// Named questions, the innermost last.
    with: Vec<(String, Rc<Plan>)>,
}

/// What names mean at a place.
struct Scope<'s> {
    columns: Vec<ScopeColumn>,
    /// Tables that have any column, and no rows.
    loose: Vec<String>,
    outer: Option<&'s Scope<'s>>,
}

struct ScopeColumn {
    table: String,
    name: String,
    ty: Type,
    /// It is the same as another one (`USING`).
    is_hidden: bool,
}

/// What is gathered while the items of a question are bound. None: there can be none here.
type Extras<'e> = Option<&'e mut Vec<Extra>>;

impl Scope<'_> {
    fn column(&self, parts: &[String]) -> Done<(Bound, Type)> {
        let name = parts.last().map_or("", String::as_str);
        let table = parts.len().checked_sub(2).map(|at| parts[at].as_str());
        let mut scope = Some(self);
        let mut up = 0;
        while let Some(here) = scope {
            let is_meant = |column: &ScopeColumn| match table {
                Some(table) => column.table == table && column.name == name,
                None => !column.is_hidden && column.name == name,
            };
            let mut found = here
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| is_meant(column));
            if let Some((at, column)) = found.next() {
                if table.is_none() && found.next().is_some() {
                    return Err(format!("column reference \"{name}\" is ambiguous"));
                }
                return Ok((Bound::Column { up, at }, column.ty));
            }
            if table.is_some_and(|table| here.loose.iter().any(|loose| loose == table)) {
                return Ok((Bound::Constant(Value::Null), Type::Text));
            }
            up += 1;
            scope = here.outer;
        }
        let mut scope = Some(self);
        while let Some(here) = scope.filter(|_| table.is_none()) {
            if !here.loose.is_empty() {
                return Ok((Bound::Constant(Value::Null), Type::Text));
            }
            scope = here.outer;
        }
        Err(format!("column \"{}\" does not exist", parts.join(".")))
    }
}

impl Binder<'_> {
    fn select(&mut self, select: &Select, outer: Option<&Scope<'_>>) -> Done<Plan> {
        self.plans += 1;
        if self.plans > PLANS_MAX {
            return Err(format!("it consists of more than {PLANS_MAX} questions"));
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
                return Err("each UNION query must have the same number of columns".to_owned());
            }
            let plan = Plan {
                columns: of,
                body,
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
                let at =
                    at.ok_or_else(|| "ORDER BY of a UNION takes columns of the result".to_owned())?;
                keys.push(key(at, by));
            }
        }
        let empty = Scope {
            columns: Vec::new(),
            loose: Vec::new(),
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
            others,
            order: keys,
        })
    }

    #[allow(clippy::type_complexity)]
    fn core(
        &mut self,
        core: &Core,
        order: &[Order],
        outer: Option<&Scope<'_>>,
    ) -> Done<(Vec<(String, Type)>, Body, Vec<SortKey>)> {
        let by_output = |columns: &[(String, Type)]| {
            let key_of = |by: &Order| {
                let at = output(&by.expr, columns);
                at.map(|at| key(at, by))
                    .ok_or_else(|| "ORDER BY takes columns here".to_owned())
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
                    return Err("VALUES lists must all be the same length".to_owned());
                }
                let keys = by_output(&columns)?;
                Ok((columns, Body::Values(bound), keys))
            }
            Core::Select(core) => self.select_core(core, order, outer),
        }
    }

    #[allow(clippy::type_complexity)]
    fn select_core(
        &mut self,
        core: &SelectCore,
        order: &[Order],
        outer: Option<&Scope<'_>>,
    ) -> Done<(Vec<(String, Type)>, Body, Vec<SortKey>)> {
        let mut scope = Scope {
            columns: Vec::new(),
            loose: Vec::new(),
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
            match item {
                Item::All(table) => {
                    let is_meant =
                        |loose: &String| table.as_ref().is_none_or(|table| table == loose);
                    if let Some(loose) = scope.loose.iter().find(|loose| is_meant(loose)) {
                        return Err(format!(
                            "the columns of {loose} are not known: name those that you want"
                        ));
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
        Ok((columns, Body::Core(Box::new(plan)), keys))
    }

    fn from(&mut self, list: &[From], scope: &mut Scope<'_>) -> Done<Vec<Step>> {
        let mut steps = Vec::new();
        for from in list {
            let start = scope.columns.len();
            let source = self.source(from, scope)?;
            if scope.columns.len() > WIDTH_MAX {
                return Err(format!("it reads more than {WIDTH_MAX} columns"));
            }
            let on = match &from.on {
                On::Nothing => Vec::new(),
                On::Expr(expr) => self.conditions(expr, scope)?,
                On::Using(names) => {
                    let mut on = Vec::new();
                    for name in names {
                        on.push(using(name, start, scope)?);
                    }
                    on
                }
            };
            steps.push(Step {
                source,
                keeps_left: matches!(from.join, Join::Left | Join::Full),
                keeps_right: matches!(from.join, Join::Right | Join::Full),
                start,
                width: scope.columns.len() - start,
                on,
            });
        }
        Ok(steps)
    }

    /// Binds what is read, and adds its columns.
    fn source(&mut self, from: &From, scope: &mut Scope<'_>) -> Done<PlanSource> {
        let (source, name, mut columns) = match &from.source {
            Source::Group(list) => {
                let steps = self.from(list, scope)?;
                return Ok(PlanSource::Group(steps));
            }
            Source::Relation(parts) => {
                let name = parts.last().cloned().unwrap_or_default();
                let of_with = self
                    .with
                    .iter()
                    .rev()
                    .find(|(known, _)| parts.len() == 1 && *known == name);
                if let Some((_, plan)) = of_with {
                    let source = PlanSource::Select {
                        plan: plan.clone(),
                        is_lateral: false,
                    };
                    (source, name, plan.columns.clone())
                } else {
                    let found = relation(self.seen, parts, self.is_described);
                    let found = found.ok_or_else(|| {
                        format!("relation \"{}\" is not supported", parts.join("."))
                    })?;
                    if found.is_loose {
                        scope
                            .loose
                            .push(from.alias.clone().unwrap_or_else(|| name.clone()));
                    }
                    let columns = found
                        .columns
                        .iter()
                        .map(|(name, ty)| ((*name).to_owned(), *ty));
                    (
                        PlanSource::Rows(Rc::new(found.rows)),
                        name,
                        columns.collect(),
                    )
                }
            }
            Source::Select { select, is_lateral } => {
                let plan = match is_lateral {
                    true => self.select(select, Some(scope))?,
                    false => self.select(select, scope.outer)?,
                };
                let columns = plan.columns.clone();
                let source = PlanSource::Select {
                    plan: Rc::new(plan),
                    is_lateral: *is_lateral,
                };
                (source, String::new(), columns)
            }
            Source::Function { call, is_numbered } => {
                let Expr::Call(call) = call else {
                    return Err("only functions give rows".to_owned());
                };
                let (arguments, types) = self.list(&call.arguments, scope, &mut None)?;
                let found = series(&call.name, types.first().copied());
                let (series, columns) =
                    found.ok_or_else(|| format!("{}() does not give rows", call.name))?;
                let mut columns: Vec<(String, Type)> = columns
                    .iter()
                    .map(|(name, ty)| ((*name).to_owned(), *ty))
                    .collect();
                if let ([column], Some(alias)) = (&mut columns[..], &from.alias) {
                    column.0.clone_from(alias);
                }
                if *is_numbered {
                    columns.push(("ordinality".to_owned(), Type::Int8));
                }
                let source = PlanSource::Function {
                    series,
                    arguments,
                    is_numbered: *is_numbered,
                };
                (source, call.name.clone(), columns)
            }
        };
        renamed(&mut columns, &from.columns);
        let table = from.alias.clone().unwrap_or(name);
        for (name, ty) in columns {
            scope.columns.push(ScopeColumn {
                table: table.clone(),
                name,
                ty,
                is_hidden: false,
            });
        }
        Ok(source)
    }

    /// The conditions that all have to hold.
    fn conditions(&mut self, expr: &Expr, scope: &Scope<'_>) -> Done<Vec<Condition>> {
        let list = match expr {
            Expr::And(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        let mut conditions = Vec::new();
        for expr in list {
            let (bound, _) = self.expr(expr, scope, &mut None)?;
            conditions.push(condition(bound));
        }
        Ok(conditions)
    }

    fn list(
        &mut self,
        list: &[Expr],
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Vec<Bound>, Vec<Type>)> {
        let mut bound = Vec::with_capacity(list.len());
        let mut types = Vec::with_capacity(list.len());
        for expr in list {
            let (one, ty) = self.expr(expr, scope, extras)?;
            bound.push(one);
            types.push(ty);
        }
        Ok((bound, types))
    }

    fn boxed(
        &mut self,
        expr: &Expr,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<Box<Bound>> {
        self.expr(expr, scope, extras)
            .map(|(bound, _)| Box::new(bound))
    }

    fn two(
        &mut self,
        two: &(Expr, Expr),
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Box<(Bound, Bound)>, Type, Type)> {
        let (left, left_type) = self.expr(&two.0, scope, extras)?;
        let (right, right_type) = self.expr(&two.1, scope, extras)?;
        // A name is compared with the number that it stands for.
        let named = |bound, ty, other| match (ty, other) {
            (Type::Text, Type::Relation | Type::TypeName) => {
                Bound::Cast(Box::new(bound), ty, other)
            }
            _ => bound,
        };
        let both = (
            named(left, left_type, right_type),
            named(right, right_type, left_type),
        );
        Ok((Box::new(both), left_type, right_type))
    }

    fn inner(&mut self, select: &Select, scope: &Scope<'_>) -> Done<Rc<Plan>> {
        self.select(select, Some(scope)).map(Rc::new)
    }

    fn expr(
        &mut self,
        expr: &Expr,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Bound, Type)> {
        Ok(match expr {
            Expr::Null => (Bound::Constant(Value::Null), Type::Text),
            Expr::Bool(is) => (Bound::Constant(Value::Bool(*is)), Type::Bool),
            Expr::Int(number) => {
                let ty = if i32::try_from(*number).is_ok() {
                    Type::Int4
                } else {
                    Type::Int8
                };
                (Bound::Constant(Value::Int(*number)), ty)
            }
            Expr::Float(number) => (Bound::Constant(Value::Float(*number)), Type::Float),
            Expr::Text(text) => (
                Bound::Constant(Value::Text(text.as_str().into())),
                Type::Text,
            ),
            Expr::Column(parts) => scope.column(parts)?,
            Expr::Call(call) => self.call(call, scope, extras)?,
            Expr::Not(one) => (Bound::Not(self.boxed(one, scope, extras)?), Type::Bool),
            Expr::Negative(one) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                (Bound::Negative(Box::new(bound)), ty)
            }
            Expr::And(list) => (Bound::And(self.list(list, scope, extras)?.0), Type::Bool),
            Expr::Or(list) => (Bound::Or(self.list(list, scope, extras)?.0), Type::Bool),
            Expr::Binary(Operator::Like(like), two) => {
                let (both, ..) = self.two(two, scope, extras)?;
                (matches(*both, *like)?, Type::Bool)
            }
            Expr::Binary(operator, two) => {
                let (both, left, right) = self.two(two, scope, extras)?;
                (
                    Bound::Binary(*operator, both),
                    result_of(*operator, left, right),
                )
            }
            Expr::IsNull(one) => (Bound::IsNull(self.boxed(one, scope, extras)?), Type::Bool),
            Expr::IsSame(two) => (Bound::IsSame(self.two(two, scope, extras)?.0), Type::Bool),
            Expr::InList(one, list) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                let (list, types) = self.list(list, scope, extras)?;
                let named = |(bound, of)| match (ty, of) {
                    (Type::Relation | Type::TypeName, Type::Text) => {
                        Bound::Cast(Box::new(bound), of, ty)
                    }
                    _ => bound,
                };
                let list = list.into_iter().zip(types).map(named);
                (Bound::InList(Box::new(bound), list.collect()), Type::Bool)
            }
            Expr::InSelect(one, select) => {
                let bound = self.boxed(one, scope, extras)?;
                (
                    Bound::InSelect(bound, self.inner(select, scope)?),
                    Type::Bool,
                )
            }
            Expr::Any(operator, two) => (
                Bound::Any(*operator, self.two(two, scope, extras)?.0),
                Type::Bool,
            ),
            Expr::All(operator, two) => (
                Bound::All(*operator, self.two(two, scope, extras)?.0),
                Type::Bool,
            ),
            Expr::Case {
                operand,
                branches,
                otherwise,
            } => {
                let operand = match operand {
                    Some(operand) => Some(self.boxed(operand, scope, extras)?),
                    None => None,
                };
                let (mut bound, mut types) = (Vec::new(), Vec::new());
                for (condition, value) in branches {
                    let (condition, _) = self.expr(condition, scope, extras)?;
                    let (made, ty) = self.expr(value, scope, extras)?;
                    bound.push((condition, made));
                    if !matches!(value, Expr::Null) {
                        types.push(ty);
                    }
                }
                let otherwise = match otherwise {
                    Some(value) => {
                        let (made, ty) = self.expr(value, scope, extras)?;
                        if !matches!(**value, Expr::Null) {
                            types.push(ty);
                        }
                        Some(Box::new(made))
                    }
                    None => None,
                };
                let case = Bound::Case {
                    operand,
                    branches: bound,
                    otherwise,
                };
                (case, common(&types))
            }
            Expr::Cast(one, name) => {
                let to =
                    Type::named(name).ok_or_else(|| format!("type \"{name}\" does not exist"))?;
                let (bound, from) = self.expr(one, scope, extras)?;
                (Bound::Cast(Box::new(bound), from, to), to)
            }
            Expr::Exists(select) => (Bound::Exists(self.inner(select, scope)?), Type::Bool),
            Expr::Scalar(select) => {
                let plan = self.inner(select, scope)?;
                let ty = one_column(&plan)?;
                (Bound::Scalar(plan), ty)
            }
            Expr::ArrayOfSelect(select) => {
                let plan = self.inner(select, scope)?;
                let ty = one_column(&plan)?;
                (Bound::ArrayOfSelect(plan), ty.list())
            }
            Expr::Array(list) => {
                let (list, types) = self.list(list, scope, extras)?;
                (Bound::Array(list), common(&types).list())
            }
            Expr::Element(two) => {
                let (mut both, of, _) = self.two(two, scope, extras)?;
                if of == Type::Vector {
                    // Those begin at 0.
                    let one = Bound::Constant(Value::Int(1));
                    both.1 = Bound::Binary(Operator::Add, Box::new((both.1, one)));
                }
                (Bound::Element(both), of.element())
            }
            Expr::Field(one, field) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                let nth = match (ty, field.as_str()) {
                    (Type::Pair, "x") => 1,
                    (Type::Pair, "n") => 2,
                    _ => return Err(format!("column \"{field}\" not found in data type")),
                };
                let place = Bound::Constant(Value::Int(nth));
                (Bound::Element(Box::new((bound, place))), Type::Int4)
            }
        })
    }

    fn call(
        &mut self,
        made: &Call,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Bound, Type)> {
        let name = made.name.as_str();
        if let Some(window) = &made.over {
            if name != "row_number" {
                return Err(format!("{name}() OVER is not supported"));
            }
            let (partition, _) = self.list(&window.partition, scope, &mut None)?;
            let order = self.sorted(&window.order, scope)?;
            return extra(extras, Extra::RowNumber { partition, order }, Type::Int8);
        }
        if let Some((series, columns)) = series(name, None) {
            let (arguments, types) = self.list(&made.arguments, scope, &mut None)?;
            let ty = match (&columns[..], types.first()) {
                ([_], Some(ty)) if name == "unnest" => ty.element(),
                ([(_, ty)], _) => *ty,
                _ => Type::Pair,
            };
            return extra(extras, Extra::Series { series, arguments }, ty);
        }
        if aggregate(name, None).is_some() {
            let (arguments, types) = self.list(&made.arguments, scope, &mut None)?;
            let (aggregate, ty) = aggregate(name, types.first().copied()).expect("it is one");
            let filter = match &made.filter {
                Some(filter) => Some(self.expr(filter, scope, &mut None)?.0),
                None => None,
            };
            let made = Extra::Aggregate {
                aggregate,
                arguments,
                is_distinct: made.is_distinct,
                order: self.sorted(&made.order, scope)?,
                filter,
            };
            return extra(extras, made, ty);
        }
        let (arguments, types) = self.list(&made.arguments, scope, extras)?;
        let found =
            function(name, &types).ok_or_else(|| format!("function {name}() is not supported"))?;
        Ok((Bound::Call(found.0, arguments), found.1))
    }

    fn sorted(&mut self, order: &[Order], scope: &Scope<'_>) -> Done<Vec<(Bound, bool)>> {
        let mut sorted = Vec::new();
        for by in order {
            let (bound, _) = self.expr(&by.expr, scope, &mut None)?;
            sorted.push((bound, by.is_descending));
        }
        Ok(sorted)
    }
}

fn extra(extras: &mut Extras<'_>, made: Extra, ty: Type) -> Done<(Bound, Type)> {
    let list = extras.as_deref_mut();
    let list =
        list.ok_or_else(|| "a function of several rows stands where there is one".to_owned())?;
    list.push(made);
    Ok((Bound::Extra(list.len() - 1), ty))
}

fn condition(bound: Bound) -> Condition {
    let needs = bound.needs().unwrap_or(usize::MAX);
    Condition { bound, needs }
}

/// `left.name = right.name`, of which one is seen.
fn using(name: &str, start: usize, scope: &mut Scope<'_>) -> Done<Condition> {
    let missing = || format!("column \"{name}\" specified in USING clause does not exist");
    let is_named = |column: &ScopeColumn| column.name == name && !column.is_hidden;
    let left = scope.columns[..start]
        .iter()
        .position(is_named)
        .ok_or_else(missing)?;
    let right = scope.columns[start..]
        .iter()
        .position(is_named)
        .ok_or_else(missing)?;
    let right = start + right;
    scope.columns[right].is_hidden = true;
    let column = |at| Bound::Column { up: 0, at };
    let both = Box::new((column(left), column(right)));
    Ok(condition(Bound::Binary(Operator::Equal, both)))
}

fn renamed(columns: &mut [(String, Type)], names: &[String]) {
    for (column, name) in columns.iter_mut().zip(names) {
        column.0.clone_from(name);
    }
}

fn one_column(plan: &Plan) -> Done<Type> {
    match &plan.columns[..] {
        [(_, ty)] => Ok(*ty),
        _ => Err("subquery must return only one column".to_owned()),
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

fn result_of(operator: Operator, left: Type, right: Type) -> Type {
    match operator {
        Operator::Concatenate if left.is_list() => left,
        Operator::Concatenate if right.is_list() => right,
        Operator::Concatenate => Type::Text,
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder
        | Operator::BitAnd => common(&[left, right]),
        _ => Type::Bool,
    }
}

fn matches(both: (Bound, Bound), like: Like) -> Done<Bound> {
    let (left, right) = both;
    let written = match right {
        Bound::Constant(Value::Text(written)) => written,
        right => return Ok(Bound::Binary(Operator::Like(like), Box::new((left, right)))),
    };
    let pattern = match like.is_regular {
        true => Pattern::regular(&written, like.ignores_case),
        false => Pattern::like(&written, like.ignores_case),
    };
    let pattern = pattern.ok_or_else(|| format!("the pattern {written:?} is not supported"))?;
    Ok(Bound::Matches(Box::new(left), like, pattern))
}
