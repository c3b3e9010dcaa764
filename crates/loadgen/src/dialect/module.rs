//! Reducer calls by the client protocol over WebSocket, versions 2 and 3 (spec chapter 05).

use lightcone_types::{Encode, Reader};
use lightcone_wire::{skip_server_message, ClientMessage, Protocol, ReducerOutcome, ServerMessage};

use super::{Call, Dialect, OnReceived, Outcome, Received};
use crate::incoming::{Io, Progress};
use crate::websocket::WebSocket;
use crate::Error;

/// Longest payload of calls, as the TypeScript client sends them.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Tags of the server messages that come in a run (05 §5.2).
const TRANSACTION_UPDATE: u8 = 4;
const REDUCER_RESULT: u8 = 6;

/// An encoded call, of which three fields change from call to call.
#[derive(Clone, Debug)]
pub struct CallTemplate {
    bytes: Vec<u8>,
}

const REQUEST_ID_AT: usize = 1;

impl CallTemplate {
    /// A call of `reducer(from: u32, to: u32, amount: i64)`.
    pub fn new(reducer: &str, amount: i64) -> Self {
        let mut args = [0; 16];
        args[8..].copy_from_slice(&amount.to_le_bytes());
        let bytes = ClientMessage::CallReducer {
            request_id: 0,
            reducer,
            args: &args,
        }
        .to_vec();
        Self { bytes }
    }

    #[inline]
    fn append(&self, out: &mut Vec<u8>, call: &Call) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let bytes = &mut out[start..];
        bytes[REQUEST_ID_AT..REQUEST_ID_AT + 4].copy_from_slice(&call.request_id.to_le_bytes());
        let args_at = bytes.len() - 16;
        let args = &mut bytes[args_at..];
        args[..4].copy_from_slice(&call.from.to_le_bytes());
        args[4..8].copy_from_slice(&call.to.to_le_bytes());
    }
}

/// A connection to a module.
#[derive(Debug)]
pub struct Module {
    template: CallTemplate,
    protocol: Protocol,
    websocket: WebSocket,
}

impl Module {
    pub fn new(websocket: WebSocket, template: CallTemplate, protocol: Protocol) -> Self {
        Self {
            template,
            protocol,
            websocket,
        }
    }
}

impl Dialect for Module {
    /// In version 3 all calls are one message, in version 2 one each.
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]) {
        let call_bytes = self.template.bytes.len();
        let per_frame = match self.protocol {
            Protocol::V2 => 1,
            Protocol::V3 => (PAYLOAD_BYTES_MAX / call_bytes).max(1),
        };
        for frame in calls.chunks(per_frame) {
            let template = &self.template;
            self.websocket.append(out, frame.len() * call_bytes, |out| {
                frame.iter().for_each(|call| template.append(out, call));
            });
        }
    }

    fn read(&mut self, io: Io<'_>, on_received: OnReceived<'_>) -> Result<Progress, Error> {
        let on_message = |payload: &[u8]| on_message(payload, on_received);
        self.websocket.read(io, on_message)
    }

    fn append_close(&mut self, out: &mut Vec<u8>) {
        self.websocket.append_close(out);
    }
}

/// `ReducerResult` without its outcome: tag, request id, timestamp.
const RESULT_HEAD_BYTES: usize = 1 + 4 + 8;
/// The rest of an `Ok` without return value and updates.
const OK_WITHOUT_UPDATE: [u8; 9] = [0; 9];

/// Handles the messages of a payload.
fn on_message(payload: &[u8], on_received: OnReceived<'_>) -> Result<(), Error> {
    let (&tag, mut body) = payload
        .split_first()
        .ok_or_else(|| Error::Protocol("it sent an empty payload".into()))?;
    if tag != 0 {
        return Err(Error::Protocol(format!(
            "it sent compression tag {tag}, though none was asked for"
        )));
    }
    while !body.is_empty() {
        // Almost every message is one of these two.
        if let Some((head, rest)) = body.split_first_chunk::<RESULT_HEAD_BYTES>() {
            let rest = match rest {
                [1, rest @ ..] if head[0] == REDUCER_RESULT => Some(rest),
                _ if head[0] == REDUCER_RESULT => rest.strip_prefix(&OK_WITHOUT_UPDATE),
                _ => None,
            };
            if let Some(rest) = rest {
                let request_id = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
                on_received(Received::Answer(request_id, Outcome::Applied))?;
                body = rest;
                continue;
            }
        }
        let (received, rest) = other_message(body)?;
        on_received(received)?;
        body = rest;
    }
    Ok(())
}

/// The first message of `body`, and the rest.
#[cold]
fn other_message(body: &[u8]) -> Result<(Received, &[u8]), Error> {
    let mut reader = Reader::new(body);
    let skipped = skip_server_message(&mut reader)?;
    let received = match skipped.tag {
        REDUCER_RESULT => {
            let message = ServerMessage::decode(&mut Reader::new(body))?;
            let ServerMessage::ReducerResult {
                request_id, result, ..
            } = message
            else {
                return Err(Error::Protocol("it sent no whole ReducerResult".into()));
            };
            let outcome = match result {
                ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty => Outcome::Applied,
                ReducerOutcome::Err(bytes) => Outcome::Refused(ReducerOutcome::error_text(&bytes)),
                ReducerOutcome::InternalError(text) => Outcome::Failed(text),
            };
            Received::Answer(request_id, outcome)
        }
        TRANSACTION_UPDATE => Received::Update { rows: skipped.rows },
        other => {
            return Err(Error::Protocol(format!(
                "it sent an unexpected message with the tag {other}"
            )));
        }
    };
    Ok((received, reader.remaining()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_as_in_the_specification() {
        let template = CallTemplate::new("transfer", 1);
        let mut out = vec![];
        let call = Call {
            request_id: 1,
            from: 0,
            to: 99_999,
        };
        template.append(&mut out, &call);
        let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "030100000000080000007472616e7366657210000000000000009f8601000100000000000000"
        );
    }

    #[test]
    fn answers_of_all_kinds() {
        use lightcone_wire::server;
        let timestamp = lightcone_types::Timestamp(1);
        let mut payload = vec![0];
        server::reducer_result_ok(&mut payload, 1, timestamp, &[], (&[], 0));
        server::reducer_result_err(&mut payload, 2, timestamp, "insufficient_funds");
        server::reducer_result_ok_empty(&mut payload, 3, timestamp);
        server::reducer_result_internal_error(&mut payload, 4, timestamp, "no such reducer");
        let mut received = vec![];
        let mut take = |one| {
            received.push(one);
            Ok(())
        };
        on_message(&payload, &mut take).unwrap();
        assert!(on_message(&[], &mut take).is_err());
        assert!(on_message(&[2, 1], &mut take).is_err());
        assert_eq!(
            received,
            [
                Received::Answer(1, Outcome::Applied),
                Received::Answer(2, Outcome::Refused("insufficient_funds".into())),
                Received::Answer(3, Outcome::Applied),
                Received::Answer(4, Outcome::Failed("no such reducer".into())),
            ]
        );
    }
}
