//! Keyed hashing of rows and keys: a client that chooses rows cannot choose colliding ones.

use std::hash::BuildHasher;

/// The random key of one hash table.
#[derive(Clone, Copy)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(std::hash::RandomState::new().hash_one(0) | 1)
    }
}

impl Seed {
    #[inline]
    pub fn hash_integer(&self, value: u64) -> u64 {
        let product = u128::from(value ^ self.0)
            * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ self.0.rotate_left(32));
        (product as u64) ^ (product >> 64) as u64
    }

    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        self.add_part(self.start(), bytes)
    }

    /// Hashes values that delimit themselves.
    pub fn hash_parts<'p>(&self, parts: impl Iterator<Item = &'p [u8]>) -> u64 {
        parts.fold(self.start(), |hash, part| self.add_part(hash, part))
    }

    /// The hash of no parts.
    pub fn start(&self) -> u64 {
        self.0
    }

    pub fn add_part(&self, hash: u64, part: &[u8]) -> u64 {
        let mut hash = self.hash_integer(hash ^ part.len() as u64);
        let mut words = part.chunks_exact(8);
        for word in words.by_ref() {
            hash =
                self.hash_integer(hash ^ u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            hash = self.hash_integer(hash ^ u64::from_le_bytes(word));
        }
        hash
    }
}
