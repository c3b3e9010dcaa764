//! Whether the subqueries of a match hold, before a transaction and after it.
//!
//! Before it, a table had the rows that it has now, less those that came, and those that went. What is known of a subquery is
//! kept for the transaction: it depends on the columns around it that it reads, and on the key.

use std::borrow::Borrow;
use std::collections::HashSet;

use lightcone_query::Guard;
use lightcone_table::{Index, TableView};

use super::allowance::MATCHES_COUNTED_MAX;
use super::changes::COMPARED_MAX;
use super::delta::Search;
use super::parts::{place_of, sorted, Rows};
use super::path::Path;
use super::subquery::{Driver, Probe, Sought, Subquery};

/// So many answers about subqueries are kept at a time, of questions that are so long.
const KNOWN_MAX: usize = 1 << 16;
const QUESTION_BYTES_MAX: usize = 256;
/// Looking whether a subquery has a match takes so many steps, beside those of its rows.
const ASK_STEPS: usize = 1;
/// So many keys are compared in a step.
const KEYS_PER_STEP: usize = 8;
/// Of several indexes, the one is taken that has fewer rows. So many of each are counted at a time, for as much as looking at one.
const COUNTED_TOGETHER: usize = 32;
/// Where matches are counted, up to a bound, so many rows of each are.
const COMPARED_TO_COUNT_MAX: usize = 2048;

/// Around the transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Before,
    After,
}

/// Who is asked for: all values of one key, or all callers that a subquery's rows are for.
#[derive(Clone, Copy)]
enum For<'k> {
    Key(&'k [u8]),
    Any,
}

/// A subquery whose matches are looked for.
#[derive(Clone, Copy)]
struct Sub<'k> {
    of: &'k Subquery,
    state: State,
    whose: For<'k>,
    /// Two ways to the matches are compared by so many rows of each: where one match will do, a little counting has to.
    compared_max: usize,
}

/// An index by which rows of a relation are found, and the value to find.
#[derive(Clone, Copy)]
struct Way<'w> {
    index: &'w Index,
    point: &'w [u8],
    /// It is that of the column by which the rows are joined with those around.
    is_by_join: bool,
}

impl<'s> Search<'s> {
    /// A match around subqueries has come or gone: finds for whom they hold.
    pub(super) fn ask_within(
        &mut self,
        path: &'s Path,
        rows: &Rows<'s>,
        weight: isize,
    ) -> Option<()> {
        // Rows of subqueries take their places in it.
        let (shape, rows) = (self.shape, &mut rows.clone());
        // An event is delivered if what is around it afterwards is so (08 §11).
        let state = match shape.event {
            Some(_) => State::After,
            None => State::Before,
        };
        if path.has_key {
            if self.holds(rows, self.key, state, None)? {
                self.push(self.key, rows, weight)?;
            }
            return Some(());
        }
        let (mut matched, mut known) = (HashSet::new(), None);
        if let Some(driver) = &shape.driver {
            matched = self.keys_of_matches(driver, rows, state)?;
            known = Some(driver.guard);
            if !driver.is_negated {
                // What comes of them does so in one order.
                for key in sorted(matched.into_iter()) {
                    if self.holds(rows, key, state, known)? {
                        self.push(key, rows, weight)?;
                    }
                }
                return Some(());
            }
        }
        for key in self.all_keys()? {
            let is_possible = !matched.contains(key) && self.fits(path, rows, key);
            if is_possible && self.holds(rows, key, state, known)? {
                self.push(key, rows, weight)?;
            }
        }
        Some(())
    }

    /// A change in a subquery may concern a match around it, which is there: finds for whom it does.
    pub(super) fn ask_around(&mut self, path: &'s Path, rows: &Rows<'s>) -> Option<()> {
        // As above; whose it is, is said by the rows that led here.
        let found = &mut rows.clone();
        if path.has_key {
            return self.ask_once(found, self.key);
        }
        for key in self.all_keys()? {
            if self.fits(path, rows, key) {
                self.ask_once(found, key)?;
            }
        }
        Some(())
    }

    fn all_keys(&mut self) -> Option<impl Iterator<Item = &'s [u8]>> {
        let keys = self.keys;
        self.spend(keys.len() / KEYS_PER_STEP + 1)?;
        Some(keys.keys().map(Borrow::borrow))
    }

    /// Whether a key has the values that are known.
    fn fits(&self, path: &Path, rows: &Rows<'s>, key: &[u8]) -> bool {
        let mut parameters = path.parameters.iter();
        let value = |number| self.shape.parameters.value(key, number);
        parameters.all(|(number, at)| self.shape.value(rows, *at) == value(*number))
    }

    fn ask_once(&mut self, rows: &mut Rows<'s>, key: &'s [u8]) -> Option<()> {
        let address = |bytes: &[u8]| bytes.as_ptr() as usize;
        let of_rows = self.shape.around().map(|relation| address(rows[relation]));
        let asked: Vec<usize> = of_rows.chain([address(key)]).collect();
        if !self.asked.insert(asked) {
            return Some(());
        }
        let before = self.holds(rows, key, State::Before, None)?;
        let after = self.holds(rows, key, State::After, None)?;
        match (before, after) {
            (false, true) => self.push(key, rows, 1),
            (true, false) => self.push(key, rows, -1),
            _ => Some(()),
        }
    }

    /// Whether all conditions with subqueries hold, but for one that is known to.
    fn holds(
        &mut self,
        rows: &mut Rows<'s>,
        key: &[u8],
        state: State,
        known: Option<usize>,
    ) -> Option<bool> {
        let guards = self.shape.guards.iter().enumerate();
        let unknown = guards.filter(|(number, _)| Some(*number) != known);
        self.all_hold(unknown.map(|(_, guard)| guard), rows, key, state)
    }

    fn all_hold<'g>(
        &mut self,
        guards: impl IntoIterator<Item = &'g Guard>,
        rows: &mut Rows<'s>,
        key: &[u8],
        state: State,
    ) -> Option<bool> {
        for guard in guards {
            if !self.guard_holds(guard, rows, key, state)? {
                return Some(false);
            }
        }
        Some(true)
    }

    fn guard_holds(
        &mut self,
        guard: &Guard,
        rows: &mut Rows<'s>,
        key: &[u8],
        state: State,
    ) -> Option<bool> {
        let mut without_match = 0;
        for &number in &guard.subqueries {
            if !self.has_match(number, rows, key, state)? {
                without_match |= 1 << self.shape.subqueries[number].relations[0];
            }
        }
        self.spend(self.shape.guard_cost_in_rows(guard, rows))?;
        Some(self.shape.guard_holds(guard, rows, without_match))
    }

    fn has_match(
        &mut self,
        number: usize,
        rows: &mut Rows<'s>,
        key: &[u8],
        state: State,
    ) -> Option<bool> {
        let mut question = vec![number as u8, state as u8];
        for at in &self.shape.subqueries[number].reads {
            question.extend_from_slice(self.shape.value(rows, *at));
        }
        question.extend_from_slice(key);
        self.spend(ASK_STEPS)?;
        if let Some(known) = self.known.get(&question) {
            return Some(*known);
        }
        let mut found = false;
        let sub = Sub {
            of: &self.shape.subqueries[number],
            state,
            whose: For::Key(key),
            compared_max: COUNTED_TOGETHER,
        };
        self.look(sub, rows, &mut |_, _| {
            found = true;
            Some(false)
        })?;
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if question.len() <= QUESTION_BYTES_MAX {
            self.known.insert(question, found);
        }
        Some(found)
    }

    /// The keys of those that the matches of a subquery are for.
    fn keys_of_matches(
        &mut self,
        driver: &'s Driver,
        rows: &mut Rows<'s>,
        state: State,
    ) -> Option<HashSet<&'s [u8]>> {
        let mut keys = HashSet::new();
        let shape = self.shape;
        let sub = Sub {
            of: &shape.subqueries[driver.subquery],
            state,
            whose: For::Any,
            compared_max: usize::MAX,
        };
        self.look(sub, rows, &mut |search, rows| {
            let mut written = std::mem::take(&mut search.found.key);
            shape.write_key(rows, &driver.key, &mut written);
            let key = search.wanted(&written);
            search.found.key = written;
            let Some(key) = key.filter(|key| !keys.contains(key)) else {
                return Some(true);
            };
            let guards = &shape.subqueries[driver.subquery].guards;
            if search.all_hold(guards, rows, key, state)? {
                keys.insert(key);
            }
            Some(true)
        })?;
        Some(keys)
    }

    /// How many matches a row has that comes out, for a key, in the tables as they are: up to [`MATCHES_COUNTED_MAX`].
    pub(super) fn count_around(&mut self, key: &[u8], rows: &mut Rows<'s>) -> Option<u64> {
        let sub = Sub {
            of: &self.shape.around,
            state: State::After,
            whose: For::Key(key),
            compared_max: COMPARED_TO_COUNT_MAX,
        };
        let mut count = 0;
        self.look(sub, rows, &mut |_, _| {
            count += 1;
            Some(count < MATCHES_COUNTED_MAX)
        })?;
        Some(count)
    }

    /// Calls `visit` with the matches of a subquery until it gives false. Conditions with subqueries inside of it are looked at
    /// if the key is known. None: it is too much.
    fn look(
        &mut self,
        sub: Sub<'_>,
        rows: &mut Rows<'s>,
        visit: &mut dyn FnMut(&mut Self, &mut Rows<'s>) -> Option<bool>,
    ) -> Option<()> {
        if self.admits(&sub.of.start, rows)? {
            self.probe(sub, 0, rows, visit)?;
        }
        Some(())
    }

    fn probe(
        &mut self,
        sub: Sub<'_>,
        depth: usize,
        rows: &mut Rows<'s>,
        visit: &mut dyn FnMut(&mut Self, &mut Rows<'s>) -> Option<bool>,
    ) -> Option<bool> {
        let Some(probe) = sub.of.probes.get(depth) else {
            if let For::Key(key) = sub.whose {
                if !self.all_hold(&sub.of.guards, rows, key, sub.state)? {
                    return Some(true);
                }
            }
            return visit(self, rows);
        };
        let place = place_of(probe.to);
        let table = self.shape.relations[place].table.id;
        let Some(table) = self.tables.table(table) else {
            return Some(true);
        };
        let way = self.best_way(table, probe, sub, rows)?;
        let result = self.each_row(table, place, (way.index, way.point), |search, row| {
            if sub.state == State::Before && search.came(place, row) {
                return Some(true);
            }
            rows[place] = row;
            let is_joined = |edge| way.is_by_join || search.shape.joins(edge, rows);
            match probe.edge.is_none_or(is_joined) {
                true => search.probe_on(sub, depth, rows, visit),
                false => Some(true),
            }
        });
        if result != Some(true) || sub.state == State::After || self.changes.of(place).is_empty() {
            return result;
        }
        let index = table.index_on(probe.to.column)?;
        let partners = self.partners(index, probe.to, self.shape.value(rows, probe.from))?;
        let mut goes_on = true;
        partners.try_for_each(|changed| {
            if goes_on && changed.weight < 0 {
                self.spend(1)?;
                self.take(place, changed, rows);
                goes_on = self.probe_on(sub, depth, rows, visit)?;
            }
            Some(())
        })?;
        Some(goes_on)
    }

    /// Goes on with a row that was found last, if it fits.
    fn probe_on(
        &mut self,
        sub: Sub<'_>,
        depth: usize,
        rows: &mut Rows<'s>,
        visit: &mut dyn FnMut(&mut Self, &mut Rows<'s>) -> Option<bool>,
    ) -> Option<bool> {
        let shape = self.shape;
        let probe = &sub.of.probes[depth];
        if let For::Key(key) = sub.whose {
            let place = place_of(probe.to);
            let mut parameters = probe.parameters.iter();
            let is_its = |(number, column): &(usize, _)| {
                let value = shape.relations[place].value(rows[place], *column);
                value == shape.parameters.value(key, *number)
            };
            if !parameters.all(is_its) {
                return Some(true);
            }
        }
        match self.admits(&probe.residuals, rows)? {
            true => self.probe(sub, depth + 1, rows, visit),
            false => Some(true),
        }
    }

    /// The index that finds the fewest rows, and the value to find.
    fn best_way<'w>(
        &mut self,
        table: &'w TableView,
        probe: &Probe,
        sub: Sub<'w>,
        rows: &Rows<'w>,
    ) -> Option<Way<'w>>
    where
        's: 'w,
    {
        let shape = self.shape;
        let mut best = Way {
            index: table.index_on(probe.to.column)?,
            point: shape.value(rows, probe.from),
            is_by_join: true,
        };
        for (column, sought) in &probe.others {
            if best.index.is_unique() {
                break;
            }
            let point = match (sought, sub.whose) {
                (Sought::Column(at), _) => shape.value(rows, *at),
                (Sought::Parameter(number), For::Key(key)) => shape.parameters.value(key, *number),
                (Sought::Parameter(_), For::Any) => continue,
            };
            let Some(index) = table.index_on(*column) else {
                continue;
            };
            let other = Way {
                index,
                point,
                is_by_join: false,
            };
            if index.is_unique() || self.has_fewer(table, [other, best], sub.compared_max)? {
                best = other;
            }
        }
        Some(best)
    }

    /// Whether one of two ways finds fewer rows than the other. Counts no more than there are by the shorter one, and some.
    fn has_fewer(
        &mut self,
        table: &TableView,
        [one, other]: [Way<'_>; 2],
        compared_max: usize,
    ) -> Option<bool> {
        let (mut last, mut compared) = ([None, None], 0);
        loop {
            let mut counts = [0, 0];
            for (place, way) in [one, other].into_iter().enumerate() {
                self.spend(1)?;
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
            compared += COUNTED_TOGETHER;
            if compared >= compared_max || counts.iter().any(|count| *count < COUNTED_TOGETHER) {
                return Some(counts[0] < counts[1]);
            }
        }
    }

    /// Whether this row of a table has come with the transaction.
    fn came(&mut self, place: usize, row: &[u8]) -> bool {
        let (changed, ops) = (self.changes.of(place), self.ops);
        let came = changed.iter().filter(|changed| changed.weight > 0);
        let mut rows = came.map(|changed| ops.row(*changed));
        if changed.len() <= COMPARED_MAX {
            return rows.any(|other| other == row);
        }
        let inserted = self.inserted.entry(place);
        inserted.or_insert_with(|| rows.collect()).contains(row)
    }
}
