//! How many matches a row has, in the tables as they are: for windows, that look for rows.

use std::collections::HashMap;

use lightcone_query::Predicate;
use lightcone_table::Tables;
use lightcone_types::ColId;

use super::allowance::{Allowance, STEPS_PER_ROW};
use super::changes::Ops;
use super::delta::{FoundRows, Search};
use super::parts::{place_of, sorted, Relation, Rows};
use super::shape::JoinShape;

/// So many answers are kept at a time, of questions that are so long.
const ANSWERS_MAX: usize = 1 << 16;
const QUESTION_BYTES_MAX: usize = 256;
/// Memory for more answers is not kept for the next transaction.
const ANSWERS_KEPT_MAX: usize = 4096;

/// The tables, what may still be looked at in them, and what is known of them so far.
pub struct Reading<'r> {
    pub tables: &'r dyn Tables,
    pub answers: &'r mut Answers,
    pub rows_left: usize,
}

impl Reading<'_> {
    /// A condition is evaluated on a row of so many bytes.
    pub fn spend_on(&mut self, condition: &Predicate, row_bytes: usize) -> Option<()> {
        self.spend(1 + condition.steps(row_bytes) / STEPS_PER_ROW)
    }

    /// Takes rows that are looked at. None: there are more than may be.
    pub fn spend(&mut self, rows: usize) -> Option<()> {
        let left = self.rows_left.checked_sub(rows);
        // What is left after that of the one too many is not used.
        self.rows_left = left.unwrap_or(0);
        left.map(drop)
    }
}

/// What is known of rows and their matches, as long as the tables stay as they are. Values come from clients: they are hashed with
/// a secret.
#[derive(Default)]
pub struct Answers {
    known: HashMap<Vec<u8>, u64>,
    question: Vec<u8>,
}

impl Answers {
    /// The tables have changed.
    pub fn clear(&mut self) {
        self.question.shrink_to(QUESTION_BYTES_MAX);
        if !self.known.is_empty() {
            self.known.clear();
            self.known.shrink_to(ANSWERS_KEPT_MAX);
        }
    }
}

impl JoinShape {
    /// The columns of the relation that comes out by which its rows' matches differ, once these are admitted.
    pub fn decisive_columns(&self) -> Vec<ColId> {
        let ends = self.edges.iter().flat_map(|edge| &edge.ends);
        let residuals = self.residuals.iter();
        let residuals = residuals.flat_map(|(_, residual)| &residual.columns);
        let all = ends.chain(residuals).chain(&self.parameters.columns);
        let own = all.filter(|at| place_of(**at) == self.returned);
        sorted(own.map(|at| at.column))
    }

    /// How many matches a row of the relation that comes out has whose parameters are these, up to [`MATCHES_COUNTED_MAX`]. `decisive`
    /// are its [columns](Self::decisive_columns). None: there would be more to look at than may be.
    pub fn count_matches(
        &self,
        reading: &mut Reading<'_>,
        (row, decisive): (&[u8], &[ColId]),
        key: &[u8],
    ) -> Option<u64> {
        if !self.relations[self.returned].admits_within(row, reading)? {
            return Some(0);
        }
        let question = &mut reading.answers.question;
        question.clear();
        question.extend_from_slice(&self.id.0.to_le_bytes());
        for column in decisive {
            question.extend_from_slice(self.relations[self.returned].value(row, *column));
        }
        question.extend_from_slice(key);
        if let Some(known) = reading.answers.known.get(question.as_slice()) {
            return Some(*known);
        }
        let found = self.find_matches(reading, row, key)?;
        let answers = &mut *reading.answers;
        if answers.question.len() <= QUESTION_BYTES_MAX {
            if answers.known.len() >= ANSWERS_MAX {
                answers.known.clear();
            }
            answers.known.insert(answers.question.clone(), found);
        }
        Some(found)
    }

    fn find_matches(&self, reading: &mut Reading<'_>, row: &[u8], key: &[u8]) -> Option<u64> {
        let value = |column| self.relations[self.returned].value(row, column);
        let mut parameters = self.parameters.of_relation(self.returned);
        if !parameters.all(|(number, column)| value(column) == self.parameters.value(key, number)) {
            return Some(0);
        }
        let mut rows: Rows<'_> = Default::default();
        rows[self.returned] = row;
        let mut left = Allowance {
            steps: reading.rows_left,
            bytes: usize::MAX,
        };
        let (changes, keys, deltas) = Default::default();
        let ops = Ops {
            deltas: &deltas,
            ops: &[],
        };
        let mut found = FoundRows::default();
        let tables = reading.tables;
        let rest = (&mut left, &mut found);
        let count =
            Search::new(self, tables, (&changes, ops), &keys, rest).count_around(key, &mut rows);
        reading.rows_left = count.map_or(0, |_| left.steps);
        count
    }
}

impl Relation {
    /// Whether a row may be part of a match.
    fn admits_within(&self, row: &[u8], reading: &mut Reading<'_>) -> Option<bool> {
        if let Some(predicate) = &self.predicate {
            reading.spend_on(predicate, row.len())?;
        }
        Some(self.admits(row))
    }
}
