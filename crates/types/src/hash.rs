//! Content hashes (01 §1.8.5) and the view argument hash (01 §1.8.6).

use crate::hex::{self, hex_text};
use sha3::{Digest, Keccak256};

/// 32 digest bytes. Hex text and BSATN keep the order of the digest; JSON is that of a number of 256
/// bits, of which the first digest byte is the least significant.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub const ZERO: Hash = Hash([0; 32]);

    /// Keccak-256 with the original padding, not NIST SHA3-256.
    pub fn keccak256(bytes: &[u8]) -> Self {
        Self(Keccak256::digest(bytes).into())
    }

    fn into_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The JSON form: `0x`, then the digest bytes in reverse order without leading zeros.
    pub fn to_json_u256(self) -> String {
        let mut text = String::new();
        hex::write_number(self.0.to_vec(), false, &mut text);
        text
    }

    /// Parses the JSON form; `None` if the text is not such a number (01 §1.7.5).
    pub fn from_json_u256(text: &str) -> Option<Self> {
        let bytes = hex::parse_number(text, 32, false)?;
        bytes.try_into().ok().map(Self)
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
