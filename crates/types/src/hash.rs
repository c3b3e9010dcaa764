//! Content hashes (01 §1.8.5) and the view argument hash (01 §1.8.6).

use ethnum::U256;

use crate::hex::{self, HexError};
use sha3::{Digest, Keccak256};
use std::fmt;

/// 32 digest bytes. Hex text and BSATN keep the order of the digest; JSON is the `U256` form, where
/// the first digest byte is the least significant.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// All zeros.
    pub const ZERO: Hash = Hash([0; 32]);

    /// Keccak-256 with the original padding, not NIST SHA3-256.
    pub fn keccak256(bytes: &[u8]) -> Self {
        Self(Keccak256::digest(bytes).into())
    }

    /// The digest as a number.
    pub fn to_u256(self) -> U256 {
        U256::from_le_bytes(self.0)
    }

    /// The digest of a number.
    pub fn from_u256(number: U256) -> Self {
        Self(number.to_le_bytes())
    }

    /// 64 lower-case hex digits in digest order.
    pub fn to_hex(self) -> String {
        hex::encode(&self.0)
    }

    /// Exactly 64 hex digits of either case in digest order.
    pub fn from_hex(text: &str) -> Result<Self, HexError> {
        hex::decode_exact(text).map(Self)
    }

    /// The JSON form: `0x`, then the digest bytes in reverse order without leading zeros.
    pub fn to_json_u256(self) -> String {
        format!("{:#x}", self.to_u256())
    }

    /// Parses the JSON form; `None` if the text is not a `U256` string (01 §1.7.5).
    pub fn from_json_u256(text: &str) -> Option<Self> {
        hex::parse_u256(text).map(Self::from_u256)
    }
}

/// The order of the digests as numbers: from the last digest byte to the first (01 §1.6.1).
impl Ord for Hash {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for Hash {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// The key of view bookkeeping: BLAKE3 over a domain string and the BSATN of the argument product
/// (01 §1.8.6). For a view that depends on the caller the arguments are its 32 identity bytes.
pub fn view_args_hash(args_bsatn: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(b"spacetimedb::view::args::v1\0")
        .update(args_bsatn);
    Hash(*hasher.finalize().as_bytes())
}
