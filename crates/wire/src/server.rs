//! Writers of server messages (spec 05 §5.2).
//!
//! Each function appends one message to a buffer. The elements of a list are encoded before, and often shared by many messages; or the
//! caller says how many they are, and appends them to the message.
//!
//! ```
//! use lightcone_types::Encode;
//! use lightcone_wire::{server, RowSize};
//!
//! let mut rows = Vec::new();
//! server::persistent_rows(&mut rows, RowSize::Fixed(4), [&[1u8, 0, 0, 0][..]], [])?;
//! // The update of one query set, in which one table has one entry.
//! let mut update = (7_u32, 1_u32, "person", 1_u32).to_vec();
//! update.extend(rows);
//! let mut out = Vec::new();
//! server::transaction_update(&mut out, &update, 1);
//! # Ok::<(), lightcone_wire::Error>(())
//! ```

use lightcone_types::{ConnectionId, Encode, Identity, TimeDuration, Timestamp};

use crate::error::Error;
use crate::rows::{row_list, RowSize};

/// `InitialConnection`: the first message of a connection.
pub fn initial_connection(
    out: &mut Vec<u8>,
    identity: Identity,
    connection_id: ConnectionId,
    token: &str,
) {
    (0_u8, identity, connection_id, token).encode(out);
}

/// `SubscribeApplied` with so many tables, one per query, which the caller appends.
pub fn subscribe_applied(out: &mut Vec<u8>, request_id: u32, query_set_id: u32, tables: u32) {
    (1_u8, request_id, query_set_id, tables).encode(out);
}

/// `SubscribeBatchApplied` with so many results, one per query set, which the caller appends.
pub fn subscribe_batch_applied(out: &mut Vec<u8>, request_id: u32, results: u32) {
    (8_u8, request_id, results).encode(out);
}

/// The result of a query set of a batch, with so many tables, one per query, which the caller appends.
pub fn set_applied(out: &mut Vec<u8>, query_set_id: u32, tables: u32) {
    (query_set_id, 0_u8, tables).encode(out);
}

/// The result of a query set of a batch that is not registered.
pub fn set_error(out: &mut Vec<u8>, query_set_id: u32, error: &str) {
    (query_set_id, 1_u8, error).encode(out);
}

/// `UnsubscribeApplied` with so many tables of rows that the client drops, which the caller appends.
pub fn unsubscribe_applied(out: &mut Vec<u8>, request_id: u32, query_set_id: u32, tables: u32) {
    (2_u8, request_id, query_set_id, 0_u8, tables).encode(out);
}

/// `UnsubscribeApplied` for a client that did not ask for the dropped rows.
pub fn unsubscribe_applied_without_rows(out: &mut Vec<u8>, request_id: u32, query_set_id: u32) {
    (2_u8, request_id, query_set_id, 1_u8).encode(out);
}

/// `SubscriptionError`: the answer to a request, or (`None`) a live set that failed and is gone.
pub fn subscription_error(
    out: &mut Vec<u8>,
    request_id: Option<u32>,
    query_set_id: u32,
    error: &str,
) {
    (3_u8, request_id, query_set_id, error).encode(out);
}

/// `TransactionUpdate` with so many encoded `QuerySetUpdate`s.
pub fn transaction_update(out: &mut Vec<u8>, updates: &[u8], count: u32) {
    (4_u8, count).encode(out);
    out.extend_from_slice(updates);
}

/// `OneOffQueryResult` with so many tables (one, to be exact), which the caller appends.
pub fn one_off_query_ok(out: &mut Vec<u8>, request_id: u32, tables: u32) {
    (5_u8, request_id, 0_u8, tables).encode(out);
}

/// `OneOffQueryResult` with an error text.
pub fn one_off_query_err(out: &mut Vec<u8>, request_id: u32, error: &str) {
    (5_u8, request_id, 1_u8, error).encode(out);
}

#[inline]
fn reducer_result(out: &mut Vec<u8>, request_id: u32, timestamp: Timestamp, outcome: u8) {
    let mut head = [6; 14];
    head[1..5].copy_from_slice(&request_id.to_le_bytes());
    head[5..13].copy_from_slice(&timestamp.0.to_le_bytes());
    head[13] = outcome;
    out.extend_from_slice(&head);
}

/// `ReducerResult` of a committed call, with what the caller's own subscriptions saw of it: so many encoded `QuerySetUpdate`s.
/// `ret_value` is empty for all reducers of today's modules.
pub fn reducer_result_ok(
    out: &mut Vec<u8>,
    request_id: u32,
    timestamp: Timestamp,
    ret_value: &[u8],
    (updates, count): (&[u8], u32),
) {
    reducer_result(out, request_id, timestamp, 0);
    (ret_value, count).encode(out);
    out.extend_from_slice(updates);
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
    let bytes = u32::try_from(error.len() + 4);
    let bytes = bytes.expect("error texts are far below 4 GiB, as module memory is");
    (bytes, error).encode(out);
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
    (7_u8, 0_u8, value).encode(out);
    (timestamp, total_host_execution_duration, request_id).encode(out);
}

/// `ProcedureResult` of a failed call; its times are 0.
pub fn procedure_result_internal_error(out: &mut Vec<u8>, request_id: u32, error: &str) {
    (7_u8, 1_u8, error).encode(out);
    (Timestamp(0), TimeDuration(0), request_id).encode(out);
}

/// A `TableUpdateRows` entry of a stored table: the delta of a query, which is encoded once and copied for each of its subscribers.
///
/// # Errors
/// A list is too large for its 32-bit lengths. What was appended is of no use then.
pub fn persistent_rows<'r, I, D>(
    out: &mut Vec<u8>,
    size: RowSize,
    inserts: I,
    deletes: D,
) -> Result<(), Error>
where
    I: IntoIterator<Item = &'r [u8], IntoIter: Clone>,
    D: IntoIterator<Item = &'r [u8], IntoIter: Clone>,
{
    out.push(0);
    row_list(out, size, inserts)?;
    row_list(out, size, deletes).map(drop)
}

/// A `TableUpdateRows` entry of an event table.
///
/// # Errors
/// As [`persistent_rows`].
pub fn event_rows<'r, I>(out: &mut Vec<u8>, size: RowSize, events: I) -> Result<(), Error>
where
    I: IntoIterator<Item = &'r [u8], IntoIter: Clone>,
{
    out.push(1);
    row_list(out, size, events).map(drop)
}
