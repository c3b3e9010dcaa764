//! Outbox tables: rows that are messages to reducers of other databases (02 §11.5), and what is kept of messages that came.
//!
//! When a transaction is sealed, rows that came get their numbers and rows that went free theirs. Only the first message of a stream
//! is ever sent, so the numbers of the others are known nowhere else. The writer sends. See docs/design/outbox-tables.md.

use lightcone_table::{RangeBounds, RowId, Table};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{Identity, TableId, Timestamp};
use rustc_hash::FxHashMap;

use crate::datastore::Datastore;
use crate::error::{DatastoreError, Result};
use crate::system as st;
use crate::table_state::{TableSlot, TableState};
use crate::transaction::{NetChange, NetKind};

/// Positions of the indexes of the system tables.
const BY_STREAM: usize = 0;
const BY_TABLE_AND_TARGET: usize = 1;
const BY_SEQ: usize = 0;
const BY_MESSAGE: usize = 1;
/// No bound, in a range.
const UNBOUNDED: u8 = 2;

/// A row of `st_outbound_stream`: the messages of an outbox table to one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboundStream {
    pub id: u64,
    pub table: TableId,
    pub target: Identity,
    /// The number of the next message.
    pub next_seq: u64,
    /// Results of messages up to this one are stored.
    pub ack_prefix: u64,
}

/// A row of `st_outbound_msg` that waits for its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundMessage {
    pub stream: u64,
    /// The primary key of the row that is the message.
    pub id: u64,
    pub seq: u64,
    pub retry_count: u32,
    pub last_transport_error: Option<String>,
}

lightcone_types::bsatn_products! {
    OutboundStream { id, table, target, next_seq, ack_prefix }
    OutboundMessage { stream, id, seq, retry_count, last_transport_error }
}

fn stream_of(row: &[u8]) -> Option<OutboundStream> {
    OutboundStream::from_slice(row).ok()
}

fn message_of(row: &[u8]) -> Option<OutboundMessage> {
    OutboundMessage::from_slice(row).ok()
}

fn message_row(message: &OutboundMessage) -> Vec<u8> {
    // A result is stored by deleting the message with its row, in one transaction.
    let no_result = (None::<u8>, None::<Vec<u8>>);
    (message, no_result).to_vec()
}

/// How a message ended at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultStatus {
    Ok = 1,
    Error = 2,
    OutOfEnergy = 3,
}

/// A row of `st_inbound_msg`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageResult {
    pub status: ResultStatus,
    /// The text of an error.
    pub payload: Vec<u8>,
}

impl Datastore {
    fn outbox_system_table(&self, id: TableId) -> &Table {
        &self.state(id).expect("system tables exist").table
    }

    fn find_in(&self, id: TableId, index: usize, key: &[u8]) -> Option<RowId> {
        let table = self.outbox_system_table(id);
        let found = table.indexes()[index].find_point(table.rows(), table.layout(), key);
        found.ok().flatten()
    }

    fn row_in(&self, id: TableId, index: usize, key: &[u8]) -> Option<&[u8]> {
        let row = self.find_in(id, index, key)?;
        Some(self.outbox_system_table(id).row(row))
    }

    fn delete_in(&mut self, id: TableId, rows: &[RowId]) -> Result<()> {
        let slot = self.slot(id)?;
        self.delete_found(slot, rows).map(drop)
    }

    fn insert_in(&mut self, id: TableId, row: &[u8]) -> Result<()> {
        self.insert(id, row, &mut Vec::new())
    }

    /// Replaces the row that has this one's key in an index.
    fn put_in(&mut self, id: TableId, index: usize, row: &[u8]) -> Result<()> {
        let index = self.outbox_system_table(id).schema.indexes[index].id;
        self.update(id, index, row, &mut Vec::new())
    }

    pub fn outbound_stream(&self, stream: u64) -> Option<OutboundStream> {
        let row = self.row_in(st::ST_OUTBOUND_STREAM_ID, BY_STREAM, &stream.to_vec())?;
        stream_of(row)
    }

    /// The message of a stream that is to be sent next.
    pub fn outbound_head(&self, stream: u64) -> Option<OutboundMessage> {
        let row = self.first_message_after(stream, 0)?;
        message_of(self.outbox_system_table(st::ST_OUTBOUND_MSG_ID).row(row))
    }

    /// The first message of a stream with a number from `seq` on.
    fn first_message_after(&self, stream: u64, seq: u64) -> Option<RowId> {
        let table = self.outbox_system_table(st::ST_OUTBOUND_MSG_ID);
        let mut start = vec![0];
        seq.encode(&mut start);
        let range = RangeBounds {
            prefix: &stream.to_vec(),
            prefix_columns: 1,
            start: &start,
            end: &[UNBOUNDED],
        };
        let mut first = None;
        let index = &table.indexes()[BY_SEQ];
        let walked = index.walk_range(table.rows(), table.layout(), range, None, |id| {
            first = Some(id);
            false
        });
        walked.ok()?;
        first
    }

    /// The streams that have messages.
    pub fn waiting_streams(&self) -> Vec<u64> {
        let streams = self.outbox_system_table(st::ST_OUTBOUND_STREAM_ID);
        let mut found = Vec::new();
        streams.rows().for_each(|_, row| {
            found.extend(stream_of(row).map(|stream| stream.id));
        });
        found.retain(|&stream| self.first_message_after(stream, 0).is_some());
        found
    }

    /// How many messages wait for their results.
    pub fn outbound_count(&self) -> u64 {
        self.outbox_system_table(st::ST_OUTBOUND_MSG_ID)
            .rows()
            .row_count()
    }

    /// The row of an outbox table that a message is.
    pub fn outbox_row(&self, table: TableId, message: u64) -> Option<&[u8]> {
        let state = self.state(table).ok()?;
        Some(state.table.row(outbox_row_id(state, message)?))
    }

    /// What the receiver's reducer gets of a row: the columns of the arguments, one behind the other.
    pub fn outbox_arguments(&self, table: TableId, row: &[u8]) -> Vec<u8> {
        let mut arguments = Vec::new();
        let table = self.table(table);
        if let Some((table, outbox)) =
            table.and_then(|table| Some((table, table.schema.outbox.as_ref()?)))
        {
            for column in &outbox.arg_columns {
                arguments.extend_from_slice(table.layout().column(row, column.index()));
            }
        }
        arguments
    }

    /// Before the open transaction is sealed: gives numbers to rows of outbox tables that came, and forgets messages whose rows went.
    /// The streams that something happened to are appended to `streams`.
    ///
    /// # Errors
    /// Too many messages wait, or the transaction is too large.
    #[cold]
    pub(crate) fn number_outbox_rows(&mut self, streams: &mut Vec<u64>) -> Result<()> {
        let is_outbox = |state: &TableState| state.outbox.is_some();
        let changes = self.transaction.changes.iter();
        let mut slots = changes.map(|change| change.slot);
        let is_changed =
            slots.any(|slot| self.tables[slot.index()].as_ref().is_some_and(is_outbox));
        if !is_changed {
            return Ok(());
        }
        let mut net = Vec::new();
        self.net_change_of(&mut net, is_outbox);
        let (went, came) = self.outbox_rows_of(&net);
        for (table, target, message) in went {
            self.forget_message((table, target), message, streams)?;
        }
        if came.is_empty() {
            return Ok(());
        }
        self.number_rows(came, streams)?;
        let messages_max = self.outbox_messages_max;
        match self.outbound_count() > messages_max {
            true => Err(DatastoreError::OutboxFull { messages_max }),
            false => Ok(()),
        }
    }

    /// The messages that went, and those that came, in the order in which they did. A row that was changed is none of them.
    fn outbox_rows_of(&self, net: &[NetChange]) -> (Vec<OutboxRow>, Vec<OutboxRow>) {
        let mut at: FxHashMap<(TableSlot, RowId), usize> = FxHashMap::default();
        for (position, change) in self.transaction.changes.iter().enumerate() {
            at.insert((change.slot, change.row), position);
        }
        let (mut went, mut came) = (Vec::new(), Vec::new());
        for item in net {
            let state = self.at(item.slot);
            let Some(columns) = state.outbox else {
                continue;
            };
            let of = |row: &[u8]| {
                let target = columns.target(&state.table, row)?;
                Some((item.table, target, columns.key(&state.table, row)))
            };
            if item.kind != NetKind::Insert {
                went.extend(of(self.transaction.old(item.old)));
            }
            if item.kind != NetKind::Delete {
                let position = at.get(&(item.slot, item.new)).copied();
                came.extend(of(state.table.row(item.new)).map(|row| (position, row)));
            }
        }
        came.sort_by_key(|(position, _)| *position);
        let key = |row: &OutboxRow| (row.0, row.1, row.2);
        let old: FxHashMap<_, _> = went.iter().map(|row| (key(row), ())).collect();
        let mut came: Vec<OutboxRow> = came.into_iter().map(|(_, row)| row).collect();
        let new: FxHashMap<_, _> = came.iter().map(|row| (key(row), ())).collect();
        went.retain(|row| !new.contains_key(&key(row)));
        came.retain(|row| !old.contains_key(&key(row)));
        (went, came)
    }

    fn number_rows(&mut self, came: Vec<OutboxRow>, streams: &mut Vec<u64>) -> Result<()> {
        let mut changed: Vec<OutboundStream> = Vec::new();
        let mut places: FxHashMap<(TableId, Identity), usize> = FxHashMap::default();
        for (table, target, id) in came {
            let place = match places.get(&(table, target)) {
                Some(place) => *place,
                None => {
                    let stream = self.stream_of((table, target))?;
                    places.insert((table, target), changed.len());
                    changed.push(stream);
                    changed.len() - 1
                }
            };
            let stream = &mut changed[place];
            let message = OutboundMessage {
                stream: stream.id,
                id,
                seq: stream.next_seq,
                retry_count: 0,
                last_transport_error: None,
            };
            stream.next_seq += 1;
            self.insert_in(st::ST_OUTBOUND_MSG_ID, &message_row(&message))?;
        }
        for stream in changed {
            streams.push(stream.id);
            self.put_in(st::ST_OUTBOUND_STREAM_ID, BY_STREAM, &stream.to_vec())?;
        }
        Ok(())
    }

    /// The stream of a table to a target; a new one, if there is none.
    fn stream_of(&mut self, key: (TableId, Identity)) -> Result<OutboundStream> {
        let found = self.row_in(
            st::ST_OUTBOUND_STREAM_ID,
            BY_TABLE_AND_TARGET,
            &key.to_vec(),
        );
        if let Some(stream) = found.and_then(stream_of) {
            return Ok(stream);
        }
        // A number that this database had not before its data was deleted, which its targets may still know.
        let mut id = (self.clock)().0.max(1) as u64;
        while self.outbound_stream(id).is_some() {
            id += 1;
        }
        let stream = OutboundStream {
            id,
            table: key.0,
            target: key.1,
            next_seq: 1,
            ack_prefix: 0,
        };
        self.insert_in(st::ST_OUTBOUND_STREAM_ID, &stream.to_vec())?;
        Ok(stream)
    }

    /// In the open transaction: all streams become new ones, as the database was brought back from a backup, and its targets may know
    /// what it has sent since. Messages keep their numbers until a target says which one it expects.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn renew_outbound_streams(&mut self, now: Timestamp) -> Result<()> {
        let streams = self.streams_that(|_| true);
        // Numbers are times. Greater ones come of no clock, and are never reached.
        let old = streams.iter().map(|(_, stream)| stream.id);
        let old = old.filter(|id| *id <= i64::MAX as u64);
        let first = old
            .max()
            .unwrap_or(0)
            .saturating_add(1)
            .max(now.0.max(1) as u64);
        for (id, (row, stream)) in (first..).zip(streams) {
            let renewed = OutboundStream {
                id,
                ack_prefix: 0,
                ..stream
            };
            self.delete_in(st::ST_OUTBOUND_STREAM_ID, &[row])?;
            self.insert_in(st::ST_OUTBOUND_STREAM_ID, &renewed.to_vec())?;
            while let Some(row) = self.first_message_after(stream.id, 0) {
                let message = message_of(self.outbox_system_table(st::ST_OUTBOUND_MSG_ID).row(row));
                self.delete_in(st::ST_OUTBOUND_MSG_ID, &[row])?;
                if let Some(message) = message {
                    let moved = OutboundMessage {
                        stream: renewed.id,
                        ..message
                    };
                    self.insert_in(st::ST_OUTBOUND_MSG_ID, &message_row(&moved))?;
                }
            }
        }
        Ok(())
    }

    /// The row of a message went before its result came.
    fn forget_message(
        &mut self,
        key: (TableId, Identity),
        message: u64,
        streams: &mut Vec<u64>,
    ) -> Result<()> {
        let found = self.row_in(
            st::ST_OUTBOUND_STREAM_ID,
            BY_TABLE_AND_TARGET,
            &key.to_vec(),
        );
        let Some(stream) = found.and_then(stream_of) else {
            return Ok(());
        };
        let point = (stream.id, message).to_vec();
        let Some(row) = self.find_in(st::ST_OUTBOUND_MSG_ID, BY_MESSAGE, &point) else {
            // Its result has just come.
            return Ok(());
        };
        streams.push(stream.id);
        self.drop_message(stream.id, row)
    }

    /// Deletes a message in the open transaction whose row is gone. If it was the first one, it may have been sent: the next one is
    /// numbered behind it.
    fn drop_message(&mut self, stream: u64, row: RowId) -> Result<()> {
        let first = self.first_message_after(stream, 0);
        let table = self.outbox_system_table(st::ST_OUTBOUND_MSG_ID);
        let seq = message_of(table.row(row)).map_or(0, |message| message.seq);
        self.delete_in(st::ST_OUTBOUND_MSG_ID, &[row])?;
        match first == Some(row) {
            true => self.number_head(stream, seq + 1),
            false => Ok(()),
        }
    }

    /// Gives the first message of a stream a number that no other one has.
    fn number_head(&mut self, stream: u64, seq: u64) -> Result<()> {
        let Some(head) = self.outbound_head(stream).filter(|head| head.seq != seq) else {
            return Ok(());
        };
        let numbered = OutboundMessage { seq, ..head };
        self.put_in(st::ST_OUTBOUND_MSG_ID, BY_MESSAGE, &message_row(&numbered))
    }

    /// Notes in the open transaction that a message was sent, and not taken.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn note_attempt(&mut self, message: &OutboundMessage, error: &str) -> Result<()> {
        let noted = OutboundMessage {
            retry_count: message.retry_count.saturating_add(1),
            last_transport_error: Some(error.to_owned()),
            ..message.clone()
        };
        self.put_in(st::ST_OUTBOUND_MSG_ID, BY_MESSAGE, &message_row(&noted))
    }

    /// In the open transaction: the receiver expects another number than that of the first message, which gets it.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn expect_outbound(&mut self, stream: &OutboundStream, expected: u64) -> Result<()> {
        let ack_prefix = expected.saturating_sub(1);
        let changed = OutboundStream {
            ack_prefix,
            ..*stream
        };
        self.put_in(st::ST_OUTBOUND_STREAM_ID, BY_STREAM, &changed.to_vec())?;
        self.number_head(stream.id, expected)
    }

    /// In the open transaction: the result of a message is there. The message goes with its row, and the next one follows it without
    /// a gap.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn retire_outbound(
        &mut self,
        stream: &OutboundStream,
        message: &OutboundMessage,
    ) -> Result<()> {
        let point = (message.stream, message.seq).to_vec();
        if let Some(row) = self.find_in(st::ST_OUTBOUND_MSG_ID, BY_SEQ, &point) {
            self.delete_in(st::ST_OUTBOUND_MSG_ID, &[row])?;
        }
        let slot = self.slot(stream.table)?;
        if let Some(row) = outbox_row_id(self.at(slot), message.id) {
            self.delete_found(slot, &[row])?;
        }
        self.number_head(stream.id, message.seq + 1)?;
        // The callback may have inserted more.
        let now = self.outbound_stream(stream.id).unwrap_or(*stream);
        let next_seq = match self.first_message_after(stream.id, 0) {
            Some(_) => now.next_seq,
            None => message.seq + 1,
        };
        let changed = OutboundStream {
            next_seq,
            ack_prefix: message.seq,
            ..now
        };
        self.put_in(st::ST_OUTBOUND_STREAM_ID, BY_STREAM, &changed.to_vec())
    }

    fn streams_that(&self, are: impl Fn(&OutboundStream) -> bool) -> Vec<(RowId, OutboundStream)> {
        let streams = self.outbox_system_table(st::ST_OUTBOUND_STREAM_ID);
        let mut found = Vec::new();
        streams.rows().for_each(|id, row| {
            let stream = stream_of(row).filter(&are);
            found.extend(stream.map(|stream| (id, stream)));
        });
        found
    }

    /// The rows of an outbox table have moved to another one.
    pub(crate) fn move_outbound_streams(&mut self, from: TableId, to: TableId) -> Result<()> {
        for (_, stream) in self.streams_that(|stream| stream.table == from) {
            let moved = OutboundStream {
                table: to,
                ..stream
            };
            self.put_in(st::ST_OUTBOUND_STREAM_ID, BY_STREAM, &moved.to_vec())?;
        }
        Ok(())
    }

    /// An outbox table goes, with what waits in it.
    pub(crate) fn delete_outbound_streams(&mut self, table: TableId) -> Result<()> {
        for (row, stream) in self.streams_that(|stream| stream.table == table) {
            while let Some(message) = self.first_message_after(stream.id, 0) {
                self.delete_in(st::ST_OUTBOUND_MSG_ID, &[message])?;
            }
            self.delete_in(st::ST_OUTBOUND_STREAM_ID, &[row])?;
        }
        Ok(())
    }
}

/// Table, target and primary key of a row.
type OutboxRow = (TableId, Identity, u64);

fn outbox_row_id(state: &TableState, message: u64) -> Option<RowId> {
    let (table, columns) = (&state.table, state.outbox?);
    let index = &table.indexes()[columns.index];
    let found = index.find_point(table.rows(), table.layout(), &message.to_le_bytes());
    found.ok().flatten()
}

// What is kept of messages of others.
impl Datastore {
    /// Messages of a stream of another database up to this number were applied.
    pub fn applied_prefix(&self, sender: Identity, stream: u64) -> u64 {
        let key = (sender, stream).to_vec();
        let row = self.row_in(st::ST_INBOUND_STREAM_ID, BY_STREAM, &key);
        let prefix = row.and_then(|row| row.get(key.len()..)?.try_into().ok());
        prefix.map_or(0, u64::from_le_bytes)
    }

    /// What came of a message that was applied, unless its sender knows that.
    pub fn inbound_result(&self, sender: Identity, stream: u64, seq: u64) -> Option<MessageResult> {
        let key = (sender, stream, seq).to_vec();
        let row = self.row_in(st::ST_INBOUND_MSG_ID, BY_STREAM, &key)?;
        let (status, payload): (u8, Vec<u8>) = Decode::from_slice(&row[key.len()..]).ok()?;
        let status = match status {
            1 => ResultStatus::Ok,
            2 => ResultStatus::Error,
            _ => ResultStatus::OutOfEnergy,
        };
        Some(MessageResult { status, payload })
    }

    /// Deletes in the open transaction the results up to `ack_prefix`, which their sender knows.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn acknowledge_inbound(
        &mut self,
        sender: Identity,
        stream: u64,
        ack_prefix: u64,
    ) -> Result<()> {
        let known = self.results_up_to(sender, stream, ack_prefix);
        self.delete_in(st::ST_INBOUND_MSG_ID, &known)
    }

    /// Whether there are such results.
    pub fn keeps_results_up_to(&self, sender: Identity, stream: u64, ack_prefix: u64) -> bool {
        !self.results_up_to(sender, stream, ack_prefix).is_empty()
    }

    fn results_up_to(&self, sender: Identity, stream: u64, ack_prefix: u64) -> Vec<RowId> {
        let table = self.outbox_system_table(st::ST_INBOUND_MSG_ID);
        let mut end = vec![0];
        ack_prefix.encode(&mut end);
        let range = RangeBounds {
            prefix: &(sender, stream).to_vec(),
            prefix_columns: 2,
            start: &[UNBOUNDED],
            end: &end,
        };
        let mut known = Vec::new();
        let index = &table.indexes()[BY_STREAM];
        let found = index.for_range(table.rows(), table.layout(), range, |id| known.push(id));
        found.expect("the range is one of the index");
        known
    }

    /// Records in the open transaction what came of a message.
    ///
    /// # Errors
    /// No transaction, or it is over its size limit.
    pub fn record_inbound(
        &mut self,
        (sender, stream, seq): (Identity, u64, u64),
        result: &MessageResult,
    ) -> Result<()> {
        let message = (sender, stream, seq, result.status as u8, &result.payload).to_vec();
        self.insert_in(st::ST_INBOUND_MSG_ID, &message)?;
        let row = (sender, stream, seq).to_vec();
        match self.applied_prefix(sender, stream) {
            0 => self.insert_in(st::ST_INBOUND_STREAM_ID, &row),
            _ => self.put_in(st::ST_INBOUND_STREAM_ID, BY_STREAM, &row),
        }
    }
}
