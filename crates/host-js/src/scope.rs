//! The operations of the language that a call needs: make values, call functions, read results.

use crate::trace::Exception;

/// An exception is pending in the engine, or the call is being ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thrown;

/// The buffers that the host writes calls to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallBuffer {
    /// Arguments of `__call_reducer__`.
    Arguments,
    /// Calls of `__lightcone_call_reducer__` and `__lightcone_call_procedure__` (docs/js-abi.md).
    Direct,
}

/// Bytes of each [`CallBuffer`] (spec 04 §6.2).
pub(crate) const CALL_BUFFER_BYTES: usize = 4096;

/// An entered isolate. Operations that run module code can throw.
pub(crate) trait Scope {
    /// Valid as long as the scope.
    type Value;
    /// Kept by the isolate between calls.
    type Kept;
    /// A function that the isolate keeps.
    type Hook;
    type Exception;

    // ---- Values --------------------------------------------------------------------------------------------------------

    fn number(&mut self, number: u32) -> Self::Value;

    /// A BigInt.
    fn int64(&mut self, number: i64) -> Self::Value;

    /// The BigInt of these 64-bit words, the lowest first.
    fn big_int(&mut self, words: &[u64]) -> Result<Self::Value, Thrown>;

    /// A `Uint8Array` over a buffer of its own.
    fn uint8_array(&mut self, content: &[u8]) -> Result<Self::Value, Thrown>;

    /// A `DataView` over a buffer of its own.
    fn data_view(&mut self, content: &[u8]) -> Result<Self::Value, Thrown>;

    /// A `DataView` of the first bytes of [`CallBuffer::Arguments`].
    fn arguments_view(&mut self, length: usize) -> Result<Self::Value, Thrown>;

    /// Writes the parts, back to back, to the start of a buffer. False, without a write, if the module has changed the buffer.
    fn write(&mut self, buffer: CallBuffer, parts: [&[u8]; 2]) -> bool;

    fn keep(&mut self, value: &Self::Value) -> Self::Kept;

    fn kept(&mut self, kept: &Self::Kept) -> Self::Value;

    // ---- What values are -----------------------------------------------------------------------------------------------

    fn is_undefined(&self, value: &Self::Value) -> bool;

    /// Undefined or null.
    fn is_nullish(&self, value: &Self::Value) -> bool;

    fn is_object(&self, value: &Self::Value) -> bool;

    /// As error texts name it.
    fn type_name(&mut self, value: &Self::Value) -> String;

    /// Keeps a function; `None` for any other value.
    fn hook(&mut self, value: &Self::Value) -> Option<Self::Hook>;

    /// A copy of the content of a `Uint8Array`; `None` for any other value.
    fn array_bytes(&mut self, value: &Self::Value) -> Option<Vec<u8>>;

    /// The elements of an array of two; `None` for any other value.
    fn pair(&mut self, value: &Self::Value) -> Result<Option<[Self::Value; 2]>, Thrown>;

    fn property(&mut self, object: &Self::Value, name: &str) -> Result<Self::Value, Thrown>;

    /// The property under the symbol `moduleHooks` (spec 04 §3).
    fn module_hooks(&mut self, object: &Self::Value) -> Result<Self::Value, Thrown>;

    // ---- Calls ---------------------------------------------------------------------------------------------------------

    fn call(
        &mut self,
        hook: &Self::Hook,
        this: &Self::Value,
        arguments: &[Self::Value],
    ) -> Result<Self::Value, Thrown>;

    /// Takes the pending exception. `None` if the call is being ended.
    fn take_exception(&mut self) -> Option<Self::Exception>;

    fn thrown_value(&mut self, exception: &Self::Exception) -> Self::Value;

    /// `value instanceof class`; false if that throws.
    fn is_instance(&mut self, value: &Self::Value, class: &Self::Kept) -> bool;

    /// The property as a string; `None` if that throws.
    fn text_of(&mut self, object: &Self::Value, property: &str) -> Option<String>;

    fn uncaught(&mut self, exception: Self::Exception) -> Exception;
}
