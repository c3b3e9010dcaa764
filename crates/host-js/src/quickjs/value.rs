//! Owned JavaScript values, and conversions between them and Rust.

use std::ffi::CStr;

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

pub(crate) use crate::scope::Thrown;

/// Released on drop.
pub(crate) struct Owned {
    context: *mut JSContext,
    raw: JSValue,
}

impl Owned {
    /// # Safety
    /// `raw` is a value of this context that the caller owns, and the context outlives the result.
    #[inline]
    pub(crate) unsafe fn new(context: *mut JSContext, raw: JSValue) -> Owned {
        Owned { context, raw }
    }

    /// Like [`Owned::new`], for the result of an operation that may have thrown.
    ///
    /// # Safety
    /// As for [`Owned::new`].
    #[inline]
    pub(crate) unsafe fn checked(context: *mut JSContext, raw: JSValue) -> Result<Owned, Thrown> {
        match unsafe { qjs::JS_IsException(raw) } {
            true => Err(Thrown),
            false => Ok(Owned { context, raw }),
        }
    }

    /// Takes another reference to a value that someone else owns.
    ///
    /// # Safety
    /// `raw` is a live value of this context, which outlives the result.
    #[inline]
    pub(crate) unsafe fn share(context: *mut JSContext, raw: JSValue) -> Owned {
        let raw = unsafe { qjs::JS_DupValue(context, raw) };
        Owned { context, raw }
    }

    /// The value, still owned by `self`.
    #[inline]
    pub(crate) fn raw(&self) -> JSValue {
        self.raw
    }

    /// Gives the ownership away.
    #[inline]
    pub(crate) fn into_raw(self) -> JSValue {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// As `value.name` would find it.
    pub(crate) fn get(&self, name: &CStr) -> Result<Owned, Thrown> {
        // SAFETY: the value is live, and the result is owned by us.
        unsafe {
            Owned::checked(
                self.context,
                qjs::JS_GetPropertyStr(self.context, self.raw, name.as_ptr()),
            )
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        self.raw.tag == i64::from(qjs::JS_TAG_UNDEFINED)
    }

    pub(crate) fn is_nullish(&self) -> bool {
        self.is_undefined() || self.raw.tag == i64::from(qjs::JS_TAG_NULL)
    }

    pub(crate) fn is_object(&self) -> bool {
        self.raw.tag == i64::from(qjs::JS_TAG_OBJECT)
    }

    pub(crate) fn is_function(&self) -> bool {
        // SAFETY: the value is live.
        unsafe { qjs::JS_IsFunction(self.context, self.raw) }
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `raw` is owned and the context is alive, as `new` demands.
        unsafe { qjs::JS_FreeValue(self.context, self.raw) }
    }
}

/// A function of the module that is never released: its heap is freed as a whole.
pub(crate) struct Hook(JSValue);

impl Hook {
    pub(crate) fn new(function: Owned) -> Hook {
        Hook(function.into_raw())
    }

    #[inline]
    pub(crate) fn raw(&self) -> JSValue {
        self.0
    }
}

/// A value that the host keeps; undefined while the globals are made.
#[inline]
pub(crate) fn raw(value: &Option<Owned>) -> JSValue {
    value.as_ref().map_or(undefined(), Owned::raw)
}

#[inline]
pub(crate) fn undefined() -> JSValue {
    qjs::JS_UNDEFINED
}

#[inline]
pub(crate) fn number(value: u32) -> JSValue {
    match i32::try_from(value) {
        Ok(small) => qjs::JS_MKVAL(qjs::JS_TAG_INT, small),
        Err(_) => qjs::JS_NewFloat64(f64::from(value)),
    }
}

/// A string; U+FFFD stands for nothing here, as `text` is valid.
///
/// # Safety
/// The context is alive.
pub(crate) unsafe fn string(context: *mut JSContext, text: &str) -> JSValue {
    unsafe { qjs::JS_NewStringLen(context, text.as_ptr().cast(), text.len() as qjs::size_t) }
}

/// A fresh `Uint8Array` over its own buffer.
///
/// # Safety
/// The context is alive.
pub(crate) unsafe fn bytes(context: *mut JSContext, content: &[u8]) -> JSValue {
    unsafe { qjs::JS_NewUint8ArrayCopy(context, content.as_ptr(), content.len() as qjs::size_t) }
}

/// Calls `body` with the UTF-8 text of a string; lone surrogates become U+FFFD. `None` if memory is out or the value has
/// no string form; an exception is pending then.
///
/// # Safety
/// `value` is a live value of the context.
pub(crate) unsafe fn with_utf8<R>(
    context: *mut JSContext,
    value: JSValue,
    body: impl FnOnce(&str) -> R,
) -> Result<R, Thrown> {
    let mut length: usize = 0;
    // SAFETY: the text lives until it is freed below.
    unsafe {
        let text = qjs::JS_ToCStringLen(context, &mut length, value);
        if text.is_null() {
            return Err(Thrown);
        }
        let content = std::slice::from_raw_parts(text.cast::<u8>(), length);
        let result = match std::str::from_utf8(content) {
            Ok(text) => body(text),
            Err(_) => body(&without_surrogates(content)),
        };
        qjs::JS_FreeCString(context, text);
        Ok(result)
    }
}

/// QuickJS writes a lone surrogate as if it were a character, in three bytes; U+FFFD takes as many.
fn without_surrogates(content: &[u8]) -> String {
    let mut content = content.to_vec();
    for at in 0..content.len().saturating_sub(2) {
        if content[at] == 0xed && content[at + 1] >= 0xa0 {
            content[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
        }
    }
    String::from_utf8_lossy(&content).into_owned()
}

/// The string form of any value, as `String(value)` gives it.
///
/// # Safety
/// `value` is a live value of the context.
pub(crate) unsafe fn to_text(context: *mut JSContext, value: JSValue) -> Result<String, Thrown> {
    unsafe { with_utf8(context, value, str::to_owned) }
}

/// The bytes of an `ArrayBuffer` (shared or not); empty if it is detached.
///
/// # Safety
/// `value` is a live array buffer of the context. The slice must not be used after JavaScript ran or another slice of
/// the same buffer was taken.
#[inline]
pub(crate) unsafe fn buffer_bytes<'a>(context: *mut JSContext, value: JSValue) -> &'a mut [u8] {
    let mut size: qjs::size_t = 0;
    // SAFETY: QuickJS answers with memory of `size` bytes that stays until the buffer is resized or freed.
    unsafe {
        let data = qjs::JS_GetArrayBuffer(context, &mut size, value);
        if data.is_null() {
            forget_exception(context);
            return &mut [];
        }
        std::slice::from_raw_parts_mut(data, size as usize)
    }
}

/// The bytes of a `Uint8Array`; empty if its buffer is detached or too short by now. `None` for any other value.
///
/// # Safety
/// As for [`buffer_bytes`].
pub(crate) unsafe fn array_bytes<'a>(
    context: *mut JSContext,
    value: JSValue,
) -> Option<&'a mut [u8]> {
    unsafe {
        if qjs::JS_GetTypedArrayType(value) != qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8 as i32 {
            return None;
        }
        let mut size: qjs::size_t = 0;
        let data = qjs::JS_GetUint8Array(context, &mut size, value);
        if data.is_null() {
            forget_exception(context);
            return Some(&mut []);
        }
        Some(std::slice::from_raw_parts_mut(data, size as usize))
    }
}

/// The elements of an array of two; `None` for any other value.
///
/// # Safety
/// The value is live and of this context.
pub(crate) unsafe fn pair(
    context: *mut JSContext,
    value: JSValue,
) -> Result<Option<(Owned, Owned)>, Thrown> {
    unsafe {
        let mut length = 0;
        if !qjs::JS_IsArray(value) {
            return Ok(None);
        }
        if qjs::JS_GetLength(context, value, &mut length) != 0 {
            return Err(Thrown);
        }
        if length != 2 {
            return Ok(None);
        }
        let first = Owned::checked(context, qjs::JS_GetPropertyUint32(context, value, 0))?;
        let second = Owned::checked(context, qjs::JS_GetPropertyUint32(context, value, 1))?;
        Ok(Some((first, second)))
    }
}

/// Drops the pending exception, if any.
///
/// # Safety
/// The context is alive.
pub(crate) unsafe fn forget_exception(context: *mut JSContext) {
    unsafe { qjs::JS_FreeValue(context, qjs::JS_GetException(context)) }
}

/// The word for the kind of a value in error texts.
///
/// # Safety
/// `value` is a live value of the context.
pub(crate) unsafe fn kind(context: *mut JSContext, value: JSValue) -> String {
    let plain = |word: &str| word.to_owned();
    match unsafe { qjs::JS_VALUE_GET_TAG(value) } {
        qjs::JS_TAG_INT | qjs::JS_TAG_FLOAT64 => plain("Number"),
        qjs::JS_TAG_BIG_INT | qjs::JS_TAG_SHORT_BIG_INT => plain("bigint"),
        qjs::JS_TAG_BOOL => plain("Boolean"),
        qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => plain("string"),
        qjs::JS_TAG_SYMBOL => plain("symbol"),
        qjs::JS_TAG_NULL => plain("null"),
        qjs::JS_TAG_UNDEFINED => plain("undefined"),
        qjs::JS_TAG_OBJECT => unsafe { object_kind(context, value) },
        _ => plain("unknown"),
    }
}

unsafe fn object_kind(context: *mut JSContext, value: JSValue) -> String {
    // SAFETY: the value is a live object; the atom and its text are released here.
    let class = unsafe {
        let runtime = qjs::JS_GetRuntime(context);
        let atom = qjs::JS_GetClassName(runtime, qjs::JS_GetClassID(value));
        let text = qjs::JS_AtomToCStringLen(context, std::ptr::null_mut(), atom);
        let class = match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        };
        qjs::JS_FreeCString(context, text);
        qjs::JS_FreeAtom(context, atom);
        class
    };
    match class.as_str() {
        "ArrayBuffer" | "SharedArrayBuffer" | "DataView" | "WeakSet" | "WeakMap" | "Set"
        | "Map" | "Promise" | "RegExp" | "Date" | "Proxy" | "Set Iterator" | "Map Iterator"
        | "Boolean" => class,
        "Array" => "array".to_owned(),
        "Module" | "module_ns" => "Module".to_owned(),
        "GeneratorFunction" => "Generator function".to_owned(),
        "AsyncFunction" => "Async function".to_owned(),
        name if name.ends_with("Array") => class,
        // SAFETY: the value is live.
        _ if unsafe { qjs::JS_IsFunction(context, value) } => "function".to_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        assert_eq!(
            without_surrogates(b"a\xed\xa0\x80b\xed\xbf\xbf"),
            "a\u{fffd}b\u{fffd}"
        );
        assert_eq!(without_surrogates("\u{d7ff}!".as_bytes()), "\u{d7ff}!");
    }
}
