//! BSATN: the positional, little-endian binary encoding (01 §1.3 – 1.5).
//!
//! [`Reader`] borrows its input and allocates nothing; [`Encode`] appends to a buffer.

/// The BSATN of structs: of their fields, in this order.
#[macro_export]
macro_rules! bsatn_products {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl $crate::bsatn::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $($crate::bsatn::Encode::encode(&self.$field, out);)*
            }
        }

        impl $crate::bsatn::Decode for $name {
            fn decode(
                r: &mut $crate::bsatn::Reader<'_>,
            ) -> Result<Self, $crate::bsatn::DecodeError> {
                Ok($name { $($field: $crate::bsatn::Decode::decode(r)?),* })
            }
        }
    )*};
}

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
