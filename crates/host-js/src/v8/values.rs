//! Checks of the arguments of host functions (spec 04 §4.1).

use super::state::State;
use crate::host_calls::Failure;
use crate::messages;

pub(crate) type Value<'s> = ::v8::Local<'s, ::v8::Value>;

#[inline]
pub(crate) fn u32_of(value: Value<'_>) -> Result<u32, Failure> {
    integer(value, "u32")
}

#[inline]
fn integer(value: Value<'_>, abi_type: &str) -> Result<u32, Failure> {
    if value.is_uint32() {
        // SAFETY: it was just checked to be a number.
        let number = unsafe { ::v8::Local::<::v8::Number>::cast_unchecked(value) };
        return Ok(number.value() as u32);
    }
    Err(wrong_number(abi_type, value.type_repr()))
}

#[cold]
pub(crate) fn wrong_type(value: Value<'_>, expected: &str) -> Failure {
    Failure::Type(messages::expected(expected, value.type_repr()))
}

#[cold]
fn wrong_number(abi_type: &str, got: &str) -> Failure {
    let expected = format!("number for `{abi_type}`");
    Failure::Type(messages::expected(&expected, got))
}

pub(crate) fn u16_of(value: Value<'_>) -> Result<u16, Failure> {
    let number = integer(value, "u16")?;
    u16::try_from(number).map_err(|_| Failure::Type(messages::overflowed("u16")))
}

/// A number that compiled code passed unchecked.
#[inline]
pub(crate) fn u32_of_f64(number: f64) -> Result<u32, Failure> {
    let integer = number as u32;
    if f64::from(integer) == number {
        return Ok(integer);
    }
    Err(wrong_number("u32", "Number"))
}

/// See [`u32_of_f64`].
#[inline]
pub(crate) fn u16_of_f64(number: f64) -> Result<u16, Failure> {
    match u32_of_f64(number) {
        Ok(integer) => {
            u16::try_from(integer).map_err(|_| Failure::Type(messages::overflowed("u16")))
        }
        Err(_) => Err(wrong_number("u16", "Number")),
    }
}

pub(crate) fn u128_of(value: Value<'_>) -> Result<u128, Failure> {
    let Ok(number) = value.try_cast::<::v8::BigInt>() else {
        return Err(wrong_type(value, "bigint for `u128`"));
    };
    let mut words = [0_u64; 2];
    let needed = number.word_count();
    let (negative, _) = number.to_words_array(&mut words);
    if needed > 2 || negative {
        return Err(Failure::Type(messages::overflowed("u128")));
    }
    Ok(u128::from(words[0]) | u128::from(words[1]) << 64)
}

/// The content of an array buffer; `expected` is what an error calls it.
///
/// # Safety
/// No code of the module may run, and nothing may be allocated in the heap, while the slice is used.
#[inline]
pub(crate) unsafe fn buffer_of<'a>(
    value: Value<'_>,
    expected: &str,
) -> Result<&'a mut [u8], Failure> {
    if !value.is_array_buffer() {
        return Err(wrong_type(value, expected));
    }
    // SAFETY: it was just checked to be one.
    let buffer = unsafe { ::v8::Local::<::v8::ArrayBuffer>::cast_unchecked(value) };
    match (buffer.data(), buffer.byte_length()) {
        (None, _) | (_, 0) => Ok(&mut []),
        // SAFETY: an array buffer is not shared with other threads, and the caller keeps the module from running.
        (Some(data), length) => {
            Ok(unsafe { std::slice::from_raw_parts_mut(data.as_ptr().cast(), length) })
        }
    }
}

/// A string as UTF-8; lone surrogates become U+FFFD.
pub(crate) fn string_of(
    scope: &mut ::v8::PinScope<'_, '_>,
    value: Value<'_>,
) -> Result<String, Failure> {
    match value.try_cast::<::v8::String>() {
        Ok(text) => {
            room_for_text(scope, text)?;
            Ok(text.to_rust_string_lossy(scope))
        }
        Err(_) => Err(wrong_type(value, messages::STRING)),
    }
}

/// Larger temporary copies of the host need room in the isolate.
const SMALL_COPY_BYTES: usize = 1 << 20;

/// Checks that the isolate has room for a temporary copy outside of its heap.
pub(crate) fn room_for(bytes: usize) -> Result<(), Failure> {
    match bytes <= SMALL_COPY_BYTES || State::buffers().has_room(bytes) {
        true => Ok(()),
        false => Err(Failure::Range(messages::NO_ROOM_FOR_BUFFER)),
    }
}

/// As above, for a string.
pub(crate) fn room_for_text(
    scope: &::v8::PinScope<'_, '_>,
    text: ::v8::Local<'_, ::v8::String>,
) -> Result<(), Failure> {
    const BYTES_PER_UNIT_MAX: usize = 3;
    match text.length() <= SMALL_COPY_BYTES / BYTES_PER_UNIT_MAX {
        true => Ok(()),
        false => room_for(text.utf8_length(scope)),
    }
}

pub(crate) fn bytes_of(value: Value<'_>) -> Result<Vec<u8>, Failure> {
    if let Ok(array) = value.try_cast::<::v8::Uint8Array>() {
        room_for(array.byte_length())?;
    }
    array_bytes(value).ok_or_else(|| wrong_type(value, messages::BYTES))
}

/// The content of a `Uint8Array`; `None` for any other value.
pub(crate) fn array_bytes(value: Value<'_>) -> Option<Vec<u8>> {
    let array = value.try_cast::<::v8::Uint8Array>().ok()?;
    let mut bytes = vec![0; array.byte_length()];
    array.copy_contents(&mut bytes);
    Some(bytes)
}

/// A new `Uint8Array` with its own buffer. A RangeError if the isolate has no room for it.
pub(crate) fn uint8_array<'s>(
    scope: &mut ::v8::PinScope<'s, '_>,
    content: &[u8],
) -> Result<::v8::Local<'s, ::v8::Uint8Array>, Failure> {
    let (buffer, place) = fresh_buffer(scope, content.len())?;
    place.copy_from_slice(content);
    ::v8::Uint8Array::new(scope, buffer, 0, content.len()).ok_or(Failure::Thrown)
}

/// As above, for the UTF-8 of a string, which is written in place. Lone surrogates become U+FFFD.
pub(crate) fn utf8_array<'s>(
    scope: &mut ::v8::PinScope<'s, '_>,
    text: Value<'s>,
) -> Result<::v8::Local<'s, ::v8::Uint8Array>, Failure> {
    let Ok(text) = text.try_cast::<::v8::String>() else {
        return Err(wrong_type(text, messages::STRING));
    };
    let length = text.utf8_length(scope);
    let (buffer, place) = fresh_buffer(scope, length)?;
    let flags = ::v8::WriteFlags::kReplaceInvalidUtf8;
    text.write_utf8_v2(scope, place, flags, None);
    ::v8::Uint8Array::new(scope, buffer, 0, length).ok_or(Failure::Thrown)
}

/// A new buffer with its content, to be filled before module code knows it.
fn fresh_buffer<'s, 'b>(
    scope: &mut ::v8::PinScope<'s, '_>,
    length: usize,
) -> Result<(::v8::Local<'s, ::v8::ArrayBuffer>, &'b mut [u8]), Failure> {
    let made = State::buffers().make(scope, length);
    let buffer = made.ok_or(Failure::Range(messages::NO_ROOM_FOR_BUFFER))?;
    let place: &mut [u8] = match buffer.data() {
        // SAFETY: the buffer was made with this length, no other code knows it yet, and its handle lives as long as the scope.
        Some(data) if length > 0 => unsafe {
            std::slice::from_raw_parts_mut(data.as_ptr().cast(), length)
        },
        _ => &mut [],
    };
    Ok((buffer, place))
}
