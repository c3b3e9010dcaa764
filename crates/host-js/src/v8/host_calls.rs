//! What the host functions on the way of a call do, for general and for compiled calls.

use lightcone_host::{AbiError, Advance, HostTrap, PointRead};
use lightcone_types::{IndexId, TableId};

use super::state::{with_state, Failure};
use super::values::{buffer_of, range, start, RangeLens, Value};
use crate::messages;

pub(super) fn table_scan(table: u32) -> Result<u32, Failure> {
    with_state(|state| Ok(state.env.table_scan(TableId(table))?))
}

pub(super) fn index_scan_point(index: u32, buffer: Value<'_>, len: u32) -> Result<u32, Failure> {
    // SAFETY: nothing but the datastore runs while the slice is used.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    let point = start(buffer, len)?;
    with_state(|state| Ok(state.env.index_scan_point(IndexId(index), point)?))
}

pub(super) fn delete_by_point(index: u32, buffer: Value<'_>, len: u32) -> Result<u32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    let point = start(buffer, len)?;
    with_state(|state| Ok(state.env.delete_by_index_point(IndexId(index), point)?))
}

pub(super) fn index_scan_range(
    index: u32,
    buffer: Value<'_>,
    lens: RangeLens,
) -> Result<u32, Failure> {
    // SAFETY: as above.
    let range = range(unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?, lens)?;
    with_state(|state| Ok(state.env.index_scan_range(IndexId(index), range)?))
}

pub(super) fn delete_by_range(
    index: u32,
    buffer: Value<'_>,
    lens: RangeLens,
) -> Result<u32, Failure> {
    // SAFETY: as above.
    let range = range(unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?, lens)?;
    with_state(|state| Ok(state.env.delete_by_index_range(IndexId(index), range)?))
}

pub(super) fn delete_all_by_eq(table: u32, buffer: Value<'_>, len: u32) -> Result<u32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::BUFFER) }?;
    let relation = start(buffer, len)?;
    with_state(|state| Ok(state.env.delete_all_by_eq(TableId(table), relation)?))
}

pub(super) fn insert(table: u32, buffer: Value<'_>, len: u32) -> Result<u32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::BUFFER) }?;
    let row = start(buffer, len)?;
    with_state(|state| Ok(state.env.insert(TableId(table), row)? as u32))
}

pub(super) fn update(table: u32, index: u32, buffer: Value<'_>, len: u32) -> Result<u32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::BUFFER) }?;
    let row = start(buffer, len)?;
    with_state(|state| Ok(state.env.update(TableId(table), IndexId(index), row)? as u32))
}

pub(super) fn advance(iterator: u32, buffer: Value<'_>) -> Result<i32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    // The result has 31 bits for the size.
    let end = buffer.len().min(i32::MAX as usize);
    with_state(
        |state| match state.env.row_iter_advance(iterator, &mut buffer[..end])? {
            Advance::More(bytes) => Ok(bytes as i32),
            Advance::Finished(bytes) => Ok(-(bytes as i32)),
            Advance::TooSmall(bytes) => Err(Failure::TooSmall(bytes)),
        },
    )
}

pub(super) fn close(iterator: u32) -> Result<(), Failure> {
    with_state(|state| Ok(state.env.row_iter_close(iterator)?))
}

pub(super) fn point_read(index: u32, buffer: Value<'_>, key_len: u32) -> Result<i32, Failure> {
    // SAFETY: as above.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    if key_len as usize > buffer.len() {
        return Err(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS));
    }
    with_state(|state| {
        let read = state
            .env
            .point_read(IndexId(index), buffer, key_len as usize)?;
        let (bytes, sign) = match read {
            PointRead::Rows(bytes) => (bytes, 1),
            PointRead::TooSmall(bytes) => (bytes, -1),
        };
        match i32::try_from(bytes) {
            Ok(bytes) => Ok(bytes * sign),
            Err(_) => Err(HostTrap::Internal("the rows are too large".into()).into()),
        }
        .map_err(|error: AbiError| Failure::Abi(error))
    })
}
