//! Names, types and rights of statements that write (08 §4.2, §5.3, §8, §12.5).

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_schema::{TableKind, TableSchema};
use lightcone_types::{AlgebraicType, ColId};

use super::write_plan::{NewValue, RowChange, Targets, WritePlan};
use crate::ast::{
    Change, Expressions, Projection, Select, Shape, Statement, TableRef, Value, ValueKind, Write,
};
use crate::block::Names;
use crate::catalog::{Caller, Catalog};
use crate::check::{encode_value, unexpected};
use crate::error::{Result, SqlError};
use crate::literal;
use crate::parser::{parse, Language};
use crate::select::check_select;

/// Where variables are kept, under their names.
const VARIABLES: &str = "st_var";
/// Variables of the environment, which publishers alone change.
const ENVIRONMENT: &str = "st_env";
/// The only variable.
const ROW_LIMIT: &str = "row_limit";
/// U64 among the variants of a variable's value.
const U64_TAG: u8 = 8;

/// Checks a statement that changes rows, last whether the caller may.
pub(crate) fn plan_write(text: &str, write: Write, names: Names<'_>) -> Result<WritePlan> {
    let name = write.table;
    let table = target(&name, names)?;
    let change = match write.change {
        Change::Insert(columns, rows) => {
            let order = column_order(&name, &table, columns)?;
            let rows = rows
                .iter()
                .map(|row| encode_row(&name, &table, &order, row));
            RowChange::Insert(rows.collect::<Result<_>>()?)
        }
        Change::Update(assignments, condition) => {
            let values = assigned(&name, &table, &assignments)?;
            let rows = rows_of(text, name, condition, names)?;
            RowChange::Update { rows, values }
        }
        Change::Delete(condition) => {
            let rows = rows_of(text, name, condition, names)?;
            RowChange::Delete { rows }
        }
    };
    check_target(&table, names.caller)?;
    Ok(WritePlan { table, change })
}

/// The table whose rows a statement of another language changes.
///
/// # Errors
/// There is none, or the caller does not change its rows.
pub fn write_target(
    name: &str,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Arc<TableSchema>> {
    let table = target(name, Names { catalog, caller })?;
    check_target(&table, caller)?;
    Ok(table)
}

fn check_target(table: &TableSchema, caller: &Caller) -> Result<()> {
    require_owner(caller)?;
    if table.name == ENVIRONMENT {
        return Err(SqlError::DmlOnEnvironment);
    }
    if table.kind == TableKind::System && table.name != VARIABLES {
        return Err(SqlError::DmlOnSystemTable(table.name.clone()));
    }
    if table.schedule.is_some() {
        return Err(SqlError::DmlOnScheduledTable);
    }
    match table.outbox.is_some() {
        true => Err(SqlError::DmlOnOutboxTable),
        false => Ok(()),
    }
}

fn require_owner(caller: &Caller) -> Result<()> {
    match caller.is_owner {
        true => Ok(()),
        false => Err(SqlError::NotAuthorized(caller.identity)),
    }
}

/// The table that is written to, if the caller may read it.
fn target(name: &str, names: Names<'_>) -> Result<Arc<TableSchema>> {
    let table = names.find_table(name)?;
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
    names: Names<'_>,
) -> Result<Targets> {
    let select = Select {
        projection: Projection::Star,
        from: whole_table(name),
        joins: Vec::new(),
        condition,
        limit: None,
        as_of: None,
        shape: Shape::default(),
    };
    let query = check_select(text, &select, names)?.with_rules(names)?;
    if let Some(plan) = query.only_select_plan(&names.caller.identity) {
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
        arguments: Vec::new(),
        call: None,
    }
}

fn column_of(name: &str, table: &TableSchema, column: &str) -> Result<ColId> {
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
) -> Result<Vec<usize>> {
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
) -> Result<Box<[u8]>> {
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
) -> Result<Vec<NewValue>> {
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

fn require_variable(name: &str) -> Result<()> {
    match name == ROW_LIMIT {
        true => Ok(()),
        false => Err(SqlError::UnknownVariable(name.to_owned())),
    }
}

/// `SET row_limit = n`.
pub(crate) fn plan_set(name: &str, value: &Value, names: Names<'_>) -> Result<WritePlan> {
    require_variable(name)?;
    let ty = AlgebraicType::U64;
    match value.kind {
        ValueKind::Bool => return Err(unexpected(&ty, &AlgebraicType::Bool)),
        ValueKind::Text => return Err(unexpected(&ty, &AlgebraicType::String)),
        ValueKind::Hex => return Err(unexpected(&ty, &AlgebraicType::bytes())),
        ValueKind::Number => {}
    }
    let value = encode_value(value, &ty)?;
    require_owner(names.caller)?;
    let table = target(VARIABLES, names)?;
    let mut row = literal::with_length(ROW_LIMIT.as_bytes()).expect("a short name has a length");
    row.push(U64_TAG);
    row.extend(value);
    Ok(WritePlan {
        table,
        change: RowChange::Put(row.into()),
    })
}

/// `SHOW row_limit` as a query: `SELECT value FROM st_var WHERE name = 'row_limit'`.
pub(crate) fn read_variable(name: &str) -> Result<Select> {
    require_variable(name)?;
    let text = format!("SELECT value FROM {VARIABLES} WHERE name = '{ROW_LIMIT}'");
    match parse(&text, Language::AdHoc)? {
        Statement::Select(select) => Ok(*select),
        _ => Err(SqlError::NotSelect),
    }
}
