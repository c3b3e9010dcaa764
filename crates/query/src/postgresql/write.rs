//! A statement that changes rows, from its text to the rows that it changed.

use std::collections::HashSet;

use lightcone_table::RowId;
use lightcone_types::bsatn::encode_value;
use lightcone_types::{AlgebraicType, Reader};
use sqlparser::tokenizer::Token;

use super::bind::{bind_write, Question, Write};
use super::cells::{check_size, Cell};
use super::failure::{state, Done, Failure};
use super::plan::{Bound, Change, Conflict, TableChange};
use super::question::{cells_of, understood, Unread};
use super::read::read_write;
use super::run::{Env, Look, Pieces, Runner};
use super::session::Session;
use super::value::Value;

/// The table that a statement changes, in the statement's transaction.
pub trait Store: Send {
    /// The rows of the table that the question's reading of it has found, in its order.
    fn found(&self) -> &[RowId];

    fn row(&self, id: RowId) -> &[u8];

    /// The row that has the key of another in one of these unique indexes.
    fn holder(&self, row: &[u8], indexes: &[usize]) -> Option<RowId>;

    /// The row that equals another.
    fn equal(&self, row: &[u8]) -> Option<RowId>;

    /// Inserts the row of this number of a statement. Gives it as it is stored. None: it was there, in a table without unique keys.
    ///
    /// # Errors
    /// Another row has its key, or it is no row of the table.
    fn insert(&mut self, nth: usize, row: &[u8]) -> Done<Option<Vec<u8>>>;

    /// Looks whether rows of so many bytes can be written.
    ///
    /// # Errors
    /// They are too much for the transaction, or it takes too long.
    fn check(&mut self, bytes: usize) -> Done<()>;

    /// # Errors
    /// The transaction is too large, or takes too long.
    fn delete(&mut self, rows: &[RowId]) -> Done<()>;
}

/// What a statement has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changed {
    /// Rows that it has changed, or of a question those of its answer.
    pub count: u64,
    /// The rows that it returns.
    pub rows: Vec<Vec<Cell>>,
}

impl From<Question> for Write {
    fn from(question: Question) -> Write {
        Write {
            question,
            change: None,
        }
    }
}

impl Write {
    /// Reads a statement; if it is only described, with parameters in it. A large one needs more stack than others.
    ///
    /// # Errors
    /// It changes no rows, is not supported or too large, or it names what the session does not see.
    pub fn read(
        text: &str,
        tokens: Vec<Token>,
        session: &dyn Session,
        is_described: bool,
    ) -> Result<Write, Unread> {
        understood("statement", text, tokens, read_write, |statement| {
            let write = bind_write(statement, session, is_described)?;
            check_size(0, write.columns().map_or(0, |columns| columns.len()))?;
            Ok(write)
        })
    }

    /// Names and types of the columns that it returns. None: it returns no rows.
    pub fn columns(&self) -> Option<Vec<(String, AlgebraicType)>> {
        let columns = match &self.change {
            Some(change) => &change.returning.as_ref()?.0,
            None => &self.question.plan.columns,
        };
        let columns = columns.iter();
        Some(
            columns
                .map(|(name, ty)| (name.clone(), ty.algebraic()))
                .collect(),
        )
    }

    /// Carries it out, in the open transaction. `pieces` are the rows of the tables that it reads, in their order.
    ///
    /// # Errors
    /// A value cannot be made or is none of its column, `look` or the store says so, or it is too much work.
    pub fn run(
        &self,
        session: &dyn Session,
        pieces: &[Pieces<'_>],
        look: Look<'_>,
        steps_max: usize,
        store: &mut dyn Store,
    ) -> Done<Changed> {
        let question = &self.question;
        let runner = Runner::new(session, question, pieces, look, steps_max);
        let rows = runner.rows(&question.plan, None)?;
        let Some(change) = &self.change else {
            return Ok(Changed {
                count: rows.len() as u64,
                rows: cells_of(&question.plan.columns, &rows, session)?,
            });
        };
        let mut changing = Changing {
            change,
            runner: &runner,
            store,
            count: 0,
            returned: Vec::new(),
        };
        match &change.change {
            Change::Insert { values, conflict } => {
                changing.insert(&rows, values, conflict.as_ref())?;
            }
            Change::Update { columns, first } => changing.update(rows, columns, *first)?,
            Change::Delete => changing.delete(&rows)?,
        }
        let rows = match &change.returning {
            Some((columns, _)) => cells_of(columns, &changing.returned, session)?,
            None => Vec::new(),
        };
        Ok(Changed {
            count: changing.count,
            rows,
        })
    }
}

/// A statement while it changes rows.
struct Changing<'c> {
    change: &'c TableChange,
    runner: &'c Runner<'c>,
    store: &'c mut dyn Store,
    count: u64,
    returned: Vec<Vec<Value>>,
}

impl Changing<'_> {
    fn insert(
        &mut self,
        rows: &[Vec<Value>],
        values: &[Bound],
        conflict: Option<&Conflict>,
    ) -> Done<()> {
        // Rows that the statement has changed: none is changed again.
        let mut changed = HashSet::new();
        for (nth, row) in rows.iter().enumerate() {
            let mut new = Vec::new();
            for (at, value) in values.iter().enumerate() {
                let value = self.runner.value(value, &Env::new(row, None))?;
                self.encode(at, &value, &mut new)?;
            }
            let held = conflict.map(|of| (of, self.store.holder(&new, &of.indexes)));
            if let Some((conflict, Some(id))) = held {
                self.overwrite(nth, id, &new, conflict, &mut changed)?;
                continue;
            }
            let Some(stored) = self.store.insert(nth, &new)? else {
                continue;
            };
            if conflict.is_some_and(|conflict| conflict.update.is_some()) {
                changed.extend(self.store.equal(&stored));
            }
            self.done(&self.decoded(&stored))?;
        }
        Ok(())
    }

    /// Changes the row whose key a new one has.
    fn overwrite(
        &mut self,
        nth: usize,
        id: RowId,
        new: &[u8],
        conflict: &Conflict,
        changed: &mut HashSet<RowId>,
    ) -> Done<()> {
        let Some(update) = &conflict.update else {
            return Ok(());
        };
        if changed.contains(&id) {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(Failure::new(state::CARDINALITY, message));
        }
        let old = self.store.row(id).to_vec();
        let both = [self.decoded(&old), self.decoded(new)].concat();
        let env = Env::new(&both, None);
        if let Some(filter) = &update.filter {
            if self.runner.value(filter, &env)?.truth() != Some(true) {
                return Ok(());
            }
        }
        let mut values = Vec::with_capacity(update.values.len());
        for (column, value) in &update.values {
            values.push((*column, self.runner.value(value, &env)?));
        }
        let new = self.assigned(&old, &values)?;
        self.store.delete(&[id])?;
        let stored = self.store.insert(nth, &new)?.unwrap_or(new);
        changed.extend(self.store.equal(&stored));
        self.done(&self.decoded(&stored))
    }

    fn update(&mut self, rows: Vec<Vec<Value>>, columns: &[usize], first: usize) -> Done<()> {
        let (mut known, mut old, mut new) = (HashSet::new(), Vec::new(), Vec::new());
        let mut bytes = 0;
        for mut row in rows {
            let id = self.target_of(&row);
            // Of several rows that a row of the table is joined with, one counts.
            if !known.insert(id) {
                continue;
            }
            let values = columns.iter().copied().zip(row.drain(first..));
            let values: Vec<_> = values.collect();
            let changed = self.assigned(self.store.row(id), &values)?;
            bytes += changed.len();
            self.store.check(bytes)?;
            new.push((row, changed));
            old.push(id);
        }
        // All keys are free before new ones are taken.
        self.store.delete(&old)?;
        for (nth, (mut row, new)) in new.into_iter().enumerate() {
            let stored = self.store.insert(nth, &new)?.unwrap_or(new);
            let stored = self.decoded(&stored);
            row.splice(..stored.len(), stored);
            self.done(&row)?;
        }
        Ok(())
    }

    fn delete(&mut self, rows: &[Vec<Value>]) -> Done<()> {
        let (mut known, mut old) = (HashSet::new(), Vec::new());
        for row in rows {
            let id = self.target_of(row);
            if known.insert(id) {
                old.push(id);
                self.done(row)?;
            }
        }
        self.store.delete(&old)
    }

    /// The row of the table that a row of the question begins with.
    fn target_of(&self, row: &[Value]) -> RowId {
        let number = row[self.change.types.len()].int();
        let number = number.and_then(|number| usize::try_from(number).ok());
        self.store.found()[number.expect("a row that is changed has a number")]
    }

    /// A row is changed: what is made of it comes out.
    fn done(&mut self, row: &[Value]) -> Done<()> {
        self.count += 1;
        if let Some((columns, items)) = &self.change.returning {
            check_size(self.returned.len() + 1, columns.len())?;
            let values = self.runner.values(items, &Env::new(row, None))?;
            self.returned.push(values);
        }
        Ok(())
    }

    /// The columns of a row, if they are asked for.
    fn decoded(&self, row: &[u8]) -> Vec<Value> {
        let mut reader = Reader::new(row);
        let types = self.change.types.iter();
        types.map(|ty| Value::of_stored(ty, &mut reader)).collect()
    }

    /// A row with new values of columns. All else stays as it is stored.
    fn assigned(&self, row: &[u8], values: &[(usize, Value)]) -> Done<Vec<u8>> {
        let (mut reader, mut new) = (Reader::new(row), Vec::with_capacity(row.len()));
        for (at, ty) in self.change.types.iter().enumerate() {
            let before = reader.remaining();
            // Its end is found by reading it.
            Value::of_stored(ty, &mut reader);
            let bytes = before.len() - reader.remaining().len();
            match values.iter().find(|(column, _)| *column == at) {
                Some((_, value)) => self.encode(at, value, &mut new)?,
                None => new.extend_from_slice(&before[..bytes]),
            }
        }
        Ok(new)
    }

    /// Writes a value as one of a column.
    fn encode(&self, at: usize, value: &Value, out: &mut Vec<u8>) -> Done<()> {
        let (ty, table) = (&self.change.types[at], &self.change.table);
        let column = &table.columns[at].name;
        if let Some(value) = value.as_stored(ty) {
            encode_value(&value, out);
            return Ok(());
        }
        Err(match value {
            Value::Null => {
                let message = format!("null value in column \"{column}\" of relation \"{}\" violates not-null constraint", table.name);
                Failure::new(state::NOT_NULL, message)
            }
            _ => {
                let message =
                    format!("a value of column \"{column}\" is out of range for its type");
                Failure::new(state::OUT_OF_RANGE, message)
            }
        })
    }
}
