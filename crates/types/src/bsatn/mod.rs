//! BSATN: the positional, little-endian binary encoding (01 §1.3 – 1.5).
//!
//! [`Reader`] borrows its input and allocates nothing; [`Encode`] appends to a buffer.

mod decode;
mod encode;
mod newtypes;
mod reader;
mod tuples;
mod types;
mod value;

pub use decode::Decode;
pub use encode::Encode;
pub use reader::{DecodeError, Reader, EMPTY_VALUES_MAX, MAX_DEPTH};
pub(crate) use value::{decode_integer, read_variant};
pub use value::{
    decode_product, decode_value, encode_value, fixed_size, fixed_size_product, min_size, validate,
    validate_product,
};
