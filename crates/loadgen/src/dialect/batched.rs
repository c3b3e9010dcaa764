//! The binary frames of the RPC server `sqlite_batched_rpc` over WebSocket (spec chapter 09 §13).

use super::{Call, Dialect, OnReceived, Outcome, Received};
use crate::incoming::{Io, Progress};
use crate::websocket::WebSocket;
use crate::Error;

/// `id u32 | from u32 | to u32 | amount i64`, little-endian.
const REQUEST_BYTES: usize = 20;
/// `id u32 | status u8`.
const ANSWER_BYTES: usize = 5;

/// A connection to `/rpc-ws`.
#[derive(Debug)]
pub struct Batched {
    amount: i64,
    websocket: WebSocket,
}

impl Batched {
    pub fn new(websocket: WebSocket, amount: i64) -> Self {
        Self { amount, websocket }
    }
}

impl Dialect for Batched {
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]) {
        let payload_bytes = calls.len() * REQUEST_BYTES;
        self.websocket.append(out, payload_bytes, |out| {
            for call in calls {
                append_record(out, call, self.amount);
            }
        });
    }

    fn read(&mut self, io: Io<'_>, on_received: OnReceived<'_>) -> Result<Progress, Error> {
        let on_message = |payload: &[u8]| on_answers(payload, on_received);
        self.websocket.read(io, on_message)
    }

    fn append_close(&mut self, out: &mut Vec<u8>) {
        self.websocket.append_close(out);
    }
}

fn append_record(out: &mut Vec<u8>, call: &Call, amount: i64) {
    for field in [call.request_id, call.from, call.to] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(&amount.to_le_bytes());
}

fn on_answers(payload: &[u8], on_received: OnReceived<'_>) -> Result<(), Error> {
    if !payload.len().is_multiple_of(ANSWER_BYTES) {
        return Err(Error::Protocol(format!(
            "it sent a frame of {} bytes, which is no number of 5-byte answers",
            payload.len()
        )));
    }
    for answer in payload.chunks_exact(ANSWER_BYTES) {
        let request_id = u32::from_le_bytes([answer[0], answer[1], answer[2], answer[3]]);
        let outcome = match answer[4] {
            0 => Outcome::Applied,
            1 => Outcome::Noop,
            2 => Outcome::Failed("invalid transfer".into()),
            3 => Outcome::Failed("account_missing".into()),
            255 => Outcome::Failed("internal error".into()),
            other => Outcome::Failed(format!("status {other}")),
        };
        on_received(Received::Answer(request_id, outcome))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn frames_as_in_the_specification() {
        let mut out = vec![];
        for (request_id, from, to) in [(1, 17, 42), (2, 0, 99_999)] {
            let call = Call {
                request_id,
                from,
                to,
            };
            append_record(&mut out, &call, 1);
        }
        assert_eq!(
            hex(&out),
            "01000000110000002a0000000100000000000000\
             02000000000000009f8601000100000000000000"
        );
        let answers = [1, 0, 0, 0, 0, 2, 0, 0, 0, 1];
        assert_eq!(hex(&answers), "01000000000200000001");
        let mut received = vec![];
        on_answers(&answers, &mut |one| {
            received.push(one);
            Ok(())
        })
        .unwrap();
        assert_eq!(
            received,
            [
                Received::Answer(1, Outcome::Applied),
                Received::Answer(2, Outcome::Noop)
            ]
        );
        let error = on_answers(&answers[..7], &mut |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("a frame of 7 bytes"), "{error}");
    }
}
