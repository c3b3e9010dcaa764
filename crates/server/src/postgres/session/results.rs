//! What came of a statement, on its way to the client.

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
    /// Of a statement that gives no rows.
    pub fn done(tag: impl Into<String>) -> Outcome {
        Outcome {
            columns: None,
            pending: Pending::new([].into(), tag.into()),
        }
    }
}

impl Session {
    /// The rows of a result that was made here.
    pub(super) fn of_table(
        &self,
        table: &SmallTable,
        formats: &[Format],
    ) -> Result<Outcome, Failure> {
        self.check_memory(table)?;
        let rows = self.held(table.messages(formats))?;
        let tag = format!("SELECT {}", table.rows.len());
        Ok(Outcome {
            columns: Some(table.column_types()),
            pending: Pending::new([rows].into(), tag),
        })
    }

    /// The same, as lines.
    pub(super) fn lines_of_table(
        &self,
        table: &SmallTable,
        lines: CopyRows,
    ) -> Result<Outcome, Failure> {
        self.check_memory(table)?;
        let rows = self.held(lines.lines_of_table(table))?;
        let tag = format!("COPY {}", table.rows.len());
        Ok(Outcome {
            columns: None,
            pending: Pending::new([rows].into(), tag).copied(table.columns.len()),
        })
    }

    /// Refuses what the client could not hold, before it is written: that takes this thread's time.
    fn check_memory(&self, table: &SmallTable) -> Result<(), Failure> {
        let mut memory = self.holder.memory();
        memory.set(table.text_bytes()).map_err(of_statement)
    }

    /// Counts what was made here as the client's.
    fn held(&self, messages: Vec<u8>) -> Result<Piece, Failure> {
        let held = self.holder.hold(messages).map_err(of_statement)?;
        Ok(Box::new(held))
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
