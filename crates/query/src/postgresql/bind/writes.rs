//! Statements that change rows: questions for the rows, and what becomes of them.

use std::cell::Cell;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::{ColId, Reader};
use sqlparser::ast::*;

use super::super::column_type::Type;
use super::super::failure::{state, Done, Failure};
use super::super::plan::{
    self, Body, Bound, Change, Columns, Conflict, CorePlan, Overwrite, Plan, Source, Step,
    TableChange,
};
use super::super::session::Target;
use super::super::types::{name_of_oid, oid_of};
use super::super::value::Value as Known;
use super::draft::Draft;
use super::scope::{Scope, ScopeColumn};
use super::syntax::{apart, folded, parts, refuse_if, Part as _};
use super::Binder;

/// The name of a column that no text can name.
const UNNAMED: &str = "\0";

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &Insert) -> Done<(Plan, TableChange)> {
        apart!(insert, Insert { table table_alias columns source on returning into }
            without { optimizer_hints or ignore by_name overwrite assignments partitioned after_columns overriding has_table_keyword
                output replace_into priority insert_alias settings format_clause multi_table_insert_type multi_table_into_clauses
                multi_table_when_clauses multi_table_else_clause }
            passing { insert_token }, "a clause of INSERT");
        refuse_if(!into, "INSERT without INTO")?;
        let TableObject::TableName(name) = table else {
            return Err("INSERT into anything but a table".into());
        };
        let target = self.target(name)?;
        let alias = table_alias.as_ref().map(|of| folded(&of.alias));
        let alias = alias.unwrap_or_else(|| target.schema.name.clone());
        let listed = listed(&target.schema, columns)?;
        let (plan, values) = self.inserted(&target, &listed, !columns.is_empty(), source)?;
        let conflict = match on {
            None => None,
            Some(OnInsert::OnConflict(on)) => Some(self.conflict(&target, &alias, on)?),
            Some(_) => return Err("ON DUPLICATE KEY".into()),
        };
        let mut scope = Scope::new(None);
        add_columns(&target.schema, &alias, None, &mut scope);
        let change = Change::Insert { values, conflict };
        Ok((plan, self.change(target, change, returning, &scope)?))
    }

    /// The question for new rows, and the value of each column of the table for one of them.
    fn inserted(
        &mut self,
        target: &Target,
        listed: &[usize],
        is_listed: bool,
        source: &Option<Box<Query>>,
    ) -> Done<(Plan, Vec<Bound>)> {
        let count = target.schema.columns.len();
        let mut values: Vec<Option<Bound>> = (0..count).map(|_| None).collect();
        let plan = match source {
            None => Plan::new(Columns::new(), Body::Values(vec![Vec::new()])),
            Some(source) => {
                let (plan, width) = match plain_values(source)? {
                    Some(rows) => self.value_rows(target, listed, rows)?,
                    None => {
                        let plan = self.query(source, None)?;
                        let width = plan.columns.len();
                        (plan, width)
                    }
                };
                check_width(width, listed.len(), is_listed)?;
                let is_bound = plain_values(source)?.is_some();
                for (at, column) in listed.iter().take(width).enumerate() {
                    let bound = Bound::Column { up: 0, at };
                    values[*column] = Some(match is_bound {
                        true => bound,
                        false => {
                            let ty = plan.columns[at].1.operand();
                            self.fitted(bound, ty, &target.schema, *column)?
                        }
                    });
                }
                plan
            }
        };
        let values = values.into_iter().enumerate();
        let values = values.map(|(at, value)| match value {
            Some(value) => Ok(value),
            None => default(target, at),
        });
        Ok((plan, values.collect::<Done<_>>()?))
    }

    /// Rows that are written out. Each value meets its column, as a parameter or text among them has the type of that.
    fn value_rows(
        &mut self,
        target: &Target,
        listed: &[usize],
        rows: &[Parens<Vec<Expr>>],
    ) -> Done<(Plan, usize)> {
        let width = rows.first().map_or(0, |row| row.content.len());
        let scope = Scope::new(None);
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(Failure::new(state::SYNTAX_ERROR, message));
            }
            let values = row.content.iter().zip(listed);
            let values = values.map(|(expr, column)| self.assigned(expr, target, *column, &scope));
            bound.push(values.collect::<Done<Vec<_>>>()?);
        }
        let columns = (0..width).map(|_| (String::new(), Type::TEXT));
        Ok((Plan::new(columns.collect(), Body::Values(bound)), width))
    }

    fn conflict(&mut self, target: &Target, alias: &str, on: &OnConflict) -> Done<Conflict> {
        let OnConflict {
            conflict_target,
            action,
        } = on;
        let schema = &target.schema;
        let unique = |columns: Option<&[ColId]>| {
            let indexes = schema.indexes.iter().enumerate();
            let is_meant =
                |of: &[ColId]| columns.is_none_or(|columns| sorted(of) == sorted(columns));
            let found = indexes.filter(|(_, of)| of.unique && is_meant(of.algorithm.columns()));
            found.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        let indexes = match conflict_target {
            None => unique(None),
            Some(ConflictTarget::Columns { columns, predicate }) => {
                refuse_if(
                    predicate.is_some(),
                    "WHERE behind the columns of ON CONFLICT",
                )?;
                let mut ids = Vec::new();
                for name in columns {
                    ids.push(ColId(column_of(schema, name)? as u16));
                }
                unique(Some(&ids))
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = parts(name)?.pop().unwrap_or_default();
                let mut constraints = schema.constraints.iter();
                let found = constraints.find(|of| of.name == name).ok_or_else(|| {
                    let message = format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        schema.name
                    );
                    Failure::new(state::NO_SUCH_OBJECT, message)
                })?;
                unique(Some(&found.columns))
            }
        };
        if conflict_target.is_some() && indexes.is_empty() {
            let message =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(Failure::new(state::NO_SUCH_CONSTRAINT, message));
        }
        let update = match action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(DoUpdate {
                assignments,
                selection,
            }) => {
                if conflict_target.is_none() {
                    let message =
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return Err(Failure::new(state::SYNTAX_ERROR, message));
                }
                let mut scope = Scope::new(None);
                add_columns(schema, alias, None, &mut scope);
                add_columns(schema, "excluded", None, &mut scope);
                // What has no table before it is of the row that is there.
                for column in &mut scope.columns[schema.columns.len()..] {
                    column.is_hidden = true;
                }
                let filter = match selection {
                    Some(filter) => Some(self.expr(filter, &scope)?.0),
                    None => None,
                };
                let values = self.assignments(assignments, target, &scope)?;
                Some(Overwrite { values, filter })
            }
        };
        Ok(Conflict { indexes, update })
    }

    pub(super) fn update(&mut self, update: &Update) -> Done<(Plan, TableChange)> {
        apart!(update, Update { table assignments from selection returning }
            without { optimizer_hints on_cluster output or order_by limit settings }
            passing { update_token }, "a clause of UPDATE");
        let from = match from {
            None => &[][..],
            Some(UpdateTableFromKind::AfterSet(from)) => from,
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err("FROM before SET".into()),
        };
        let (target, mut plan, scope) = self.found_rows(table, from, selection.as_ref())?;
        let values = self.assignments(assignments, &target, &scope)?;
        let first = plan.items.len();
        let (columns, values): (Vec<usize>, Vec<Bound>) = values.into_iter().unzip();
        plan.items.extend(values);
        let change = Change::Update { columns, first };
        let change = self.change(target, change, returning, &scope)?;
        self.note_used(&scope);
        Ok((whole(plan), change))
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Done<(Plan, TableChange)> {
        apart!(delete, Delete { from using selection returning }
            without { optimizer_hints tables on_cluster output order_by limit settings }
            passing { delete_token }, "a clause of DELETE");
        let FromTable::WithFromKeyword(from) = from else {
            return Err("DELETE without FROM".into());
        };
        let [table] = &from[..] else {
            return Err("DELETE from several tables".into());
        };
        let using = using.as_deref().unwrap_or_default();
        let (target, plan, scope) = self.found_rows(table, using, selection.as_ref())?;
        let change = self.change(target, Change::Delete, returning, &scope)?;
        self.note_used(&scope);
        Ok((whole(plan), change))
    }

    /// The question for rows of a table that are changed: all that it reads comes out, the number of the row behind its columns.
    fn found_rows(
        &mut self,
        table: &TableWithJoins,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
    ) -> Done<(Target, CorePlan, Scope<'static>)> {
        let TableWithJoins { relation, joins } = table;
        refuse_if(!joins.is_empty(), "a join in place of the table")?;
        let TableFactor::Table { .. } = relation else {
            return Err("anything but a table is changed".into());
        };
        apart!(relation, TableFactor::Table { name alias }
            without { args with_ordinality with_hints version partitions json_path sample index_directives }
            passing { inheritance }, "a clause of the table");
        let target = self.target(name)?;
        let name = match alias {
            Some(alias) => {
                refuse_if(!alias.columns.is_empty(), "an alias with columns")?;
                folded(&alias.name)
            }
            None => target.schema.name.clone(),
        };
        let number = self.drafts.len();
        let columns = target.schema.columns.iter();
        let columns = columns.map(|of| (of.name.clone(), Arc::new(of.ty.clone())));
        self.drafts.push(Draft {
            is_target: true,
            ..Draft::new(number, &target.schema.name, columns.collect())
        });
        let mut scope = Scope::new(None);
        add_columns(&target.schema, &name, Some(number), &mut scope);
        scope.columns.push(ScopeColumn {
            table: UNNAMED.to_owned(),
            name: UNNAMED.to_owned(),
            ty: Type::INT8,
            is_hidden: true,
            of: None,
            is_used: Cell::new(true),
        });
        let mut steps = vec![Step {
            source: Source::Stored(number),
            keeps_left: false,
            keeps_right: false,
            start: 0,
            width: scope.columns.len(),
            on: Vec::new(),
        }];
        steps.extend(self.from(from, &mut scope)?);
        let mut plan = self.filtered(steps, selection, &mut scope)?;
        let places = 0..scope.columns.len();
        plan.items = places.map(|at| Bound::Column { up: 0, at }).collect();
        Ok((target, plan, scope))
    }

    fn target(&mut self, name: &ObjectName) -> Done<Target> {
        let session = self.session;
        Ok(self.found(name, |name| session.target(name))?.1)
    }

    fn change(
        &mut self,
        target: Target,
        change: Change,
        returning: &Option<Vec<SelectItem>>,
        scope: &Scope<'_>,
    ) -> Done<TableChange> {
        let returning = match returning {
            Some(items) => Some(self.items(items, scope)?),
            None => None,
        };
        let columns = target.schema.columns.iter();
        Ok(TableChange {
            types: columns.map(|of| Arc::new(of.ty.clone())).collect(),
            table: target.schema,
            change,
            returning,
        })
    }

    /// Columns and the values that they get, each once.
    fn assignments(
        &mut self,
        list: &[Assignment],
        target: &Target,
        scope: &Scope<'_>,
    ) -> Done<Vec<(usize, Bound)>> {
        let mut assigned: Vec<(usize, Bound)> = Vec::new();
        for Assignment {
            target: names,
            value,
        } in list
        {
            let pairs = match (names, value) {
                (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
                (AssignmentTarget::Tuple(names), Expr::Tuple(values))
                    if names.len() == values.len() =>
                {
                    names.iter().zip(values).collect()
                }
                (AssignmentTarget::Tuple(_), _) => {
                    return Err(
                        "columns in parentheses that get anything but as many values".into(),
                    )
                }
            };
            for (name, value) in pairs {
                let column = single(name)?;
                let at = column_of(&target.schema, column)?;
                if assigned.iter().any(|(known, _)| *known == at) {
                    let message =
                        format!("multiple assignments to same column \"{}\"", column.value);
                    return Err(Failure::new(state::SYNTAX_ERROR, message));
                }
                let value = self.assigned(value, target, at, scope)?;
                assigned.push((at, value));
            }
        }
        Ok(assigned)
    }

    /// A value as one of a column.
    fn assigned(
        &mut self,
        expr: &Expr,
        target: &Target,
        at: usize,
        scope: &Scope<'_>,
    ) -> Done<Bound> {
        let is_default = matches!(expr, Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
        if is_default {
            return default(target, at);
        }
        let ty = Type::Of(target.schema.columns[at].ty.clone()).operand();
        // A number that is written out may have more digits than others here.
        if let (Type::Of(of), Some(number)) = (&ty, number_of(expr)) {
            if of.is_integer() && number.parse::<i64>().is_err() {
                if let Some(value) = Known::typed(&number, &Arc::new(of.clone())) {
                    return Ok(Bound::Constant(value));
                }
            }
        }
        let (bound, from) = self.expr(expr, scope)?;
        self.fitted(bound, from, &target.schema, at)
    }

    /// A value of a type as one of a column, as PostgreSQL assigns it.
    fn fitted(&mut self, bound: Bound, from: Type, schema: &TableSchema, at: usize) -> Done<Bound> {
        let column = &schema.columns[at];
        let to = Type::Of(column.ty.clone()).operand();
        let is_constant = matches!(bound, Bound::Constant(_));
        let cast = |to: Type, bound| Bound::call(plan::Call::Cast(from.clone(), to), [bound]);
        let is_whole = matches!(&to, Type::Of(of) if of.is_integer());
        Ok(match (&from, &to) {
            (Type::Parameter(_), _) => self.compared(bound, &from, &to),
            _ if bound == Bound::Constant(Known::Null) => bound,
            (from, to) if from == to || *to == Type::TEXT => bound,
            // It is rounded as its type has it.
            (&(Type::Decimal | Type::FLOAT | Type::FLOAT4), _) if is_whole => {
                cast(Type::INT8, bound)
            }
            (from, to) if from.is_number() && to.is_number() => bound,
            (&Type::TEXT, to) if to.kept().is_some() || to.is_whole() && is_constant => {
                self.compared(bound, &from, to)
            }
            (&Type::TEXT, to) if is_constant || to.is_list() => match bound {
                Bound::Constant(value) => Bound::Constant(value.cast(&from, to, self.session)?),
                bound => cast(to.clone(), bound),
            },
            (from, to) if from.is_list() && to.is_list() => cast(to.clone(), bound),
            (from, _) => {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    name_of_oid(oid_of(&column.ty)),
                    name_of_oid(oid_of(&from.algebraic()))
                );
                return Err(Failure::new(state::DATATYPE_MISMATCH, message));
            }
        })
    }
}

fn sorted(columns: &[ColId]) -> Vec<ColId> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// A plan whose rows come out with all of their items.
fn whole(plan: CorePlan) -> Plan {
    let columns = plan.items.iter().map(|_| (String::new(), Type::TEXT));
    Plan::new(columns.collect(), Body::Core(Box::new(plan)))
}

fn add_columns(schema: &TableSchema, table: &str, draft: Option<usize>, scope: &mut Scope<'_>) {
    let columns = schema.columns.iter().enumerate();
    scope
        .columns
        .extend(columns.map(|(at, column)| ScopeColumn {
            table: table.to_owned(),
            name: column.name.clone(),
            ty: Type::Of(column.ty.clone()),
            is_hidden: false,
            of: draft.map(|draft| (draft, at)),
            is_used: Cell::new(false),
        }));
}

/// The rows of a source that only lists them.
fn plain_values(source: &Query) -> Done<Option<&[Parens<Vec<Expr>>]>> {
    let SetExpr::Values(values) = &*source.body else {
        return Ok(None);
    };
    apart!(source, Query { with order_by limit_clause fetch }
        without { locks for_clause settings format_clause pipe_operators } passing { body }, "what stands behind VALUES");
    let is_plain = with.is_none() && order_by.is_none() && limit_clause.is_none();
    Ok((is_plain && fetch.is_none()).then_some(&values.rows))
}

/// The columns that a list names, or all.
fn listed(schema: &TableSchema, names: &[ObjectName]) -> Done<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.columns.len()).collect());
    }
    let mut listed = Vec::with_capacity(names.len());
    for name in names {
        let name = single(name)?;
        let at = column_of(schema, name)?;
        if listed.contains(&at) {
            let message = format!("column \"{}\" specified more than once", name.value);
            return Err(Failure::new(state::DUPLICATE_COLUMN, message));
        }
        listed.push(at);
    }
    Ok(listed)
}

fn check_width(width: usize, listed: usize, is_listed: bool) -> Done<()> {
    let message = if width > listed {
        "INSERT has more expressions than target columns"
    } else if width < listed && is_listed {
        "INSERT has more target columns than expressions"
    } else {
        return Ok(());
    };
    Err(Failure::new(state::SYNTAX_ERROR, message))
}

fn single(name: &ObjectName) -> Done<&Ident> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(name)] => Ok(name),
        _ => Err("a column with more than its name".into()),
    }
}

/// The place of a column: as it is written, or else as PostgreSQL folds it.
fn column_of(schema: &TableSchema, name: &Ident) -> Done<usize> {
    let find = |name: &str| schema.column_by_accessor_or_name(name);
    let found = find(&name.value).or_else(|| find(&folded(name)));
    let found = found.map(|id| usize::from(id.0));
    found.ok_or_else(|| {
        let message = format!(
            "column \"{}\" of relation \"{}\" does not exist",
            name.value, schema.name
        );
        Failure::new(state::NO_SUCH_COLUMN, message)
    })
}

/// What a column has that gets no value. Of a sequence it is zero, for which the next number is put.
fn default(target: &Target, at: usize) -> Done<Bound> {
    let schema = &target.schema;
    let column = &schema.columns[at];
    let mut sequences = schema.sequences.iter();
    if sequences.any(|sequence| usize::from(sequence.column.0) == at) {
        return Ok(Bound::Constant(Known::Int(0)));
    }
    if let Some(Some(value)) = target.defaults.get(at) {
        let ty = Arc::new(column.ty.clone());
        let value = Known::of_stored(&ty, &mut Reader::new(value));
        return Ok(Bound::Constant(value));
    }
    // Where that is no value of the column, it is refused for each row.
    Ok(Bound::Constant(Known::Null))
}

/// A number that is written out, with its sign.
fn number_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Value::Number(number, false),
            ..
        }) => Some(number.clone()),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => number_of(expr).map(|number| format!("-{number}")),
        _ => None,
    }
}
