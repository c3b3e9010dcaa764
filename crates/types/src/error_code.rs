//! The codes of errors, `[LC0225]`: each has a page in `docs/errors`.

/// The number of the last code in a text that has come without it: from another process, or through an interface that passes texts.
pub fn error_code(text: &str) -> Option<u16> {
    let (digits, _) = text.rsplit_once("[LC")?.1.split_once(']')?;
    let is_code = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found() {
        assert_eq!(error_code("too long [LC0708]"), Some(708));
        assert_eq!(error_code("a [LC0001]\nb [LC0225] c"), Some(225));
        for text in ["", "LC0708", "[LC708]", "[LC07081]", "[LC+708]", "[LC0708"] {
            assert_eq!(error_code(text), None, "{text}");
        }
    }
}
