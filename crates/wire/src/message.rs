//! Server messages as owned values (spec 05 §5.2), for clients, tools and tests.

use lightcone_types::{
    ConnectionId, Decode, DecodeError, Encode, Identity, Reader, TimeDuration, Timestamp,
};

use crate::error::Error;
use crate::part::{products, sums, Part};
use crate::rows::RowList;

sums! {
    pub enum ServerMessage {
        /// The first message of a connection.
        0 => InitialConnection {
            identity: Identity,
            connection_id: ConnectionId,
            token: String,
        },
        /// The rows of each query.
        1 => SubscribeApplied {
            request_id: u32,
            query_set_id: u32,
            rows: QueryRows,
        },
        /// With the dropped rows if the client asked for them.
        2 => UnsubscribeApplied {
            request_id: u32,
            query_set_id: u32,
            rows: Option<QueryRows>,
        },
        /// A query set was refused, or (without request id) failed later.
        3 => SubscriptionError {
            request_id: Option<u32>,
            query_set_id: u32,
            error: String,
        },
        /// A transaction changed rows of the client's query sets.
        4 => TransactionUpdate { query_sets: Vec<QuerySetUpdate> },
        5 => OneOffQueryResult {
            request_id: u32,
            result: Result<QueryRows, String>,
        },
        6 => ReducerResult {
            request_id: u32,
            timestamp: Timestamp,
            result: ReducerOutcome,
        },
        7 => ProcedureResult {
            status: ProcedureStatus,
            timestamp: Timestamp,
            total_host_execution_duration: TimeDuration,
            request_id: u32,
        },
        /// What became of each query set of a batch, in the order of the request (since 2.10.2).
        8 => SubscribeBatchApplied {
            request_id: u32,
            results: Vec<SubscribeSetResult>,
        },
    }
}

impl ServerMessage {
    /// Reads one message and leaves the reader behind it.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        Part::read(r)
    }
}

/// What [`skip_server_message`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedMessage {
    /// That of a variant of [`ServerMessage`].
    pub tag: u8,
    /// Rows of all lists.
    pub rows: u64,
}

/// Checks one message as decoding does, without building it, and leaves the reader behind it.
pub fn skip_server_message(r: &mut Reader<'_>) -> Result<SkippedMessage, Error> {
    let tag = r.clone().read_u8()?;
    let rows = ServerMessage::skip(r)?;
    Ok(SkippedMessage { tag, rows })
}

products! {
    /// The rows of a query set of a batch, or why it is not registered.
    pub struct SubscribeSetResult {
        pub query_set_id: u32,
        pub outcome: Result<QueryRows, String>,
    }

    #[derive(Default)]
    pub struct QueryRows {
        pub tables: Vec<SingleTableRows>,
    }

    pub struct SingleTableRows {
        pub table: String,
        pub rows: RowList,
    }

    /// What a transaction changed for one query set.
    pub struct QuerySetUpdate {
        pub query_set_id: u32,
        pub tables: Vec<TableUpdate>,
    }

    /// What a transaction changed in one table, an entry per query.
    pub struct TableUpdate {
        pub table_name: String,
        pub rows: Vec<TableUpdateRows>,
    }
}

sums! {
    pub enum TableUpdateRows {
        /// Rows of a stored table.
        0 => Persistent { inserts: RowList, deletes: RowList },
        /// Rows of an event table.
        1 => Event { events: RowList },
    }

    /// How a reducer call ended.
    pub enum ReducerOutcome {
        /// Committed.
        0 => Ok {
            ret_value: Vec<u8>,
            query_sets: Vec<QuerySetUpdate>,
        },
        /// Committed, without return value or changes the caller sees.
        1 => OkEmpty,
        /// Refused by the reducer; the bytes are a BSATN string.
        2 => Err(bytes: Vec<u8>),
        /// Failed for another reason.
        3 => InternalError(text: String),
    }

    /// How a procedure call ended.
    pub enum ProcedureStatus {
        /// BSATN.
        0 => Returned(value: Vec<u8>),
        1 => InternalError(text: String),
    }
}

impl ReducerOutcome {
    /// The text of an `Err`. Bytes that are no BSATN string are shown as text as far as possible.
    pub fn error_text(bytes: &[u8]) -> String {
        String::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned())
    }
}
