//! PostgreSQL's protocol, version 3: prepared statements, binary parameters (spec chapter 09 §13).
//!
//! A transfer is either one call of a function, and then all that a connection may have under way are
//! sent without waiting for each other; or an interactive transaction of five round trips, and then
//! they wait in the client, as in front of a pool.

use std::collections::VecDeque;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;

use super::{Call, Dialect, OnReceived, Outcome, Received};
use crate::incoming::{Incoming, Io, Progress};
use crate::Error;

/// How a transfer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PostgresTransfer {
    /// `SELECT transfer($1, $2, $3)`
    Function,
    /// BEGIN, SELECT … FOR UPDATE, two UPDATEs, COMMIT.
    Statements,
}

const BINARY: i16 = 1;
/// Serialization failure, deadlock, lock not available: worth another attempt.
const CONFLICT_CODES: [&str; 3] = ["40001", "40P01", "55P03"];

/// Names and texts of the statements that a connection prepares.
pub const PREPARED: [(&str, &str); 3] = [
    ("transfer", "SELECT transfer($1::bigint, $2::int, $3::int)"),
    (
        "select",
        "SELECT id::bigint, balance FROM accounts WHERE id = $1::int OR id = $2::int \
         ORDER BY id FOR UPDATE",
    ),
    (
        "update",
        "UPDATE accounts SET balance = $2::bigint WHERE id = $1::int",
    ),
];

impl PostgresTransfer {
    /// The statements of [`PREPARED`] that it needs.
    pub fn prepared(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Function => &PREPARED[..1],
            Self::Statements => &PREPARED[1..],
        }
    }
}

enum Value {
    Int(u32),
    Bigint(i64),
}

fn execute(out: &mut BytesMut, statement: &str, values: &[Value]) {
    let written = frontend::bind(
        "",
        statement,
        [BINARY],
        values,
        |value, out| {
            match value {
                Value::Int(number) => out.extend_from_slice(&number.to_be_bytes()),
                Value::Bigint(number) => out.extend_from_slice(&number.to_be_bytes()),
            }
            Ok(IsNull::No)
        },
        [BINARY],
        out,
    );
    debug_assert!(written.is_ok(), "few and small parameters");
    frontend::execute("", 0, out).expect("an empty name is a name");
    frontend::sync(out);
}

fn query(out: &mut BytesMut, text: &str) {
    frontend::query(text, out).expect("a text without NUL");
}

/// The next message, if all of it is there.
pub(crate) fn next_message(input: &mut BytesMut) -> Result<Option<Message>, Error> {
    Message::parse(input).map_err(|error| Error::Protocol(format!("it sent no message: {error}")))
}

/// Code and text of an error.
pub(crate) fn error_of(body: &ErrorResponseBody) -> (String, String) {
    let (mut code, mut text) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'C' => code = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            b'M' => text = String::from_utf8_lossy(field.value_bytes()).into_owned(),
            _ => {}
        }
    }
    (code, text)
}

/// The step of an interactive transaction whose answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Select,
    Debit,
    Credit,
    Commit,
    Rollback,
}

/// The answer to a statement, as far as it has come.
#[derive(Debug, Default)]
struct Answer {
    rows: Vec<Vec<u8>>,
    error: Option<(String, String)>,
}

/// A connection to a database, logged in, with its statements prepared.
#[derive(Debug)]
pub struct Postgres {
    transfer: PostgresTransfer,
    amount: i64,
    input: BytesMut,
    output: BytesMut,
    /// Sent, or with an interactive transaction, waiting behind the first.
    calls: VecDeque<Call>,
    answer: Answer,
    step: Step,
    /// Balances of the account with the lower id and the other one.
    balances: [i64; 2],
    /// What the transaction ends with once its last statement is answered.
    outcome: Outcome,
}

impl Postgres {
    pub fn new(transfer: PostgresTransfer, amount: i64) -> Self {
        Self {
            transfer,
            amount,
            input: BytesMut::new(),
            output: BytesMut::new(),
            calls: VecDeque::new(),
            answer: Answer::default(),
            step: Step::Begin,
            balances: [0; 2],
            outcome: Outcome::Applied,
        }
    }

    fn hand_over(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.output);
        self.output.clear();
    }

    fn begin(&mut self) {
        self.step = Step::Begin;
        query(&mut self.output, "BEGIN");
    }

    /// A statement is answered: the outcome of its call, or nothing if more statements follow.
    fn on_ready(&mut self) -> Result<Option<(u32, Outcome)>, Error> {
        let no_request = || Error::Protocol("it sent an answer without a request".into());
        let call = *self.calls.front().ok_or_else(no_request)?;
        let answer = std::mem::take(&mut self.answer);
        let outcome = match self.transfer {
            PostgresTransfer::Function => Some(function_outcome(answer)?),
            PostgresTransfer::Statements => self.next_step(&call, answer)?,
        };
        Ok(outcome.map(|outcome| {
            self.calls.pop_front();
            if self.transfer == PostgresTransfer::Statements && !self.calls.is_empty() {
                self.begin();
            }
            (call.request_id, outcome)
        }))
    }

    fn next_step(&mut self, call: &Call, answer: Answer) -> Result<Option<Outcome>, Error> {
        if let Some(error) = answer.error {
            if self.step == Step::Rollback {
                return Err(Error::Protocol(format!("ROLLBACK failed: {}", error.1)));
            }
            self.outcome = error_outcome(error);
            // A commit that failed has ended the transaction, as has a BEGIN that never was.
            if matches!(self.step, Step::Begin | Step::Commit) {
                return Ok(Some(self.outcome.clone()));
            }
            self.step = Step::Rollback;
            query(&mut self.output, "ROLLBACK");
            return Ok(None);
        }
        let out = &mut self.output;
        self.step = match self.step {
            Step::Begin => {
                execute(out, "select", &[Value::Int(call.from), Value::Int(call.to)]);
                Step::Select
            }
            Step::Select => self.on_accounts(call, &answer.rows)?,
            Step::Debit => {
                let target = self.balances[usize::from(call.to > call.from)];
                let balance = Value::Bigint(target + self.amount);
                execute(out, "update", &[Value::Int(call.to), balance]);
                Step::Credit
            }
            Step::Credit => {
                query(out, "COMMIT");
                Step::Commit
            }
            Step::Commit | Step::Rollback => return Ok(Some(self.outcome.clone())),
        };
        Ok(None)
    }

    /// Both accounts are read and locked.
    fn on_accounts(&mut self, call: &Call, rows: &[Vec<u8>]) -> Result<Step, Error> {
        let out = &mut self.output;
        let [lower, higher] = rows else {
            self.outcome = Outcome::Failed("account_missing".into());
            query(out, "ROLLBACK");
            return Ok(Step::Rollback);
        };
        self.balances = [bigint(lower, 1)?, bigint(higher, 1)?];
        let source = self.balances[usize::from(call.from > call.to)];
        if source < self.amount {
            self.outcome = Outcome::Noop;
            query(out, "COMMIT");
            return Ok(Step::Commit);
        }
        self.outcome = Outcome::Applied;
        let balance = Value::Bigint(source - self.amount);
        execute(out, "update", &[Value::Int(call.from), balance]);
        Ok(Step::Debit)
    }

    fn on_message(&mut self, message: Message) -> Result<Option<(u32, Outcome)>, Error> {
        match message {
            Message::DataRow(row) => self.answer.rows.push(row.buffer().to_vec()),
            Message::ErrorResponse(body) => {
                let error = error_of(&body);
                // Class 57: the database shuts down; class 08: the connection is broken.
                if error.0.starts_with("57P") || error.0.starts_with("08") {
                    return Err(Error::Closed(Some(format!("{} {}", error.0, error.1))));
                }
                self.answer.error = Some(error);
            }
            Message::ReadyForQuery(_) => return self.on_ready(),
            _ => {}
        }
        Ok(None)
    }
}

fn error_outcome((code, text): (String, String)) -> Outcome {
    let shown = format!("{code} {text}");
    match CONFLICT_CODES.contains(&code.as_str()) {
        true => Outcome::Conflict(shown),
        false => Outcome::Failed(shown),
    }
}

/// The function answers 0 if it moved the amount, 1 without funds, 2 if there was nothing to do.
fn function_outcome(answer: Answer) -> Result<Outcome, Error> {
    if let Some(error) = answer.error {
        return Ok(error_outcome(error));
    }
    let value = match answer.rows.as_slice() {
        [row] => value_of_row(row, 0),
        _ => None,
    };
    let number = value.map(|bytes| {
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    });
    match number {
        Some(0) => Ok(Outcome::Applied),
        Some(1 | 2) => Ok(Outcome::Noop),
        other => Err(Error::Protocol(format!(
            "the function transfer answered {other:?} instead of 0, 1 or 2"
        ))),
    }
}

/// The n-th value of a row: each is its length, four bytes, and as many bytes.
pub(crate) fn value_of_row(mut row: &[u8], number: usize) -> Option<&[u8]> {
    for at in 0..=number {
        let (length, rest) = row.split_first_chunk()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let value = rest.get(..length)?;
        if at == number {
            return Some(value);
        }
        row = &rest[length..];
    }
    None
}

fn bigint(row: &[u8], number: usize) -> Result<i64, Error> {
    let value = value_of_row(row, number).and_then(|value| value.try_into().ok());
    value
        .map(i64::from_be_bytes)
        .ok_or_else(|| Error::Protocol("it sent a row without balance".into()))
}

impl Dialect for Postgres {
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]) {
        let was_idle = self.calls.is_empty();
        self.calls.extend(calls);
        match self.transfer {
            PostgresTransfer::Function => {
                for &Call { from, to, .. } in calls {
                    let values = [Value::Bigint(self.amount), Value::Int(from), Value::Int(to)];
                    execute(&mut self.output, "transfer", &values);
                }
            }
            PostgresTransfer::Statements if was_idle && !calls.is_empty() => self.begin(),
            PostgresTransfer::Statements => {}
        }
        self.hand_over(out);
    }

    fn read(&mut self, io: Io<'_>, on_received: OnReceived<'_>) -> Result<Progress, Error> {
        let input = &mut self.input;
        // The parser keeps what is incomplete.
        let progress = Incoming::default().read(io.stream, io.buffer, 0, |bytes| {
            input.extend_from_slice(bytes);
            Ok(bytes.len())
        })?;
        while let Some(message) = next_message(&mut self.input)? {
            if let Some((request_id, outcome)) = self.on_message(message)? {
                on_received(Received::Answer(request_id, outcome))?;
            }
        }
        self.hand_over(io.out);
        Ok(progress)
    }

    fn append_close(&mut self, out: &mut Vec<u8>) {
        frontend::terminate(&mut self.output);
        self.hand_over(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        request_id: 7,
        from: 42,
        to: 17,
    };

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag][..], &length, body].concat()
    }

    fn row(values: &[&[u8]]) -> Vec<u8> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            body.extend((value.len() as u32).to_be_bytes());
            body.extend(*value);
        }
        message(b'D', &body)
    }

    fn account(id: i64, balance: i64) -> Vec<u8> {
        row(&[&id.to_be_bytes(), &balance.to_be_bytes()])
    }

    fn ready() -> Vec<u8> {
        message(b'Z', b"I")
    }

    fn failure(code: &str, text: &str) -> Vec<u8> {
        message(b'E', format!("SERROR\0C{code}\0M{text}\0\0").as_bytes())
    }

    /// Lets the connection read, and returns what it received and what it wrote.
    fn try_read(postgres: &mut Postgres, bytes: &[u8]) -> Result<(Vec<Received>, Vec<u8>), Error> {
        let (mut received, mut out, mut buffer) = (vec![], vec![], vec![0; 16]);
        let mut stream = bytes;
        while !stream.is_empty() {
            let io = Io {
                stream: &mut stream,
                buffer: &mut buffer,
                out: &mut out,
            };
            postgres.read(io, &mut |one| {
                received.push(one);
                Ok(())
            })?;
        }
        Ok((received, out))
    }

    fn read(postgres: &mut Postgres, bytes: &[u8]) -> (Vec<Received>, Vec<u8>) {
        try_read(postgres, bytes).unwrap()
    }

    #[test]
    fn a_function_call_on_the_wire() {
        let mut out = vec![];
        Postgres::new(PostgresTransfer::Function, 1).append(&mut out, &[CALL]);
        let mut bind = b"\0transfer\0".to_vec();
        bind.extend([0, 1, 0, 1, 0, 3]);
        bind.extend([0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
        bind.extend([0, 0, 0, 4, 0, 0, 0, 42, 0, 0, 0, 4, 0, 0, 0, 17]);
        bind.extend([0, 1, 0, 1]);
        let expected = [
            message(b'B', &bind),
            message(b'E', &[0, 0, 0, 0, 0]),
            message(b'S', &[]),
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn answers_of_functions() {
        let mut postgres = Postgres::new(PostgresTransfer::Function, 1);
        let calls: Vec<Call> = (0..4)
            .map(|request_id| Call { request_id, ..CALL })
            .collect();
        postgres.append(&mut vec![], &calls);
        let bytes = [
            message(b'2', &[]),
            row(&[&[0, 0]]),
            message(b'C', b"SELECT 1\0"),
            ready(),
            row(&[&[0, 1]]),
            ready(),
            failure("40001", "could not serialize"),
            ready(),
            failure("P0001", "account_missing"),
            ready(),
        ];
        let (received, out) = read(&mut postgres, &bytes.concat());
        assert_eq!(
            received,
            [
                Received::Answer(0, Outcome::Applied),
                Received::Answer(1, Outcome::Noop),
                Received::Answer(2, Outcome::Conflict("40001 could not serialize".into())),
                Received::Answer(3, Outcome::Failed("P0001 account_missing".into())),
            ]
        );
        assert!(out.is_empty());
        let stray = try_read(&mut postgres, &ready());
        assert!(stray.is_err(), "an answer to nothing");
    }

    #[test]
    fn a_transaction_of_five_statements() {
        let mut postgres = Postgres::new(PostgresTransfer::Statements, 5);
        let mut out = vec![];
        let next = Call {
            request_id: 8,
            ..CALL
        };
        postgres.append(&mut out, &[CALL, next]);
        let begin = message(b'Q', b"BEGIN\0");
        assert_eq!(out, begin, "the second one waits");
        let contains = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|w| w == part);
        let (_, out) = read(&mut postgres, &ready());
        assert!(contains(&out, b"\0select\0"));
        // From 42 with 100 to 17 with 10; rows come by id.
        let accounts = [account(17, 10), account(42, 100), ready()].concat();
        let (_, out) = read(&mut postgres, &accounts);
        assert!(contains(&out, &[42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 95]));
        let (_, out) = read(&mut postgres, &ready());
        assert!(contains(&out, &[17, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 15]));
        let (received, out) = read(&mut postgres, &ready());
        assert_eq!(out, message(b'Q', b"COMMIT\0"));
        assert!(received.is_empty());
        let (received, out) = read(&mut postgres, &ready());
        assert_eq!(received, [Received::Answer(7, Outcome::Applied)]);
        assert_eq!(out, begin, "now the second one");
        // It loses against another transaction while it locks.
        read(&mut postgres, &ready());
        let lost = [failure("40P01", "deadlock"), ready()].concat();
        let (received, out) = read(&mut postgres, &lost);
        assert_eq!(out, message(b'Q', b"ROLLBACK\0"));
        assert!(received.is_empty());
        let (received, _) = read(&mut postgres, &ready());
        let conflict = Outcome::Conflict("40P01 deadlock".into());
        assert_eq!(received, [Received::Answer(8, conflict)]);
    }

    #[test]
    fn transactions_without_effect() {
        for (rows, end, outcome) in [
            (
                [account(17, 10), account(42, 4)].concat(),
                &b"COMMIT\0"[..],
                Outcome::Noop,
            ),
            (
                account(17, 10),
                b"ROLLBACK\0",
                Outcome::Failed("account_missing".into()),
            ),
        ] {
            let mut postgres = Postgres::new(PostgresTransfer::Statements, 5);
            postgres.append(&mut vec![], &[CALL]);
            read(&mut postgres, &ready());
            let (_, out) = read(&mut postgres, &[rows, ready()].concat());
            assert_eq!(out, message(b'Q', end));
            let (received, _) = read(&mut postgres, &ready());
            assert_eq!(received, [Received::Answer(7, outcome)]);
        }
    }

    #[test]
    fn a_database_that_stops_ends_the_connection() {
        let mut postgres = Postgres::new(PostgresTransfer::Function, 1);
        postgres.append(&mut vec![], &[CALL]);
        let bytes = failure("57P01", "terminating connection");
        let text = try_read(&mut postgres, &bytes).unwrap_err().to_string();
        assert!(text.contains("57P01 terminating connection"), "{text}");
    }
}
