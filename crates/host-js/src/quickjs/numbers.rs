//! BigInts of more than 64 bits. The language's own arithmetic makes them.

use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use super::state::state;
use super::value::{raw, Owned, Thrown};

/// Source of [`super::state::Values::join_words`].
pub(crate) const JOIN_WORDS: &str = "(a, b, c, d) => (d << 192n) | (c << 128n) | (b << 64n) | a\0";

/// The BigInt with these 64-bit words, the lowest first.
///
/// # Safety
/// The context is one of `isolate.rs`, and its state is not borrowed.
pub(crate) unsafe fn from_words(context: *mut JSContext, words: [u64; 4]) -> Result<Owned, Thrown> {
    unsafe {
        if words[1..] == [0; 3] {
            return Owned::checked(context, qjs::JS_NewBigUint64(context, words[0]));
        }
        let join = raw(&state(context).values.join_words);
        let words = words.map(|word| Owned::new(context, qjs::JS_NewBigUint64(context, word)));
        let mut arguments: [JSValue; 4] = [0, 1, 2, 3].map(|at| words[at].raw());
        let joined = qjs::JS_Call(context, join, qjs::JS_UNDEFINED, 4, arguments.as_mut_ptr());
        Owned::checked(context, joined)
    }
}
