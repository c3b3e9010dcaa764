//! A body that is there, but not in one piece.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Gives its pieces one after the other, so that each can be freed when it is sent. Its length is known.
pub(super) struct PiecesBody {
    pieces: VecDeque<Bytes>,
    bytes_left: u64,
}

impl PiecesBody {
    pub fn new(pieces: impl IntoIterator<Item = Bytes>) -> PiecesBody {
        let pieces: VecDeque<_> = pieces.into_iter().collect();
        PiecesBody {
            bytes_left: pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces,
        }
    }
}

impl HttpBody for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        Poll::Ready(piece.map(|piece| {
            self.bytes_left -= piece.len() as u64;
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left)
    }
}
