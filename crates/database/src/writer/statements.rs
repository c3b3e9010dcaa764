//! SQL statements that change rows: each is one transaction (08 §12.4).

use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_query::{
    find_targets, ExecuteError, NewValue, Query, RowChange, SelectPlan, Targets, WritePlan,
};
use lightcone_table::{RowId, Table};
use lightcone_types::bsatn::decode_value;
use lightcone_types::text::format_value;
use lightcone_types::{ColId, Identity, Reader, TableId, Typespace};

use super::Writer;
use crate::environment::Environment;
use crate::error::SqlError;
use crate::evaluate::{usable_index, Rows};
use crate::inbox::{HttpWrite, SqlStats};
use crate::running_query::QUERY_MEMORY_BYTES_MAX;

/// So many rows are looked at, deleted or inserted before the time is looked at.
const ROWS_PER_LOOK: usize = 1024;

impl Writer {
    /// A statement inside a connection of its own, which comes and goes also if the statement fails (08 §12.4).
    pub(super) fn http_write(&mut self, write: &HttpWrite) -> Result<SqlStats, SqlError> {
        let HttpWrite {
            caller,
            connection_id,
            plan,
        } = write;
        let client = caller.client(*connection_id);
        self.connect(client, Some(&caller.jwt_payload))?;
        let result = self.change_rows(plan, caller.identity);
        self.disconnect(client);
        result
    }

    fn change_rows(&mut self, plan: &WritePlan, caller: Identity) -> Result<SqlStats, SqlError> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(SqlError::Database(reason));
        }
        self.require_current([&plan.table])?;
        let shared = self.shared.clone();
        let changed = self.change(|datastore| {
            let statement = Statement {
                datastore,
                table: plan.table.id,
                sender: caller,
                environment: shared.environment(),
                started: shared.environment().instant(),
                time_max: shared.options.limits.sql_write_time_max,
            };
            statement.run(plan)
        });
        changed.map_err(|failure: Failure| SqlError::Query(failure.to_string()))
    }
}

/// Why a statement changes nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Datastore(#[from] DatastoreError),
    #[error(transparent)]
    Subquery(#[from] ExecuteError),
    #[error("IndexError: Unique constraint violation '{index}' in table '{table}': column(s): '{columns:?}' value: {value}")]
    NotUnique {
        index: String,
        table: String,
        columns: Vec<String>,
        value: String,
    },
    #[error("the statement ran for {} ms and was undone, as limits.sql-write-time-max says: let it change fewer rows, by an index if it searches many [LC0713]", .0.as_millis())]
    TooLong(Duration),
    #[error("table `{0}` was changed by a publish while the statement waited: send it again")]
    TableChanged(String),
}

/// A statement in the open transaction.
struct Statement<'w> {
    datastore: &'w mut Datastore,
    table: TableId,
    sender: Identity,
    environment: &'w dyn Environment,
    started: Instant,
    time_max: Duration,
}

impl Statement<'_> {
    fn run(mut self, plan: &WritePlan) -> Result<SqlStats, Failure> {
        let schema = self.datastore.schema(self.table);
        if schema.is_none_or(|schema| schema.columns != plan.table.columns) {
            return Err(Failure::TableChanged(plan.table.name.clone()));
        }
        let mut stats = SqlStats::default();
        match &plan.change {
            RowChange::Insert(rows) => {
                stats.rows_inserted = self.insert(rows.iter().map(|row| &**row))?;
            }
            RowChange::Update { rows, values } => {
                let found = self.find(rows)?;
                let changed = self.changed(&found, values)?;
                self.delete(&found)?;
                self.insert(changed.iter())?;
                stats.rows_updated = found.len() as u64;
            }
            RowChange::Delete { rows } => {
                let found = self.find(rows)?;
                self.delete(&found)?;
                stats.rows_deleted = found.len() as u64;
            }
            RowChange::Put(row) => stats.rows_inserted = self.put(row)?,
        }
        Ok(stats)
    }

    fn open_table(&self) -> Result<&Table, Failure> {
        let table = self.datastore.table(self.table);
        table.ok_or(Failure::Datastore(DatastoreError::NoSuchTable))
    }

    fn look_at_time(&self) -> Result<(), Failure> {
        match self.environment.instant() - self.started > self.time_max {
            true => Err(Failure::TooLong(self.time_max)),
            false => Ok(()),
        }
    }

    fn find(&self, targets: &Targets) -> Result<Vec<RowId>, Failure> {
        match targets {
            Targets::Plan(plan) => self.find_by_plan(plan),
            Targets::Query(query) => self.find_by_query(query),
        }
    }

    /// The rows that a query with subqueries finds. What it reads is as it was before the statement.
    fn find_by_query(&self, query: &Query) -> Result<Vec<RowId>, Failure> {
        for read in query.read_tables() {
            let schema = self.datastore.schema(read.id);
            if schema.is_none_or(|schema| schema.columns != read.columns) {
                return Err(Failure::TableChanged(read.name.clone()));
            }
        }
        let mut in_time = Ok(());
        let found = find_targets(
            query,
            &self.sender,
            self.datastore,
            QUERY_MEMORY_BYTES_MAX,
            || {
                in_time = self.look_at_time();
                in_time.is_ok()
            },
        )?;
        in_time?;
        Ok(found)
    }

    /// The rows that a condition is true of, by an index if its equalities cover one.
    fn find_by_plan(&self, query: &SelectPlan) -> Result<Vec<RowId>, Failure> {
        let table = self.open_table()?;
        let (rows, layout) = (table.rows(), table.layout());
        let predicate = query.predicate.as_ref();
        let mut found = Vec::new();
        if predicate.is_some_and(|predicate| predicate.is_never()) {
            return Ok(found);
        }
        let mut seen = 0_usize;
        let mut in_time = Ok(());
        let mut look_at = |id, row: &[u8]| {
            if predicate.is_none_or(|predicate| predicate.matches(layout, row)) {
                found.push(id);
            }
            seen += 1;
            if seen.is_multiple_of(ROWS_PER_LOOK) {
                in_time = self.look_at_time();
            }
            in_time.is_ok()
        };
        match usable_index(query, &table.schema.indexes) {
            Some((position, point)) => {
                let index = &table.indexes()[position];
                let visit = |id| look_at(id, table.row(id));
                index
                    .walk_point(rows, layout, &point, None, visit)
                    .map_err(DatastoreError::from)?;
            }
            None => rows.walk(None, look_at),
        }
        in_time?;
        Ok(found)
    }

    /// The rows with their new values.
    fn changed(&self, found: &[RowId], values: &[NewValue]) -> Result<Rows, Failure> {
        let table = self.open_table()?;
        let layout = table.layout();
        let mut new = vec![None; layout.column_count()];
        for (column, value) in values {
            new[usize::from(column.0)] = Some(&**value);
        }
        let bytes_max = self.datastore.transaction_bytes_max();
        let mut rows = Rows::default();
        for (nth, id) in found.iter().enumerate() {
            let old = table.row(*id);
            for (column, value) in new.iter().enumerate() {
                let value = value.unwrap_or_else(|| layout.column(old, column));
                rows.bytes.extend_from_slice(value);
            }
            rows.ends.push(rows.bytes.len());
            if rows.bytes.len() > bytes_max {
                return Err(DatastoreError::TransactionTooLarge { bytes_max }.into());
            }
            if nth.is_multiple_of(ROWS_PER_LOOK) {
                self.look_at_time()?;
            }
        }
        Ok(rows)
    }

    fn delete(&mut self, rows: &[RowId]) -> Result<(), Failure> {
        for some in rows.chunks(ROWS_PER_LOOK) {
            self.look_at_time()?;
            self.datastore.delete_by_id(self.table, some)?;
        }
        Ok(())
    }

    /// Inserts rows; gives how many were not there yet.
    fn insert<'r>(&mut self, rows: impl Iterator<Item = &'r [u8]>) -> Result<u64, Failure> {
        let before = self.datastore.change_count();
        let mut generated = Vec::new();
        for (nth, row) in rows.enumerate() {
            if nth.is_multiple_of(ROWS_PER_LOOK) {
                self.look_at_time()?;
            }
            generated.clear();
            let inserted = self.datastore.insert(self.table, row, &mut generated);
            inserted.map_err(|error| self.explain(error, row))?;
        }
        Ok((self.datastore.change_count() - before) as u64)
    }

    /// Inserts a row in place of the one with the same primary key.
    fn put(&mut self, row: &[u8]) -> Result<u64, Failure> {
        let table = self.open_table()?;
        if table.find_equal(row).is_some() {
            return Ok(0);
        }
        let key = table.schema.primary_key;
        let is_key = |columns: &[ColId]| key.is_some_and(|key| columns == [key]);
        let mut schemas = table.schema.indexes.iter();
        let position = schemas.position(|index| is_key(index.algorithm.columns()));
        let old = position.and_then(|position| {
            table.indexes()[position].find_row(table.rows(), table.layout(), row)
        });
        self.delete(old.as_slice())?;
        self.insert([row].into_iter())
    }

    /// The error of a row that could not be inserted, with the value that another row has.
    fn explain(&self, error: DatastoreError, row: &[u8]) -> Failure {
        let DatastoreError::UniqueAlreadyExists { table, index } = error else {
            return error.into();
        };
        let mut columns = Vec::new();
        let mut values = Vec::new();
        if let Some(open) = self.datastore.table(self.table) {
            let schema = open.schema.indexes.iter().find(|i| i.name == index);
            for id in schema.into_iter().flat_map(|i| i.algorithm.columns()) {
                let column = &open.schema.columns[usize::from(id.0)];
                let bytes = open.layout().column(row, usize::from(id.0));
                columns.push(column.name.clone());
                values.push(shown(&column.ty, bytes));
            }
        }
        let value = match &*values {
            [value] => value.clone(),
            values => format!("({})", values.join(", ")),
        };
        Failure::NotUnique {
            index,
            table,
            columns,
            value,
        }
    }
}

/// A value as people read it.
fn shown(ty: &lightcone_types::AlgebraicType, bytes: &[u8]) -> String {
    let typespace = Typespace::default();
    let value = decode_value(&typespace, ty, &mut Reader::new(bytes));
    value.map_or_else(
        |_| String::new(),
        |value| format_value(&typespace, ty, &value),
    )
}
