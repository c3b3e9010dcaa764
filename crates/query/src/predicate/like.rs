//! Patterns of `LIKE`.

/// Is a text like a pattern? `%` stands for any text, `_` for one character, and a backslash before a character for that
/// character. Both are UTF-8.
pub(crate) fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    // Where to go on if the rest does not match: behind the last `%`, one character further in the text.
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        let matched = match pattern.get(of) {
            Some(b'%') => {
                retry = Some((at, of + 1));
                of += 1;
                continue;
            }
            Some(b'_') => {
                at += character_bytes(text[at]);
                of += 1;
                continue;
            }
            Some(b'\\') => {
                of += 1;
                pattern.get(of) == Some(&text[at])
            }
            Some(byte) => *byte == text[at],
            None => false,
        };
        if matched {
            at += 1;
            of += 1;
        } else if let Some((begun, behind)) = retry {
            at = begun + character_bytes(text[begun]);
            of = behind;
            retry = Some((at, of));
        } else {
            return false;
        }
    }
    pattern[of..].iter().all(|byte| *byte == b'%')
}

/// Bytes of the character that begins with this one.
fn character_bytes(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}
