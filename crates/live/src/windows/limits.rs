//! What windows may take.

use std::time::Instant;

use crate::held_indexes::IndexUser;
use crate::joins::Answers;

/// Bounds, of which each is a limit.
#[derive(Clone, Copy)]
pub struct WindowLimits {
    pub rows_max: usize,
    pub windows_max: usize,
    pub bytes_max: usize,
    pub rows_read_max: usize,
}

/// A window with this part of all bytes is none of the few small ones that a modest connection may always have.
const MODEST_PART: usize = 64;

/// Who has new windows, and what these may take.
#[derive(Clone, Copy)]
pub struct WindowUser<'r> {
    pub limits: WindowLimits,
    /// A connection that has few windows, or a view: the half that is kept back is for it.
    pub is_modest: bool,
    pub index_user: IndexUser<'r>,
    pub now: Instant,
}

/// What the windows of a new query set, or of an instance of a view, may take.
pub(super) struct Room<'r> {
    pub user: WindowUser<'r>,
    pub rows_left: usize,
    pub answers: Answers,
    /// The changes of the open transaction are in the tables.
    pub is_publish: bool,
}

impl<'r> Room<'r> {
    pub fn new(user: WindowUser<'r>) -> Room<'r> {
        Room {
            user,
            rows_left: user.limits.rows_read_max,
            answers: Answers::default(),
            is_publish: false,
        }
    }

    /// How many bytes there may be in all with a window that has these.
    pub fn bytes_max(&self, bytes: usize) -> usize {
        let bytes_max = self.user.limits.bytes_max;
        match self.user.is_modest && bytes <= bytes_max / MODEST_PART {
            true => bytes_max,
            false => bytes_max / 2,
        }
    }
}
