//! Requests over HTTP/1.1, one under way per connection: the RPC format of the benchmark's servers
//! (spec chapter 09 §9), reducer calls (§13) and Convex mutations (§10.8).

use std::io::Write;

use serde::Deserialize;

use super::{Call, Dialect, OnReceived, Outcome, Received};
use crate::address::Address;
use crate::http::{self, Response};
use crate::incoming::{Incoming, Io, Progress};
use crate::Error;

/// The beginning of an RPC server's error after which it is unknown whether the call took place.
const OUTCOME_UNKNOWN: &str = "outcome unknown";
/// The status by which a SpacetimeDB server says that a reducer returned an error.
const STATUS_REDUCER_ERROR: u16 = 530;

/// What the bodies look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Rpc,
    Reducer,
    Convex,
}

/// All of a request that stays the same from call to call.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    format: Format,
    amount: i64,
    /// Up to the value of content-length.
    head: Vec<u8>,
}

impl RequestTemplate {
    fn new(format: Format, amount: i64, address: &Address, path: &str, headers: &str) -> Self {
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nhost: {}\r\nconnection: keep-alive\r\n\
             content-type: application/json\r\n{headers}content-length: ",
            address.prefix, address.host
        );
        Self {
            format,
            amount,
            head: head.into_bytes(),
        }
    }

    /// `POST /rpc`
    pub fn rpc(address: &Address, amount: i64) -> Self {
        Self::new(Format::Rpc, amount, address, "/rpc", "")
    }

    /// `POST /v1/database/<database>/call/<reducer>`
    pub fn reducer(
        address: &Address,
        database: &str,
        reducer: &str,
        token: &str,
        amount: i64,
    ) -> Self {
        let path = format!("/v1/database/{database}/call/{reducer}");
        let headers = format!("authorization: Bearer {token}\r\n");
        Self::new(Format::Reducer, amount, address, &path, &headers)
    }

    /// `POST /api/mutation`
    pub fn convex(address: &Address, amount: i64) -> Self {
        let path = "/api/mutation?format=json";
        Self::new(Format::Convex, amount, address, path, "")
    }

    fn append_body(&self, out: &mut Vec<u8>, call: &Call) {
        let (Call { from, to, .. }, amount) = (call, self.amount);
        let args = format_args!(r#"{{"amount":{amount},"from_id":{from},"to_id":{to}}}"#);
        let written = match self.format {
            Format::Rpc => write!(out, r#"{{"name":"transfer","args":{args}}}"#),
            Format::Reducer => write!(out, "[{from},{to},{amount}]"),
            Format::Convex => write!(out, r#"{{"path":"transfer:transfer","args":{args}}}"#),
        };
        written.expect("writing to memory does not fail");
    }

    fn outcome(&self, response: &Response<'_>) -> Outcome {
        match self.format {
            Format::Rpc => rpc_outcome(response),
            Format::Reducer if response.is_success() => Outcome::Applied,
            Format::Reducer if response.status == STATUS_REDUCER_ERROR => {
                Outcome::Refused(String::from_utf8_lossy(&response.body).trim().to_owned())
            }
            Format::Reducer => Outcome::Failed(response.shown()),
            Format::Convex => convex_outcome(response),
        }
    }
}

#[derive(Deserialize)]
struct RpcAnswer {
    ok: Option<bool>,
    #[serde(default)]
    result: serde_json::Value,
    error: Option<String>,
}

fn rpc_outcome(response: &Response<'_>) -> Outcome {
    if response.status == 200 && is_usual_answer(&response.body) {
        return Outcome::Applied;
    }
    match serde_json::from_slice::<RpcAnswer>(&response.body) {
        Ok(answer) if response.is_success() && answer.ok != Some(false) => {
            match answer.result["applied"] == false {
                true => Outcome::Noop,
                false => Outcome::Applied,
            }
        }
        Ok(answer) => match answer.error {
            Some(error) if error.starts_with(OUTCOME_UNKNOWN) => Outcome::Unknown(error),
            Some(error) => Outcome::Failed(error),
            None => Outcome::Failed(response.shown()),
        },
        Err(_) => Outcome::Failed(response.shown()),
    }
}

/// Almost every answer is one of these.
fn is_usual_answer(body: &[u8]) -> bool {
    body == br#"{"ok":true,"result":{"applied":true}}"# || body == br#"{"ok":true}"#
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConvexAnswer {
    status: String,
    error_message: Option<String>,
}

fn convex_outcome(response: &Response<'_>) -> Outcome {
    match serde_json::from_slice::<ConvexAnswer>(&response.body) {
        Ok(answer) if response.is_success() && answer.status == "success" => Outcome::Applied,
        Ok(answer) => Outcome::Failed(answer.error_message.unwrap_or_else(|| response.shown())),
        Err(_) => Outcome::Failed(response.shown()),
    }
}

/// A connection to an HTTP server.
#[derive(Debug)]
pub struct Http {
    template: RequestTemplate,
    incoming: Incoming,
    /// The call that waits for its answer.
    waiting: Option<u32>,
    /// Scratch space: the length of a body stands before it.
    body: Vec<u8>,
}

impl Http {
    pub fn new(template: RequestTemplate) -> Self {
        Self {
            template,
            incoming: Incoming::default(),
            waiting: None,
            body: Vec::new(),
        }
    }
}

impl Dialect for Http {
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]) {
        for call in calls {
            debug_assert!(self.waiting.is_none(), "one request at a time");
            self.waiting = Some(call.request_id);
            self.body.clear();
            self.template.append_body(&mut self.body, call);
            out.extend_from_slice(&self.template.head);
            write!(out, "{}\r\n\r\n", self.body.len()).expect("writing to memory does not fail");
            out.extend_from_slice(&self.body);
        }
    }

    fn read(&mut self, io: Io<'_>, on_received: OnReceived<'_>) -> Result<Progress, Error> {
        let (waiting, template) = (&mut self.waiting, &self.template);
        let mut is_last = false;
        let progress = self.incoming.read(io.stream, io.buffer, 0, |bytes| {
            let Some((response, used)) = http::parse(bytes)? else {
                return Ok(0);
            };
            let no_request = || Error::Protocol("it sent an answer without a request".into());
            let request_id = waiting.take().ok_or_else(no_request)?;
            is_last = !response.keeps_alive;
            on_received(Received::Answer(request_id, template.outcome(&response)))?;
            Ok(used)
        })?;
        if is_last {
            return Err(Error::Closed(Some("after an answer".into())));
        }
        Ok(progress)
    }

    fn append_close(&mut self, _out: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address::parse("http://127.0.0.1:4103").unwrap()
    }

    fn written(template: RequestTemplate) -> String {
        let mut out = vec![];
        let call = Call {
            request_id: 1,
            from: 17,
            to: 42,
        };
        Http::new(template).append(&mut out, &[call]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn requests_as_in_the_specification() {
        assert_eq!(
            written(RequestTemplate::rpc(&address(), 1)),
            "POST /rpc HTTP/1.1\r\nhost: 127.0.0.1:4103\r\nconnection: keep-alive\r\n\
             content-type: application/json\r\ncontent-length: 63\r\n\r\n\
             {\"name\":\"transfer\",\"args\":{\"amount\":1,\"from_id\":17,\"to_id\":42}}"
        );
        assert_eq!(
            written(RequestTemplate::reducer(
                &address(),
                "bank",
                "transfer",
                "T",
                1
            )),
            "POST /v1/database/bank/call/transfer HTTP/1.1\r\nhost: 127.0.0.1:4103\r\n\
             connection: keep-alive\r\ncontent-type: application/json\r\n\
             authorization: Bearer T\r\ncontent-length: 9\r\n\r\n[17,42,1]"
        );
        let convex = written(RequestTemplate::convex(&address(), 1));
        assert!(
            convex.starts_with("POST /api/mutation?format=json HTTP/1.1\r\n"),
            "{convex}"
        );
        assert!(
            convex.ends_with(
                r#"{"path":"transfer:transfer","args":{"amount":1,"from_id":17,"to_id":42}}"#
            ),
            "{convex}"
        );
    }

    #[test]
    fn answers_of_all_kinds() {
        let rpc = RequestTemplate::rpc(&address(), 1);
        let reducer = RequestTemplate::reducer(&address(), "bank", "transfer", "T", 1);
        let convex = RequestTemplate::convex(&address(), 1);
        let failed = |text: &str| Outcome::Failed(text.into());
        for (template, status, body, outcome) in [
            (&rpc, 200, r#"{"ok":true}"#, Outcome::Applied),
            (
                &rpc,
                200,
                r#"{"result":{"applied":true}, "ok":true}"#,
                Outcome::Applied,
            ),
            (
                &rpc,
                200,
                r#"{"ok":true,"result":{"applied":false}}"#,
                Outcome::Noop,
            ),
            // bun may leave `ok` out.
            (&rpc, 200, "{}", Outcome::Applied),
            (&rpc, 500, r#"{"ok":false,"error":"no"}"#, failed("no")),
            (
                &rpc,
                500,
                r#"{"ok":true}"#,
                failed(r#"HTTP 500 {"ok":true}"#),
            ),
            (
                &rpc,
                200,
                r#"{"ok":false}"#,
                failed(r#"HTTP 200 {"ok":false}"#),
            ),
            (&rpc, 200, "hello", failed("HTTP 200 hello")),
            (
                &rpc,
                500,
                r#"{"ok":false,"error":"outcome unknown: lost"}"#,
                Outcome::Unknown("outcome unknown: lost".into()),
            ),
            (&reducer, 200, "", Outcome::Applied),
            (
                &reducer,
                530,
                "same_account",
                Outcome::Refused("same_account".into()),
            ),
            (
                &reducer,
                404,
                "no such database",
                failed("HTTP 404 no such database"),
            ),
            (
                &convex,
                200,
                r#"{"status":"success","value":null}"#,
                Outcome::Applied,
            ),
            (
                &convex,
                200,
                r#"{"status":"error","errorMessage":"no"}"#,
                failed("no"),
            ),
            (&convex, 560, "", failed("HTTP 560")),
        ] {
            let response = Response {
                status,
                body: body.as_bytes().into(),
                keeps_alive: true,
            };
            assert_eq!(template.outcome(&response), outcome, "{status} {body}");
        }
    }
}
