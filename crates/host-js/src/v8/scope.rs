//! The operations of the language on V8.

use ::v8::{
    BigInt, DataView, Function, Global, HandleScope, Local, Message, Object, PinnedRef, TryCatch,
};

use super::call_buffers::{self, CallBuffers};
use super::exception::uncaught;
use super::failures::fail;
use super::imports;
use super::values::{array_bytes, uint8_array, Value};
use crate::program::ProgramText;
use crate::scope::{CallBuffer, Scope, Thrown};
use crate::trace::Exception;

/// An isolate in which a call runs, with its context entered; it catches exceptions.
pub(super) struct CallScope<'a, 't, 'c, 's, 'i> {
    scope: &'a mut PinnedRef<'t, TryCatch<'c, 's, HandleScope<'i>>>,
    buffers: &'a CallBuffers,
    program: &'a ProgramText,
}

impl<'a, 't, 'c, 's, 'i> CallScope<'a, 't, 'c, 's, 'i> {
    #[inline]
    pub(super) fn new(
        scope: &'a mut PinnedRef<'t, TryCatch<'c, 's, HandleScope<'i>>>,
        buffers: &'a CallBuffers,
        program: &'a ProgramText,
    ) -> Self {
        CallScope {
            scope,
            buffers,
            program,
        }
    }

    /// Without room, the exception is pending.
    fn fresh_array(&mut self, content: &[u8]) -> Result<Local<'s, ::v8::Uint8Array>, Thrown> {
        uint8_array(self.scope, content).map_err(|failure| {
            fail(self.scope, failure);
            Thrown
        })
    }

    #[inline]
    fn buffer(&self, buffer: CallBuffer) -> &'a call_buffers::CallBuffer {
        match buffer {
            CallBuffer::Arguments => &self.buffers.arguments,
            CallBuffer::Direct => &self.buffers.direct,
        }
    }
}

impl<'s> Scope for CallScope<'_, '_, '_, 's, '_> {
    type Value = Value<'s>;
    type Kept = Global<::v8::Value>;
    type Hook = Global<Function>;
    type Exception = (Value<'s>, Option<Local<'s, Message>>);

    #[inline]
    fn number(&mut self, number: u32) -> Value<'s> {
        ::v8::Integer::new_from_unsigned(self.scope, number).into()
    }

    #[inline]
    fn int64(&mut self, number: i64) -> Value<'s> {
        BigInt::new_from_i64(self.scope, number).into()
    }

    fn big_int(&mut self, words: &[u64]) -> Result<Value<'s>, Thrown> {
        let number = BigInt::new_from_words(self.scope, false, words);
        Ok(number.ok_or(Thrown)?.into())
    }

    fn uint8_array(&mut self, content: &[u8]) -> Result<Value<'s>, Thrown> {
        Ok(self.fresh_array(content)?.into())
    }

    fn data_view(&mut self, content: &[u8]) -> Result<Value<'s>, Thrown> {
        let array = self.fresh_array(content)?;
        let buffer = array.buffer(self.scope).ok_or(Thrown)?;
        Ok(DataView::new(self.scope, buffer, 0, content.len()).into())
    }

    fn arguments_view(&mut self, length: usize) -> Result<Value<'s>, Thrown> {
        let buffer = Local::new(self.scope, &self.buffers.arguments.object);
        Ok(DataView::new(self.scope, buffer, 0, length).into())
    }

    #[inline]
    fn write(&mut self, buffer: CallBuffer, parts: [&[u8]; 2]) -> bool {
        let buffer = self.buffer(buffer);
        if Local::new(self.scope, &buffer.object).was_detached() {
            return false;
        }
        buffer.write(parts);
        true
    }

    fn keep(&mut self, value: &Value<'s>) -> Global<::v8::Value> {
        Global::new(self.scope, *value)
    }

    #[inline]
    fn kept(&mut self, kept: &Global<::v8::Value>) -> Value<'s> {
        Local::new(self.scope, kept)
    }

    #[inline]
    fn is_undefined(&self, value: &Value<'s>) -> bool {
        value.is_undefined()
    }

    fn is_nullish(&self, value: &Value<'s>) -> bool {
        value.is_null_or_undefined()
    }

    fn is_object(&self, value: &Value<'s>) -> bool {
        value.is_object()
    }

    fn type_name(&mut self, value: &Value<'s>) -> String {
        value.type_repr().to_owned()
    }

    fn hook(&mut self, value: &Value<'s>) -> Option<Global<Function>> {
        let function = value.try_cast::<Function>().ok()?;
        Some(Global::new(self.scope, function))
    }

    fn array_bytes(&mut self, value: &Value<'s>) -> Option<Vec<u8>> {
        array_bytes(*value)
    }

    fn pair(&mut self, value: &Value<'s>) -> Result<Option<[Value<'s>; 2]>, Thrown> {
        let Ok(array) = value.try_cast::<::v8::Array>() else {
            return Ok(None);
        };
        if array.length() != 2 {
            return Ok(None);
        }
        let first = array.get_index(self.scope, 0).ok_or(Thrown)?;
        let second = array.get_index(self.scope, 1).ok_or(Thrown)?;
        Ok(Some([first, second]))
    }

    fn property(&mut self, object: &Value<'s>, name: &str) -> Result<Value<'s>, Thrown> {
        let object = object.try_cast::<Object>().map_err(|_| Thrown)?;
        let name = ::v8::String::new(self.scope, name).ok_or(Thrown)?;
        object.get(self.scope, name.into()).ok_or(Thrown)
    }

    fn module_hooks(&mut self, object: &Value<'s>) -> Result<Value<'s>, Thrown> {
        let object = object.try_cast::<Object>().map_err(|_| Thrown)?;
        let symbol = imports::module_hooks(self.scope).ok_or(Thrown)?;
        object.get(self.scope, symbol.into()).ok_or(Thrown)
    }

    #[inline]
    fn call(
        &mut self,
        hook: &Global<Function>,
        this: &Value<'s>,
        arguments: &[Value<'s>],
    ) -> Result<Value<'s>, Thrown> {
        let hook = Local::new(self.scope, hook);
        hook.call(self.scope, *this, arguments).ok_or(Thrown)
    }

    fn take_exception(&mut self) -> Option<(Value<'s>, Option<Local<'s, Message>>)> {
        let (value, message) = (self.scope.exception()?, self.scope.message());
        if self.scope.has_terminated() {
            return None;
        }
        self.scope.reset();
        Some((value, message))
    }

    fn thrown_value(&mut self, exception: &Self::Exception) -> Value<'s> {
        exception.0
    }

    fn is_instance(&mut self, value: &Value<'s>, class: &Global<::v8::Value>) -> bool {
        ::v8::tc_scope!(let scope, self.scope);
        let class = Local::new(scope, class);
        let Ok(class) = class.try_cast::<Object>() else {
            return false;
        };
        value.instance_of(scope, class) == Some(true)
    }

    fn text_of(&mut self, object: &Value<'s>, property: &str) -> Option<String> {
        ::v8::tc_scope!(let scope, self.scope);
        let object = object.try_cast::<Object>().ok()?;
        let property = ::v8::String::new(scope, property)?;
        let text = object.get(scope, property.into())?.to_string(scope)?;
        Some(text.to_rust_string_lossy(scope))
    }

    fn uncaught(&mut self, (value, message): Self::Exception) -> Exception {
        uncaught(self.scope, value, message, self.program)
    }
}
