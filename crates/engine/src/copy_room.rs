//! What a snapshot costs in memory while it is written: pages as they were, because the writer has copied them to change them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How much of that there may be. The snapshot writes such pages first, and the writer waits while there are too many. Both have it.
pub struct CopyRoom {
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// [`Datastore::released_bytes`](crate::Datastore::released_bytes), when the writer last asked.
    released: u64,
    /// Up to this it may go on.
    until: u64,
}

impl CopyRoom {
    /// For so many bytes of pages.
    pub fn new(bytes_max: u64) -> CopyRoom {
        let state = State {
            released: 0,
            until: u64::MAX,
        };
        CopyRoom {
            bytes_max,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables were frozen for a snapshot; by then they had released so much.
    pub fn begin(&self, released: u64) {
        self.state().released = released;
        self.set_held(0);
    }

    /// Whether the writer, whose tables have released so much, may go on.
    pub fn has_room(&self, released: u64) -> bool {
        let mut state = self.state();
        state.released = released;
        released <= state.until
    }

    /// Waits until it may.
    pub fn wait(&self) {
        let mut state = self.state();
        while state.released > state.until {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No page is held for a snapshot any more.
    pub fn end(&self) {
        self.set_until(|_| u64::MAX);
    }

    /// So many bytes are held for the snapshot alone.
    pub(crate) fn set_held(&self, bytes: u64) {
        let bytes_max = self.bytes_max;
        self.set_until(|state| {
            let until = state.released.saturating_add(bytes_max);
            until.saturating_sub(bytes)
        });
    }

    /// So many of them are written, and held no more.
    pub(crate) fn let_go(&self, bytes: u64) {
        self.set_until(|state| state.until.saturating_add(bytes));
    }

    fn set_until(&self, until: impl FnOnce(&State) -> u64) {
        let mut state = self.state();
        state.until = until(&state);
        self.changed.notify_all();
    }
}
