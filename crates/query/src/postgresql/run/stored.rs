//! Rows that questions read: of tables of the module, and of virtual ones.

use std::rc::Rc;

use lightcone_types::Reader;

use super::super::bind::TableRead;
use super::super::failure::{state, Done, Failure};
use super::super::session::VirtualTable;
use super::super::value::Value;
use super::{Row, Rows, Runner};

/// Values that virtual tables have which a question reads.
const READ_VALUES_MAX: usize = 4_000_000;

/// Where the reading of a table of the module is.
pub(super) struct Reading<'p> {
    table: &'p TableRead,
    pieces: &'p [&'p [u8]],
    rest: &'p [u8],
    /// Rows that were read.
    count: i64,
}

impl Reading<'_> {
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty() && self.pieces.is_empty()
    }
}

impl Runner<'_> {
    /// The rows of a table of the module.
    pub(super) fn stored(&self, at: usize) -> Done<Rows> {
        if let Some(rows) = self.stored.borrow().get(&at) {
            return Ok(rows.clone());
        }
        let rows = self.sharing(|| self.batch(&mut self.reading(at), usize::MAX))?;
        self.stored.borrow_mut().insert(at, rows.clone());
        Ok(rows)
    }

    /// Begins to read a table of the module.
    pub(super) fn reading(&self, at: usize) -> Reading<'_> {
        let mut read = self.question.tables.iter().zip(self.pieces);
        let read = read.find(|(table, _)| table.number == at);
        let (table, pieces) = read.expect("each table is read by itself or joined");
        Reading {
            table,
            pieces,
            rest: &[],
            count: 0,
        }
    }

    /// More rows of a table, until that takes so many steps.
    pub(super) fn batch(&self, reading: &mut Reading<'_>, steps_max: usize) -> Done<Vec<Row>> {
        let (before, table, mut rows) = (self.steps.get(), reading.table, Vec::new());
        while !reading.is_at_end() && self.steps.get() - before < steps_max {
            let Some((_, behind)) = reading.rest.split_first() else {
                (reading.rest, reading.pieces) = (reading.pieces[0], &reading.pieces[1..]);
                continue;
            };
            self.work(table.width)?;
            let mut reader = Reader::new(behind);
            let mut row = vec![Value::Null; table.width];
            for (place, ty) in &table.columns {
                row[*place] = Value::of_stored(ty, &mut reader);
                self.work(row[*place].weight())?;
            }
            if table.is_target {
                row[table.width - 1] = Value::Int(reading.count);
            }
            reading.count += 1;
            rows.push(row);
            reading.rest = reader.remaining();
        }
        Ok(rows)
    }

    /// The rows of a virtual table, or those of them that have a value in a column. All are made, and kept, if it is read again.
    pub(super) fn made(&self, table: &VirtualTable, wanted: Option<(usize, &Value)>) -> Done<Rows> {
        let mut made = self.made.borrow_mut();
        let is_first = !made.contains_key(table.name);
        let known = made.entry(table.name).or_default();
        if let Some(rows) = known {
            return Ok(rows.clone());
        }
        let wanted = wanted.filter(|_| is_first);
        let rows = Rc::new(self.session.rows(table, wanted));
        if rows.len().saturating_mul(table.columns.len()) > READ_VALUES_MAX {
            let message = format!("it reads more than {READ_VALUES_MAX} values of the catalogue");
            return Err(Failure::new(state::LIMIT_REACHED, message));
        }
        if wanted.is_none() {
            *known = Some(rows.clone());
        }
        Ok(rows)
    }
}
