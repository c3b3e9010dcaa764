//! What windows may take.

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

/// What the windows of a new query set may take.
pub(super) struct Room {
    pub rows_left: usize,
    pub answers: Answers,
    /// Its connection has few windows: the half that is kept back is for it.
    pub is_modest: bool,
}

impl Room {
    /// How many bytes there may be in all with a window that has these.
    pub fn bytes_max(&self, limits: WindowLimits, bytes: usize) -> usize {
        match self.is_modest && bytes <= limits.bytes_max / MODEST_PART {
            true => limits.bytes_max,
            false => limits.bytes_max / 2,
        }
    }
}
