//! The host functions of version 2 (spec 04 §4.2): check arguments, call the host's side, convert the result.

use std::ffi::{c_int, CStr};

use lightcone_host::{Advance, HttpOutcome, HttpRequest, PointRead};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Encode as _, IndexId, TableId};
use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::messages;
use crate::sys::Function;

use super::arguments::{host_function, prefix, BufferWord, Call, RawFunction};
use super::stack_trace;
use super::state::Failure;
use super::value::{self, number, undefined};

/// The C function of an export, and its number of parameters.
pub(crate) fn function(function: Function) -> (RawFunction, c_int) {
    match function {
        Function::TableIdFromName => (table_id_from_name, 1),
        Function::IndexIdFromName => (index_id_from_name, 1),
        Function::TableRowCount => (table_row_count, 1),
        Function::TableScan => (table_scan, 1),
        Function::IndexScanPoint => (index_scan_point, 3),
        Function::IndexScanRange => (index_scan_range, 6),
        Function::DeleteByIndexScanPoint => (delete_by_index_point, 3),
        Function::DeleteByIndexScanRange => (delete_by_index_range, 6),
        Function::DeleteAllByEq => (delete_all_by_eq, 3),
        Function::Insert => (insert, 3),
        Function::Update => (update, 4),
        Function::Clear => (clear, 1),
        Function::RowIterAdvance => (row_iter_advance, 2),
        Function::RowIterClose => (row_iter_close, 1),
        Function::ConsoleLog => (console_log, 2),
        Function::ConsoleTimerStart => (console_timer_start, 1),
        Function::ConsoleTimerEnd => (console_timer_end, 1),
        Function::Identity => (identity, 0),
        Function::GetJwtPayload => (get_jwt_payload, 1),
        Function::VolatileScheduleImmediate => (volatile_schedule_immediate, 2),
        Function::ProcedureStartMutTx => (procedure_start_mut_tx, 0),
        Function::ProcedureCommitMutTx => (procedure_commit_mut_tx, 0),
        Function::ProcedureAbortMutTx => (procedure_abort_mut_tx, 0),
        Function::ProcedureHttpRequest => (procedure_http_request, 2),
    }
}

/// Defines a C function with this body.
macro_rules! host_functions {
    ($($(#[$doc:meta])* $name:ident($call:ident) $body:block)*) => {$(
        $(#[$doc])*
        unsafe extern "C" fn $name(
            context: *mut JSContext,
            _this: JSValue,
            _count: c_int,
            values: *mut JSValue,
        ) -> JSValue {
            // SAFETY: QuickJS calls with a live context and as many values as `function` declares; bodies make
            // values of that context, and borrow the state only while no JavaScript runs.
            unsafe {
                host_function(context, values, |$call| $body)
            }
        }
    )*};
}

host_functions! {
    table_id_from_name(call) {
        let id = call.string(0, |name| call.env().table_id_from_name(name))??;
        Ok(number(id.0))
    }

    index_id_from_name(call) {
        let id = call.string(0, |name| call.env().index_id_from_name(name))??;
        Ok(number(id.0))
    }

    table_row_count(call) {
        let count = call.env().table_row_count(TableId(call.u32(0)?))?;
        Ok(qjs::JS_NewBigUint64(call.context, count))
    }

    table_scan(call) {
        Ok(number(call.env().table_scan(TableId(call.u32(0)?))?))
    }

    index_scan_point(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, BufferWord::ArrayBuffer)?;
        let point = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().index_scan_point(index, point)?))
    }

    index_scan_range(call) {
        let range = Range::read(call)?;
        let [prefix, rstart, rend] = range.parts()?;
        let iterator = call.env().index_scan_range(range.index, prefix, range.prefix_elems, rstart, rend)?;
        Ok(number(iterator))
    }

    delete_by_index_point(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, BufferWord::ArrayBuffer)?;
        let point = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().delete_by_index_point(index, point)?))
    }

    delete_by_index_range(call) {
        let range = Range::read(call)?;
        let [prefix, rstart, rend] = range.parts()?;
        let count = call.env().delete_by_index_range(range.index, prefix, range.prefix_elems, rstart, rend)?;
        Ok(number(count))
    }

    delete_all_by_eq(call) {
        let table = TableId(call.u32(0)?);
        let buffer = call.buffer(1, BufferWord::Buffer)?;
        let relation = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().delete_all_by_eq(table, relation)?))
    }

    insert(call) {
        let table = TableId(call.u32(0)?);
        let buffer = call.buffer(1, BufferWord::Buffer)?;
        let row = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().insert(table, row)? as u32))
    }

    update(call) {
        let (table, index) = (TableId(call.u32(0)?), IndexId(call.u32(1)?));
        let buffer = call.buffer(2, BufferWord::Buffer)?;
        let row = prefix(buffer, call.u32(3)?)?;
        Ok(number(call.env().update(table, index, row)? as u32))
    }

    clear(call) {
        let count = call.env().clear(TableId(call.u32(0)?))?;
        Ok(qjs::JS_NewBigUint64(call.context, count))
    }

    row_iter_advance(call) {
        let iterator = call.u32(0)?;
        let buffer = call.buffer(1, BufferWord::ArrayBuffer)?;
        match call.env().row_iter_advance(iterator, buffer)? {
            Advance::More(count) => Ok(signed(count as i32)),
            Advance::Finished(count) => Ok(signed(-(count as i32))),
            Advance::TooSmall(size) => Err(Failure::BufferTooSmall(size)),
        }
    }

    row_iter_close(call) {
        call.env().row_iter_close(call.u32(0)?)?;
        Ok(undefined())
    }

    console_log(call) {
        let level = call.u32(0)?;
        let frames = call.string(1, |_| ()).map(|()| stack_trace::current(call.context))?;
        // The library's own method stands between the host and its caller.
        let caller = frames.get(1);
        let filename = caller.and_then(|frame| frame.script.as_deref());
        let line = caller.map_or(u32::MAX, |frame| frame.line);
        call.string(1, |message| {
            call.env().console_log(level, None, filename.map(str::as_bytes), line, message.as_bytes(), || {
                crate::frame::console_frames(&frames)
            });
        })?;
        Ok(undefined())
    }

    console_timer_start(call) {
        let timer = call.string(0, |name| call.env().console_timer_start(name.as_bytes()))??;
        Ok(number(timer))
    }

    console_timer_end(call) {
        call.env().console_timer_end(call.u32(0)?)?;
        Ok(undefined())
    }

    identity(call) {
        let words = call.env().identity().to_words();
        Ok(super::numbers::from_words(call.context, words)?.into_raw())
    }

    get_jwt_payload(call) {
        let connection = ConnectionId(call.u128(0)?);
        let payload = call.env().jwt_payload(connection)?;
        Ok(value::bytes(call.context, payload.as_bytes()))
    }

    volatile_schedule_immediate(call) {
        let name = call.string(0, str::to_owned)?;
        let arguments = call.array(1)?;
        call.env().volatile_nonatomic_schedule_immediate(&name, arguments)?;
        Ok(undefined())
    }

    procedure_start_mut_tx(call) {
        let waiting = call.env().ask_transaction()?;
        call.state().wait(waiting);
        let timestamp = call.env().open_transaction()?;
        Ok(qjs::JS_NewBigUint64(call.context, timestamp as u64))
    }

    procedure_commit_mut_tx(call) {
        call.env().procedure_commit_mut_tx()?;
        Ok(undefined())
    }

    procedure_abort_mut_tx(call) {
        call.env().procedure_abort_mut_tx()?;
        Ok(undefined())
    }

    /// Scan and read without an iterator (docs/js-abi.md).
    point_read(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, BufferWord::ArrayBuffer)?;
        let key_len = prefix(buffer, call.u32(2)?)?.len();
        match call.env().point_read(index, buffer, key_len)? {
            PointRead::Rows(count) => Ok(signed(count as i32)),
            PointRead::TooSmall(size) => Ok(signed(-(size as i32))),
        }
    }

    procedure_http_request(call) {
        let request = call.array(0)?;
        call.env().may_request()?;
        let request = HttpRequest::decode(&mut Reader::new(request))
            .map_err(|error| Failure::Type(messages::bad_http_request(error)))?;
        let waiting = match qjs::JS_IsString(call.value(1)) {
            true => call.string(1, |text| call.env().ask_http(request, text.as_bytes()))?,
            false => call.env().ask_http(request, call.array(1)?),
        }?;
        call.state().wait(waiting);
        let (head, body) = match call.env().http_answer()? {
            HttpOutcome::Response(head, body) => (head.to_vec(), body),
            HttpOutcome::Failed(text) => return Err(Failure::Http(text)),
        };
        let array = qjs::JS_NewArray(call.context);
        for (index, content) in (0..).zip([&head[..], &body[..]]) {
            let content = value::bytes(call.context, content);
            // Takes ownership of the content; without memory an exception is pending.
            if qjs::JS_SetPropertyUint32(call.context, array, index, content) < 0 {
                qjs::JS_FreeValue(call.context, array);
                return Err(Failure::Pending);
            }
        }
        Ok(array)
    }
}

/// The optional functions of this host: name, function, number of parameters (docs/js-abi.md).
pub(crate) const EXTRAS: [(&CStr, RawFunction, c_int); 2] =
    [(c"point_read", point_read, 3), (c"row_update", update, 4)];

fn signed(value: i32) -> JSValue {
    qjs::JS_MKVAL(qjs::JS_TAG_INT, value)
}

/// The arguments of a range scan: prefix, start and end, back to back in one buffer.
struct Range<'a> {
    index: IndexId,
    buffer: &'a [u8],
    prefix_len: usize,
    prefix_elems: u16,
    rstart_len: usize,
    rend_len: usize,
}

impl Range<'_> {
    fn read(call: &Call) -> Result<Range<'_>, Failure> {
        Ok(Range {
            index: IndexId(call.u32(0)?),
            buffer: call.buffer(1, BufferWord::ArrayBuffer)?,
            prefix_len: call.u32(2)? as usize,
            prefix_elems: call.u16(3)?,
            rstart_len: call.u32(4)? as usize,
            rend_len: call.u32(5)? as usize,
        })
    }

    /// Prefix, start and end. An end without length is the start; a prefix without elements does not count.
    fn parts(&self) -> Result<[&[u8]; 3], Failure> {
        let out_of_bounds = || Failure::Range(crate::messages::LENGTH_OUT_OF_BOUNDS.to_owned());
        // Three lengths of 32 bits do not overflow.
        let rstart_at = self.prefix_len;
        let rend_at = rstart_at + self.rstart_len;
        let end = rend_at + self.rend_len;
        let content = self.buffer.get(..end).ok_or_else(out_of_bounds)?;
        let rstart = &content[rstart_at..rend_at];
        let rend = match self.rend_len {
            0 => rstart,
            _ => &content[rend_at..],
        };
        let prefix = match self.prefix_elems {
            0 => &[],
            _ => &content[..rstart_at],
        };
        Ok([prefix, rstart, rend])
    }
}
