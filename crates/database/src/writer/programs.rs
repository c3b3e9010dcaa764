//! Statements of PostgreSQL's language in the writer's transaction: what they read, and the table that they change.

use lightcone_engine::DatastoreError;
use lightcone_query::postgresql::{self, state, Store};
use lightcone_query::{Output, Progress, Run};
use lightcone_table::{RowId, Table};

use super::statements::{Failure, Statement};
use crate::running_query::QUERY_MEMORY_BYTES_MAX;
use crate::statements::{Program, Reading, Written};

/// Steps of a query between two looks at the clock: less than a millisecond.
const PIECE_STEPS: usize = 1 << 17;

impl Statement<'_> {
    pub fn run_program(&mut self, program: &dyn Program) -> Result<Written, Failure> {
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        // All of them together are held.
        let mut left = QUERY_MEMORY_BYTES_MAX;
        for (nth, reading) in program.readings().iter().enumerate() {
            let read = match program.target() == Some(nth) {
                true => {
                    found = self.find_by_query(&reading.query)?;
                    self.columns_of(&found, reading, left)?
                }
                false => self.read(reading, left)?,
            };
            left -= read.len();
            rows.push(read);
        }
        let (environment, started, time_max) = (self.environment, self.started, self.time_max);
        let look = move || match environment.instant() - started > time_max {
            true => Err(shown(&Failure::TooLong(time_max))),
            false => Ok(()),
        };
        let mut store = Changing {
            statement: self,
            found,
            failed: None,
        };
        let written = program.run(&rows, &look, &mut store);
        written.map_err(|failure| store.failed.unwrap_or(Failure::Refused(failure)))
    }

    /// The rows of a query on the tables as they stand, a byte before each.
    fn read(&self, reading: &Reading, bytes_max: usize) -> Result<Vec<u8>, Failure> {
        for table in reading.query.read_tables() {
            self.require_columns(table)?;
        }
        let mut run = Run::new(
            reading.query.clone(),
            reading.sender,
            QUERY_MEMORY_BYTES_MAX,
        );
        let mut rows = Vec::new();
        loop {
            let mut steps = PIECE_STEPS;
            let progress = run.run(&*self.datastore, &mut steps, |row| {
                let fits = row.len() < bytes_max - rows.len();
                if fits {
                    rows.push(0);
                    rows.extend_from_slice(row);
                }
                fits
            })?;
            self.look_at_time()?;
            match progress {
                Progress::Paused => {}
                Progress::Done => return Ok(rows),
                Progress::Stopped => return Err(too_large()),
            }
        }
    }

    /// The columns of rows that a query asks for, in the same form.
    fn columns_of(
        &self,
        found: &[RowId],
        reading: &Reading,
        bytes_max: usize,
    ) -> Result<Vec<u8>, Failure> {
        let table = self.open_table()?;
        let mut rows = Vec::new();
        for id in found {
            let row = table.row(*id);
            rows.push(0);
            match &reading.query.output {
                Output::Columns(listed) => {
                    for (at, _) in listed {
                        let column = usize::from(at.column.0);
                        rows.extend_from_slice(table.layout().column(row, column));
                    }
                }
                _ => rows.extend_from_slice(row),
            }
            if rows.len() > bytes_max {
                return Err(too_large());
            }
        }
        self.look_at_time()?;
        Ok(rows)
    }
}

fn too_large() -> Failure {
    let bytes_max = QUERY_MEMORY_BYTES_MAX;
    DatastoreError::TransactionTooLarge { bytes_max }.into()
}

fn shown(failure: &Failure) -> postgresql::Failure {
    postgresql::Failure::new(state::LIMIT_REACHED, failure.to_string())
}

/// The table of a statement, while the statement changes it.
struct Changing<'s, 'w> {
    statement: &'s mut Statement<'w>,
    found: Vec<RowId>,
    /// Why something could not be done: the statement ends with it.
    failed: Option<Failure>,
}

impl Changing<'_, '_> {
    fn table(&self) -> &Table {
        let table = self.statement.open_table();
        table.expect("no table goes while a statement runs")
    }

    fn noted<T>(&mut self, done: Result<T, Failure>) -> Result<T, postgresql::Failure> {
        done.map_err(|failure| {
            let refused = shown(&failure);
            self.failed = Some(failure);
            refused
        })
    }

    fn insert_new(&mut self, nth: usize, row: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let before = self.statement.datastore.change_count();
        let stored = self.statement.insert_one(nth, row)?.into_owned();
        if self.statement.datastore.change_count() > before {
            return Ok(Some(stored));
        }
        // A row that is there, as it is, has the same keys.
        let schema = &self.table().schema;
        let Some(index) = schema.indexes.iter().find(|index| index.unique) else {
            return Ok(None);
        };
        let error = DatastoreError::UniqueAlreadyExists {
            table: schema.name.clone(),
            index: index.name.clone(),
        };
        Err(self.statement.explain(error, &stored))
    }
}

impl Store for Changing<'_, '_> {
    fn found(&self) -> &[RowId] {
        &self.found
    }

    fn row(&self, id: RowId) -> &[u8] {
        self.table().row(id)
    }

    fn holder(&self, row: &[u8], indexes: &[usize]) -> Option<RowId> {
        let table = self.table();
        let mut indexes = indexes.iter().map(|at| &table.indexes()[*at]);
        indexes.find_map(|index| index.find_row(table.rows(), table.layout(), row))
    }

    fn equal(&self, row: &[u8]) -> Option<RowId> {
        self.table().find_equal(row)
    }

    fn insert(&mut self, nth: usize, row: &[u8]) -> Result<Option<Vec<u8>>, postgresql::Failure> {
        let inserted = self.insert_new(nth, row);
        self.noted(inserted)
    }

    fn check(&mut self, bytes: usize) -> Result<(), postgresql::Failure> {
        let bytes_max = self.statement.datastore.transaction_bytes_max();
        let checked = match bytes > bytes_max {
            true => Err(DatastoreError::TransactionTooLarge { bytes_max }.into()),
            false => self.statement.look_at_time(),
        };
        self.noted(checked)
    }

    fn delete(&mut self, rows: &[RowId]) -> Result<(), postgresql::Failure> {
        let deleted = self.statement.delete(rows);
        self.noted(deleted)
    }
}
