//! The host functions as C functions for QuickJS.

use std::ffi::c_int;

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::host_calls::{self, Answer, Failure};
use crate::sys::{Function, Natives};

use super::arguments::{host_function, RawFunction};
use super::value::{self, number, undefined};
use super::{numbers, strings};

/// A host function, with its number of parameters.
pub(crate) fn function(function: Function) -> (RawFunction, c_int) {
    (function.native::<Raw>(), function.arity().into())
}

struct Raw;

impl Natives for Raw {
    type Native = RawFunction;

    fn native<const FUNCTION: u8>() -> RawFunction {
        unsafe extern "C" fn native<const FUNCTION: u8>(
            context: *mut JSContext,
            _this: JSValue,
            _count: c_int,
            values: *mut JSValue,
        ) -> JSValue {
            // SAFETY: QuickJS calls with a live context and as many values as declared.
            unsafe {
                host_function(context, values, |call| {
                    let function = Function::ALL[usize::from(FUNCTION)];
                    give(context, host_calls::any(function, call)?)
                })
            }
        }
        native::<FUNCTION>
    }
}

/// The value of an answer.
///
/// # Safety
/// The context is alive, and its state is not borrowed.
#[inline]
unsafe fn give(context: *mut JSContext, answer: Answer) -> Result<JSValue, Failure> {
    unsafe {
        Ok(match answer {
            Answer::Nothing => undefined(),
            Answer::Unsigned(value) => number(value),
            Answer::Signed(value) => qjs::JS_MKVAL(qjs::JS_TAG_INT, value),
            Answer::Count(count) => qjs::JS_NewBigUint64(context, count),
            Answer::Time(time) => qjs::JS_NewBigInt64(context, time),
            Answer::Words(words) => numbers::from_words(context, words)?.into_raw(),
            Answer::Bytes(bytes) => value::bytes(context, &bytes),
            Answer::Text(None) => qjs::JS_NULL,
            Answer::Text(Some(text)) => value::string(context, &text),
            Answer::HeadAndBody(head, body) => {
                let array = qjs::JS_NewArray(context);
                for (index, content) in (0..).zip([&head[..], &body[..]]) {
                    let content = value::bytes(context, content);
                    // Takes ownership of the content; without memory an exception is pending.
                    if qjs::JS_SetPropertyUint32(context, array, index, content) < 0 {
                        qjs::JS_FreeValue(context, array);
                        return Err(Failure::Thrown);
                    }
                }
                array
            }
        })
    }
}

/// The natives of `TextEncoder` and `TextDecoder`, with their numbers of parameters.
macro_rules! text_functions {
    ($($name:ident: $arity:literal $function:path;)*) => {$(
        pub(crate) const $name: (RawFunction, c_int) = {
            unsafe extern "C" fn native(
                context: *mut JSContext,
                _this: JSValue,
                _count: c_int,
                values: *mut JSValue,
            ) -> JSValue {
                // SAFETY: as for the others.
                unsafe { host_function(context, values, |call| $function(call)) }
            }
            (native, $arity)
        };
    )*};
}

text_functions! {
    TEXT_ENCODE: 1 strings::encode;
    TEXT_DECODE: 2 strings::decode;
}
