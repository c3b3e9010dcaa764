//! Content hashes (01 §1.8.5) and the view argument hash (01 §1.8.6).

use ethnum::U256;

use crate::hex::{self, hex_text};
use sha3::{Digest, Keccak256};

/// 32 digest bytes. Hex text and BSATN keep the order of the digest; JSON is the `U256` form, where
/// the first digest byte is the least significant.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub const ZERO: Hash = Hash([0; 32]);

    /// Keccak-256 with the original padding, not NIST SHA3-256.
    pub fn keccak256(bytes: &[u8]) -> Self {
        Self(Keccak256::digest(bytes).into())
    }

    pub fn to_u256(self) -> U256 {
        U256::from_le_bytes(self.0)
    }

    pub fn from_u256(number: U256) -> Self {
        Self(number.to_le_bytes())
    }

    fn into_bytes(self) -> [u8; 32] {
        self.0
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

hex_text!(Hash, Hash::into_bytes, Hash);

/// The key of view bookkeeping: BLAKE3 over a domain string and the BSATN of the argument product
/// (01 §1.8.6). For a view that depends on the caller the arguments are its 32 identity bytes.
pub fn view_args_hash(args_bsatn: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(b"spacetimedb::view::args::v1\0")
        .update(args_bsatn);
    Hash(*hasher.finalize().as_bytes())
}
