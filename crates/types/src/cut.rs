//! Cutting long foreign texts for errors and logs.

use std::borrow::Cow;

/// Longer names are cut in errors and logs.
pub const SHOWN_NAME_BYTES_MAX: usize = 256;

/// The text, or its beginning and a mark that says how long it was.
///
/// ```
/// assert_eq!(lightcone_types::cut("short", 8), "short");
/// assert_eq!(lightcone_types::cut("a longer text", 8), "a longer… [13 bytes]");
/// ```
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let shown = &text[..text.floor_char_boundary(bytes_max)];
    Cow::Owned(format!("{shown}… [{} bytes]", text.len()))
}

pub fn cut_name(name: &str) -> Cow<'_, str> {
    cut(name, SHOWN_NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_rest_is_named_and_the_beginning_is_kept(text in ".{0,40}", bytes_max in 0usize..50) {
            let shown = cut(&text, bytes_max);
            if text.len() <= bytes_max {
                assert_eq!(shown, text);
            } else {
                let mark = format!("… [{} bytes]", text.len());
                let start = shown.strip_suffix(&mark).expect("the mark");
                assert!(text.starts_with(start) && start.len() <= bytes_max);
                assert!(bytes_max - start.len() < 4, "no more is cut than a character");
            }
        }
    }
}
