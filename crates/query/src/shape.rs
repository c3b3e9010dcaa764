//! Groups, order and distinct rows: the clauses of the ad hoc language that the reference does not have, with names resolved.

use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableSchema};
use lightcone_types::{AlgebraicType as T, TableId};

use crate::ast::{AggregateName, Function, OrderItem, OrderTarget, SelectItem, Shape};
use crate::check::check_condition;
use crate::condition::ColumnAt;
use crate::error::{Result, SqlError};
use crate::grouping::{Aggregate, GroupItem, Grouping, Order, OrderKey};
use crate::query::Output;
use crate::scalar::Scalar;
use crate::scope::Scope;

/// The clauses behind a select list.
pub(crate) struct Checked {
    pub output: Output,
    pub order: Vec<Order>,
}

/// Checks groups and order. `plain` is the output of a query without groups; `items` are those of one with groups.
pub(crate) fn check_shape(
    shape: &Shape,
    plain: Option<Output>,
    items: &[SelectItem],
    scope: &Scope,
) -> Result<Checked> {
    let Some(plain) = plain else {
        return check_groups(shape, items, scope);
    };
    let order = shape
        .order_by
        .iter()
        .map(|item| order_of_rows(item, shape.distinct, &plain, scope))
        .collect::<Result<_, _>>()?;
    Ok(Checked {
        output: plain,
        order,
    })
}

/// `*`, `t.*` and `COUNT(*)` cannot be sorted by position.
fn order_of_rows(
    item: &OrderItem,
    distinct: bool,
    output: &Output,
    scope: &Scope,
) -> Result<Order> {
    let listed: &[(ColumnAt, String)] = match output {
        Output::Columns(listed) => listed,
        _ => &[],
    };
    let by = match &item.target {
        OrderTarget::Position(position) => {
            let place = position
                .checked_sub(1)
                .filter(|&place| place < listed.len());
            OrderKey::Result(place.ok_or_else(|| no_position(*position))?)
        }
        OrderTarget::Column(name) => {
            let is_alias = |(_, alias): &(ColumnAt, String)| *alias == name.name;
            match (&name.relation, listed.iter().position(is_alias)) {
                (None, Some(place)) => OrderKey::Result(place),
                _ => {
                    let at = scope.column(name)?.at;
                    match listed.iter().position(|(listed, _)| *listed == at) {
                        Some(place) => OrderKey::Result(place),
                        None => OrderKey::Column(at),
                    }
                }
            }
        }
        OrderTarget::Aggregate(aggregate) => {
            return Err(SqlError::UnsupportedExpression(aggregate.text()))
        }
    };
    match by {
        OrderKey::Column(_) if distinct && !matches!(output, Output::Row(_)) => {
            Err(SqlError::Inconsistent(
                "rows of SELECT DISTINCT are sorted by columns of the select list",
            ))
        }
        by => Ok(Order {
            by,
            descending: item.descending,
        }),
    }
}

fn no_position(position: usize) -> SqlError {
    SqlError::NotInScope(position.to_string())
}

/// The table of groups under construction.
struct Groups<'s> {
    scope: &'s Scope,
    keys: Vec<ColumnAt>,
    items: Vec<GroupItem>,
    columns: Vec<ColumnSchema>,
}

fn check_groups(shape: &Shape, items: &[SelectItem], scope: &Scope) -> Result<Checked> {
    let keys = shape.group_by.iter().map(|name| Ok(scope.column(name)?.at));
    let mut groups = Groups {
        scope,
        keys: keys.collect::<Result<_>>()?,
        items: Vec::new(),
        columns: Vec::new(),
    };
    for item in items {
        match item {
            SelectItem::Column(item) => {
                let column = scope.column(&item.column)?;
                let name = item.alias.as_ref().unwrap_or(&item.column.name);
                groups.add_key(column.at, name)?;
            }
            SelectItem::Aggregate(aggregate, alias) => {
                groups.add_aggregate(aggregate, alias)?;
            }
        }
    }
    let shown = groups.items.len();
    for aggregate in &shape.having_aggregates {
        groups.find_aggregate(aggregate)?;
    }
    let order = shape
        .order_by
        .iter()
        .map(|item| {
            Ok(Order {
                by: OrderKey::Result(groups.order(item, shown)?),
                descending: item.descending,
            })
        })
        .collect::<Result<_>>()?;
    let row = Arc::new(TableSchema::plain(
        TableId(0),
        String::new(),
        groups.columns,
    ));
    let having = match &shape.having {
        Some(having) => {
            let mut scope = Scope::new(false);
            scope.add("", row.clone())?;
            Some(Arc::new(check_condition(having, &mut scope)?))
        }
        None => None,
    };
    let grouping = Grouping {
        keys: groups
            .keys
            .iter()
            .map(|at| (*at, scope.is_optional(at.relation)))
            .collect(),
        items: groups.items,
        row,
        shown,
        having,
    };
    Ok(Checked {
        output: Output::Groups(Arc::new(grouping)),
        order,
    })
}

impl Groups<'_> {
    fn add(&mut self, item: GroupItem, ty: T, name: &str, text: Option<String>) -> Result<usize> {
        if self.columns.iter().any(|column| column.name == name) {
            return Err(SqlError::DuplicateName(name.to_owned()));
        }
        self.items.push(item);
        self.columns.push(ColumnSchema {
            name: name.to_owned(),
            accessor: text,
            ty,
        });
        Ok(self.items.len() - 1)
    }

    fn add_key(&mut self, at: ColumnAt, name: &str) -> Result<usize> {
        let Some(key) = self.keys.iter().position(|key| *key == at) else {
            return Err(SqlError::Inconsistent(
                "columns of the select list, HAVING and ORDER BY that are in no aggregate belong into GROUP BY",
            ));
        };
        let ty = self.scope.result_type(at);
        self.add(GroupItem::Key(key), ty, name, None)
    }

    fn add_aggregate(&mut self, name: &AggregateName, alias: &str) -> Result<usize> {
        let column = match &name.column {
            Some(column) => Some(self.scope.column(column)?),
            None => None,
        };
        let of_type = |ty: &T| aggregate_of(name.function, ty);
        let (aggregate, ty) = match column {
            None => (Aggregate::Count, T::U64),
            Some(column) => {
                of_type(column.ty).ok_or_else(|| SqlError::UnsupportedAggregate(name.text()))?
            }
        };
        let may_be_missing = column.is_some_and(|c| self.scope.is_optional(c.at.relation));
        let may_be_nothing = self.keys.is_empty() || may_be_missing;
        let is_optional = may_be_nothing && aggregate != Aggregate::Count;
        let item = GroupItem::Aggregate {
            aggregate,
            column: column.map(|column| column.at),
            is_optional,
        };
        let ty = if is_optional { T::option(ty) } else { ty };
        self.add(item, ty, alias, Some(name.text()))
    }

    /// The item that is this aggregate; a hidden one, if the select list has none.
    fn find_aggregate(&mut self, name: &AggregateName) -> Result<usize> {
        let text = name.text();
        let is_it = |column: &ColumnSchema| column.accessor.as_deref() == Some(&*text);
        match self.columns.iter().position(is_it) {
            Some(place) => Ok(place),
            None => self.add_aggregate(name, &text),
        }
    }

    fn order(&mut self, item: &OrderItem, shown: usize) -> Result<usize> {
        match &item.target {
            OrderTarget::Position(position) => {
                let place = position.checked_sub(1).filter(|place| *place < shown);
                place.ok_or_else(|| no_position(*position))
            }
            OrderTarget::Aggregate(aggregate) => self.find_aggregate(aggregate),
            OrderTarget::Column(name) => {
                let shown = self.columns.iter().take(shown);
                let alias = shown.clone().position(|column| column.name == name.name);
                if let (None, Some(place)) = (&name.relation, alias) {
                    return Ok(place);
                }
                let at = self.scope.column(name)?.at;
                let is_it =
                    |item: &GroupItem| matches!(item, GroupItem::Key(key) if self.keys[*key] == at);
                match self.items.iter().position(is_it) {
                    Some(place) => Ok(place),
                    None => self.add_key(at, &format!("key of {}", self.items.len())),
                }
            }
        }
    }
}

/// An aggregate of values of a type, and the type of the result.
fn aggregate_of(function: Function, ty: &T) -> Option<(Aggregate, T)> {
    if function == Function::Count {
        return Some((Aggregate::Count, T::U64));
    }
    let scalar = Scalar::of(ty)?;
    match function {
        Function::Min => return Some((Aggregate::Min(scalar), ty.clone())),
        Function::Max => return Some((Aggregate::Max(scalar), ty.clone())),
        _ => {}
    }
    let sum = match ty {
        T::F32 | T::F64 => T::F64,
        T::Integer(integer) if integer.bytes() > size_of::<u64>() => return None,
        T::Integer(integer) if integer.is_signed() => T::I128,
        T::Integer(_) => T::U128,
        _ => return None,
    };
    match function {
        Function::Avg => Some((Aggregate::Average(scalar), T::F64)),
        _ => Some((Aggregate::Sum(scalar), sum)),
    }
}
