//! BSATN: the positional, little-endian binary encoding (01 §1.3 – 1.5).
//!
//! [`Reader`] borrows its input and allocates nothing; [`Encode`] appends to a buffer.

/// BSATN of types with one field: its own.
macro_rules! encode_as_inner {
    ($($name:ident),*) => {$(
        impl $crate::bsatn::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
        }

        impl $crate::bsatn::Decode for $name {
            #[inline]
            fn decode(r: &mut $crate::bsatn::Reader<'_>) -> Result<Self, $crate::bsatn::DecodeError> {
                $crate::bsatn::Decode::decode(r).map(Self)
            }
        }
    )*};
}
pub(crate) use encode_as_inner;

mod decode;
mod encode;
mod reader;
mod types;
mod value;

pub use decode::Decode;
pub use encode::Encode;
pub use reader::{DecodeError, Reader, EMPTY_VALUES_MAX, MAX_DEPTH};
pub(crate) use value::read_variant;
pub use value::{
    decode_product, decode_value, encode_value, fixed_size, fixed_size_product, min_size, validate,
    validate_product,
};
