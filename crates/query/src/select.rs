//! A query with its names resolved, before row-level security rules are drawn into it.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableSchema};
use lightcone_types::{AlgebraicType, ColId};

use crate::ast::{self, Function, Projection, Select, SelectItem, Shape};
use crate::block::{Block, Names};
use crate::condition::ColumnAt;
use crate::error::{Result, SqlError};
use crate::grouping::{Order, OrderKey};
use crate::literal;
use crate::parser::{parse, Language};
use crate::query::{Fragment, JoinOn, Output, Query};
use crate::scope::Scope;
use crate::shape::{self, check_shape};

/// Checks a query of either language. Rules are not drawn in yet.
pub(crate) fn check_select(text: &str, select: &Select, names: Names<'_>) -> Result<Query> {
    let mut scope = Scope::new(!select.joins.is_empty());
    let mut outer = Vec::new();
    let Block {
        condition,
        joins,
        arguments,
    } = names.check_block(select, &mut scope, &mut outer)?;
    let (plain, items) = match &select.projection {
        Projection::Items(items) if is_grouped(items, &select.shape) => (None, &items[..]),
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
    let fragment = Fragment {
        own: (0..tables.len() as u16).collect(),
        tables: tables.clone(),
        condition: Arc::new(condition),
        joins: joins.into_iter().map(on).collect(),
        outer,
        number: None,
        rules: Vec::new(),
        guarded: Vec::new(),
    };
    Ok(Query {
        text: text.to_owned(),
        fragments: vec![fragment],
        tables,
        optional,
        output,
        distinct: select.shape.distinct,
        joined,
        order,
        offset: offset.transpose()?.unwrap_or(0),
        limit,
        arguments,
        explain: false,
        counts_have_a_sign: false,
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
fn check_count(number: &str) -> Result<u64> {
    literal::limit(number).ok_or_else(|| SqlError::InvalidLiteral {
        text: number.to_owned(),
        ty: AlgebraicType::U64.type_name(),
    })
}

/// A rule as a part of queries. What it returns takes the place of the only relation of a text.
pub(crate) fn compile_rule(text: &str, names: Names<'_>) -> Result<Fragment> {
    let ast::Statement::Select(select) = parse(text, Language::Subscription)? else {
        return Err(SqlError::NotSelect);
    };
    let mut checked = check_select(text, &select, names)?;
    let Output::Row(returned) = checked.output else {
        return Err(SqlError::ProjectionInSubscription);
    };
    if !checked.order.is_empty() {
        return Err(SqlError::Inconsistent(
            "a row-level security rule has no ORDER BY and no LIMIT",
        ));
    }
    if checked.arguments.is_some() {
        return Err(SqlError::Inconsistent(
            "a row-level security rule reads no view with arguments",
        ));
    }
    Ok(Fragment {
        own: vec![returned],
        rules: vec![text.into()],
        ..checked.fragments.remove(0)
    })
}

/// Are items, of rows in groups, more than the reference's language has?
fn is_grouped(items: &[SelectItem], shape: &Shape) -> bool {
    let is_count = match items {
        [SelectItem::Aggregate(of, _)] => of.function == Function::Count && of.column.is_none(),
        _ => false,
    };
    let is_column = |item: &SelectItem| matches!(item, SelectItem::Column(_));
    let is_plain = is_count && !shape.distinct || items.iter().all(is_column);
    !is_plain || !shape.group_by.is_empty() || shape.having.is_some()
}

fn check_output(projection: &Projection, scope: &Scope) -> Result<Output> {
    match projection {
        Projection::Star if scope.joined_count() > 1 => Err(SqlError::WildcardOnJoin),
        Projection::Star => Ok(Output::Row(0)),
        Projection::RelationStar(relation) => {
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
        Projection::Items(items) => {
            let mut names = HashSet::new();
            let mut columns = Vec::with_capacity(items.len());
            for item in items {
                let item = match item {
                    SelectItem::Column(item) => item,
                    SelectItem::Aggregate(_, alias) => return Ok(Output::Count(alias.clone())),
                };
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
