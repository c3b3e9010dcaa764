//! Connection ids (01 §1.8.4).

use crate::hex::hex_id;

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
}

hex_id!(ConnectionId);
