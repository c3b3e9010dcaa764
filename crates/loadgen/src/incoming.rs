//! Reading from a socket, a piece at a time. Only an incomplete piece is kept between reads, so thousands of idle connections cost
//! no memory.

use std::io::{ErrorKind, Read};

use crate::Error;

/// Room for a read beyond the kept bytes.
const READ_BYTES_MIN: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing more for now.
    Drained,
    /// There may be more.
    More,
    /// The server ended the connection.
    End,
}

/// What a connection reads from, and where its answers go.
pub struct Io<'a> {
    pub stream: &'a mut dyn Read,
    /// Scratch space that connections share.
    pub buffer: &'a mut Vec<u8>,
    pub out: &'a mut Vec<u8>,
}

/// The beginning of an incomplete piece.
#[derive(Debug, Default)]
pub struct Incoming {
    partial: Vec<u8>,
}

impl Incoming {
    pub fn partial(&self) -> &[u8] {
        &self.partial
    }

    /// Reads once. `take` gets the kept and the new bytes, and returns how many it used. Connections share `buffer`; it grows if a
    /// piece of `piece_bytes`, where that is known, does not fit.
    pub fn read(
        &mut self,
        stream: &mut dyn Read,
        buffer: &mut Vec<u8>,
        piece_bytes: usize,
        take: impl FnOnce(&[u8]) -> Result<usize, Error>,
    ) -> Result<Progress, Error> {
        let kept = self.partial.len();
        let wanted = piece_bytes.max(kept + READ_BYTES_MIN);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        buffer[..kept].copy_from_slice(&self.partial);
        let read = loop {
            match stream.read(&mut buffer[kept..]) {
                Ok(0) => return Ok(Progress::End),
                Ok(read) => break read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Progress::Drained);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("receiving")(error)),
            }
        };
        let end = kept + read;
        self.partial.clear();
        let used = take(&buffer[..end])?;
        self.partial.extend_from_slice(&buffer[used..end]);
        Ok(if end == buffer.len() {
            Progress::More
        } else {
            Progress::Drained
        })
    }
}
