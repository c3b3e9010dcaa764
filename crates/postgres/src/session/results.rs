//! What came of a statement, on its way to the client.

use std::collections::VecDeque;

use lightcone_query::postgresql::Format;
use lightcone_types::ProductType;

use super::super::copy::CopyRows;
use super::super::failure::{of_statement, Failure};
use super::super::messages::WireError;
use super::super::prepared::{Pending, Piece};
use super::super::table::SmallTable;
use super::{Session, Stop};

/// What came of a statement.
pub(super) struct Outcome {
    /// None if it gives no rows.
    pub columns: Option<ProductType>,
    pub pending: Pending,
}

impl Outcome {
    /// Of a statement that gives rows, or lines of a `COPY`.
    pub fn of(columns: ProductType, pieces: VecDeque<Piece>, rows: u64, is_copy: bool) -> Outcome {
        let copied_columns = is_copy.then_some(columns.elements.len());
        let verb = if is_copy { "COPY" } else { "SELECT" };
        Outcome {
            columns: Some(columns).filter(|_| !is_copy),
            pending: Pending {
                is_copy,
                copied_columns,
                ..Pending::new(pieces, format!("{verb} {rows}"))
            },
        }
    }

    /// Of a statement that gives no rows.
    pub fn done(tag: impl Into<String>) -> Outcome {
        Outcome {
            columns: None,
            pending: Pending::new([].into(), tag.into()),
        }
    }
}

impl Session {
    /// The rows of a result that was made here, or its lines. They count as the client's.
    pub(super) fn of_table(
        &self,
        table: &SmallTable,
        formats: &[Format],
        lines: Option<CopyRows>,
    ) -> Result<Outcome, Failure> {
        // What the client could not hold is refused before it is written: that takes this thread's time.
        let mut memory = self.holder.memory();
        memory.set(table.text_bytes()).map_err(of_statement)?;
        drop(memory);
        let is_copy = lines.is_some();
        let messages = match lines {
            None => table.messages(formats),
            Some(lines) => lines.lines_of_table(table),
        };
        let held = self.holder.hold(messages).map_err(of_statement)?;
        let (columns, rows) = (table.column_types(), table.rows.len() as u64);
        Ok(Outcome::of(
            columns,
            [Box::new(held) as Piece].into(),
            rows,
            is_copy,
        ))
    }

    /// Sends rows, at most so many if it is not 0, until their memory is needed for others. True: there are more.
    pub(super) async fn send(
        &mut self,
        pending: &mut Pending,
        rows_max: u64,
    ) -> Result<bool, Stop> {
        let holder = self.holder.clone();
        tokio::select! {
            sent = self.send_rows(pending, rows_max) => sent,
            () = holder.left() => Err(WireError::Cut.into()),
        }
    }

    async fn send_rows(&mut self, pending: &mut Pending, rows_max: u64) -> Result<bool, Stop> {
        if let Some(columns) = pending.copied_columns.take() {
            self.wire.copy_out(columns);
        }
        let mut rows = 0;
        while let Some(piece) = pending.pieces.front() {
            // Between pieces, so that every message is whole.
            if self.cancel.is_asked() {
                return Err(Failure::cancelled().into());
            }
            let messages = (**piece).as_ref();
            if rows_max == 0 {
                self.wire.write(&messages[pending.sent..]).await?;
            } else {
                let mut end = pending.sent;
                while end < messages.len() && rows < rows_max {
                    end += 1 + length_at(&messages[end + 1..]);
                    rows += 1;
                }
                self.wire.write(&messages[pending.sent..end]).await?;
                pending.sent = end;
                if end < messages.len() {
                    return Ok(true);
                }
            }
            pending.sent = 0;
            pending.pieces.pop_front();
        }
        if pending.is_copy {
            self.wire.empty(b'c');
        }
        self.wire.complete(&pending.tag);
        Ok(false)
    }
}

/// The length that stands before the rest of a message of ours.
fn length_at(message: &[u8]) -> usize {
    let length = message.first_chunk::<4>();
    length.map_or(0, |length| u32::from_be_bytes(*length) as usize)
}
