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
