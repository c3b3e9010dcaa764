//! Bounded texts: names and values in them come from modules.

use std::fmt::{self, Write};

/// Longer types and values in a text are cut.
const PART_BYTES_MAX: usize = 500;

/// Writing beyond the bound fails, and leaves what fitted.
pub(super) struct BoundedText {
    text: String,
    bytes_max: usize,
}

impl BoundedText {
    pub(super) fn new(bytes_max: usize) -> BoundedText {
        BoundedText {
            text: String::new(),
            bytes_max,
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = self.bytes_max - self.text.len();
        if piece.len() <= room {
            self.text.push_str(piece);
            return Ok(());
        }
        self.text
            .push_str(&piece[..piece.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

/// Something as text, cut to a readable length.
pub(super) fn clipped(shown: impl fmt::Display) -> String {
    let mut out = BoundedText::new(PART_BYTES_MAX);
    match write!(out, "{shown}") {
        Ok(()) => out.into_text(),
        Err(_) => format!("{}...", out.into_text()),
    }
}
