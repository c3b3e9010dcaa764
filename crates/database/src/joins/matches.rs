//! Whether a row has a match, in the tables as they are: for windows, in which a row is once however many matches it has.

use lightcone_engine::Datastore;

use super::path::{Known, Path};
use super::shape::{place_of, JoinShape, Rows};

/// What looking up the rows of one more relation counts for, beside the rows.
const LOOK_UP_ROWS: usize = 1;

impl JoinShape {
    /// Whether a row of the relation that comes out has a match whose parameters are these. Takes the rows that it looks at from
    /// `rows_left`. None: there would be more to look at.
    pub fn has_match(
        &self,
        datastore: &Datastore,
        row: &[u8],
        key: &[u8],
        rows_left: &mut usize,
    ) -> Option<bool> {
        if !self.relations[self.returned].admits(row) {
            return Some(false);
        }
        let mut search = Search {
            shape: self,
            datastore,
            wanted: key,
            key: Vec::new(),
            rows_left,
        };
        let mut rows: Rows<'_> = Default::default();
        rows[self.returned] = row;
        let path = &self.paths[self.returned];
        match search.is_possible(&path.start, &rows) {
            true => search.follow(path, 0, &mut rows),
            false => Some(false),
        }
    }
}

struct Search<'s> {
    shape: &'s JoinShape,
    datastore: &'s Datastore,
    wanted: &'s [u8],
    /// Of the match that is looked for.
    key: Vec<u8>,
    rows_left: &'s mut usize,
}

impl<'s> Search<'s> {
    /// Whether what can be said now is not against a match.
    fn is_possible(&mut self, known: &Known, rows: &Rows<'s>) -> bool {
        if let Some(columns) = &known.key {
            self.shape.write_key(rows, columns, &mut self.key);
            if self.key != self.wanted {
                return false;
            }
        }
        known.residuals.is_empty() || self.shape.admits(&known.residuals, rows)
    }

    /// Finds the rows that are still missing.
    fn follow(&mut self, path: &'s Path, depth: usize, rows: &mut Rows<'s>) -> Option<bool> {
        let Some(hop) = path.hops.get(depth) else {
            return Some(true);
        };
        let place = place_of(hop.to);
        let relation = &self.shape.relations[place];
        let Some(table) = self.datastore.table(relation.table.id) else {
            return Some(false);
        };
        self.spend(LOOK_UP_ROWS)?;
        let index = table.index_on(hop.to.column)?;
        let point = self.shape.value(rows, hop.from);
        let mut found = Some(false);
        let visit = |id| {
            if self.spend(1).is_none() {
                found = None;
                return false;
            }
            let partner = table.row(id);
            if relation.admits(partner) {
                rows[place] = partner;
                if self.is_possible(&hop.known, rows) {
                    found = self.follow(path, depth + 1, rows);
                }
            }
            found == Some(false)
        };
        let walked = index.walk_point(table.rows(), &relation.layout, point, None, visit);
        walked.expect("the columns of a join have one type");
        found
    }

    fn spend(&mut self, rows: usize) -> Option<()> {
        let left = self.rows_left.checked_sub(rows);
        *self.rows_left = left.unwrap_or(0);
        left.map(drop)
    }
}
