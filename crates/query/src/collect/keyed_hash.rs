//! A fast hash of integers for maps. Values are of clients: they are hashed with a secret.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The secret of one map.
#[derive(Clone, Copy)]
pub(super) struct Secret(u64);

impl Default for Secret {
    fn default() -> Secret {
        Secret(RandomState::new().hash_one(0) | 1)
    }
}

impl BuildHasher for Secret {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher {
            secret: self.0,
            hash: self.0,
        }
    }
}

pub(super) struct KeyedHasher {
    secret: u64,
    hash: u64,
}

impl Hasher for KeyedHasher {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    /// Both halves of a product with a secret factor depend on all bits.
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let factor = 0x9e37_79b9_7f4a_7c15 ^ self.secret.rotate_left(32);
        let product = u128::from(word ^ self.hash) * u128::from(factor);
        self.hash = (product as u64) ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u128(&mut self, integer: u128) {
        self.write_u64(integer as u64);
        self.write_u64((integer >> 64) as u64);
    }
}
