//! BSATN: the positional, little-endian binary encoding (01 §1.3 – 1.5).
//!
//! [`Reader`] borrows its input and allocates nothing; [`Encode`] appends to a buffer.

mod decode;
mod encode;
mod reader;
mod types;
mod value;

pub use decode::Decode;
pub use encode::Encode;
pub use reader::{DecodeError, Reader};
pub use value::{
    decode_product, decode_value, encode_value, fixed_size, fixed_size_product, min_size, validate,
    validate_product,
};

/// Levels of products, sums and arrays a value or a type may be nested; recursive parameter types
/// let the caller choose the depth, so there has to be a limit (01 §1.5.3).
pub const MAX_DEPTH: usize = 256;

/// Empty products a reader accepts beyond one per byte of input. They cost no input, so an array
/// count or a wide type alone could otherwise ask for any amount of work (01 §1.5.3).
pub const EMPTY_VALUES_MAX: usize = 1 << 16;

/// Elements reserved up front for an array; more are reserved as elements really decode.
const PREALLOCATED_ELEMENTS_MAX: usize = 4096;
