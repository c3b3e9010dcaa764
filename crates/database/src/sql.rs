//! SQL over HTTP: one statement, its rows as SATS-JSON (06 §5.14).

use std::sync::Arc;
use std::time::Instant;

use lightcone_query::{compile_statement, Projection, SelectPlan, Statement};
use lightcone_table::RowLayout;
use lightcone_types::bsatn::decode_value;
use lightcone_types::json::value_to_json_untyped;
use lightcone_types::{AlgebraicValue, Reader, Typespace};
use tokio::sync::oneshot;

use crate::error::SqlError;
use crate::evaluate::{scan, Source};
use crate::handle::{random_connection_id, Caller, DatabaseHandle};
use crate::writer::Item;

/// Result of one statement.
pub struct SqlOutcome {
    /// The row type, in the named JSON form.
    pub schema_json: String,
    /// A JSON array of rows, untyped form.
    pub rows_json: String,
    pub duration_us: u64,
    pub stats: SqlStats,
}

/// What a statement changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqlStats {
    pub rows_inserted: u64,
    pub rows_deleted: u64,
    pub rows_updated: u64,
}

impl DatabaseHandle {
    /// Runs one statement on the committed state. With `confirmed` the answer waits until that state is durable.
    ///
    /// # Errors
    /// As 06 §5.14.
    pub async fn sql(
        &self,
        caller: Caller,
        text: String,
        confirmed: bool,
    ) -> Result<SqlOutcome, SqlError> {
        let started = Instant::now();
        let shared = &self.shared;
        let module = shared.module();
        let rights = lightcone_query::Caller {
            identity: caller.identity,
            is_owner: caller.identity == shared.options.owner,
        };
        let plan = compile_statement(&text, &module.catalog, &rights)
            .map(|Statement::Select(plan)| Arc::new(plan))
            .map_err(|error| SqlError::Query(error.to_string()));
        if let Some(reason) = shared.read_only().filter(|_| confirmed) {
            return Err(SqlError::Database(format!(
                "{reason}; unconfirmed reads (confirmed=false) still work"
            )));
        }
        let (reply, result) = oneshot::channel();
        let item = Item::Query {
            caller,
            connection_id: random_connection_id(),
            plan,
            confirmed,
            reply,
        };
        shared.send(item).map_err(|()| SqlError::ModuleGone)?;
        let (plan, source) = result.await.map_err(|_| SqlError::ModuleGone)??;
        let mut schema_json = String::new();
        lightcone_types::json::product_type_to_json(&plan.output_type(), &mut schema_json);
        let rows = tokio::task::spawn_blocking(move || rows_json(&plan, &source)).await;
        let rows_json = rows
            .map_err(|error| SqlError::Database(format!("evaluating the query failed: {error}")))?;
        Ok(SqlOutcome {
            schema_json,
            rows_json,
            duration_us: started.elapsed().as_micros() as u64,
            stats: SqlStats::default(),
        })
    }
}

fn rows_json(plan: &SelectPlan, source: &Source) -> String {
    if let Projection::Count(_) = plan.projection {
        let mut count = 0_u64;
        match source {
            Source::Scan { table, .. } if plan.predicate.is_none() => {
                count = table.rows.row_count()
            }
            _ => visit(plan, source, |_| {
                count += 1;
                true
            }),
        }
        return if plan.limit == Some(0) {
            "[]".to_owned()
        } else {
            format!("[[{count}]]")
        };
    }
    let types: Vec<_> = plan
        .table
        .columns
        .iter()
        .map(|column| column.ty.clone())
        .collect();
    let layout = RowLayout::new(&types);
    let columns: Vec<usize> = match &plan.projection {
        Projection::Columns(columns) => columns
            .iter()
            .map(|(column, _)| usize::from(column.0))
            .collect(),
        _ => (0..types.len()).collect(),
    };
    let limit = plan.limit.unwrap_or(u64::MAX);
    let mut out = String::from("[");
    let mut count = 0;
    visit(plan, source, |row| {
        if count == limit {
            return false;
        }
        if count > 0 {
            out.push(',');
        }
        count += 1;
        out.push('[');
        for (nth, &column) in columns.iter().enumerate() {
            if nth > 0 {
                out.push(',');
            }
            value_to_json_untyped(&column_value(&layout, row, column), &mut out);
        }
        out.push(']');
        true
    });
    out.push(']');
    out
}

fn column_value(layout: &RowLayout, row: &[u8], column: usize) -> AlgebraicValue {
    let mut reader = Reader::new(layout.column(row, column));
    decode_value(
        &Typespace::default(),
        layout.column_type(column),
        &mut reader,
    )
    .expect("stored rows decode")
}

fn visit(plan: &SelectPlan, source: &Source, mut each: impl FnMut(&[u8]) -> bool) {
    match source {
        Source::Rows { rows, .. } => {
            for row in rows.iter() {
                if !each(row) {
                    return;
                }
            }
        }
        Source::Scan { table, .. } => scan(table, plan, each),
    }
}
