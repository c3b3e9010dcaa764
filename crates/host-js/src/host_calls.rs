//! What the host functions do (spec 04 §4.2), in either engine: check the arguments in their order, call the host's side, and say what
//! the program gets.

use std::borrow::Cow;

use lightcone_host::{
    AbiError, Advance, ConsoleLevel, Counted, HostEnv, HostTrap, HttpRequest, PointRead,
    RangeBounds, Waiting,
};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Encode as _, IndexId, TableId};

use crate::frame::{console_frames, Frame};
use crate::messages::{self, ARRAY_BUFFER, BUFFER};
use crate::scope::Thrown;
use crate::sys::Function;

/// Why a host function failed.
pub(crate) enum Failure {
    /// An errno, or the end of the call.
    Abi(AbiError),
    /// A TypeError.
    Type(String),
    /// A RangeError.
    Range(&'static str),
    /// An outbound request failed: errno 21.
    Http(String),
    /// The bytes that `row_iter_bsatn_advance` needs.
    TooSmall(usize),
    /// An exception is pending, or the call is being ended.
    Thrown,
}

impl From<AbiError> for Failure {
    #[inline]
    fn from(error: AbiError) -> Failure {
        Failure::Abi(error)
    }
}

impl From<Thrown> for Failure {
    #[inline]
    fn from(_: Thrown) -> Failure {
        Failure::Thrown
    }
}

/// A call of a host function that has numbers and buffers only (§4.1).
pub(crate) trait Call {
    /// Runs a part of the function on the host's side. No code of the module runs meanwhile.
    fn host<R>(&self, body: impl FnOnce(&mut HostEnv) -> Result<R, Failure>) -> Result<R, Failure>;

    fn u32(&self, at: usize) -> Result<u32, Failure>;

    fn u16(&self, at: usize) -> Result<u16, Failure>;

    /// All bytes of an `ArrayBuffer`, which errors call `expected`. Valid until code of the module runs; to be taken once for each
    /// buffer.
    #[allow(clippy::mut_from_ref)]
    fn buffer(&self, at: usize, expected: &str) -> Result<&mut [u8], Failure>;

    /// As many first bytes of a buffer as the next argument says.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn start(&self, at: usize, expected: &str) -> Result<&mut [u8], Failure> {
        let buffer = self.buffer(at, expected)?;
        let length = self.u32(at + 1)? as usize;
        let start = buffer.get_mut(..length);
        start.ok_or(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS))
    }

    /// An index, and a range of it: prefix, start and end back to back in a buffer. Without an end it is the start again; a prefix
    /// without columns does not count (§4.2).
    #[inline(always)]
    fn range(&self) -> Result<(IndexId, RangeBounds<'_>), Failure> {
        let index = self.u32(0)?;
        let buffer: &[u8] = self.buffer(1, ARRAY_BUFFER)?;
        let (prefix_len, prefix_columns) = (self.u32(2)?, usize::from(self.u16(3)?));
        let (start_len, end_len) = (self.u32(4)?, self.u32(5)?);
        let bounds = || {
            let (prefix, rest) = buffer.split_at_checked(prefix_len as usize)?;
            let (start, rest) = rest.split_at_checked(start_len as usize)?;
            let end = match end_len {
                0 => start,
                length => rest.get(..length as usize)?,
            };
            Some(RangeBounds {
                prefix,
                prefix_columns,
                start,
                end,
            })
        };
        let bounds = bounds().ok_or(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS))?;
        Ok((IndexId(index), bounds))
    }

    /// A part that ends the function, with its answer.
    #[inline(always)]
    fn answer<R>(
        &self,
        answer: impl FnOnce(R) -> Answer,
        body: impl FnOnce(&mut HostEnv) -> Result<R, AbiError>,
    ) -> Result<Answer, Failure> {
        self.host(|env| Ok(answer(body(env)?)))
    }
}

/// A call with arguments of all types.
pub(crate) trait AnyCall: Call {
    /// A BigInt of up to 128 bits, not negative.
    fn u128(&self, at: usize) -> Result<u128, Failure>;

    /// The bytes of a `Uint8Array`.
    fn bytes(&self, at: usize) -> Result<Cow<'_, [u8]>, Failure>;

    fn is_text(&self, at: usize) -> bool;

    /// As [`Call::host`], with the UTF-8 of a string; lone surrogates are U+FFFD.
    fn text<R>(
        &mut self,
        at: usize,
        body: impl FnOnce(&str, &mut HostEnv) -> Result<R, AbiError>,
    ) -> Result<R, Failure>;

    fn wrong_type(&self, at: usize, expected: &str) -> Failure;

    /// The frames of the running JavaScript functions, innermost first: at least two, or all.
    fn frames(&mut self, all: bool) -> Vec<Frame>;

    /// Blocks this thread. The time does not count against the call, which has its whole time again afterwards.
    fn wait(&self, waiting: Option<Waiting>) -> Result<(), Failure>;
}

/// What a host function gives to the program.
pub(crate) enum Answer {
    Nothing,
    Unsigned(u32),
    Signed(i32),
    /// A BigInt, as all that follow but bytes.
    Count(u64),
    Time(i64),
    /// 64-bit words, the lowest first.
    Words([u64; 4]),
    /// A `Uint8Array`.
    Bytes(Vec<u8>),
    /// A string, or `null`.
    Text(Option<String>),
    /// An array of two.
    HeadAndBody(Vec<u8>, Counted<Vec<u8>>),
}

impl Answer {
    /// The size of generated columns, which are part of a row.
    fn generated(bytes: usize) -> Answer {
        Answer::Unsigned(bytes as u32)
    }
}

/// Carries out a host function.
#[inline(always)]
pub(crate) fn any<C: AnyCall>(function: Function, call: &mut C) -> Result<Answer, Failure> {
    match function {
        Function::TableIdFromName => {
            let id = call.text(0, |name, env| env.table_id_from_name(name))?;
            Ok(Answer::Unsigned(id.0))
        }
        Function::IndexIdFromName => {
            let id = call.text(0, |name, env| env.index_id_from_name(name))?;
            Ok(Answer::Unsigned(id.0))
        }
        Function::TableRowCount => {
            let table = TableId(call.u32(0)?);
            call.answer(Answer::Count, |env| env.table_row_count(table))
        }
        Function::Clear => {
            let table = TableId(call.u32(0)?);
            call.answer(Answer::Count, |env| env.clear(table))
        }
        Function::ConsoleLog => console_log(call),
        Function::ConsoleTimerStart => {
            let timer = call.text(0, |name, env| env.console_timer_start(name.as_bytes()))?;
            Ok(Answer::Unsigned(timer))
        }
        Function::ConsoleTimerEnd => {
            let timer = call.u32(0)?;
            call.answer(NOTHING, |env| env.console_timer_end(timer))
        }
        Function::Identity => call.answer(Answer::Words, |env| Ok(env.identity().to_words())),
        Function::GetJwtPayload => {
            let connection = ConnectionId(call.u128(0)?);
            let bytes = |text: &str| text.as_bytes().to_vec();
            call.answer(Answer::Bytes, |env| env.jwt_payload(connection).map(bytes))
        }
        Function::VolatileScheduleImmediate => {
            let name = call.text(0, |name, _| Ok(name.to_owned()))?;
            let arguments = call.bytes(1)?;
            call.answer(NOTHING, |env| {
                env.volatile_nonatomic_schedule_immediate(&name, &arguments)
            })
        }
        Function::ProcedureStartMutTx => {
            let waiting = call.host(|env| Ok(env.ask_transaction()?))?;
            call.wait(waiting)?;
            call.answer(Answer::Time, HostEnv::open_transaction)
        }
        Function::ProcedureCommitMutTx => call.answer(NOTHING, HostEnv::procedure_commit_mut_tx),
        Function::ProcedureAbortMutTx => call.answer(NOTHING, HostEnv::procedure_abort_mut_tx),
        Function::ProcedureHttpRequest => http_request(call),
        Function::EnvGet => env_get(call),
        function => on_rows(function, call),
    }
}

const NOTHING: fn(()) -> Answer = |()| Answer::Nothing;

/// Carries out a host function on the way of a call, which compiled code may call without leaving it.
#[inline(always)]
pub(crate) fn on_rows<C: Call>(function: Function, call: &C) -> Result<Answer, Failure> {
    match function {
        Function::TableScan => {
            let table = TableId(call.u32(0)?);
            call.answer(Answer::Unsigned, |env| env.table_scan(table))
        }
        Function::IndexScanPoint => {
            let (index, point) = (IndexId(call.u32(0)?), call.start(1, ARRAY_BUFFER)?);
            call.answer(Answer::Unsigned, |env| env.index_scan_point(index, point))
        }
        Function::IndexScanRange => {
            let (index, range) = call.range()?;
            call.answer(Answer::Unsigned, |env| env.index_scan_range(index, range))
        }
        Function::DeleteByIndexScanPoint => {
            let (index, point) = (IndexId(call.u32(0)?), call.start(1, ARRAY_BUFFER)?);
            call.answer(Answer::Unsigned, |env| {
                env.delete_by_index_point(index, point)
            })
        }
        Function::DeleteByIndexScanRange => {
            let (index, range) = call.range()?;
            call.answer(Answer::Unsigned, |env| {
                env.delete_by_index_range(index, range)
            })
        }
        Function::DeleteAllByEq => {
            let (table, relation) = (TableId(call.u32(0)?), call.start(1, BUFFER)?);
            call.answer(Answer::Unsigned, |env| {
                env.delete_all_by_eq(table, relation)
            })
        }
        Function::Insert => {
            let (table, row) = (TableId(call.u32(0)?), call.start(1, BUFFER)?);
            call.answer(Answer::generated, |env| env.insert(table, row))
        }
        Function::Update => {
            let (table, index) = (TableId(call.u32(0)?), IndexId(call.u32(1)?));
            let row = call.start(2, BUFFER)?;
            call.answer(Answer::generated, |env| env.update(table, index, row))
        }
        Function::RowIterAdvance => {
            let (iterator, buffer) = (call.u32(0)?, call.buffer(1, ARRAY_BUFFER)?);
            // The result has 31 bits for the size.
            let end = buffer.len().min(i32::MAX as usize);
            call.host(
                |env| match env.row_iter_advance(iterator, &mut buffer[..end])? {
                    Advance::More(bytes) => Ok(Answer::Signed(bytes as i32)),
                    Advance::Finished(bytes) => Ok(Answer::Signed(-(bytes as i32))),
                    Advance::TooSmall(bytes) => Err(Failure::TooSmall(bytes)),
                },
            )
        }
        Function::RowIterClose => {
            let iterator = call.u32(0)?;
            call.answer(NOTHING, |env| env.row_iter_close(iterator))
        }
        Function::PointRead => {
            let (index, buffer) = (IndexId(call.u32(0)?), call.buffer(1, ARRAY_BUFFER)?);
            let key_len = call.u32(2)? as usize;
            if key_len > buffer.len() {
                return Err(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS));
            }
            call.answer(Answer::Signed, |env| {
                let (bytes, sign) = match env.point_read(index, buffer, key_len)? {
                    PointRead::Rows(bytes) => (bytes, 1),
                    PointRead::TooSmall(bytes) => (bytes, -1),
                };
                let too_large = |_| HostTrap::Internal("the rows are too large".into());
                Ok(i32::try_from(bytes).map_err(too_large)? * sign)
            })
        }
        _ => unreachable!("the others are in `any`"),
    }
}

fn console_log<C: AnyCall>(call: &mut C) -> Result<Answer, Failure> {
    let level = call.u32(0)?;
    if !call.is_text(1) {
        return Err(call.wrong_type(1, messages::STRING));
    }
    let frames = call.frames(level as u8 == ConsoleLevel::PANIC_NUMBER);
    // The library's own method stands between the host and its caller.
    let caller = frames.get(1);
    let file = caller.and_then(|frame| frame.script.as_deref());
    let line = caller.map_or(u32::MAX, |frame| frame.line);
    call.text(1, |message, env| {
        let (file, message) = (file.map(str::as_bytes), message.as_bytes());
        env.console_log(level, None, file, line, message, || console_frames(&frames));
        Ok(Answer::Nothing)
    })
}

fn http_request<C: AnyCall>(call: &mut C) -> Result<Answer, Failure> {
    let request = {
        let head = call.bytes(0)?;
        call.host(|env| Ok(env.may_request()?))?;
        HttpRequest::decode(&mut Reader::new(&head))
            .map_err(|error| Failure::Type(messages::bad_http_request(error)))?
    };
    let waiting = match call.is_text(1) {
        true => call.text(1, |text, env| env.ask_http(request, text.as_bytes()))?,
        false => {
            let body = call.bytes(1)?;
            call.host(|env| Ok(env.ask_http(request, &body)?))?
        }
    };
    call.wait(waiting)?;
    match call.host(|env| Ok(env.http_answer()?))? {
        Ok((head, body)) => Ok(Answer::HeadAndBody(head.to_vec(), body)),
        Err(text) => Err(Failure::Http(text)),
    }
}

fn env_get<C: AnyCall>(call: &mut C) -> Result<Answer, Failure> {
    let (key, waiting) = call.text(0, |key, env| Ok((key.to_owned(), env.ask_variable(key)?)))?;
    call.wait(waiting)?;
    call.answer(Answer::Text, |env| env.variable(&key))
}
