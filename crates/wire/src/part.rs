//! The parts of server messages: each is declared once, by [`products`] or [`sums`], and is read, stepped over and written as declared.

use lightcone_types::{
    ConnectionId, Decode, DecodeError, Identity, Reader, TimeDuration, Timestamp,
};

use crate::error::Error;
use crate::rows::{RowList, RowListParts};

/// A part of a server message. `Encode` writes it.
pub(crate) trait Part: Sized {
    /// No value takes fewer bytes.
    const BYTES_MIN: usize;

    fn read(r: &mut Reader<'_>) -> Result<Self, Error>;

    /// Checks a value as [`read`](Self::read) does, without building it. Gives the number of rows in its lists.
    fn skip(r: &mut Reader<'_>) -> Result<u64, Error>;
}

/// Values without parts and rows, with their smallest size, and how they are read in place.
macro_rules! leaves {
    ($($leaf:ty: $bytes_min:literal, $read:path;)*) => {$(
        impl Part for $leaf {
            const BYTES_MIN: usize = $bytes_min;

            fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
                Ok($read(r)?.into())
            }

            fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
                Ok($read(r).map(|_| 0)?)
            }
        }
    )*};
}

leaves! {
    u32: 4, u32::decode;
    Identity: 32, Identity::decode;
    ConnectionId: 16, ConnectionId::decode;
    Timestamp: 8, Timestamp::decode;
    TimeDuration: 8, TimeDuration::decode;
    String: 4, Reader::read_str;
    Vec<u8>: 4, Reader::read_bytes;
}

impl Part for RowList {
    const BYTES_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        RowList::decode(r)
    }

    fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
        Ok(RowListParts::decode(r)?.len() as u64)
    }
}

impl<T: Part> Part for Vec<T> {
    const BYTES_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        let count = r.read_count(T::BYTES_MIN)? as usize;
        let mut list = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            list.push(T::read(r)?);
        }
        Ok(list)
    }

    fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
        let count = r.read_count(T::BYTES_MIN)?;
        (0..count).try_fold(0, |rows, _| Ok(rows + T::skip(r)?))
    }
}

impl<T: Part> Part for Option<T> {
    const BYTES_MIN: usize = 1;

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => T::read(r).map(Some),
            1 => Ok(None),
            tag => Err(DecodeError::invalid_tag(tag, "Option").into()),
        }
    }

    fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
        match r.read_u8()? {
            0 => T::skip(r),
            1 => Ok(0),
            tag => Err(DecodeError::invalid_tag(tag, "Option").into()),
        }
    }
}

impl<T: Part> Part for Result<T, String> {
    const BYTES_MIN: usize = 5;

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => T::read(r).map(Ok),
            1 => String::read(r).map(Err),
            tag => Err(DecodeError::invalid_tag(tag, "Result").into()),
        }
    }

    fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
        match r.read_u8()? {
            0 => T::skip(r),
            1 => String::skip(r),
            tag => Err(DecodeError::invalid_tag(tag, "Result").into()),
        }
    }
}

/// Structures: their fields one behind the other.
macro_rules! products {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident { $(pub $field:ident: $ty:ty,)* }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $(pub $field: $ty,)* }

        impl Part for $name {
            const BYTES_MIN: usize = 0 $(+ <$ty as Part>::BYTES_MIN)*;

            fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
                Ok($name { $($field: Part::read(r)?,)* })
            }

            fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
                Ok(0 $(+ <$ty as Part>::skip(r)?)*)
            }
        }

        impl Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$field.encode(out);)*
            }
        }
    )*};
}

/// Enumerations: a tag, and what is behind it.
macro_rules! sums {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident {$(
            $(#[$doc:meta])*
            $tag:literal => $variant:ident $({ $($field:ident: $ty:ty),* $(,)? })? $(($only:ident: $of:ty))?,
        )*}
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant $({ $($field: $ty),* })? $(($of))?,)*
        }

        impl Part for $name {
            const BYTES_MIN: usize = 1 + $crate::part::least(&[
                $(0 $($(+ <$ty as Part>::BYTES_MIN)*)? $(+ <$of as Part>::BYTES_MIN)?,)*
            ]);

            fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
                match r.read_u8()? {
                    $($tag => Ok($name::$variant {
                        $($($field: Part::read(r)?,)*)? $(0: <$of as Part>::read(r)?)?
                    }),)*
                    tag => Err(DecodeError::invalid_tag(tag, stringify!($name)).into()),
                }
            }

            fn skip(r: &mut Reader<'_>) -> Result<u64, Error> {
                match r.read_u8()? {
                    $($tag => Ok(
                        0 $($(+ <$ty as Part>::skip(r)?)*)? $(+ <$of as Part>::skip(r)?)?
                    ),)*
                    tag => Err(DecodeError::invalid_tag(tag, stringify!($name)).into()),
                }
            }
        }

        impl Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {$(
                    $name::$variant { $($($field,)*)? $(0: $only)? } => {
                        out.push($tag);
                        $($($field.encode(out);)*)?
                        $($only.encode(out);)?
                    }
                )*}
            }
        }
    )*};
}

pub(crate) use {products, sums};

/// The smallest of these sizes.
pub(crate) const fn least(sizes: &[usize]) -> usize {
    let (mut least, mut at) = (usize::MAX, 0);
    while at < sizes.len() {
        if sizes[at] < least {
            least = sizes[at];
        }
        at += 1;
    }
    least
}
