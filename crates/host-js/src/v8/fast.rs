//! Host functions as compiled code calls them: without leaving it, on plain numbers (V8's "fast API calls").
//!
//! V8 checks nothing about numbers but that they are numbers, so they come as `f64` and are checked here. Arguments of other
//! types make V8 take the general form in `imports`, which says what is wrong.
//!
//! # Failures
//!
//! A fast call that fails throws, and for an errno it runs code of the module, which makes the exception. V8's header says
//! that fast calls should do neither, but to fall back to the general form, for which its options have no field any more. What
//! compiled code of this version (15.0) does: it keeps a safepoint, the exception handler and the deoptimization data of the
//! call, looks for a pending exception when the call returns, and entering JavaScript saves what it needs to walk over the
//! call. V8's own tests throw in fast calls. The test suite's `fast_calls` shows it, and names the version it was read for.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ::v8::fast_api::{CFunction, CFunctionInfo, FastApiCallbackOptions, Int64Representation, Type};
use ::v8::{Local, Object};

use super::failures::fail;
use super::host_calls;
use super::state::Failure;
use super::values::{u16_of_f64, u32_of_f64, RangeLens, Value};
use crate::sys::Function as Sys;

/// The fast form of a host function, where there is one.
pub(super) fn fast(function: Sys) -> Option<&'static [CFunction]> {
    Some(match function {
        Sys::TableScan => TABLE_SCAN,
        Sys::IndexScanPoint => INDEX_SCAN_POINT,
        Sys::IndexScanRange => INDEX_SCAN_RANGE,
        Sys::DeleteByIndexScanPoint => DELETE_BY_POINT,
        Sys::DeleteByIndexScanRange => DELETE_BY_RANGE,
        Sys::DeleteAllByEq => DELETE_ALL_BY_EQ,
        Sys::Insert => INSERT,
        Sys::Update => UPDATE,
        Sys::RowIterAdvance => ADVANCE,
        Sys::RowIterClose => CLOSE,
        _ => return None,
    })
}

/// How many fast calls have thrown in this process.
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// See [`super::fast_failures`].
pub(super) fn failures() -> u64 {
    FAILURES.load(Ordering::Relaxed)
}

/// Throws, in the place of a result.
#[cold]
#[inline(never)]
fn thrown<R: Default>(options: *mut FastApiCallbackOptions<'_>, failure: Failure) -> R {
    FAILURES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: V8 passes options that live as long as the call.
    let options = unsafe { &*options };
    // SAFETY: the call is the innermost one of its isolate, so its scope is the right one to throw in.
    ::v8::callback_scope!(unsafe scope, options);
    fail(scope, failure);
    R::default()
}

macro_rules! fast_functions {
    ($(
        $list:ident $function:ident ($($arg:ident: $arg_type:tt),*) -> $result:ty as $result_type:ident $body:block
    )*) => {
        $(
            extern "C" fn $function(
                _receiver: Local<'_, Object>,
                $($arg: fast_functions!(@rust $arg_type),)*
                options: *mut FastApiCallbackOptions<'_>,
            ) -> $result {
                let result: Result<$result, Failure> = (|| $body)();
                match result {
                    Ok(value) => value,
                    Err(failure) => thrown(options, failure),
                }
            }

            pub(super) const $list: &[CFunction] = &[CFunction::new(
                $function as *const c_void,
                &CFunctionInfo::new(
                    Type::$result_type.as_info(),
                    &[
                        Type::V8Value.as_info(),
                        $(fast_functions!(@v8 $arg_type).as_info(),)*
                        Type::CallbackOptions.as_info(),
                    ],
                    Int64Representation::Number,
                ),
            )];
        )*
    };
    (@rust number) => { f64 };
    (@rust buffer) => { Value<'_> };
    (@v8 number) => { Type::Float64 };
    (@v8 buffer) => { Type::V8Value };
}

fast_functions! {
    TABLE_SCAN table_scan(table: number) -> u32 as Uint32 {
        host_calls::table_scan(u32_of_f64(table)?)
    }
    INDEX_SCAN_POINT index_scan_point(
        index: number, buffer: buffer, len: number
    ) -> u32 as Uint32 {
        host_calls::index_scan_point(u32_of_f64(index)?, buffer, u32_of_f64(len)?)
    }
    INDEX_SCAN_RANGE index_scan_range(
        index: number, buffer: buffer, prefix_len: number, prefix_elems: number, rstart_len: number, rend_len: number
    ) -> u32 as Uint32 {
        let lens = lens(prefix_len, prefix_elems, rstart_len, rend_len)?;
        host_calls::index_scan_range(u32_of_f64(index)?, buffer, lens)
    }
    DELETE_BY_POINT delete_by_point(
        index: number, buffer: buffer, len: number
    ) -> u32 as Uint32 {
        host_calls::delete_by_point(u32_of_f64(index)?, buffer, u32_of_f64(len)?)
    }
    DELETE_BY_RANGE delete_by_range(
        index: number, buffer: buffer, prefix_len: number, prefix_elems: number, rstart_len: number, rend_len: number
    ) -> u32 as Uint32 {
        let lens = lens(prefix_len, prefix_elems, rstart_len, rend_len)?;
        host_calls::delete_by_range(u32_of_f64(index)?, buffer, lens)
    }
    DELETE_ALL_BY_EQ delete_all_by_eq(
        table: number, buffer: buffer, len: number
    ) -> u32 as Uint32 {
        host_calls::delete_all_by_eq(u32_of_f64(table)?, buffer, u32_of_f64(len)?)
    }
    INSERT insert(table: number, buffer: buffer, len: number) -> u32 as Uint32 {
        host_calls::insert(u32_of_f64(table)?, buffer, u32_of_f64(len)?)
    }
    UPDATE update(
        table: number, index: number, buffer: buffer, len: number
    ) -> u32 as Uint32 {
        host_calls::update(u32_of_f64(table)?, u32_of_f64(index)?, buffer, u32_of_f64(len)?)
    }
    ADVANCE advance(iterator: number, buffer: buffer) -> i32 as Int32 {
        host_calls::advance(u32_of_f64(iterator)?, buffer)
    }
    CLOSE close(iterator: number) -> () as Void {
        host_calls::close(u32_of_f64(iterator)?)
    }
    POINT_READ point_read(
        index: number, buffer: buffer, key_len: number
    ) -> i32 as Int32 {
        host_calls::point_read(u32_of_f64(index)?, buffer, u32_of_f64(key_len)?)
    }
}

fn lens(
    prefix_len: f64,
    prefix_elems: f64,
    rstart_len: f64,
    rend_len: f64,
) -> Result<RangeLens, Failure> {
    Ok(RangeLens {
        prefix_len: u32_of_f64(prefix_len)?,
        prefix_elems: u16_of_f64(prefix_elems)?,
        rstart_len: u32_of_f64(rstart_len)?,
        rend_len: u32_of_f64(rend_len)?,
    })
}
