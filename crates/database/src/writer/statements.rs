//! SQL statements that change rows: one is a transaction, or several (08 §12.4).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_query::postgresql::{self, state};
use lightcone_query::{
    find_targets, ExecuteError, NewValue, Query, RowChange, SelectPlan, Targets, WritePlan,
};
use lightcone_schema::TableSchema;
use lightcone_table::{RowId, Table};
use lightcone_types::bsatn::decode_value;
use lightcone_types::text::format_value;
use lightcone_types::{ColId, Identity, Reader, TableId, Typespace};

use super::Writer;
use crate::environment::Environment;
use crate::error::SqlError;
use crate::evaluate::{usable_index, Rows};
use crate::inbox::HttpWrite;
use crate::running_query::QUERY_MEMORY_BYTES_MAX;
use crate::statements::{Change, SqlStats, Write, Written};

/// So many rows are looked at, deleted or inserted before the time is looked at.
const ROWS_PER_LOOK: usize = 1024;

impl Writer {
    /// Statements inside a connection of their own, which comes and goes also if one fails (08 §12.4).
    pub(super) fn http_write(&mut self, write: &HttpWrite) -> Result<Arc<Written>, SqlError> {
        let HttpWrite {
            caller,
            connection_id,
            statements,
            is_kept,
        } = write;
        let client = caller.client(*connection_id);
        self.connect(client, Some(&caller.jwt_payload))?;
        let result = self.run_statements(statements, *is_kept, caller.identity);
        self.disconnect(client);
        result
    }

    /// Runs statements as one transaction, and gives what the last has answered.
    fn run_statements(
        &mut self,
        statements: &[Write],
        is_kept: bool,
        caller: Identity,
    ) -> Result<Arc<Written>, SqlError> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(SqlError::Database(reason));
        }
        let changes = statements.iter().map(|of| &of.change);
        self.require_current(changes.clone().filter_map(Change::table))?;
        self.require_current(changes.flat_map(Change::read_tables))?;
        let shared = self.shared.clone();
        let run = |datastore: &mut Datastore| {
            let mut statement = Statement {
                datastore,
                table: None,
                sender: caller,
                environment: shared.environment(),
                started: shared.environment().instant(),
                time_max: shared.options.limits.sql_write_time_max,
                generated: Vec::new(),
            };
            let mut last = Written::default();
            for write in statements {
                last = statement.run(write)?;
            }
            Ok(Arc::new(last))
        };
        let changed = match is_kept {
            true => self.change(run),
            false => {
                self.datastore.begin();
                let changed = run(&mut self.datastore);
                self.datastore.rollback();
                changed
            }
        };
        changed.map_err(|failure: Failure| match failure {
            Failure::Refused(failure) => SqlError::Failed(failure),
            failure => SqlError::Query(failure.to_string()),
        })
    }
}

/// Why a statement changes nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// By the interpreter of PostgreSQL's language.
    #[error("{}", .0.message)]
    Refused(postgresql::Failure),
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
pub(super) struct Statement<'w> {
    pub datastore: &'w mut Datastore,
    /// The one that it changes.
    table: Option<TableId>,
    pub sender: Identity,
    pub environment: &'w dyn Environment,
    /// When the first of the transaction has begun.
    pub started: Instant,
    pub time_max: Duration,
    /// What sequences gave, or are to give again, for rows of these numbers.
    generated: Vec<(usize, Vec<u8>)>,
}

impl Statement<'_> {
    /// Runs the next statement of the transaction.
    fn run(&mut self, write: &Write) -> Result<Written, Failure> {
        let answered = write.answered.as_deref();
        self.generated = answered.map_or_else(Vec::new, |of| of.generated.clone());
        self.table = write.change.table().map(|table| table.id);
        if let Some(table) = write.change.table() {
            self.require_columns(table)?;
        }
        let mut written = match &write.change {
            Change::Plan(plan) => Written {
                stats: self.run_plan(plan)?,
                ..Written::default()
            },
            Change::Program(program) => self.run_program(&**program)?,
        };
        written.generated = std::mem::take(&mut self.generated);
        match answered {
            Some(answered) if !answered.is_same(&written) => {
                let message = "could not serialize access: a statement of the transaction would not answer again as it has, as others have changed what it rests on; nothing of the transaction was kept: run it again";
                let failure = postgresql::Failure::new(state::SERIALIZATION, message);
                Err(Failure::Refused(failure))
            }
            _ => Ok(written),
        }
    }

    pub fn require_columns(&self, table: &TableSchema) -> Result<(), Failure> {
        match self.datastore.schema(table.id) {
            Some(now) if now.columns == table.columns => Ok(()),
            _ => Err(Failure::TableChanged(table.name.clone())),
        }
    }

    fn run_plan(&mut self, plan: &WritePlan) -> Result<SqlStats, Failure> {
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

    pub fn open_table(&self) -> Result<&Table, Failure> {
        let table = self.table.and_then(|table| self.datastore.table(table));
        table.ok_or(Failure::Datastore(DatastoreError::NoSuchTable))
    }

    pub fn look_at_time(&self) -> Result<(), Failure> {
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
    pub fn find_by_query(&self, query: &Query) -> Result<Vec<RowId>, Failure> {
        for read in query.read_tables() {
            self.require_columns(read)?;
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

    pub fn delete(&mut self, rows: &[RowId]) -> Result<(), Failure> {
        let table = self.open_table()?.schema.id;
        for some in rows.chunks(ROWS_PER_LOOK) {
            self.look_at_time()?;
            self.datastore.delete_by_id(table, some)?;
        }
        Ok(())
    }

    /// Inserts rows; gives how many were not there yet.
    fn insert<'r>(&mut self, rows: impl Iterator<Item = &'r [u8]>) -> Result<u64, Failure> {
        let before = self.datastore.change_count();
        for (nth, row) in rows.enumerate() {
            self.insert_one(nth, row)?;
        }
        Ok((self.datastore.change_count() - before) as u64)
    }

    /// Inserts the row of this number, with what sequences have given for it before, if they have. Gives it as it is stored.
    pub fn insert_one<'r>(&mut self, nth: usize, row: &'r [u8]) -> Result<Cow<'r, [u8]>, Failure> {
        if nth.is_multiple_of(ROWS_PER_LOOK) {
            self.look_at_time()?;
        }
        let table = self.open_table()?.schema.id;
        let place = self.generated.binary_search_by_key(&nth, |(of, _)| *of);
        let row = match place {
            Ok(place) => self.with_generated(row, &self.generated[place].1)?,
            Err(_) => row.into(),
        };
        let mut generated = Vec::new();
        let inserted = self.datastore.insert(table, &row, &mut generated);
        inserted.map_err(|error| self.explain(error, &row))?;
        if generated.is_empty() {
            return Ok(row);
        }
        let stored = self.with_generated(&row, &generated)?.into_owned();
        if let Err(place) = place {
            self.generated.insert(place, (nth, generated));
        }
        Ok(stored.into())
    }

    /// A row with what sequences gave for zeros, in the order of its columns.
    fn with_generated<'r>(
        &self,
        row: &'r [u8],
        mut generated: &[u8],
    ) -> Result<Cow<'r, [u8]>, Failure> {
        let table = self.open_table()?;
        let mut filled = Cow::Borrowed(row);
        for sequence in &table.schema.sequences {
            let column = usize::from(sequence.column.0);
            let range = table.layout().column_range(row, column);
            let is_zero = row[range.clone()].iter().all(|byte| *byte == 0);
            if let (true, Some((value, rest))) = (is_zero, generated.split_at_checked(range.len()))
            {
                filled.to_mut()[range].copy_from_slice(value);
                generated = rest;
            }
        }
        Ok(filled)
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
    pub fn explain(&self, error: DatastoreError, row: &[u8]) -> Failure {
        let DatastoreError::UniqueAlreadyExists { table, index } = error else {
            return error.into();
        };
        let mut columns = Vec::new();
        let mut values = Vec::new();
        if let Ok(open) = self.open_table() {
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
