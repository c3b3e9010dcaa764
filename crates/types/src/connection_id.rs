//! Connection ids (01 §1.8.4).

use crate::bsatn::{Decode, DecodeError, Encode, Reader};
use crate::hex::{self, HexError};
use std::fmt;

/// A 128-bit connection id; zero means "no connection". Text is big-endian hex.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u128);

impl ConnectionId {
    /// "No connection"; never the id of a connection.
    pub const ZERO: ConnectionId = ConnectionId(0);

    /// A connection id from the caller's random number; zero, which is reserved, becomes one.
    pub fn from_random(random: u128) -> Self {
        Self(random.max(1))
    }

    #[inline]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// From the 16 BSATN bytes.
    #[inline]
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The 16 BSATN bytes.
    #[inline]
    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// From 16 bytes in the order of the hex text.
    pub const fn from_be_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// 16 bytes in the order of the hex text.
    pub const fn to_be_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The two little-endian 64-bit words in which connection ids are passed to WASM modules.
    #[inline]
    pub const fn to_words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// 32 lower-case hex digits, no prefix.
    pub fn to_hex(self) -> String {
        hex::encode(&self.to_be_bytes())
    }

    /// The first 8 bytes of the hex text, for logs.
    pub fn to_abbreviated_hex(self) -> String {
        hex::encode(&self.to_be_bytes()[..8])
    }

    /// Exactly 32 hex digits of either case, no prefix (01 §1.7.7).
    pub fn from_hex(text: &str) -> Result<Self, HexError> {
        hex::decode_exact(text).map(Self::from_be_bytes)
    }

    /// Like [`from_hex`](Self::from_hex), after removing one leading `0x` or `X'` (01 §1.8.2).
    pub fn parse_text(text: &str) -> Result<Self, HexError> {
        Self::from_hex(hex::strip_prefix(text))
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

/// Accepts what [`parse_text`](ConnectionId::parse_text) accepts.
impl std::str::FromStr for ConnectionId {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        Self::parse_text(text)
    }
}

impl Encode for ConnectionId {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for ConnectionId {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.read_u128().map(Self)
    }
}

/// The plain-JSON form: 32 hex digits (01 §1.7.7).
impl serde::Serialize for ConnectionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

/// 32 hex digits without prefix, or an array of 16 big-endian bytes (01 §1.7.7).
impl<'de> serde::Deserialize<'de> for ConnectionId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        hex::deserialize(deserializer).map(Self::from_be_bytes)
    }
}
