//! The encoding side: append to a buffer.

use ethnum::{i256, u256};

use crate::integer::for_each_integer;

/// A value that has a BSATN encoding.
pub trait Encode {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding in a buffer of its own.
    ///
    /// Beware of a `Vec<u8>` that shall just be copied: with this trait in scope, `to_vec` on it is
    /// this method and puts the length in front.
    fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Appends the elements of an array without their count; byte arrays copy in one go.
    #[doc(hidden)]
    #[inline]
    fn encode_elements(elements: &[Self], out: &mut Vec<u8>)
    where
        Self: Sized,
    {
        for element in elements {
            element.encode(out);
        }
    }
}

/// Appends an array count or a string length.
///
/// # Panics
/// If it exceeds `u32`; a single encoded value of 4 GiB cannot be built under the size limits of
/// messages and rows.
#[inline]
pub(super) fn encode_len(len: usize, out: &mut Vec<u8>) {
    u32::try_from(len).expect("len too long").encode(out);
}

macro_rules! encode_number {
    // Is written below, as arrays of bytes are copied in one go.
    (u8) => {};
    ($number:ident) => {
        impl Encode for $number {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}

macro_rules! encode_integers {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        $(encode_number!($rust);)*
    };
}

for_each_integer!(encode_integers);
encode_number!(f32);
encode_number!(f64);

impl Encode for u8 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    #[inline]
    fn encode_elements(elements: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(elements);
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Encode for () {
    #[inline]
    fn encode(&self, _out: &mut Vec<u8>) {}
}

impl Encode for str {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_len(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl Encode for String {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_str().encode(out);
    }
}

impl<T: Encode> Encode for [T] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_len(self.len(), out);
        T::encode_elements(self, out);
    }
}

impl<T: Encode> Encode for Vec<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

/// `00` and the value, or `01`.
impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => (0_u8, value).encode(out),
            None => out.push(1),
        }
    }
}

/// `00` and the value, or `01` and the error.
impl<T: Encode, E: Encode> Encode for Result<T, E> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => (0_u8, value).encode(out),
            Err(error) => (1_u8, error).encode(out),
        }
    }
}

/// Tags 0 included, 1 excluded, 2 unbounded (01 §1.1.5).
impl<T: Encode> Encode for std::ops::Bound<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        use std::ops::Bound;
        match self {
            Bound::Included(value) => (0_u8, value).encode(out),
            Bound::Excluded(value) => (1_u8, value).encode(out),
            Bound::Unbounded => out.push(2),
        }
    }
}
