//! The operations of the language on QuickJS.

use std::ffi::c_int;

use rquickjs_sys as qjs;
use rquickjs_sys::JSValue;

use crate::program::ProgramText;
use crate::scope::{CallBuffer, Scope, CALL_BUFFER_BYTES};
use crate::trace::Exception;

use super::isolate::Isolate;
use super::numbers;
use super::stack_trace;
use super::value::{
    self, buffer_bytes, bytes, forget_exception, kind, raw, to_text, undefined, Hook, Owned, Thrown,
};

/// Most arguments of a hook.
const ARGUMENTS_MAX: usize = 6;

/// An isolate in which a call runs.
///
/// For all `unsafe` blocks here: the context lives as long as the isolate, values are live as long as their owners, which are
/// borrowed, and the isolate's state is not borrowed.
pub(super) struct CallScope<'a> {
    isolate: &'a mut Isolate,
    program: &'a ProgramText,
}

impl<'a> CallScope<'a> {
    pub(super) fn new(isolate: &'a mut Isolate, program: &'a ProgramText) -> CallScope<'a> {
        CallScope { isolate, program }
    }

    fn new_view(&mut self, buffer: JSValue, length: usize) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        let class = raw(&self.isolate.state().values.data_view);
        let mut arguments = [buffer, value::number(0), value::number(length as u32)];
        // SAFETY: see the type.
        unsafe {
            let view = qjs::JS_CallConstructor(context, class, 3, arguments.as_mut_ptr());
            Owned::checked(context, view)
        }
    }

    fn buffer(&mut self, buffer: CallBuffer) -> JSValue {
        let values = &self.isolate.state().values;
        raw(match buffer {
            CallBuffer::Arguments => &values.arguments,
            CallBuffer::Direct => &values.direct,
        })
    }
}

impl Scope for CallScope<'_> {
    type Value = Owned;
    type Kept = Owned;
    type Hook = Hook;
    type Exception = Owned;

    #[inline]
    fn number(&mut self, number: u32) -> Owned {
        // SAFETY: see the type.
        unsafe { Owned::new(self.isolate.context, value::number(number)) }
    }

    #[inline]
    fn int64(&mut self, number: i64) -> Owned {
        let context = self.isolate.context;
        // SAFETY: see the type.
        unsafe { Owned::new(context, qjs::JS_NewBigInt64(context, number)) }
    }

    fn big_int(&mut self, words: &[u64]) -> Result<Owned, Thrown> {
        let mut all = [0; 4];
        all[..words.len()].copy_from_slice(words);
        // SAFETY: see the type.
        unsafe { numbers::from_words(self.isolate.context, all) }
    }

    fn uint8_array(&mut self, content: &[u8]) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        // SAFETY: see the type.
        unsafe { Owned::checked(context, bytes(context, content)) }
    }

    fn data_view(&mut self, content: &[u8]) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        let size = content.len() as qjs::size_t;
        // SAFETY: see the type.
        let buffer = unsafe {
            let buffer = qjs::JS_NewArrayBufferCopy(context, content.as_ptr(), size);
            Owned::checked(context, buffer)?
        };
        self.new_view(buffer.raw(), content.len())
    }

    fn arguments_view(&mut self, length: usize) -> Result<Owned, Thrown> {
        let buffer = self.buffer(CallBuffer::Arguments);
        self.new_view(buffer, length)
    }

    #[inline]
    fn write(&mut self, buffer: CallBuffer, parts: [&[u8]; 2]) -> bool {
        let buffer = self.buffer(buffer);
        // SAFETY: see the type; the bytes are written before JavaScript runs.
        let content = unsafe { buffer_bytes(self.isolate.context, buffer) };
        // It was neither detached nor made immutable.
        let is_whole = content.len() == CALL_BUFFER_BYTES
            && unsafe { qjs::JS_IsImmutableArrayBuffer(buffer) == 0 };
        if is_whole {
            let (head, rest) = content.split_at_mut(parts[0].len());
            head.copy_from_slice(parts[0]);
            rest[..parts[1].len()].copy_from_slice(parts[1]);
        }
        is_whole
    }

    #[inline]
    fn keep(&mut self, value: &Owned) -> Owned {
        // SAFETY: see the type.
        unsafe { Owned::share(self.isolate.context, value.raw()) }
    }

    #[inline]
    fn kept(&mut self, kept: &Owned) -> Owned {
        self.keep(kept)
    }

    #[inline]
    fn is_undefined(&self, value: &Owned) -> bool {
        value.is_undefined()
    }

    fn is_nullish(&self, value: &Owned) -> bool {
        value.is_nullish()
    }

    fn is_object(&self, value: &Owned) -> bool {
        value.is_object()
    }

    fn type_name(&mut self, value: &Owned) -> String {
        // SAFETY: see the type.
        unsafe { kind(self.isolate.context, value.raw()) }
    }

    fn hook(&mut self, value: &Owned) -> Option<Hook> {
        value.is_function().then(|| Hook::new(self.keep(value)))
    }

    fn array_bytes(&mut self, value: &Owned) -> Option<Vec<u8>> {
        // SAFETY: see the type; the bytes are copied before anything else runs.
        let bytes = unsafe { value::array_bytes(self.isolate.context, value.raw()) };
        bytes.map(|bytes| bytes.to_vec())
    }

    fn pair(&mut self, value: &Owned) -> Result<Option<[Owned; 2]>, Thrown> {
        // SAFETY: see the type.
        let pair = unsafe { value::pair(self.isolate.context, value.raw()) }?;
        Ok(pair.map(|(first, second)| [first, second]))
    }

    fn property(&mut self, object: &Owned, name: &str) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        // SAFETY: see the type.
        unsafe {
            let atom = qjs::JS_NewAtomLen(context, name.as_ptr().cast(), name.len() as qjs::size_t);
            let value = qjs::JS_GetProperty(context, object.raw(), atom);
            qjs::JS_FreeAtom(context, atom);
            Owned::checked(context, value)
        }
    }

    fn module_hooks(&mut self, object: &Owned) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        let symbol = raw(&self.isolate.state().values.module_hooks);
        // SAFETY: see the type.
        unsafe {
            let atom = qjs::JS_ValueToAtom(context, symbol);
            let value = qjs::JS_GetProperty(context, object.raw(), atom);
            qjs::JS_FreeAtom(context, atom);
            Owned::checked(context, value)
        }
    }

    #[inline]
    fn call(&mut self, hook: &Hook, this: &Owned, arguments: &[Owned]) -> Result<Owned, Thrown> {
        let (context, count) = (self.isolate.context, arguments.len());
        let mut values = [undefined(); ARGUMENTS_MAX];
        for (value, argument) in values[..count].iter_mut().zip(arguments) {
            *value = argument.raw();
        }
        let (hook, this, values) = (hook.raw(), this.raw(), values.as_mut_ptr());
        // SAFETY: see the type.
        unsafe {
            let result = qjs::JS_Call(context, hook, this, count as c_int, values);
            Owned::checked(context, result)
        }
    }

    fn take_exception(&mut self) -> Option<Owned> {
        let exception = self.isolate.take_exception();
        (!self.isolate.is_doomed()).then_some(exception)
    }

    fn thrown_value(&mut self, exception: &Owned) -> Owned {
        self.keep(exception)
    }

    fn is_instance(&mut self, value: &Owned, class: &Owned) -> bool {
        let context = self.isolate.context;
        // SAFETY: see the type.
        unsafe {
            let result = qjs::JS_IsInstanceOf(context, value.raw(), class.raw());
            if result < 0 {
                forget_exception(context);
            }
            result > 0
        }
    }

    fn text_of(&mut self, object: &Owned, property: &str) -> Option<String> {
        let context = self.isolate.context;
        let text = self
            .property(object, property)
            // SAFETY: see the type.
            .and_then(|value| unsafe { to_text(context, value.raw()) });
        if text.is_err() {
            // SAFETY: see the type.
            unsafe { forget_exception(context) };
        }
        text.ok()
    }

    fn uncaught(&mut self, exception: Owned) -> Exception {
        let source_map = self.program.source_map.as_ref();
        // SAFETY: see the type.
        unsafe { stack_trace::uncaught(self.isolate.context, &exception, source_map) }
    }
}
