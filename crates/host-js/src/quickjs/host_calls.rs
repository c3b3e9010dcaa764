//! The host functions of version 2 (spec 04 §4.2): check arguments, call the host's side, convert the result.

use std::ffi::{c_int, CStr};

use lightcone_host::{Advance, HttpOutcome, HttpRequest, PointRead, RangeBounds};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Encode as _, IndexId, TableId};
use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::messages;
use crate::sys::Function;

use super::arguments::{host_function, prefix, Call, RawFunction};
use super::state::Failure;
use super::value::{self, number, undefined};
use super::{stack_trace, strings};

/// The C functions of a kind, with their numbers of parameters.
macro_rules! host_functions {
    ($choose:ident($Kind:ident) $($arity:literal $function:ident($call:ident) $body:block)*) => {
        pub(crate) fn $choose(function: $Kind) -> (RawFunction, c_int) {
            match function {
                $($Kind::$function => {
                    unsafe extern "C" fn native(
                        context: *mut JSContext,
                        _this: JSValue,
                        _count: c_int,
                        values: *mut JSValue,
                    ) -> JSValue {
                        // SAFETY: QuickJS calls with a live context and as many values as declared; bodies make values
                        // of that context, and borrow the state only while no JavaScript runs.
                        unsafe { host_function(context, values, |$call| $body) }
                    }
                    (native, $arity)
                })*
            }
        }
    };
}

host_functions! { function(Function)
    1 TableIdFromName(call) {
        let id = call.string(0, |name| call.env().table_id_from_name(name))??;
        Ok(number(id.0))
    }

    1 IndexIdFromName(call) {
        let id = call.string(0, |name| call.env().index_id_from_name(name))??;
        Ok(number(id.0))
    }

    1 TableRowCount(call) {
        let count = call.env().table_row_count(TableId(call.u32(0)?))?;
        Ok(qjs::JS_NewBigUint64(call.context, count))
    }

    1 TableScan(call) {
        Ok(number(call.env().table_scan(TableId(call.u32(0)?))?))
    }

    3 IndexScanPoint(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, messages::ARRAY_BUFFER)?;
        let point = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().index_scan_point(index, point)?))
    }

    6 IndexScanRange(call) {
        let (index, range) = range(call)?;
        Ok(number(call.env().index_scan_range(index, range)?))
    }

    3 DeleteByIndexScanPoint(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, messages::ARRAY_BUFFER)?;
        let point = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().delete_by_index_point(index, point)?))
    }

    6 DeleteByIndexScanRange(call) {
        let (index, range) = range(call)?;
        Ok(number(call.env().delete_by_index_range(index, range)?))
    }

    3 DeleteAllByEq(call) {
        let table = TableId(call.u32(0)?);
        let buffer = call.buffer(1, messages::BUFFER)?;
        let relation = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().delete_all_by_eq(table, relation)?))
    }

    3 Insert(call) {
        let table = TableId(call.u32(0)?);
        let buffer = call.buffer(1, messages::BUFFER)?;
        let row = prefix(buffer, call.u32(2)?)?;
        Ok(number(call.env().insert(table, row)? as u32))
    }

    4 Update(call) {
        let (table, index) = (TableId(call.u32(0)?), IndexId(call.u32(1)?));
        let buffer = call.buffer(2, messages::BUFFER)?;
        let row = prefix(buffer, call.u32(3)?)?;
        Ok(number(call.env().update(table, index, row)? as u32))
    }

    1 Clear(call) {
        let count = call.env().clear(TableId(call.u32(0)?))?;
        Ok(qjs::JS_NewBigUint64(call.context, count))
    }

    2 RowIterAdvance(call) {
        let iterator = call.u32(0)?;
        let buffer = call.buffer(1, messages::ARRAY_BUFFER)?;
        match call.env().row_iter_advance(iterator, buffer)? {
            Advance::More(count) => Ok(signed(count as i32)),
            Advance::Finished(count) => Ok(signed(-(count as i32))),
            Advance::TooSmall(size) => Err(Failure::BufferTooSmall(size)),
        }
    }

    1 RowIterClose(call) {
        call.env().row_iter_close(call.u32(0)?)?;
        Ok(undefined())
    }

    2 ConsoleLog(call) {
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

    1 ConsoleTimerStart(call) {
        let timer = call.string(0, |name| call.env().console_timer_start(name.as_bytes()))??;
        Ok(number(timer))
    }

    1 ConsoleTimerEnd(call) {
        call.env().console_timer_end(call.u32(0)?)?;
        Ok(undefined())
    }

    0 Identity(call) {
        let words = call.env().identity().to_words();
        Ok(super::numbers::from_words(call.context, words)?.into_raw())
    }

    1 GetJwtPayload(call) {
        let connection = ConnectionId(call.u128(0)?);
        let payload = call.env().jwt_payload(connection)?;
        Ok(value::bytes(call.context, payload.as_bytes()))
    }

    2 VolatileScheduleImmediate(call) {
        let name = call.string(0, str::to_owned)?;
        let arguments = call.array(1)?;
        call.env().volatile_nonatomic_schedule_immediate(&name, arguments)?;
        Ok(undefined())
    }

    0 ProcedureStartMutTx(call) {
        let waiting = call.env().ask_transaction()?;
        call.state().wait(waiting);
        let timestamp = call.env().open_transaction()?;
        Ok(qjs::JS_NewBigUint64(call.context, timestamp as u64))
    }

    0 ProcedureCommitMutTx(call) {
        call.env().procedure_commit_mut_tx()?;
        Ok(undefined())
    }

    0 ProcedureAbortMutTx(call) {
        call.env().procedure_abort_mut_tx()?;
        Ok(undefined())
    }

    2 ProcedureHttpRequest(call) {
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

/// Functions that no version of the virtual modules has.
pub(crate) enum Own {
    TextEncode,
    TextDecode,
    PointRead,
}

host_functions! { own(Own)
    3 PointRead(call) {
        let index = IndexId(call.u32(0)?);
        let buffer = call.buffer(1, messages::ARRAY_BUFFER)?;
        let key_len = prefix(buffer, call.u32(2)?)?.len();
        match call.env().point_read(index, buffer, key_len)? {
            PointRead::Rows(count) => Ok(signed(count as i32)),
            PointRead::TooSmall(size) => Ok(signed(-(size as i32))),
        }
    }

    1 TextEncode(call) { strings::encode(call) }

    2 TextDecode(call) { strings::decode(call) }
}

/// The optional functions of this host (docs/js-abi.md).
pub(crate) fn extras() -> [(&'static CStr, (RawFunction, c_int)); 2] {
    let update = function(Function::Update);
    [
        (c"point_read", own(Own::PointRead)),
        (c"row_update", update),
    ]
}

fn signed(value: i32) -> JSValue {
    qjs::JS_MKVAL(qjs::JS_TAG_INT, value)
}

/// The arguments of a range scan: the index, and prefix, start and end back to back in one buffer. An end without length is the
/// start; a prefix without elements does not count.
fn range(call: &Call) -> Result<(IndexId, RangeBounds<'_>), Failure> {
    let index = IndexId(call.u32(0)?);
    let buffer = call.buffer(1, messages::ARRAY_BUFFER)?;
    let (prefix_len, prefix_elems) = (call.u32(2)? as usize, call.u16(3)?);
    let (start_len, end_len) = (call.u32(4)? as usize, call.u32(5)? as usize);
    // Three lengths of 32 bits do not overflow.
    let length = prefix_len + start_len + end_len;
    let content = buffer
        .get(..length)
        .ok_or_else(|| Failure::Range(messages::LENGTH_OUT_OF_BOUNDS.to_owned()))?;
    let (prefix, bounds) = content.split_at(prefix_len);
    let (start, end) = bounds.split_at(start_len);
    let range = RangeBounds {
        prefix: if prefix_elems == 0 { &[] } else { prefix },
        prefix_columns: prefix_elems.into(),
        start,
        end: if end_len == 0 { start } else { end },
    };
    Ok((index, range))
}
