//! Tuples: values one behind the other, as the fields of a product.

use super::decode::Decode;
use super::encode::Encode;
use super::reader::{DecodeError, Reader};

macro_rules! tuple {
    ($($field:ident $at:tt),*) => {
        impl<$($field: Encode),*> Encode for ($($field,)*) {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$at.encode(out);)*
            }
        }

        impl<$($field: Decode),*> Decode for ($($field,)*) {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(($($field::decode(r)?,)*))
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
