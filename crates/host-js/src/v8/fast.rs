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
use lightcone_host::HostEnv;

use super::failures::fail;
use super::state::with_state;
use super::values::{buffer_of, u16_of, u16_of_f64, u32_of, u32_of_f64, Value};
use crate::host_calls::{self, Answer, Call, Failure};
use crate::messages;
use crate::sys::Function as Sys;

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

/// A call of compiled code.
struct Compiled<'s, const ARGUMENTS: usize>([Argument<'s>; ARGUMENTS]);

#[derive(Clone, Copy)]
enum Argument<'s> {
    Number(f64),
    Any(Value<'s>),
}

impl<const ARGUMENTS: usize> Call for Compiled<'_, ARGUMENTS> {
    #[inline(always)]
    fn host<R>(&self, body: impl FnOnce(&mut HostEnv) -> Result<R, Failure>) -> Result<R, Failure> {
        with_state(|state| body(&mut state.env))
    }

    #[inline(always)]
    fn u32(&self, at: usize) -> Result<u32, Failure> {
        match self.0[at] {
            Argument::Number(number) => u32_of_f64(number),
            Argument::Any(value) => u32_of(value),
        }
    }

    #[inline(always)]
    fn u16(&self, at: usize) -> Result<u16, Failure> {
        match self.0[at] {
            Argument::Number(number) => u16_of_f64(number),
            Argument::Any(value) => u16_of(value),
        }
    }

    #[inline(always)]
    fn buffer(&self, at: usize, expected: &str) -> Result<&mut [u8], Failure> {
        match self.0[at] {
            // SAFETY: as for calls in the general form.
            Argument::Any(value) => unsafe { buffer_of(value, expected) },
            Argument::Number(_) => Err(Failure::Type(messages::expected(expected, "Number"))),
        }
    }
}

/// The fast forms of host functions: their arguments and what they give.
macro_rules! fast_functions {
    ($($function:ident ($($arg:ident: $arg_type:ident),*) -> $answer:ident;)*) => {
        /// The fast form of a host function, where there is one.
        pub(super) fn fast(function: Sys) -> Option<&'static [CFunction]> {
            match function {
                $(Sys::$function => {
                    extern "C" fn native(
                        _receiver: Local<'_, Object>,
                        $($arg: fast_functions!(@rust $arg_type),)*
                        options: *mut FastApiCallbackOptions<'_>,
                    ) -> fast_functions!(@rust $answer) {
                        let call = Compiled([$(Argument::$arg_type($arg)),*]);
                        match host_calls::on_rows(Sys::$function, &call) {
                            Ok(answer) => fast_functions!(@value $answer answer),
                            Err(failure) => thrown(options, failure),
                        }
                    }

                    const FORM: &[CFunction] = &[CFunction::new(
                        native as *const c_void,
                        &CFunctionInfo::new(
                            fast_functions!(@v8 $answer).as_info(),
                            &[
                                Type::V8Value.as_info(),
                                $(fast_functions!(@v8 $arg_type).as_info(),)*
                                Type::CallbackOptions.as_info(),
                            ],
                            Int64Representation::Number,
                        ),
                    )];
                    Some(FORM)
                })*
                _ => None,
            }
        }
    };
    (@rust Number) => { f64 };
    (@rust Any) => { Value<'_> };
    (@rust Unsigned) => { u32 };
    (@rust Signed) => { i32 };
    (@rust Nothing) => { () };
    (@v8 Number) => { Type::Float64 };
    (@v8 Any) => { Type::V8Value };
    (@v8 Unsigned) => { Type::Uint32 };
    (@v8 Signed) => { Type::Int32 };
    (@v8 Nothing) => { Type::Void };
    (@value Nothing $answer:ident) => { drop($answer) };
    (@value $kind:ident $answer:ident) => {
        match $answer {
            Answer::$kind(value) => value,
            _ => unreachable!("a host function has answers of one kind"),
        }
    };
}

fast_functions! {
    TableScan(table: Number) -> Unsigned;
    IndexScanPoint(index: Number, buffer: Any, len: Number) -> Unsigned;
    IndexScanRange(
        index: Number, buffer: Any, prefix_len: Number, prefix_elems: Number, rstart_len: Number, rend_len: Number
    ) -> Unsigned;
    DeleteByIndexScanPoint(index: Number, buffer: Any, len: Number) -> Unsigned;
    DeleteByIndexScanRange(
        index: Number, buffer: Any, prefix_len: Number, prefix_elems: Number, rstart_len: Number, rend_len: Number
    ) -> Unsigned;
    DeleteAllByEq(table: Number, buffer: Any, len: Number) -> Unsigned;
    Insert(table: Number, buffer: Any, len: Number) -> Unsigned;
    Update(table: Number, index: Number, buffer: Any, len: Number) -> Unsigned;
    RowIterAdvance(iterator: Number, buffer: Any) -> Signed;
    RowIterClose(iterator: Number) -> Nothing;
    PointRead(index: Number, buffer: Any, key_len: Number) -> Signed;
}
