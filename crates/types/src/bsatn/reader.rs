//! Reading BSATN from a byte slice.

/// Levels of products, sums and arrays a value or a type may be nested; recursive parameter types
/// let the caller choose the depth, so there has to be a limit (01 §1.5.3).
pub const MAX_DEPTH: usize = 256;

/// Empty products a reader accepts beyond one per byte of input. They cost no input, so an array
/// count or a wide type alone could otherwise ask for any amount of work (01 §1.5.3).
pub const EMPTY_VALUES_MAX: usize = 1 << 16;

/// Why bytes do not decode. The texts are those of 01 §1.5.1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes left than needed.
    #[error("data too short for {what}: Expected {expected}, given {given}")]
    BufferLength {
        what: &'static str,
        expected: usize,
        given: usize,
    },
    /// A bool that is neither 0 nor 1.
    #[error("byte {0} not valid as `bool` (must be 0 or 1)")]
    InvalidBool(u8),
    /// A sum tag without variant.
    #[error("unknown tag {tag:#x} for sum type {}", .sum_name.unwrap_or("<unknown>"))]
    InvalidTag {
        tag: u8,
        sum_name: Option<&'static str>,
    },
    /// A string that is not UTF-8.
    #[error("invalid utf8")]
    InvalidUtf8,
    /// A fixed-size row of the wrong total size.
    #[error("unexpected data length: Expected {expected}, given {given}")]
    InvalidLen { expected: usize, given: usize },
    /// An array too large to hold.
    #[error("allocation of {0} elements failed")]
    AllocationFailed(usize),
    #[error("{0}")]
    Other(Box<str>),
}

impl DecodeError {
    pub fn other(text: impl Into<Box<str>>) -> Self {
        Self::Other(text.into())
    }

    /// The error of a sum tag without variant.
    #[cold]
    pub fn invalid_tag(tag: u8, sum_name: &'static str) -> Self {
        Self::InvalidTag {
            tag,
            sum_name: Some(sum_name),
        }
    }

    /// The same, of a sum that has no name.
    #[cold]
    pub fn unknown_tag(tag: u8) -> Self {
        let sum_name = None;
        Self::InvalidTag { tag, sum_name }
    }

    /// The error where a composite key must end but bytes follow (01 §1.5.2).
    pub fn extra_bytes(count: usize) -> Self {
        Self::Other(format!("after decoding, there are {count} extra bytes").into())
    }
}

/// A cursor over BSATN bytes. Nothing it reads is copied or allocated.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
    depth_left: usize,
    empty_values: usize,
}

macro_rules! read_int {
    ($($(#[$doc:meta])* $method:ident: $int:ty, $what:literal;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $method(&mut self) -> Result<$int, DecodeError> {
            self.read_array($what).map(<$int>::from_le_bytes)
        }
    )*};
}

impl<'a> Reader<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            total: bytes.len(),
            depth_left: MAX_DEPTH,
            empty_values: 0,
        }
    }

    /// The same reader with no limit of nesting, for bytes that this program has encoded.
    pub fn trusting_depth(self) -> Self {
        Self {
            depth_left: usize::MAX,
            ..self
        }
    }

    #[inline]
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// The next `count` bytes; `what` names them in the error.
    #[inline]
    pub fn read_named(
        &mut self,
        what: &'static str,
        count: usize,
    ) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(count) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(DecodeError::BufferLength {
                what,
                expected: count,
                given: self.rest.len(),
            }),
        }
    }

    #[inline]
    pub fn read_slice(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        self.read_named("[u8]", count)
    }

    /// The next `N` bytes; `what` names them in the error.
    #[inline]
    pub fn read_array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(DecodeError::BufferLength {
                what,
                expected: N,
                given: self.rest.len(),
            }),
        }
    }

    read_int! {
        read_u8: u8, "u8";
        read_u16: u16, "u16";
        read_u32: u32, "u32";
        read_i32: i32, "i32";
        read_u64: u64, "u64";
        read_i64: i64, "i64";
        read_u128: u128, "u128";
        read_i128: i128, "i128";
    }

    /// An `F32`; every bit pattern is kept.
    #[inline]
    pub fn read_f32(&mut self) -> Result<f32, DecodeError> {
        self.read_u32().map(f32::from_bits)
    }

    /// An `F64`; every bit pattern is kept.
    #[inline]
    pub fn read_f64(&mut self) -> Result<f64, DecodeError> {
        self.read_u64().map(f64::from_bits)
    }

    #[inline]
    pub fn read_bool(&mut self) -> Result<bool, DecodeError> {
        match self.read_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(DecodeError::InvalidBool(byte)),
        }
    }

    /// Bytes with a `u32` length in front.
    #[inline]
    pub fn read_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.read_u32()?;
        self.read_slice(length as usize)
    }

    #[inline]
    pub fn read_str(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.read_bytes()?).map_err(|_| DecodeError::InvalidUtf8)
    }

    /// An array count. A count whose elements of at least `min_element_bytes` cannot all fit into
    /// the rest of the input is an error, so it may be used to allocate when the minimum is not 0.
    #[inline]
    pub fn read_count(&mut self, min_element_bytes: usize) -> Result<u32, DecodeError> {
        let count = self.read_u32()?;
        let expected = (count as usize).saturating_mul(min_element_bytes);
        if expected > self.rest.len() {
            return Err(DecodeError::BufferLength {
                what: "[u8]",
                expected,
                given: self.rest.len(),
            });
        }
        Ok(count)
    }

    /// Runs `read` one nesting level deeper; fails below [`MAX_DEPTH`] levels. Decoders of
    /// recursive structures go through this.
    #[inline]
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth_left == 0 {
            return Err(too_deep());
        }
        self.depth_left -= 1;
        let result = read(self);
        self.depth_left += 1;
        result
    }

    /// Accounts for a value that took no input; see [`EMPTY_VALUES_MAX`].
    #[inline]
    pub fn count_empty_value(&mut self) -> Result<(), DecodeError> {
        self.empty_values += 1;
        if self.empty_values > EMPTY_VALUES_MAX + self.position() {
            return Err(too_many_empty_values());
        }
        Ok(())
    }
}

#[cold]
fn too_deep() -> DecodeError {
    DecodeError::Other(format!("value is nested deeper than {MAX_DEPTH} levels").into())
}

#[cold]
fn too_many_empty_values() -> DecodeError {
    DecodeError::Other(
        format!("more than {EMPTY_VALUES_MAX} empty values beyond the size of the input").into(),
    )
}
