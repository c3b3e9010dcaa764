//! Writers of server messages (spec 05 §5.2).
//!
//! Each function appends one message to a buffer. Where a message holds lists, it returns a writer
//! that appends their elements and raises the counts in place: at any moment the buffer holds a
//! complete message, so there is nothing to finish, and nothing is built outside the buffer.
//!
//! ```
//! use lightcone_wire::{rows::row_list, server, RowSize};
//!
//! let mut out = Vec::new();
//! let mut sets = server::transaction_update(&mut out);
//! let mut tables = sets.query_set(7);
//! let mut update = tables.table("person");
//! let mut rows = update.persistent();
//! rows.inserts(RowSize::Fixed(4), [&[1u8, 0, 0, 0][..]])?;
//! rows.deletes(RowSize::Fixed(4), [])?;
//! # Ok::<(), lightcone_wire::Error>(())
//! ```

use lightcone_types::{ConnectionId, Encode, Identity, TimeDuration, Timestamp};

use crate::error::Error;
use crate::rows::{row_list, RowListWriter, RowSize, EMPTY_ROW_LIST};

/// A `u32` count in front of a list, raised in place as elements are appended.
#[derive(Debug)]
struct Count {
    at: usize,
}

impl Count {
    fn start(out: &mut Vec<u8>) -> Self {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { at }
    }

    #[inline]
    fn add(&self, out: &mut [u8], elements: u32) {
        let field = &mut out[self.at..self.at + 4];
        let count = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
        field.copy_from_slice(&count.wrapping_add(elements).to_le_bytes());
    }

    fn get(&self, out: &[u8]) -> u32 {
        let field = &out[self.at..self.at + 4];
        u32::from_le_bytes([field[0], field[1], field[2], field[3]])
    }
}

/// `InitialConnection`: the first message of a connection.
pub fn initial_connection(
    out: &mut Vec<u8>,
    identity: Identity,
    connection_id: ConnectionId,
    token: &str,
) {
    out.push(0);
    identity.encode(out);
    connection_id.encode(out);
    token.encode(out);
}

/// `SubscribeApplied`; the caller appends one table entry per query.
pub fn subscribe_applied(
    out: &mut Vec<u8>,
    request_id: u32,
    query_set_id: u32,
) -> QueryRowsWriter<'_> {
    out.push(1);
    request_id.encode(out);
    query_set_id.encode(out);
    QueryRowsWriter::new(out)
}

/// `UnsubscribeApplied` with the rows that the client drops.
pub fn unsubscribe_applied(
    out: &mut Vec<u8>,
    request_id: u32,
    query_set_id: u32,
) -> QueryRowsWriter<'_> {
    out.push(2);
    request_id.encode(out);
    query_set_id.encode(out);
    out.push(0);
    QueryRowsWriter::new(out)
}

/// `UnsubscribeApplied` for a client that did not ask for the dropped rows.
pub fn unsubscribe_applied_without_rows(out: &mut Vec<u8>, request_id: u32, query_set_id: u32) {
    out.push(2);
    request_id.encode(out);
    query_set_id.encode(out);
    out.push(1);
}

/// `SubscriptionError`: the answer to a request, or (`None`) a live set that failed and is gone.
pub fn subscription_error(
    out: &mut Vec<u8>,
    request_id: Option<u32>,
    query_set_id: u32,
    error: &str,
) {
    out.push(3);
    request_id.encode(out);
    query_set_id.encode(out);
    error.encode(out);
}

/// `TransactionUpdate`; the caller appends one entry per affected query set.
pub fn transaction_update(out: &mut Vec<u8>) -> QuerySetsWriter<'_> {
    out.push(4);
    QuerySetsWriter::new(out)
}

/// `OneOffQueryResult` with rows; the caller appends exactly one table entry.
pub fn one_off_query_ok(out: &mut Vec<u8>, request_id: u32) -> QueryRowsWriter<'_> {
    out.push(5);
    request_id.encode(out);
    out.push(0);
    QueryRowsWriter::new(out)
}

/// `OneOffQueryResult` with an error text.
pub fn one_off_query_err(out: &mut Vec<u8>, request_id: u32, error: &str) {
    out.push(5);
    request_id.encode(out);
    out.push(1);
    error.encode(out);
}

#[inline]
fn reducer_result(out: &mut Vec<u8>, request_id: u32, timestamp: Timestamp, outcome: u8) {
    let mut head = [6; 14];
    head[1..5].copy_from_slice(&request_id.to_le_bytes());
    head[5..13].copy_from_slice(&timestamp.0.to_le_bytes());
    head[13] = outcome;
    out.extend_from_slice(&head);
}

/// `ReducerResult` of a committed call, with what the caller's own subscriptions saw of it.
/// `ret_value` is empty for all reducers of today's modules.
pub fn reducer_result_ok<'a>(
    out: &'a mut Vec<u8>,
    request_id: u32,
    timestamp: Timestamp,
    ret_value: &[u8],
) -> QuerySetsWriter<'a> {
    reducer_result(out, request_id, timestamp, 0);
    ret_value.encode(out);
    QuerySetsWriter::new(out)
}

/// `ReducerResult` of a committed call that changed nothing the caller subscribes to.
#[inline]
pub fn reducer_result_ok_empty(out: &mut Vec<u8>, request_id: u32, timestamp: Timestamp) {
    reducer_result(out, request_id, timestamp, 1);
}

/// `ReducerResult` of a call that the reducer refused. On the wire the text is a BSATN string
/// inside a byte string.
pub fn reducer_result_err(out: &mut Vec<u8>, request_id: u32, timestamp: Timestamp, error: &str) {
    reducer_result(out, request_id, timestamp, 2);
    u32::try_from(error.len() + 4)
        .expect("error texts are far below 4 GiB, as module memory is")
        .encode(out);
    error.encode(out);
}

/// `ReducerResult` of a call that failed for a reason outside the reducer's own errors.
pub fn reducer_result_internal_error(
    out: &mut Vec<u8>,
    request_id: u32,
    timestamp: Timestamp,
    error: &str,
) {
    reducer_result(out, request_id, timestamp, 3);
    error.encode(out);
}

/// `ProcedureResult` with the BSATN of the returned value.
pub fn procedure_result_returned(
    out: &mut Vec<u8>,
    request_id: u32,
    timestamp: Timestamp,
    total_host_execution_duration: TimeDuration,
    value: &[u8],
) {
    out.push(7);
    out.push(0);
    value.encode(out);
    timestamp.encode(out);
    total_host_execution_duration.encode(out);
    request_id.encode(out);
}

/// `ProcedureResult` of a failed call; its times are 0.
pub fn procedure_result_internal_error(out: &mut Vec<u8>, request_id: u32, error: &str) {
    out.push(7);
    out.push(1);
    error.encode(out);
    Timestamp(0).encode(out);
    TimeDuration(0).encode(out);
    request_id.encode(out);
}

/// Appends `SingleTableRows` entries to a message.
#[derive(Debug)]
pub struct QueryRowsWriter<'a> {
    out: &'a mut Vec<u8>,
    tables: Count,
}

impl<'a> QueryRowsWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let tables = Count::start(out);
        Self { out, tables }
    }

    /// Appends an entry and returns the writer of its rows, which must be finished.
    pub fn table(&mut self, name: &str) -> RowListWriter<'_> {
        self.tables.add(self.out, 1);
        name.encode(self.out);
        RowListWriter::new(self.out)
    }

    /// Appends entries that are already encoded, e.g. by a query on another thread.
    pub fn encoded(&mut self, entries: &[u8], count: u32) {
        self.tables.add(self.out, count);
        self.out.extend_from_slice(entries);
    }

    pub fn len(&self) -> u32 {
        self.tables.get(self.out)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Appends `QuerySetUpdate`s to a message.
#[derive(Debug)]
pub struct QuerySetsWriter<'a> {
    out: &'a mut Vec<u8>,
    sets: Count,
}

impl<'a> QuerySetsWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let sets = Count::start(out);
        Self { out, sets }
    }

    /// Appends the update of one set and returns the writer of its tables.
    pub fn query_set(&mut self, query_set_id: u32) -> TableUpdatesWriter<'_> {
        self.sets.add(self.out, 1);
        query_set_id.encode(self.out);
        let tables = Count::start(self.out);
        TableUpdatesWriter {
            out: self.out,
            tables,
        }
    }

    /// Appends updates that are already encoded, so that both the `TransactionUpdate` of one
    /// client and the `ReducerResult` of another can share them.
    pub fn encoded(&mut self, updates: &[u8], count: u32) {
        self.sets.add(self.out, count);
        self.out.extend_from_slice(updates);
    }

    pub fn len(&self) -> u32 {
        self.sets.get(self.out)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Appends `TableUpdate`s to the update of a query set.
#[derive(Debug)]
pub struct TableUpdatesWriter<'a> {
    out: &'a mut Vec<u8>,
    tables: Count,
}

impl TableUpdatesWriter<'_> {
    /// Appends the update of one table and returns the writer of its entries, one per query.
    pub fn table(&mut self, name: &str) -> TableUpdateWriter<'_> {
        self.tables.add(self.out, 1);
        name.encode(self.out);
        let rows = Count::start(self.out);
        TableUpdateWriter {
            out: self.out,
            rows,
        }
    }

    /// Appends table updates that are already encoded.
    pub fn encoded(&mut self, updates: &[u8], count: u32) {
        self.tables.add(self.out, count);
        self.out.extend_from_slice(updates);
    }
}

/// Appends `TableUpdateRows` entries to the update of a table.
#[derive(Debug)]
pub struct TableUpdateWriter<'a> {
    out: &'a mut Vec<u8>,
    rows: Count,
}

impl TableUpdateWriter<'_> {
    /// Appends the inserts and deletes of one query.
    pub fn persistent(&mut self) -> PersistentRowsWriter<'_> {
        self.rows.add(self.out, 1);
        persistent_rows(self.out)
    }

    /// Appends the event rows of one query and returns their writer, which must be finished.
    pub fn events(&mut self) -> RowListWriter<'_> {
        self.rows.add(self.out, 1);
        event_rows(self.out)
    }

    /// Appends entries that are already encoded (by [`persistent_rows`] or [`event_rows`]): the
    /// delta of a query is encoded once and copied for each of its subscribers.
    pub fn encoded(&mut self, entries: &[u8], count: u32) {
        self.rows.add(self.out, count);
        self.out.extend_from_slice(entries);
    }
}

/// Starts a `TableUpdateRows` entry of a stored table outside any message.
pub fn persistent_rows(out: &mut Vec<u8>) -> PersistentRowsWriter<'_> {
    out.push(0);
    let start = out.len();
    out.extend_from_slice(&EMPTY_ROW_LIST);
    out.extend_from_slice(&EMPTY_ROW_LIST);
    PersistentRowsWriter {
        out,
        start,
        written: 0,
    }
}

/// Starts a `TableUpdateRows` entry of an event table outside any message.
pub fn event_rows(out: &mut Vec<u8>) -> RowListWriter<'_> {
    out.push(1);
    RowListWriter::new(out)
}

/// Writes the two lists of a `TableUpdateRows` entry: first the inserts, then the deletes. A list
/// that is not written is empty.
#[derive(Debug)]
pub struct PersistentRowsWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Start of the list to be written next.
    start: usize,
    written: u8,
}

impl PersistentRowsWriter<'_> {
    /// Writes the inserted rows.
    ///
    /// # Panics
    /// If inserts or deletes have been written already.
    pub fn inserts<'r, I>(&mut self, size: RowSize, rows: I) -> Result<u32, Error>
    where
        I: IntoIterator<Item = &'r [u8]>,
        I::IntoIter: Clone,
    {
        assert_eq!(self.written, 0, "inserts are written once and first");
        self.out.truncate(self.start);
        let rows = row_list(self.out, size, rows);
        if rows.is_err() {
            self.out.extend_from_slice(&EMPTY_ROW_LIST);
        }
        self.start = self.out.len();
        self.out.extend_from_slice(&EMPTY_ROW_LIST);
        self.written = 1;
        rows
    }

    /// Writes the deleted rows.
    ///
    /// # Panics
    /// If deletes have been written already.
    pub fn deletes<'r, I>(&mut self, size: RowSize, rows: I) -> Result<u32, Error>
    where
        I: IntoIterator<Item = &'r [u8]>,
        I::IntoIter: Clone,
    {
        assert!(self.written < 2, "deletes are written once");
        if self.written == 0 {
            self.start += EMPTY_ROW_LIST.len();
        }
        self.out.truncate(self.start);
        let rows = row_list(self.out, size, rows);
        if rows.is_err() {
            self.out.extend_from_slice(&EMPTY_ROW_LIST);
        }
        self.written = 2;
        rows
    }
}
