//! Strings of the engine from and to UTF-8.

use ::v8::{PinScope, ValueView, ValueViewData};

use super::values::{buffer_of, room_for, room_for_text, wrong_type, Value};
use crate::host_calls::Failure;
use crate::messages;

/// `text_read`: the string in a part of a buffer (docs/js-abi.md).
pub(super) fn read<'s>(
    scope: &mut PinScope<'s, '_>,
    buffer: Value<'s>,
    start: u32,
    end: u32,
) -> Result<Value<'s>, Failure> {
    // SAFETY: making a string runs no code of the module, and the caller's handle keeps the buffer.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    let bytes = buffer
        .get(start as usize..end as usize)
        .ok_or(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS))?;
    string(scope, bytes)
}

/// `text_write`: writes the UTF-8 of a string to the buffer and returns its size; negative, without a write, if there is no room.
pub(super) fn write(
    scope: &mut PinScope<'_, '_>,
    text: Value<'_>,
    buffer: Value<'_>,
    start: u32,
) -> Result<i32, Failure> {
    let Ok(text) = text.try_cast::<::v8::String>() else {
        return Err(wrong_type(text, messages::STRING));
    };
    // SAFETY: reading a string runs no code of the module, and the caller's handle keeps the buffer.
    let buffer = unsafe { buffer_of(buffer, messages::ARRAY_BUFFER) }?;
    let room = buffer
        .get_mut(start as usize..)
        .ok_or(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS))?;
    {
        let view = ValueView::new(scope, text);
        if let ValueViewData::OneByte(bytes) = view.data() {
            if bytes.is_ascii() {
                return put(bytes, room);
            }
        }
    }
    room_for_text(scope, text)?;
    put(text.to_rust_string_lossy(scope).as_bytes(), room)
}

fn put(bytes: &[u8], room: &mut [u8]) -> Result<i32, Failure> {
    let Ok(size) = i32::try_from(bytes.len()) else {
        return Err(Failure::Range(messages::LENGTH_OUT_OF_BOUNDS));
    };
    let Some(place) = room.get_mut(..bytes.len()) else {
        return Ok(-size);
    };
    place.copy_from_slice(bytes);
    Ok(size)
}

fn string<'s>(scope: &mut PinScope<'s, '_>, bytes: &[u8]) -> Result<Value<'s>, Failure> {
    let text = if bytes.is_ascii() {
        ::v8::String::new_from_one_byte(scope, bytes, ::v8::NewStringType::Normal)
    } else {
        ::v8::String::new(scope, &String::from_utf8_lossy(bytes))
    };
    match text {
        Some(text) => Ok(text.into()),
        None => Err(Failure::Range("the text is too long for a string")),
    }
}

/// `TextDecoder.decode` of a buffer or view.
pub(super) fn decode<'s>(
    scope: &mut PinScope<'s, '_>,
    value: Value<'s>,
    fatal: bool,
) -> Result<Value<'s>, Failure> {
    let bytes: Vec<u8> = if let Ok(view) = value.try_cast::<::v8::ArrayBufferView>() {
        room_for(view.byte_length())?;
        let mut bytes = vec![0; view.byte_length()];
        view.copy_contents(&mut bytes);
        bytes
    } else if let Ok(buffer) = value.try_cast::<::v8::ArrayBuffer>() {
        copy(&buffer.get_backing_store())?
    } else if let Ok(buffer) = value.try_cast::<::v8::SharedArrayBuffer>() {
        copy(&buffer.get_backing_store())?
    } else {
        return Err(wrong_type(value, "`ArrayBuffer` or a view of one"));
    };
    if fatal && std::str::from_utf8(&bytes).is_err() {
        return Err(Failure::Type(
            "The encoded data was not valid utf-8".to_owned(),
        ));
    }
    string(scope, &bytes)
}

/// A copy, because making the string may run the garbage collector.
fn copy(store: &::v8::BackingStore) -> Result<Vec<u8>, Failure> {
    room_for(store.byte_length())?;
    Ok(match (store.data(), store.byte_length()) {
        (None, _) | (_, 0) => Vec::new(),
        // SAFETY: the store has so many bytes, and no other thread runs code of this module.
        (Some(data), length) => {
            unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), length) }.to_vec()
        }
    })
}
