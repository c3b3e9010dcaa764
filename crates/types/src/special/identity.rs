//! Identities (01 §1.8).

use ethnum::U256;

use crate::hex::hex_id;
use std::cmp::Ordering;

/// A 256-bit identity, held as its 32 little-endian (BSATN) bytes; text is big-endian hex.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Identity([u8; 32]);

impl Identity {
    /// The identity of 64 zeros.
    pub const ZERO: Identity = Identity([0; 32]);

    /// From the 32 BSATN bytes.
    #[inline]
    pub const fn from_le_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// From 32 bytes in the order of the hex text.
    pub fn from_be_bytes(mut bytes: [u8; 32]) -> Self {
        bytes.reverse();
        Self(bytes)
    }

    /// The 32 BSATN bytes.
    #[inline]
    pub const fn to_le_bytes(self) -> [u8; 32] {
        self.0
    }

    #[inline]
    pub const fn as_le_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 32 bytes in the order of the hex text.
    pub fn to_be_bytes(self) -> [u8; 32] {
        let mut bytes = self.0;
        bytes.reverse();
        bytes
    }

    #[inline]
    pub fn from_u256(number: U256) -> Self {
        Self(number.to_le_bytes())
    }

    #[inline]
    pub fn to_u256(self) -> U256 {
        U256::from_le_bytes(self.0)
    }

    /// The four little-endian 64-bit words in which identities are passed to WASM modules; the
    /// first holds the least significant bits (01 §1.8.1).
    #[inline]
    pub fn to_words(self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of 8 bytes"));
        }
        words
    }

    /// The identity of a token's issuer and subject (01 §1.8.3).
    pub fn from_claims(issuer: &str, subject: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(issuer.as_bytes())
            .update(b"|")
            .update(subject.as_bytes());
        let digest = hasher.finalize();
        let mut be = [0; 32];
        be[..2].copy_from_slice(&[0xc2, 0x00]);
        be[6..].copy_from_slice(&digest.as_bytes()[..26]);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&be[..2]).update(&be[6..]);
        let checksum = hasher.finalize();
        be[2..6].copy_from_slice(&checksum.as_bytes()[..4]);
        Self::from_be_bytes(be)
    }
}

hex_id!(Identity);

/// By number, which is also the order of the hex texts.
impl Ord for Identity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
