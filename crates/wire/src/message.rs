//! Server messages as owned values (spec 05 §5.2), for clients, tools and tests.

use lightcone_types::{
    ConnectionId, Decode, DecodeError, Encode, Identity, Reader, TimeDuration, Timestamp,
};

use crate::error::Error;
use crate::rows::RowList;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// The first message of a connection.
    InitialConnection {
        identity: Identity,
        connection_id: ConnectionId,
        token: String,
    },
    /// The rows of each query.
    SubscribeApplied {
        request_id: u32,
        query_set_id: u32,
        rows: QueryRows,
    },
    /// With the dropped rows if the client asked for them.
    UnsubscribeApplied {
        request_id: u32,
        query_set_id: u32,
        rows: Option<QueryRows>,
    },
    /// A query set was refused, or (without request id) failed later.
    SubscriptionError {
        request_id: Option<u32>,
        query_set_id: u32,
        error: String,
    },
    /// A transaction changed rows of the client's query sets.
    TransactionUpdate { query_sets: Vec<QuerySetUpdate> },
    OneOffQueryResult {
        request_id: u32,
        result: Result<QueryRows, String>,
    },
    ReducerResult {
        request_id: u32,
        timestamp: Timestamp,
        result: ReducerOutcome,
    },
    ProcedureResult {
        status: ProcedureStatus,
        timestamp: Timestamp,
        total_host_execution_duration: TimeDuration,
        request_id: u32,
    },
    /// What became of each query set of a batch, in the order of the request (since 2.10.2).
    SubscribeBatchApplied {
        request_id: u32,
        results: Vec<SubscribeSetResult>,
    },
}

/// The rows of a query set of a batch, or why it is not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeSetResult {
    pub query_set_id: u32,
    pub outcome: Result<QueryRows, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRows {
    pub tables: Vec<SingleTableRows>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleTableRows {
    pub table: String,
    pub rows: RowList,
}

/// What a transaction changed for one query set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySetUpdate {
    pub query_set_id: u32,
    pub tables: Vec<TableUpdate>,
}

/// What a transaction changed in one table, an entry per query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUpdate {
    pub table_name: String,
    pub rows: Vec<TableUpdateRows>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableUpdateRows {
    /// Rows of a stored table.
    Persistent { inserts: RowList, deletes: RowList },
    /// Rows of an event table.
    Event { events: RowList },
}

/// How a reducer call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReducerOutcome {
    /// Committed.
    Ok {
        ret_value: Vec<u8>,
        query_sets: Vec<QuerySetUpdate>,
    },
    /// Committed, without return value or changes the caller sees.
    OkEmpty,
    /// Refused by the reducer; the bytes are a BSATN string.
    Err(Vec<u8>),
    /// Failed for another reason.
    InternalError(String),
}

impl ReducerOutcome {
    /// The text of an `Err`. Bytes that are no BSATN string are shown as text as far as possible.
    pub fn error_text(bytes: &[u8]) -> String {
        String::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// How a procedure call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcedureStatus {
    /// BSATN.
    Returned(Vec<u8>),
    InternalError(String),
}

/// Reads a `u32` count and as many elements of at least `min_bytes` each.
fn decode_list<T>(
    r: &mut Reader<'_>,
    min_bytes: usize,
    decode: impl Fn(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = r.read_count(min_bytes)? as usize;
    let mut list = Vec::with_capacity(count.min(1024));
    for _ in 0..count {
        list.push(decode(r)?);
    }
    Ok(list)
}

fn decode_query_sets(r: &mut Reader<'_>) -> Result<Vec<QuerySetUpdate>, Error> {
    decode_list(r, 8, |r| {
        Ok(QuerySetUpdate {
            query_set_id: r.read_u32()?,
            tables: decode_list(r, 8, |r| {
                Ok(TableUpdate {
                    table_name: r.read_str()?.to_owned(),
                    rows: decode_list(r, 8, TableUpdateRows::decode)?,
                })
            })?,
        })
    })
}

impl TableUpdateRows {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => Ok(Self::Persistent {
                inserts: RowList::decode(r)?,
                deletes: RowList::decode(r)?,
            }),
            1 => Ok(Self::Event {
                events: RowList::decode(r)?,
            }),
            tag => Err(DecodeError::invalid_tag(tag, "TableUpdateRows").into()),
        }
    }
}

impl QueryRows {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            tables: decode_list(r, 11, |r| {
                Ok(SingleTableRows {
                    table: r.read_str()?.to_owned(),
                    rows: RowList::decode(r)?,
                })
            })?,
        })
    }
}

fn decode_rows_or_text(
    r: &mut Reader<'_>,
    sum: &'static str,
) -> Result<Result<QueryRows, String>, Error> {
    match r.read_u8()? {
        0 => Ok(Ok(QueryRows::decode(r)?)),
        1 => Ok(Err(r.read_str()?.to_owned())),
        tag => Err(DecodeError::invalid_tag(tag, sum).into()),
    }
}

fn encode_rows_or_text(outcome: &Result<QueryRows, String>, out: &mut Vec<u8>) {
    match outcome {
        Ok(rows) => (0_u8, rows).encode(out),
        Err(error) => (1_u8, error).encode(out),
    }
}

impl SubscribeSetResult {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            query_set_id: r.read_u32()?,
            outcome: decode_rows_or_text(r, "SubscribeSetOutcome")?,
        })
    }
}

impl ReducerOutcome {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => Ok(Self::Ok {
                ret_value: r.read_bytes()?.to_vec(),
                query_sets: decode_query_sets(r)?,
            }),
            1 => Ok(Self::OkEmpty),
            2 => Ok(Self::Err(r.read_bytes()?.to_vec())),
            3 => Ok(Self::InternalError(r.read_str()?.to_owned())),
            tag => Err(DecodeError::invalid_tag(tag, "ReducerOutcome").into()),
        }
    }
}

impl ServerMessage {
    /// Reads one message and leaves the reader behind it.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => Ok(Self::InitialConnection {
                identity: Identity::decode(r)?,
                connection_id: ConnectionId::decode(r)?,
                token: r.read_str()?.to_owned(),
            }),
            1 => Ok(Self::SubscribeApplied {
                request_id: r.read_u32()?,
                query_set_id: r.read_u32()?,
                rows: QueryRows::decode(r)?,
            }),
            2 => Ok(Self::UnsubscribeApplied {
                request_id: r.read_u32()?,
                query_set_id: r.read_u32()?,
                rows: match r.read_u8()? {
                    0 => Some(QueryRows::decode(r)?),
                    1 => None,
                    tag => return Err(DecodeError::invalid_tag(tag, "Option").into()),
                },
            }),
            3 => Ok(Self::SubscriptionError {
                request_id: Option::decode(r)?,
                query_set_id: r.read_u32()?,
                error: r.read_str()?.to_owned(),
            }),
            4 => Ok(Self::TransactionUpdate {
                query_sets: decode_query_sets(r)?,
            }),
            5 => Ok(Self::OneOffQueryResult {
                request_id: r.read_u32()?,
                result: decode_rows_or_text(r, "Result")?,
            }),
            6 => Ok(Self::ReducerResult {
                request_id: r.read_u32()?,
                timestamp: Timestamp::decode(r)?,
                result: ReducerOutcome::decode(r)?,
            }),
            7 => Ok(Self::ProcedureResult {
                status: match r.read_u8()? {
                    0 => ProcedureStatus::Returned(r.read_bytes()?.to_vec()),
                    1 => ProcedureStatus::InternalError(r.read_str()?.to_owned()),
                    tag => return Err(DecodeError::invalid_tag(tag, "ProcedureStatus").into()),
                },
                timestamp: Timestamp::decode(r)?,
                total_host_execution_duration: TimeDuration::decode(r)?,
                request_id: r.read_u32()?,
            }),
            8 => Ok(Self::SubscribeBatchApplied {
                request_id: r.read_u32()?,
                results: decode_list(r, 9, SubscribeSetResult::decode)?,
            }),
            tag => Err(DecodeError::invalid_tag(tag, "ServerMessage").into()),
        }
    }
}

impl Encode for TableUpdateRows {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Persistent { inserts, deletes } => (0_u8, inserts, deletes).encode(out),
            Self::Event { events } => (1_u8, events).encode(out),
        }
    }
}

impl Encode for TableUpdate {
    fn encode(&self, out: &mut Vec<u8>) {
        (&self.table_name, &self.rows).encode(out);
    }
}

impl Encode for QuerySetUpdate {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.query_set_id, &self.tables).encode(out);
    }
}

impl Encode for SingleTableRows {
    fn encode(&self, out: &mut Vec<u8>) {
        (&self.table, &self.rows).encode(out);
    }
}

impl Encode for QueryRows {
    fn encode(&self, out: &mut Vec<u8>) {
        self.tables.encode(out);
    }
}

impl Encode for SubscribeSetResult {
    fn encode(&self, out: &mut Vec<u8>) {
        self.query_set_id.encode(out);
        encode_rows_or_text(&self.outcome, out);
    }
}

impl Encode for ReducerOutcome {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ok {
                ret_value,
                query_sets,
            } => (0_u8, ret_value, query_sets).encode(out),
            Self::OkEmpty => out.push(1),
            Self::Err(bytes) => (2_u8, bytes).encode(out),
            Self::InternalError(text) => (3_u8, text).encode(out),
        }
    }
}

impl Encode for ProcedureStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Returned(value) => (0_u8, value).encode(out),
            Self::InternalError(error) => (1_u8, error).encode(out),
        }
    }
}

impl Encode for ServerMessage {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::InitialConnection {
                identity,
                connection_id,
                token,
            } => (0_u8, identity, connection_id, token).encode(out),
            Self::SubscribeApplied {
                request_id,
                query_set_id,
                rows,
            } => (1_u8, request_id, query_set_id, rows).encode(out),
            Self::UnsubscribeApplied {
                request_id,
                query_set_id,
                rows,
            } => (2_u8, request_id, query_set_id, rows).encode(out),
            Self::SubscriptionError {
                request_id,
                query_set_id,
                error,
            } => (3_u8, request_id, query_set_id, error).encode(out),
            Self::TransactionUpdate { query_sets } => (4_u8, query_sets).encode(out),
            Self::OneOffQueryResult { request_id, result } => {
                (5_u8, request_id).encode(out);
                encode_rows_or_text(result, out);
            }
            Self::ReducerResult {
                request_id,
                timestamp,
                result,
            } => (6_u8, request_id, timestamp, result).encode(out),
            Self::ProcedureResult {
                status,
                timestamp,
                total_host_execution_duration,
                request_id,
            } => {
                let duration = total_host_execution_duration;
                (7_u8, status, timestamp, duration, request_id).encode(out);
            }
            Self::SubscribeBatchApplied {
                request_id,
                results,
            } => (8_u8, request_id, results).encode(out),
        }
    }
}
