//! Stepping over server messages: the same checks as decoding, without building anything.

use lightcone_types::{Decode, DecodeError, Reader};

use crate::error::Error;
use crate::rows::RowListParts;

/// What [`skip_server_message`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerMessageKind {
    InitialConnection,
    SubscribeApplied {
        request_id: u32,
        rows: u64,
    },
    UnsubscribeApplied {
        request_id: u32,
        rows: u64,
    },
    SubscriptionError {
        request_id: Option<u32>,
    },
    TransactionUpdate {
        rows: u64,
    },
    OneOffQueryResult {
        request_id: u32,
        rows: u64,
    },
    ReducerResult {
        request_id: u32,
        ok: bool,
        rows: u64,
    },
    ProcedureResult {
        request_id: u32,
    },
    SubscribeBatchApplied {
        request_id: u32,
        rows: u64,
    },
}

/// Checks one message and leaves the reader behind it. `rows` counts rows of all lists.
pub fn skip_server_message(r: &mut Reader<'_>) -> Result<ServerMessageKind, Error> {
    Ok(match r.read_u8()? {
        0 => {
            r.read_slice(32 + 16)?;
            r.read_str()?;
            ServerMessageKind::InitialConnection
        }
        1 => {
            let (request_id, _query_set_id): (u32, u32) = Decode::decode(r)?;
            let rows = skip_query_rows(r)?;
            ServerMessageKind::SubscribeApplied { request_id, rows }
        }
        2 => {
            let (request_id, _query_set_id): (u32, u32) = Decode::decode(r)?;
            let rows = match r.read_u8()? {
                0 => skip_query_rows(r)?,
                1 => 0,
                tag => return Err(DecodeError::invalid_tag(tag, "Option").into()),
            };
            ServerMessageKind::UnsubscribeApplied { request_id, rows }
        }
        3 => {
            let (request_id, _query_set_id): (Option<u32>, u32) = Decode::decode(r)?;
            r.read_str()?;
            ServerMessageKind::SubscriptionError { request_id }
        }
        4 => ServerMessageKind::TransactionUpdate {
            rows: skip_query_sets(r)?,
        },
        5 => {
            let request_id = r.read_u32()?;
            let rows = skip_rows_or_text(r, "Result")?;
            ServerMessageKind::OneOffQueryResult { request_id, rows }
        }
        6 => {
            let (request_id, _timestamp): (u32, i64) = Decode::decode(r)?;
            let (ok, rows) = match r.read_u8()? {
                0 => {
                    r.read_bytes()?;
                    (true, skip_query_sets(r)?)
                }
                1 => (true, 0),
                2 => r.read_bytes().map(|_| (false, 0))?,
                3 => r.read_str().map(|_| (false, 0))?,
                tag => return Err(DecodeError::invalid_tag(tag, "ReducerOutcome").into()),
            };
            ServerMessageKind::ReducerResult {
                request_id,
                ok,
                rows,
            }
        }
        7 => {
            match r.read_u8()? {
                0 => r.read_bytes().map(drop)?,
                1 => r.read_str().map(drop)?,
                tag => return Err(DecodeError::invalid_tag(tag, "ProcedureStatus").into()),
            }
            r.read_slice(16)?;
            ServerMessageKind::ProcedureResult {
                request_id: r.read_u32()?,
            }
        }
        8 => {
            let (request_id, mut rows) = (r.read_u32()?, 0);
            for _ in 0..r.read_count(9)? {
                r.read_u32()?;
                rows += skip_rows_or_text(r, "SubscribeSetOutcome")?;
            }
            ServerMessageKind::SubscribeBatchApplied { request_id, rows }
        }
        tag => return Err(DecodeError::invalid_tag(tag, "ServerMessage").into()),
    })
}

fn skip_rows_or_text(r: &mut Reader<'_>, sum: &'static str) -> Result<u64, Error> {
    match r.read_u8()? {
        0 => skip_query_rows(r),
        1 => Ok(r.read_str().map(|_| 0)?),
        tag => Err(DecodeError::invalid_tag(tag, sum).into()),
    }
}

fn skip_query_rows(r: &mut Reader<'_>) -> Result<u64, Error> {
    let mut rows = 0;
    for _ in 0..r.read_count(11)? {
        r.read_str()?;
        rows += RowListParts::decode(r)?.len() as u64;
    }
    Ok(rows)
}

fn skip_query_sets(r: &mut Reader<'_>) -> Result<u64, Error> {
    let mut rows = 0;
    for _ in 0..r.read_count(8)? {
        r.read_u32()?;
        for _ in 0..r.read_count(8)? {
            r.read_str()?;
            for _ in 0..r.read_count(8)? {
                let lists = match r.read_u8()? {
                    0 => 2,
                    1 => 1,
                    tag => return Err(DecodeError::invalid_tag(tag, "TableUpdateRows").into()),
                };
                for _ in 0..lists {
                    rows += RowListParts::decode(r)?.len() as u64;
                }
            }
        }
    }
    Ok(rows)
}
