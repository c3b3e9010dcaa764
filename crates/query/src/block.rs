//! A query or subquery without its select list: the relations it reads, how they are joined, and what must hold.

use std::sync::Arc;

use lightcone_schema::{TableSchema, ViewSchema};
use lightcone_types::{view_args_hash, AlgebraicType, ColId, IntegerType};

use crate::ast::{Projection, Select, SelectItem, Shape, TableRef};
use crate::catalog::{may_read, Caller, Catalog};
use crate::check::{
    check_join, check_with_subqueries, encode_value, is_written_as_text, CheckedSubquery,
};
use crate::condition::{ColumnAt, Condition, Constant, SenderAs, ViewArguments};
use crate::error::{Result, SqlError};
use crate::query::OuterJoin;
use crate::scalar::Scalar;
use crate::scope::Scope;

/// What names mean to a caller.
#[derive(Clone, Copy)]
pub(crate) struct Names<'c> {
    pub catalog: &'c dyn Catalog,
    pub caller: &'c Caller,
}

/// Two columns that are equal.
type On = (ColumnAt, ColumnAt, Scalar);

/// A checked block. Its relations are those that the scope has got.
pub(crate) struct Block {
    pub condition: Condition,
    /// The columns of each `ON` of an inner join.
    pub joins: Vec<On>,
    /// Those of its only relation.
    pub arguments: ViewArguments,
}

impl Names<'_> {
    /// The table of this name, if the caller may read it; a table it may not read is as good as absent (08 §8).
    pub fn find_table(self, name: &str) -> Result<Arc<TableSchema>> {
        match self.catalog.table(name) {
            Some(table) if may_read(table.access, self.caller) => Ok(table),
            _ => Err(SqlError::NoSuchTable(name.to_owned())),
        }
    }

    /// Checks a block, and adds its relations to the scope. All `LEFT JOIN`s, also those of subqueries, are added to `outer`.
    pub fn check_block(
        self,
        select: &Select,
        scope: &mut Scope,
        outer: &mut Vec<OuterJoin>,
    ) -> Result<Block> {
        let (joins, arguments) = self.check_joins(select, scope, outer)?;
        let relations = scope.first()..scope.len() as u16;
        let mut condition = match &select.condition {
            Some(expressions) => {
                check_with_subqueries(expressions, scope, &mut |select, scope| {
                    self.check_subquery(select, scope, outer)
                })?
            }
            None => Condition::default(),
        };
        for (left, right, scalar) in &joins {
            condition.add_equality(*left, *right, *scalar);
        }
        for relation in relations {
            let Some(view) = scope.table(relation).view else {
                continue;
            };
            if scope.is_optional(relation) {
                return Err(view_on_the_right());
            }
            let column = ColId(0);
            let hidden = ColumnAt { relation, column };
            condition.add_value(
                hidden,
                Scalar::Integer(IntegerType::HASH),
                instance_of(view, &arguments),
            );
        }
        Ok(Block {
            condition,
            joins,
            arguments,
        })
    }

    /// The table of a relation, with the arguments of a view that takes some: it stands alone.
    fn find_relation(
        self,
        relation: &TableRef,
        select: &Select,
        scope: &Scope,
    ) -> Result<(Arc<TableSchema>, ViewArguments)> {
        let table = self.find_table(&relation.name);
        let table = table.map_err(|error| match &relation.call {
            Some(call) => SqlError::UnsupportedFrom(call.clone()),
            None => error,
        })?;
        let has_parameters = !self.catalog.parameters(table.id).is_empty();
        if has_parameters && !select.joins.is_empty() {
            return Err(SqlError::ViewCallInJoin(relation.name.clone()));
        }
        if has_parameters && (scope.is_in_subquery() || !is_plain(select)) {
            return Err(SqlError::ViewTakesArguments(relation.name.clone()));
        }
        let arguments = self.encode_arguments(relation, &table)?;
        Ok((table, arguments))
    }

    fn encode_arguments(self, relation: &TableRef, table: &TableSchema) -> Result<ViewArguments> {
        let (parameters, given) = (self.catalog.parameters(table.id), &relation.arguments);
        if table.view.is_none() && !given.is_empty() {
            return Err(SqlError::ArgumentsOfTable(relation.name.clone()));
        }
        if given.len() != parameters.len() {
            return Err(SqlError::ViewArguments {
                view: relation.name.clone(),
                parameters: parameters.len(),
                arguments: given.len(),
            });
        }
        let mut encoded = Vec::new();
        for (parameter, value) in parameters.iter().zip(given) {
            let ty = &parameter.algebraic_type;
            if !is_written_in_sql(ty) {
                return Err(SqlError::ViewParameterType {
                    parameter: parameter.name().unwrap_or_default().to_owned(),
                    view: relation.name.clone(),
                    ty: ty.type_name(),
                });
            }
            encoded.extend(encode_value(value, ty)?);
        }
        Ok((!parameters.is_empty()).then(|| encoded.into()))
    }

    fn check_joins(
        self,
        select: &Select,
        scope: &mut Scope,
        outer: &mut Vec<OuterJoin>,
    ) -> Result<(Vec<On>, ViewArguments)> {
        let mut joins = Vec::new();
        let (table, arguments) = self.find_relation(&select.from, select, scope)?;
        scope.add(&select.from.alias, table)?;
        for join in &select.joins {
            let (table, _) = self.find_relation(&join.table, select, scope)?;
            scope.add(&join.table.alias, table)?;
            let on = match &join.on {
                Some((left, right)) => check_join(scope, left, right)?,
                None => continue,
            };
            if !join.outer {
                joins.push(on);
                continue;
            }
            let (left, right, scalar) = on;
            let last = (scope.len() - 1) as u16;
            let (own, other) = match (left.relation == last, right.relation == last) {
                (true, _) => (left, right),
                (_, true) => (right, left),
                _ => return Err(SqlError::NonInnerJoin),
            };
            // Which of its rows are the caller's is a condition of its own, which belongs to the ON.
            if scope.table(last).view.is_some() {
                return Err(view_on_the_right());
            }
            scope.last_is_optional();
            outer.push(OuterJoin { own, other, scalar });
        }
        Ok((joins, arguments))
    }

    fn check_subquery(
        self,
        select: &Select,
        scope: &mut Scope,
        outer: &mut Vec<OuterJoin>,
    ) -> Result<CheckedSubquery> {
        scope.open(!select.joins.is_empty());
        let joined = select.joins.len() + 1;
        let relations = scope.first()..scope.first() + joined as u16;
        let Block { condition, .. } = self.check_block(select, scope, outer)?;
        let column = match &select.projection {
            Projection::Items(items) => {
                let mut columns = Vec::with_capacity(items.len());
                for item in items {
                    let SelectItem::Column(item) = item else {
                        return Err(SqlError::Subquery("subqueries have no aggregates"));
                    };
                    columns.push(scope.column(&item.column)?.at);
                }
                match columns[..] {
                    [column] => Some(column),
                    _ => None,
                }
            }
            Projection::Star => None,
            Projection::RelationStar(relation) => {
                scope.relation(relation)?;
                None
            }
        };
        scope.close();
        Ok(CheckedSubquery {
            relations: relations.collect(),
            condition,
            column,
        })
    }
}

fn view_on_the_right() -> SqlError {
    SqlError::Inconsistent("a view cannot stand on the right of LEFT JOIN")
}

/// All rows of one relation, and nothing of them left out.
fn is_plain(select: &Select) -> bool {
    !matches!(select.projection, Projection::Items(_))
        && select.condition.is_none()
        && select.limit.is_none()
        && select.shape == Shape::default()
}

/// Types whose values may be arguments of a view.
fn is_written_in_sql(ty: &AlgebraicType) -> bool {
    matches!(ty, AlgebraicType::Bool | AlgebraicType::Integer(_)) || is_written_as_text(ty)
}

/// The instance of a view that the caller sees with these arguments.
pub(crate) fn instance_of(view: ViewSchema, arguments: &ViewArguments) -> Constant {
    match view.is_anonymous {
        true => {
            let arguments = arguments.as_deref().unwrap_or_default();
            Constant::Value(view_args_hash(arguments).0.into())
        }
        false => Constant::Sender(SenderAs::ViewInstance(arguments.clone())),
    }
}
