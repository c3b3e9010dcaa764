//! Names, types and rights of statements that write (08 §4.2, §5.3, §8, §12.5).

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::{TableKind, TableSchema};
use lightcone_types::{AlgebraicType, ColId, SpecialProduct};

use super::write_plan::{NewValue, RowChange, Targets, WritePlan};
use crate::ast::{
    ColumnItem, ColumnName, Expression, Expressions, Literal, Projection, Select, Shape, TableRef,
    Value, ValueKind, Write,
};
use crate::catalog::{may_read, Caller, Catalog};
use crate::check::unexpected;
use crate::error::SqlError;
use crate::lexer::Comparison;
use crate::literal;
use crate::select::check_select;

/// Where variables are kept, under their names.
const VARIABLES: &str = "st_var";
/// The only variable.
const ROW_LIMIT: &str = "row_limit";
/// U64 among the variants of a variable's value.
const U64_TAG: u8 = 8;

/// Checks a statement that changes rows, last whether the caller may.
pub(crate) fn plan_write(
    text: &str,
    write: Write,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<WritePlan, SqlError> {
    let (table, change) = match write {
        Write::Insert {
            table: name,
            columns,
            rows,
        } => {
            let table = target(&name, catalog, caller)?;
            let order = column_order(&name, &table, columns)?;
            let rows = rows
                .iter()
                .map(|row| encode_row(&name, &table, &order, row));
            let rows = rows.collect::<Result<_, _>>()?;
            (table, RowChange::Insert(rows))
        }
        Write::Update {
            table: name,
            assignments,
            condition,
        } => {
            let table = target(&name, catalog, caller)?;
            let values = assigned(&name, &table, &assignments)?;
            let rows = rows_of(text, name, condition, catalog, caller)?;
            (table, RowChange::Update { rows, values })
        }
        Write::Delete {
            table: name,
            condition,
        } => {
            let table = target(&name, catalog, caller)?;
            let rows = rows_of(text, name, condition, catalog, caller)?;
            (table, RowChange::Delete { rows })
        }
    };
    require_owner(caller)?;
    if table.kind == TableKind::System && table.name != VARIABLES {
        return Err(SqlError::DmlOnSystemTable(table.name.clone()));
    }
    Ok(WritePlan { table, change })
}

fn require_owner(caller: &Caller) -> Result<(), SqlError> {
    match caller.is_owner {
        true => Ok(()),
        false => Err(SqlError::NotAuthorized(caller.identity)),
    }
}

/// The table that is written to, if the caller may read it.
fn target(
    name: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Arc<TableSchema>, SqlError> {
    let table = catalog.table(name);
    let readable = table.filter(|table| may_read(table.access, caller));
    let table = readable.ok_or_else(|| SqlError::NoSuchTable(name.to_owned()))?;
    match table.view {
        Some(_) => Err(SqlError::DmlOnView(name.to_owned())),
        None => Ok(table),
    }
}

/// The rows of the target that a condition is true of. Only the owner gets as far as running this, so row-level security
/// plays no part; of tables that another caller may not read, the error is that of a query.
fn rows_of(
    text: &str,
    name: String,
    condition: Option<Expressions>,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Targets, SqlError> {
    let select = Select {
        projection: Projection::Star,
        from: whole_table(name),
        joins: Vec::new(),
        condition,
        limit: None,
        shape: Shape::default(),
    };
    let query = check_select(&select, catalog, caller)?.with_rules(text, catalog, caller)?;
    if let Some(plan) = query.only_select_plan(&caller.identity) {
        return Ok(Targets::Plan(Box::new(plan)));
    }
    // Views are evaluated before a query reads them, and a statement that writes is a transaction by itself.
    let reads_views = query.read_tables().any(|table| table.view.is_some());
    match reads_views {
        true => Err(SqlError::Subquery(
            "subqueries of statements that write read no views",
        )),
        false => Ok(Targets::Query(Arc::new(query))),
    }
}

fn whole_table(name: String) -> TableRef {
    TableRef {
        alias: name.clone(),
        name,
    }
}

fn column_of(name: &str, table: &TableSchema, column: &str) -> Result<ColId, SqlError> {
    let found = table.column_by_accessor_or_name(column);
    found.ok_or_else(|| SqlError::NoSuchField {
        table: name.to_owned(),
        field: column.to_owned(),
    })
}

/// For each column of the table, the place of its value in a tuple. Without a list of names that is the order of the schema.
fn column_order(
    name: &str,
    table: &TableSchema,
    columns: Option<Vec<String>>,
) -> Result<Vec<usize>, SqlError> {
    let count = table.columns.len();
    let Some(columns) = columns else {
        return Ok((0..count).collect());
    };
    if columns.len() != count {
        return Err(SqlError::InsertFields {
            fields: columns.len(),
            columns: count,
            table: name.to_owned(),
        });
    }
    let mut order = vec![None; count];
    for (place, column) in columns.iter().enumerate() {
        let id = column_of(name, table, column)?;
        if order[usize::from(id.0)].replace(place).is_some() {
            return Err(SqlError::DuplicateName(column.clone()));
        }
    }
    // As many different columns as the table has are all of them.
    Ok(order.into_iter().flatten().collect())
}

fn encode_row(
    name: &str,
    table: &TableSchema,
    order: &[usize],
    values: &[Value],
) -> Result<Box<[u8]>, SqlError> {
    if values.len() != order.len() {
        return Err(SqlError::InsertValues {
            values: values.len(),
            table: name.to_owned(),
            columns: order.len(),
        });
    }
    let mut row = Vec::new();
    for (column, place) in table.columns.iter().zip(order) {
        row.extend(encode_value(&values[*place], &column.ty)?);
    }
    Ok(row.into())
}

/// The new values of columns. Of two values for one column the first counts.
fn assigned(
    name: &str,
    table: &TableSchema,
    assignments: &[(String, Value)],
) -> Result<Vec<NewValue>, SqlError> {
    let mut seen = HashSet::new();
    let mut values = Vec::with_capacity(assignments.len());
    for (column, value) in assignments {
        let id = column_of(name, table, column)?;
        let column = &table.columns[usize::from(id.0)];
        let bsatn = encode_value(value, &column.ty)?;
        if seen.insert(id) {
            values.push((id, bsatn.into()));
        }
    }
    Ok(values)
}

/// A value as a `ty`, in BSATN.
fn encode_value(value: &Value, ty: &AlgebraicType) -> Result<Vec<u8>, SqlError> {
    let own = match value.kind {
        ValueKind::Bool => Some(AlgebraicType::Bool),
        ValueKind::Text if !is_written_as_text(ty) => Some(AlgebraicType::String),
        ValueKind::Text | ValueKind::Number | ValueKind::Hex => None,
    };
    match own {
        Some(own) if own != *ty => return Err(unexpected(&own, ty)),
        Some(AlgebraicType::Bool) => return Ok(vec![u8::from(value.text == "TRUE")]),
        _ => {}
    }
    literal::encode(&value.text, ty).ok_or_else(|| SqlError::InvalidLiteral {
        text: value.text.clone(),
        ty: ty.type_name(),
    })
}

/// Types beside String that a string stands for. The reference takes strings for String only (08 §4.2, EXT).
fn is_written_as_text(ty: &AlgebraicType) -> bool {
    let is_special = |special| !matches!(special, SpecialProduct::TimeDuration);
    *ty == AlgebraicType::String || ty.is_bytes() || ty.special_product().is_some_and(is_special)
}

fn require_variable(name: &str) -> Result<(), SqlError> {
    match name == ROW_LIMIT {
        true => Ok(()),
        false => Err(SqlError::UnknownVariable(name.to_owned())),
    }
}

/// `SET row_limit = n`.
pub(crate) fn plan_set(
    name: &str,
    value: &Value,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<WritePlan, SqlError> {
    require_variable(name)?;
    let ty = AlgebraicType::U64;
    match value.kind {
        ValueKind::Bool => return Err(unexpected(&ty, &AlgebraicType::Bool)),
        ValueKind::Text => return Err(unexpected(&ty, &AlgebraicType::String)),
        ValueKind::Hex => return Err(unexpected(&ty, &AlgebraicType::bytes())),
        ValueKind::Number => {}
    }
    let value = encode_value(value, &ty)?;
    require_owner(caller)?;
    let table = target(VARIABLES, catalog, caller)?;
    let mut row = literal::with_length(ROW_LIMIT.as_bytes()).expect("a short name has a length");
    row.push(U64_TAG);
    row.extend(value);
    Ok(WritePlan {
        table,
        change: RowChange::Put(row.into()),
    })
}

/// `SHOW row_limit` as a query: `SELECT value FROM st_var WHERE name = 'row_limit'`.
pub(crate) fn read_variable(name: &str) -> Result<Select, SqlError> {
    require_variable(name)?;
    let column = |name: &str| ColumnName {
        relation: None,
        name: name.to_owned(),
    };
    let mut condition = Expressions::default();
    let left = condition.push(Expression::Column(column("name")));
    let right = condition.push(Expression::Literal(Literal::Text(name.to_owned())));
    condition.push(Expression::Compare(Comparison::Equal, left, right));
    Ok(Select {
        projection: Projection::Columns(vec![ColumnItem {
            column: column("value"),
            alias: None,
        }]),
        from: whole_table(VARIABLES.to_owned()),
        joins: Vec::new(),
        condition: Some(condition),
        limit: None,
        shape: Shape::default(),
    })
}
