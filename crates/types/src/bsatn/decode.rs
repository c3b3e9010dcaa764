//! The decoding side for native Rust values.

use ethnum::{i256, u256};

use super::reader::{DecodeError, Reader};
use crate::integer::for_each_integer;

/// Elements reserved up front for an array; more are reserved as elements really decode.
pub(super) const PREALLOCATED_ELEMENTS_MAX: usize = 4096;

/// A value that can be read from BSATN.
pub trait Decode: Sized {
    /// Reads one value and leaves the reader behind it.
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads one value from the front of `bytes`; trailing bytes are ignored (01 §1.5.2).
    fn from_slice(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode(&mut Reader::new(bytes))
    }

    /// Reads `count` elements of an array; byte arrays copy in one go.
    #[doc(hidden)]
    #[inline]
    fn decode_elements(count: usize, r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let mut elements = Vec::with_capacity(count.min(PREALLOCATED_ELEMENTS_MAX));
        for _ in 0..count {
            let position = r.position();
            elements.push(Self::decode(r)?);
            if r.position() == position {
                r.count_empty_value()?;
            }
        }
        Ok(elements)
    }
}

macro_rules! decode_number {
    // Is written below, as arrays of bytes are copied in one go.
    (u8) => {};
    ($number:ident) => {
        impl Decode for $number {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let bytes = r.read_array(stringify!($number))?;
                Ok(Self::from_le_bytes(bytes))
            }
        }
    };
}

macro_rules! decode_integers {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        $(decode_number!($rust);)*
    };
}

for_each_integer!(decode_integers);

impl Decode for u8 {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.read_u8()
    }

    #[inline]
    fn decode_elements(count: usize, r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        r.read_slice(count).map(<[u8]>::to_vec)
    }
}

macro_rules! decode_primitive {
    ($($ty:ty: $method:ident),*) => {$(
        impl Decode for $ty {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.$method()
            }
        }
    )*};
}

decode_primitive!(bool: read_bool, f32: read_f32, f64: read_f64);

impl Decode for () {
    #[inline]
    fn decode(_r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Decode for String {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.read_str().map(str::to_owned)
    }
}

impl Decode for Box<str> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.read_str().map(Box::from)
    }
}

impl<T: Decode> Decode for Vec<T> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.read_u32()?;
        T::decode_elements(count as usize, r)
    }
}

impl<T: Decode> Decode for Box<[T]> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Vec::decode(r).map(Vec::into_boxed_slice)
    }
}

impl<T: Decode> Decode for Option<T> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.read_u8()? {
            0 => T::decode(r).map(Some),
            1 => Ok(None),
            tag => Err(DecodeError::unknown_tag(tag)),
        }
    }
}

impl<T: Decode, E: Decode> Decode for Result<T, E> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.read_u8()? {
            0 => T::decode(r).map(Ok),
            1 => E::decode(r).map(Err),
            tag => Err(DecodeError::unknown_tag(tag)),
        }
    }
}

impl<T: Decode> Decode for std::ops::Bound<T> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        use std::ops::Bound;
        match r.read_u8()? {
            0 => T::decode(r).map(Bound::Included),
            1 => T::decode(r).map(Bound::Excluded),
            2 => Ok(Bound::Unbounded),
            tag => Err(DecodeError::unknown_tag(tag)),
        }
    }
}
