//! What a snapshot costs in memory while it is written: pages as they were, because the writer has copied them to change them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::datastore::Datastore;

/// How much of that there may be. The snapshot writes such pages first, and the writer waits while there are too many. Both have it.
pub struct CopyRoom {
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

/// Bytes of pages.
#[derive(Default)]
struct State {
    /// Whether a snapshot holds any.
    is_begun: bool,
    /// [`Datastore::released_bytes`], when the writer last asked.
    released: i128,
    /// Of these, what is held no more; less than nothing if more is held.
    free: i128,
    /// [`Datastore::page_bytes`] when the snapshot was begun.
    at_begin: i128,
    /// How many more there were when the writer last had to know. What is deleted makes room for what is held.
    grown: i128,
}

impl State {
    fn held(&self) -> i128 {
        self.released - self.free
    }

    fn has_room(&self, bytes_max: u64) -> bool {
        let (held, bytes_max) = (self.held(), i128::from(bytes_max));
        !self.is_begun || held <= bytes_max || held + self.grown <= bytes_max
    }
}

impl CopyRoom {
    /// For so many bytes of pages.
    pub fn new(bytes_max: u64) -> CopyRoom {
        CopyRoom {
            bytes_max,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These tables were frozen for a snapshot.
    pub fn begin(&self, tables: &Datastore) {
        self.begin_with(tables.released_bytes(), tables.page_bytes());
    }

    fn begin_with(&self, released: u64, page_bytes: u64) {
        let released = i128::from(released);
        *self.state() = State {
            is_begun: true,
            released,
            free: released,
            at_begin: page_bytes.into(),
            grown: 0,
        };
    }

    /// Whether the writer, who has these tables now, may go on.
    pub fn has_room(&self, tables: &Datastore) -> bool {
        self.has_room_with(tables.released_bytes(), || tables.page_bytes())
    }

    fn has_room_with(&self, released: u64, page_bytes: impl FnOnce() -> u64) -> bool {
        let mut state = self.state();
        state.released = released.into();
        if state.held() > i128::from(self.bytes_max) {
            state.grown = i128::from(page_bytes()) - state.at_begin;
        }
        state.has_room(self.bytes_max)
    }

    /// Waits until it may.
    pub fn wait(&self) {
        let waits = |state: &mut State| !state.has_room(self.bytes_max);
        drop(self.changed.wait_while(self.state(), waits));
    }

    /// No page is held for a snapshot any more.
    pub fn end(&self) {
        self.change(|state| state.is_begun = false);
    }

    /// So many bytes are held for the snapshot alone.
    pub(crate) fn set_held(&self, bytes: u64) {
        self.change(|state| state.free = state.released - i128::from(bytes));
    }

    /// So many of them are written, and held no more.
    pub(crate) fn let_go(&self, bytes: u64) {
        self.change(|state| state.free += i128::from(bytes));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_goes_on_when_there_is_room() {
        let wakes: [fn(&CopyRoom); 3] = [
            CopyRoom::end,
            |room| room.let_go(1),
            |room| room.set_held(100),
        ];
        for wake in wakes {
            let room = CopyRoom::new(100);
            room.begin_with(7, 0);
            assert!(room.has_room_with(107, || 0));
            assert!(!room.has_room_with(108, || 0));
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| room.wait());
                wake(&room);
                waits.join().expect("no panic");
            });
        }
    }

    #[test]
    fn more_than_was_released_may_be_held() {
        let room = CopyRoom::new(100);
        room.begin_with(0, 0);
        room.set_held(1_000);
        room.let_go(899);
        assert!(!room.has_room_with(0, || 0));
        room.let_go(1);
        assert!(room.has_room_with(0, || 0));
    }

    #[test]
    fn what_is_deleted_makes_room() {
        let room = CopyRoom::new(100);
        room.begin_with(0, 1_000);
        assert!(room.has_room_with(900, || 200));
        assert!(!room.has_room_with(900, || 201));
        assert!(!room.has_room_with(1_000, || 200));
        assert!(room.has_room_with(100, || 9_000), "nothing was copied");
    }
}
