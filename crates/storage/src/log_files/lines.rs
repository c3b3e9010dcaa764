//! Ends of lines in a log file.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

/// The end of a file is searched in pieces of this size for its last whole line.
const PIECE_BYTES: u64 = 64 << 10;

/// Cuts what is behind the last whole line, as a failed write or a killed process leaves it. Gives the length.
pub(super) fn cut_half_line(file: &mut File) -> std::io::Result<u64> {
    let length = file.metadata()?.len();
    let mut whole = length;
    let mut piece = Vec::new();
    while whole > 0 {
        let start = whole.saturating_sub(PIECE_BYTES);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        std::io::Read::take(&mut *file, whole - start).read_to_end(&mut piece)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
            whole = start + last as u64 + 1;
            break;
        }
        whole = start;
    }
    if whole < length {
        file.set_len(whole)?;
    }
    Ok(whole)
}

/// The bytes of the whole lines that fit.
pub(super) fn first_lines(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    let fitting = &lines[..room];
    let last = fitting.iter().rposition(|byte| *byte == b'\n');
    last.map_or(0, |at| at + 1)
}

pub(super) fn first_line(lines: &[u8]) -> usize {
    let end = lines.iter().position(|byte| *byte == b'\n');
    end.map_or(lines.len(), |at| at + 1)
}
