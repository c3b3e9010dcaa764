//! Numbers in the names and in the bytes of files, as logs and snapshots have them.

/// The number in a name with 20 digits and this extension.
pub fn number_in_name(name: &str, extension: &str) -> Option<u64> {
    let digits = name.strip_suffix(extension)?.strip_suffix('.')?;
    let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The little-endian number at this place, which must be in `bytes`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The same of eight bytes.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Arithmetic and text of a number of which two have a distance and no sum. `$what` is the word for it.
macro_rules! distances {
    ($name:ident, $what:literal) => {
        impl std::ops::Add<u64> for $name {
            type Output = $name;

            /// # Panics
            /// Beyond 2^64, which no log and no file reaches.
            fn add(self, more: u64) -> $name {
                let sum = self.0.checked_add(more);
                $name(sum.expect("it stays below 2^64"))
            }
        }

        impl std::ops::AddAssign<u64> for $name {
            fn add_assign(&mut self, more: u64) {
                *self = *self + more;
            }
        }

        impl std::ops::Sub for $name {
            type Output = u64;

            /// # Panics
            /// If `earlier` is the later one.
            fn sub(self, earlier: $name) -> u64 {
                assert!(
                    earlier <= self,
                    concat!($what, " {} is not before {}"),
                    earlier,
                    self
                );
                self.0 - earlier.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(crate) use distances;
