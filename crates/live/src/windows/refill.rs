//! More rows for windows that have lost so many that those behind are used up.

use std::hash::BuildHasher;

use lightcone_table::Tables;
use rustc_hash::FxBuildHasher;

use super::allowance::{Allowance, Spent};
use super::common::Common;
use super::fill::{Found, Wanted};
use super::shape::WindowShape;
use super::shape_windows::{give_up, Live, Scratch, ShapeWindows, Short};
use super::window::Entry;
use crate::joins::{Answers, Reading};

/// When many windows are short of rows, each is expected to look at so many for one that it finds, and looks for no more spare ones
/// than its share allows.
const ROWS_READ_PER_FOUND: usize = 8;

impl ShapeWindows {
    /// Looks for the rows that the touched windows are short of. Those that take too much are `greedy`.
    pub fn fill_touched(
        &mut self,
        tables: &dyn Tables,
        scratch: &mut Scratch,
        allowance: &mut Allowance,
        greedy: &mut Vec<Spent>,
    ) {
        let shape = self.shape.clone();
        for &number in &scratch.touched {
            let live = self.live(number);
            live.window.trim(live.extent);
            let answers = &mut scratch.answers;
            if live
                .count_anew(&shape, tables, answers, allowance)
                .is_none()
            {
                let spent = live.spent(&shape, number);
                give_up(&mut self.windows, spent, allowance, greedy);
            }
        }
        self.find_short(scratch);
        let short = std::mem::take(&mut scratch.short);
        allowance.grant(short.len());
        let is_shared = short.len() > 1 && !shape.sources.is_empty();
        let mut common = Common::default();
        for (place, &Short { window: number, .. }) in short.iter().enumerate() {
            let live = self.live(number);
            if live.has_failed {
                continue;
            }
            let mut refill = Refill {
                tables,
                answers: &mut scratch.answers,
                allowance,
                common: is_shared.then_some(&mut common),
                windows_left: short.len() - place,
                rows_read: 0,
            };
            let found = refill.find(&shape, live);
            live.rows_read += refill.rows_read;
            let spent = live.spent(&shape, number);
            let Some((found, access)) = found else {
                give_up(&mut self.windows, spent, allowance, greedy);
                continue;
            };
            allowance.note(spent);
            live.access = access;
            live.window.extend(
                found.entries,
                found.is_complete,
                live.extent,
                &mut live.changes,
            );
        }
        scratch.short = short;
    }

    /// Lists the touched windows that are short of rows.
    fn find_short(&mut self, scratch: &mut Scratch) {
        scratch.short.clear();
        for &window in &scratch.touched {
            let live = &self.windows[window as usize];
            if live.has_failed || live.window.missing_rows(live.extent).0 == 0 {
                continue;
            }
            let mut like = (0, 0);
            if !self.shape.sources.is_empty() {
                let own_key = self.shape.own_key(&live.asked.key);
                let last = live.window.last().map_or(&[][..], Entry::bytes);
                like = (FxBuildHasher.hash_one(own_key), first_bytes(last));
            }
            scratch.short.push(Short { like, window });
        }
        if !self.shape.sources.is_empty() {
            scratch.short.sort_unstable();
        }
    }
}

impl Live {
    /// Counts anew how often sources give the rows of which too little is known. None: that is too much.
    fn count_anew(
        &mut self,
        shape: &WindowShape,
        tables: &dyn Tables,
        answers: &mut Answers,
        allowance: &mut Allowance,
    ) -> Option<()> {
        for entry in self.window.take_uncounted() {
            let granted = allowance.left();
            let mut reading = Reading {
                tables,
                answers,
                rows_left: granted,
            };
            let weight = shape.weight(&mut reading, &self.asked.key, entry.row());
            let rows = granted - reading.rows_left;
            allowance.spend(rows);
            self.rows_read += rows;
            let changes = &mut self.changes;
            self.window
                .set_weight(&entry, weight?, self.extent, changes);
        }
        Some(())
    }

    fn spent(&self, shape: &WindowShape, window: u32) -> Spent {
        Spent {
            rows: self.rows_read,
            shape: shape.id,
            window,
        }
    }
}

/// The rows that one of the windows is short of are looked for.
struct Refill<'r> {
    tables: &'r dyn Tables,
    answers: &'r mut Answers,
    allowance: &'r mut Allowance,
    /// Several windows may be short of the same ones.
    common: Option<&'r mut Common>,
    /// With this one.
    windows_left: usize,
    rows_read: usize,
}

impl Refill<'_> {
    /// Finds them, and says by which way. None: that is too much.
    fn find(&mut self, shape: &WindowShape, live: &Live) -> Option<(Found, usize)> {
        let (missing, needed) = live.window.missing_rows(live.extent);
        let wanted = Wanted {
            shape,
            key: &live.asked.key,
            query: (&live.asked.query, live.asked.sender),
            after: live.window.last(),
            rows: missing,
            is_any_source: false,
        };
        let mut ways = vec![live.access];
        if !shape.sources.is_empty() {
            // What decides about rows may have changed so that another way is the better one now.
            let others = 0..shape.accesses.len();
            ways.extend(others.filter(|way| *way != live.access));
        }
        if self.common.is_none() {
            return self.look(wanted, &ways, usize::MAX);
        }
        // Spare rows are looked for with half of what each of those that are left can have; with the rest, those that come out.
        let share = self.allowance.left() / self.windows_left;
        let rows = missing.min(share / ROWS_READ_PER_FOUND);
        let with_spare = match rows > needed {
            true => self.look(Wanted { rows, ..wanted }, &ways, share / 2),
            false => None,
        };
        with_spare.or_else(|| {
            let wanted = Wanted {
                rows: needed,
                ..wanted
            };
            self.look(wanted, &ways, usize::MAX)
        })
    }

    fn look(
        &mut self,
        wanted: Wanted<'_>,
        ways: &[usize],
        rows_max: usize,
    ) -> Option<(Found, usize)> {
        let granted = self.allowance.left().min(rows_max);
        let mut reading = Reading {
            tables: self.tables,
            answers: self.answers,
            rows_left: granted,
        };
        let found = wanted.find_by_any(&mut reading, ways, self.common.as_deref_mut());
        let rows = granted - reading.rows_left;
        self.allowance.spend(rows);
        self.rows_read += rows;
        found
    }
}

/// How bytes begin, in their order.
fn first_bytes(bytes: &[u8]) -> u128 {
    let mut first = [0; 16];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(first)
}
