//! An index that is built beside the writer: from a frozen table, then from what has changed since, until the writer takes it.

use std::sync::Arc;

use lightcone_table::{IndexBuild, IndexChanges};
use lightcone_types::ColId;

use crate::frozen::FrozenTable;
use crate::inbox::{Built, Input};
use crate::reads::{Job, Progress, Slice};
use crate::shared::Shared;

/// Rows or changes between two looks at the clock.
const PIECE_ROWS: usize = 1024;

/// One round: all rows of the frozen table, or the changes since.
pub(crate) struct BuildRound {
    shared: Arc<Shared>,
    built: Built,
    frozen: Option<Arc<FrozenTable>>,
    changes: IndexChanges,
    /// How many of them were applied.
    applied: usize,
    /// The index has all of it.
    is_complete: bool,
}

impl BuildRound {
    pub fn first(
        shared: Arc<Shared>,
        frozen: Arc<FrozenTable>,
        column: ColId,
        number: u64,
    ) -> BuildRound {
        BuildRound {
            shared,
            built: Built {
                table: frozen.schema.id,
                column,
                number,
                index: Some(IndexBuild::new(&frozen, column)),
            },
            frozen: Some(frozen),
            changes: IndexChanges::default(),
            applied: 0,
            is_complete: false,
        }
    }

    /// One more, for what has changed during the one before.
    pub fn next(shared: Arc<Shared>, built: Built, changes: IndexChanges) -> BuildRound {
        BuildRound {
            shared,
            built,
            frozen: None,
            changes,
            applied: 0,
            is_complete: false,
        }
    }

    /// Works for a moment. False: there is no more to do.
    fn step(&mut self) -> bool {
        let Some(index) = &mut self.built.index else {
            return false;
        };
        if self.shared.inbox.is_closed() {
            return false;
        }
        match &self.frozen {
            Some(frozen) if frozen.is_ended() => self.built.index = None,
            Some(frozen) => {
                if !index.add_rows(frozen, PIECE_ROWS) {
                    self.frozen = None;
                }
            }
            None if self.applied < self.changes.len() => {
                self.applied = index.apply(&self.changes, self.applied, PIECE_ROWS);
            }
            None => {
                self.is_complete = true;
                return false;
            }
        }
        true
    }
}

impl Job for BuildRound {
    fn run(&mut self, slice: &Slice<'_>) -> Progress {
        while self.step() {
            if slice.is_over() {
                return Progress::Again;
            }
        }
        Progress::Done
    }
}

/// The writer is told whatever came of it.
impl Drop for BuildRound {
    fn drop(&mut self) {
        let built = Built {
            index: self.built.index.take().filter(|_| self.is_complete),
            ..self.built
        };
        // A database that has ended needs no index.
        let _ = self.shared.inbox.send(Input::IndexBuilt(Box::new(built)));
    }
}
