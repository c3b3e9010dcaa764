//! The end of a log, for people who read it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::lines::first_line;
use super::names::parts;

const TAIL_BYTES_MAX: u64 = 64 << 20;

pub fn has_log_files(directory: &Path) -> bool {
    !parts(directory, "").is_empty()
}

/// The last lines of the newest day in a directory of files without prefix.
pub fn log_tail(directory: &Path, num_lines: Option<u32>) -> Vec<u8> {
    let mut parts = parts(directory, "");
    let newest = parts.last().map(|part| part.day);
    let wanted = num_lines.map_or(usize::MAX, |count| count.max(1) as usize);
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let (mut lines, mut bytes) = (0, 0);
    while let Some(part) = parts.pop() {
        if Some(part.day) != newest || lines >= wanted || bytes >= TAIL_BYTES_MAX {
            break;
        }
        // A file that has just been removed was old.
        let Ok(piece) = read_end(&part.path, TAIL_BYTES_MAX - bytes) else {
            continue;
        };
        bytes += piece.len() as u64;
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
        pieces.push(piece);
    }
    pieces.reverse();
    let mut text = pieces.concat();
    let start = start_of_last_lines(&text, wanted);
    text.drain(..start);
    text
}

fn start_of_last_lines(text: &[u8], count: usize) -> usize {
    let ends = text.iter().enumerate().rev();
    let starts = ends
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1);
    starts
        .filter(|start| *start < text.len())
        .nth(count.saturating_sub(1))
        .unwrap_or(0)
}

fn read_end(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length > bytes_max {
        file.seek(SeekFrom::Start(length - bytes_max))?;
    }
    file.take(bytes_max).read_to_end(&mut text)?;
    if length > bytes_max {
        text.drain(..first_line(&text));
    }
    Ok(text)
}
