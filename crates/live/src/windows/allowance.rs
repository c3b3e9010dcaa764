//! How many rows may be looked at to keep the windows of a transaction up to date, and which window has taken most.

use lightcone_types::TableId;

use super::limits::WindowLimits;

/// Rows that may be looked at to fill windows again for each changed row of a transaction, beside `limits.window-rows-read-max`.
const ROWS_READ_PER_CHANGE: usize = 16;

/// The same for each window that is short of rows because of it.
const ROWS_READ_PER_WINDOW: usize = 16;

/// Windows that take too much give back what they have taken, but only until all of them have taken so many times what is allowed.
const ALLOWANCES_MAX: usize = 4;

/// What filling windows in one transaction may still take, and the window that has taken most.
pub(super) struct Allowance {
    pub rows: usize,
    /// Nothing of this is given back.
    pub rows_in_all: usize,
    pub most: Option<Spent>,
    /// Rows that were looked at.
    pub spent: usize,
}

impl Allowance {
    pub fn of(changes: usize, limits: WindowLimits) -> Allowance {
        let spare = changes.saturating_mul(ROWS_READ_PER_CHANGE);
        let rows = limits.rows_read_max.saturating_add(spare);
        Allowance {
            rows,
            rows_in_all: rows.saturating_mul(ALLOWANCES_MAX),
            most: None,
            spent: 0,
        }
    }

    pub fn left(&self) -> usize {
        self.rows.min(self.rows_in_all)
    }

    /// So many windows are short of rows.
    pub fn grant(&mut self, windows: usize) {
        let rows = windows.saturating_mul(ROWS_READ_PER_WINDOW);
        self.rows = self.rows.saturating_add(rows);
        self.rows_in_all = self.rows_in_all.saturating_add(rows);
    }

    pub fn spend(&mut self, rows: usize) {
        self.rows -= rows;
        self.rows_in_all -= rows;
        self.spent += rows;
    }

    /// Changed rows are looked at for a shape, as many as there are.
    pub fn look_at(&mut self, changes: usize) {
        self.spent += changes;
    }

    /// A window is up to date, and has taken so much for it so far.
    pub fn note(&mut self, spent: Spent) {
        if self.most.is_none_or(|most| spent.rows > most.rows) {
            self.most = Some(spent);
        }
    }

    /// A window was too much. Gives who has taken more: it fails too, so that others have something left.
    pub fn fail(&mut self, spent: Spent) -> Option<Spent> {
        self.rows += spent.rows;
        self.most.take_if(|most| most.is_of(spent));
        let greedier = self.most.take_if(|most| most.rows > spent.rows);
        self.rows += greedier.map_or(0, |greedier| greedier.rows);
        greedier
    }
}

/// What a window has taken of the allowance.
#[derive(Clone, Copy)]
pub(super) struct Spent {
    pub rows: usize,
    pub shape: TableId,
    pub window: u32,
}

impl Spent {
    pub fn is_of(self, other: Spent) -> bool {
        (self.shape, self.window) == (other.shape, other.window)
    }
}
