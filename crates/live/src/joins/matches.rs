//! Whether a row has a match, in the tables as they are: for windows, in which a row is once however many matches it has.

use std::collections::HashMap;

use lightcone_query::Predicate;
use lightcone_table::{Index, TableView, Tables};
use lightcone_types::ColId;

use super::parts::{place_of, Relation, Rows};
use super::path::{Hop, Known, Path};
use super::shape::JoinShape;

/// What looking up the rows of one more relation counts for, beside the rows.
const LOOK_UP_ROWS: usize = 1;
/// Steps of a condition that count as much as looking a row up.
pub const STEPS_PER_ROW: usize = 32;
/// Of several indexes, the one is taken that has fewer rows. So many of each are counted at a time, for as much as looking at one.
const COUNTED_TOGETHER: usize = 32;
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
        // What is left after that of the one too many is for nobody.
        self.rows_left = left.unwrap_or(0);
        left.map(drop)
    }
}

/// What is known of rows and their matches, as long as the tables stay as they are. Values come from clients: they are hashed with
/// a secret.
#[derive(Default)]
pub struct Answers {
    known: HashMap<Vec<u8>, bool>,
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
        let mut columns: Vec<ColId> = own.map(|at| at.column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Whether a row of the relation that comes out has a match whose parameters are these. `decisive` are its
    /// [columns](Self::decisive_columns). None: there would be more to look at than may be.
    pub fn has_match(
        &self,
        reading: &mut Reading<'_>,
        (row, decisive): (&[u8], &[ColId]),
        key: &[u8],
    ) -> Option<bool> {
        if !self.relations[self.returned].admits_within(row, reading)? {
            return Some(false);
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
        let found = self.find_match(reading, row, key)?;
        let answers = &mut *reading.answers;
        if answers.question.len() <= QUESTION_BYTES_MAX {
            if answers.known.len() >= ANSWERS_MAX {
                answers.known.clear();
            }
            answers.known.insert(answers.question.clone(), found);
        }
        Some(found)
    }

    fn find_match(&self, reading: &mut Reading<'_>, row: &[u8], key: &[u8]) -> Option<bool> {
        let mut search = Search {
            shape: self,
            tables: reading.tables,
            wanted: key,
            key: Vec::new(),
            reading,
        };
        let mut rows: Rows<'_> = Default::default();
        rows[self.returned] = row;
        let path = &self.paths[self.returned];
        match search.is_possible(&path.start, &rows)? {
            true => search.follow(path, 0, &mut rows),
            false => Some(false),
        }
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

struct Search<'s, 'r> {
    shape: &'s JoinShape,
    tables: &'s dyn Tables,
    wanted: &'s [u8],
    /// Of the match that is looked for.
    key: Vec<u8>,
    reading: &'s mut Reading<'r>,
}

/// An index by which rows of a relation are found, and the value to find.
#[derive(Clone, Copy)]
struct Way<'s> {
    index: &'s Index,
    point: &'s [u8],
    /// All that it finds are joined with the row that is known.
    is_by_join: bool,
}

impl<'s> Search<'s, '_> {
    /// Whether what can be said now is not against a match.
    fn is_possible(&mut self, known: &Known, rows: &Rows<'s>) -> Option<bool> {
        if let Some(columns) = &known.key {
            self.shape.write_key(rows, columns, &mut self.key);
            if self.key != self.wanted {
                return Some(false);
            }
        }
        if known.residuals.is_empty() {
            return Some(true);
        }
        for number in &known.residuals {
            let (_, residual) = &self.shape.residuals[*number];
            let rows = residual.columns.iter().map(|at| rows[place_of(*at)].len());
            self.reading.spend_on(&residual.predicate, rows.sum())?;
        }
        Some(self.shape.admits(&known.residuals, rows))
    }

    /// Finds the rows that are still missing.
    fn follow(&mut self, path: &'s Path, depth: usize, rows: &mut Rows<'s>) -> Option<bool> {
        let Some(hop) = path.hops.get(depth) else {
            return Some(true);
        };
        let place = place_of(hop.to);
        let relation = &self.shape.relations[place];
        let Some(table) = self.tables.table(relation.table.id) else {
            return Some(false);
        };
        self.reading.spend(LOOK_UP_ROWS)?;
        let way = self.best_way(table, hop, rows)?;
        let mut found = Some(false);
        let visit = |id| {
            let partner = table.row(id);
            found = self.reading.spend(1).and_then(|()| {
                if !relation.admits_within(partner, self.reading)? {
                    return Some(false);
                }
                rows[place] = partner;
                let is_joined = way.is_by_join || self.is_joined(hop, rows);
                match is_joined && self.is_possible(&hop.known, rows)? {
                    true => self.follow(path, depth + 1, rows),
                    false => Some(false),
                }
            });
            found == Some(false)
        };
        let walked = (way.index).walk_point(table.rows(), &relation.layout, way.point, None, visit);
        walked.expect("the columns of a join have one type, and so have those of a key");
        found
    }

    /// Whether a row that was found last meets the join that it was looked for by.
    fn is_joined(&self, hop: &Hop, rows: &Rows<'s>) -> bool {
        hop.edge.is_none_or(|edge| self.shape.joins(edge, rows))
    }

    /// The index that finds the fewest rows: on the column of the join, or on one whose value the key says.
    fn best_way(&mut self, table: &'s TableView, hop: &Hop, rows: &Rows<'s>) -> Option<Way<'s>> {
        let shape = self.shape;
        let mut best = Way {
            index: table.index_on(hop.to.column)?,
            point: shape.value(rows, hop.from),
            is_by_join: true,
        };
        // Without an edge, the columns are compared by nobody else.
        if hop.edge.is_none() {
            return Some(best);
        }
        for (parameter, column) in shape.parameters.of_relation(place_of(hop.to)) {
            if best.index.is_unique() {
                break;
            }
            let Some(index) = table.index_on(column) else {
                continue;
            };
            let other = Way {
                index,
                point: shape.parameters.value(self.wanted, parameter),
                is_by_join: false,
            };
            if index.is_unique() || self.has_fewer(table, other, best)? {
                best = other;
            }
        }
        Some(best)
    }

    /// Whether one of two ways finds fewer rows than the other. Counts no more than there are by the shorter one, and some.
    fn has_fewer(&mut self, table: &TableView, one: Way<'s>, other: Way<'s>) -> Option<bool> {
        let mut last = [None, None];
        loop {
            let mut counts = [0, 0];
            for (place, way) in [one, other].into_iter().enumerate() {
                self.reading.spend(1)?;
                let (count, last) = (&mut counts[place], &mut last[place]);
                let (index, after) = (way.index, *last);
                let visit = |id| {
                    (*count, *last) = (*count + 1, Some(id));
                    *count < COUNTED_TOGETHER
                };
                let walked =
                    index.walk_point(table.rows(), table.layout(), way.point, after, visit);
                walked.expect("the columns of a join have one type, and so have those of a key");
            }
            if counts.iter().any(|count| *count < COUNTED_TOGETHER) {
                return Some(counts[0] < counts[1]);
            }
        }
    }
}
