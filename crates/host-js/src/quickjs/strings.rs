//! `TextEncoder` and `TextDecoder` (spec 04 §2), in native code: libraries make a decoder for every string that they read.

use std::ffi::{c_int, c_void};

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use super::arguments::{host_function, Call};
use super::natives::{
    define_class, define_getter, define_method, filled, instance, ClassDefinition,
};
use super::state::{state, Failure};
use super::value::{self, buffer_bytes, undefined, Owned, Thrown};

/// Defines both classes.
///
/// # Safety
/// The context is new and one of `isolate.rs`.
pub(crate) unsafe fn define(context: *mut JSContext) -> Result<(), Thrown> {
    unsafe {
        let encoder = define_class(
            context,
            ClassDefinition {
                name: c"TextEncoder",
                constructor: encoder_new,
                arity: 0,
                class: |classes| &mut classes.text_encoder,
            },
        )?;
        define_getter(context, &encoder, c"encoding", encoding)?;
        define_method(context, &encoder, c"encode", encode, 1)?;
        let decoder = define_class(
            context,
            ClassDefinition {
                name: c"TextDecoder",
                constructor: decoder_new,
                arity: 0,
                class: |classes| &mut classes.text_decoder,
            },
        )?;
        define_getter(context, &decoder, c"encoding", encoding)?;
        define_getter(context, &decoder, c"fatal", fatal)?;
        define_getter(context, &decoder, c"ignoreBOM", ignore_bom)?;
        define_method(context, &decoder, c"decode", decode, 2)
    }
}

/// What a decoder's opaque pointer is: never followed, only compared.
const LENIENT: *mut c_void = std::ptr::without_provenance_mut(1);
const FATAL: *mut c_void = std::ptr::without_provenance_mut(2);

unsafe extern "C" fn encoder_new(
    context: *mut JSContext,
    new_target: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS.
    unsafe {
        host_function(context, values, |call| {
            let class = call.state().classes.text_encoder;
            Ok(instance(context, new_target, class)?.into_raw())
        })
    }
}

unsafe extern "C" fn encoding(
    context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    _values: *mut JSValue,
) -> JSValue {
    unsafe { value::string(context, "utf-8") }
}

unsafe extern "C" fn ignore_bom(
    _context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    _values: *mut JSValue,
) -> JSValue {
    qjs::JS_FALSE
}

unsafe extern "C" fn encode(
    context: *mut JSContext,
    _this: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS, which fills up one argument.
    unsafe {
        host_function(context, values, |call| {
            let input = call.value(0);
            let encoded = match qjs::JS_VALUE_GET_TAG(input) {
                qjs::JS_TAG_UNDEFINED => value::bytes(context, &[]),
                _ => value::with_utf8(context, input, |text| {
                    value::bytes(context, text.as_bytes())
                })?,
            };
            Ok(Owned::checked(context, encoded)?.into_raw())
        })
    }
}

unsafe extern "C" fn decoder_new(
    context: *mut JSContext,
    new_target: JSValue,
    count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS.
    unsafe {
        let [label, options] = filled(count, values);
        host_function(context, values, |call| {
            check_label(call, label)?;
            let fatal = read_options(context, options)?;
            let class = call.state().classes.text_decoder;
            let decoder = instance(context, new_target, class)?;
            qjs::JS_SetOpaque(decoder.raw(), if fatal { FATAL } else { LENIENT });
            Ok(decoder.into_raw())
        })
    }
}

unsafe fn check_label(call: &Call, label: JSValue) -> Result<(), Failure> {
    unsafe {
        if qjs::JS_VALUE_GET_TAG(label) == qjs::JS_TAG_UNDEFINED {
            return Ok(());
        }
        // A constant of a program is the same string each time. It is kept, so its address stays unique.
        if let Some(known) = &call.state().values.utf8_label {
            if known.raw().tag == label.tag && known.raw().u.ptr == label.u.ptr {
                return Ok(());
            }
        }
        let is_string = qjs::JS_IsString(label);
        let text = value::with_utf8(call.context, label, str::to_owned)?;
        if !is_string || text != "utf-8" {
            return Err(Failure::Range(format!(
                "The encoding label \"{text}\" is not supported; only \"utf-8\" is."
            )));
        }
        let known = Owned::share(call.context, label);
        let before = call.state().values.utf8_label.replace(known);
        drop(before);
        Ok(())
    }
}

/// Whether the decoder refuses invalid UTF-8.
unsafe fn read_options(context: *mut JSContext, options: JSValue) -> Result<bool, Failure> {
    unsafe {
        let options = Owned::share(context, options);
        if options.is_nullish() {
            return Ok(false);
        }
        if is_true(context, &options.get(c"ignoreBOM")?)? {
            return Err(Failure::Type(
                "The option ignoreBOM is not supported.".to_owned(),
            ));
        }
        Ok(is_true(context, &options.get(c"fatal")?)?)
    }
}

unsafe fn is_true(context: *mut JSContext, value: &Owned) -> Result<bool, Thrown> {
    match unsafe { qjs::JS_ToBool(context, value.raw()) } {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Thrown),
    }
}

unsafe fn is_fatal(context: *mut JSContext, this: JSValue) -> Result<bool, Failure> {
    unsafe {
        let class = state(context).classes.text_decoder;
        match qjs::JS_GetOpaque(this, class) {
            FATAL => Ok(true),
            LENIENT => Ok(false),
            _ => Err(Failure::Type("not a TextDecoder".to_owned())),
        }
    }
}

unsafe extern "C" fn fatal(
    context: *mut JSContext,
    this: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS.
    unsafe {
        host_function(context, values, |_| {
            Ok(match is_fatal(context, this)? {
                true => qjs::JS_TRUE,
                false => qjs::JS_FALSE,
            })
        })
    }
}

unsafe extern "C" fn decode(
    context: *mut JSContext,
    this: JSValue,
    _count: c_int,
    values: *mut JSValue,
) -> JSValue {
    // SAFETY: called by QuickJS, which fills up two arguments.
    unsafe {
        host_function(context, values, |call| {
            let fatal = is_fatal(context, this)?;
            let options = Owned::share(context, call.value(1));
            if !options.is_nullish() && is_true(context, &options.get(c"stream")?)? {
                return Err(Failure::Type(
                    "The option stream is not supported.".to_owned(),
                ));
            }
            let content = view_bytes(call, call.value(0))?;
            let text = match std::str::from_utf8(content) {
                Ok(text) => value::string(context, text),
                Err(_) if fatal => {
                    return Err(Failure::Type(
                        "The encoded data was not valid utf-8".to_owned(),
                    ))
                }
                Err(_) => value::string(context, &String::from_utf8_lossy(content)),
            };
            Ok(Owned::checked(context, text)?.into_raw())
        })
    }
}

/// The bytes of an array buffer or of any view of one.
unsafe fn view_bytes<'a>(call: &Call, input: JSValue) -> Result<&'a [u8], Failure> {
    unsafe {
        if let Some(content) = value::array_bytes(call.context, input) {
            return Ok(content);
        }
        if qjs::JS_VALUE_GET_TAG(input) == qjs::JS_TAG_UNDEFINED {
            return Ok(&[]);
        }
        if qjs::JS_IsArrayBuffer(input) {
            return Ok(buffer_bytes(call.context, input));
        }
        let is_view = qjs::JS_IsDataView(input) || qjs::JS_GetTypedArrayType(input) >= 0;
        let parts = call.state().values.view_parts.as_ref().map(Owned::raw);
        let Some(parts) = parts.filter(|_| is_view) else {
            return Err(Failure::Type(
                "The input is neither an ArrayBuffer nor a view of one".to_owned(),
            ));
        };
        let mut arguments = [input];
        let found = qjs::JS_Call(call.context, parts, undefined(), 1, arguments.as_mut_ptr());
        let found = Owned::checked(call.context, found)?;
        let content = array_of(call, &found)?;
        Ok(content)
    }
}

/// The bytes of the array that `view_parts` made. They live as long as the view's buffer, which the caller holds.
unsafe fn array_of<'a>(call: &Call, array: &Owned) -> Result<&'a [u8], Failure> {
    let content = unsafe { value::array_bytes(call.context, array.raw()) };
    match content {
        Some(content) => Ok(content),
        None => Err(Failure::Type("the view is detached".to_owned())),
    }
}

/// Source of [`super::state::Values::view_parts`]: the bytes of any view. What it uses cannot be changed later.
pub(crate) const VIEW_PARTS: &str = "(() => {
  const { getPrototypeOf, getOwnPropertyDescriptor } = Object;
  const { apply } = Reflect;
  const Bytes = Uint8Array;
  const getters = prototype => ['buffer', 'byteOffset', 'byteLength']
    .map(name => getOwnPropertyDescriptor(prototype, name).get);
  const [dataBuffer, dataOffset, dataLength] = getters(DataView.prototype);
  const [arrayBuffer, arrayOffset, arrayLength] = getters(getPrototypeOf(Uint8Array.prototype));
  return view => {
    try {
      return new Bytes(apply(arrayBuffer, view, []), apply(arrayOffset, view, []), apply(arrayLength, view, []));
    } catch {
      return new Bytes(apply(dataBuffer, view, []), apply(dataOffset, view, []), apply(dataLength, view, []));
    }
  };
})()\0";
