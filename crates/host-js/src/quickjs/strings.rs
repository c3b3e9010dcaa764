//! The natives of `TextEncoder` and `TextDecoder` (`prelude.js`).

use rquickjs_sys as qjs;
use rquickjs_sys::JSValue;

use crate::host_calls::Failure;

use super::arguments::NativeCall;
use super::value::{self, buffer_bytes, undefined, Owned};

/// The UTF-8 of a string.
///
/// # Safety
/// The call has one argument.
pub(crate) unsafe fn encode(call: &NativeCall) -> Result<JSValue, Failure> {
    let context = call.context;
    unsafe {
        let bytes = |text: &str| value::bytes(context, text.as_bytes());
        let encoded = value::with_utf8(context, call.value(0), bytes)?;
        Ok(Owned::checked(context, encoded)?.into_raw())
    }
}

/// The string in a buffer or view; the second argument says whether it must be UTF-8.
///
/// # Safety
/// The call has two arguments.
pub(crate) unsafe fn decode(call: &NativeCall) -> Result<JSValue, Failure> {
    unsafe {
        let content = view_bytes(call, call.value(0))?;
        let text = match std::str::from_utf8(content) {
            Ok(text) => value::string(call.context, text),
            Err(_) if qjs::JS_ToBool(call.context, call.value(1)) != 0 => {
                return Err(Failure::Type(
                    "The encoded data was not valid utf-8".to_owned(),
                ))
            }
            Err(_) => value::string(call.context, &String::from_utf8_lossy(content)),
        };
        Ok(Owned::checked(call.context, text)?.into_raw())
    }
}

/// The bytes of an array buffer or of any view of one.
unsafe fn view_bytes<'a>(call: &NativeCall, input: JSValue) -> Result<&'a [u8], Failure> {
    unsafe {
        if let Some(content) = value::array_bytes(call.context, input) {
            return Ok(content);
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
        // They live as long as the view's buffer, which the caller holds.
        match value::array_bytes(call.context, found.raw()) {
            Some(content) => Ok(content),
            None => Err(Failure::Type("the view is detached".to_owned())),
        }
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
