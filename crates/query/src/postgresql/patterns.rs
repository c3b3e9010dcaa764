//! Texts with wildcards: `LIKE`, and as much of regular expressions as questions to a catalogue have.

use regex::{Regex, RegexBuilder};

use super::failure::{Done, Failure};
use crate::predicate::is_like;

/// A pattern has at most so many characters.
const PATTERN_CHARS_MAX: usize = 1_024;
/// Groups and repetitions of a regular expression may be nested so deep.
const NESTED_MAX: u32 = 96;
/// What a regular expression is compiled to has at most so many bytes, and so have the states that are kept of it.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A comparison of a text with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Like {
    pub is_not: bool,
    pub is_regular: bool,
    pub ignores_case: bool,
}

/// A pattern that texts are compared with.
#[derive(Debug)]
pub enum Pattern {
    Like { written: String, ignores_case: bool },
    Regular { regex: Regex, chars: usize },
}

impl Pattern {
    /// # Errors
    /// It is too long, or has what is not supported.
    pub fn new(written: &str, like: Like) -> Done<Pattern> {
        let made = Pattern::read(written, like.is_regular, like.ignores_case);
        made.ok_or_else(|| {
            Failure::unsupported(format!("the pattern {written:?} is not supported"))
        })
    }

    fn read(written: &str, is_regular: bool, ignores_case: bool) -> Option<Pattern> {
        let chars = written.chars().count();
        if chars > PATTERN_CHARS_MAX {
            return None;
        }
        if is_regular {
            let regex = RegexBuilder::new(&translated(written)?)
                .case_insensitive(ignores_case)
                .dot_matches_new_line(true)
                .nest_limit(NESTED_MAX)
                .size_limit(COMPILED_BYTES_MAX)
                .dfa_size_limit(COMPILED_BYTES_MAX)
                .build();
            let regex = regex.ok()?;
            return Some(Pattern::Regular { regex, chars });
        }
        let escapes = written.bytes().rev().take_while(|byte| *byte == b'\\');
        let written = match ignores_case {
            true => written.to_lowercase(),
            false => written.to_owned(),
        };
        (escapes.count() % 2 == 0).then_some(Pattern::Like {
            written,
            ignores_case,
        })
    }

    /// The work of making one, in steps.
    pub fn making(written: &str, is_regular: bool) -> usize {
        match is_regular {
            true => 1_000 + 16 * written.len(),
            false => written.len() / 4,
        }
    }

    /// The work of a comparison, in steps.
    pub fn weight(&self, text: &str) -> usize {
        let chars = match self {
            Pattern::Like { written, .. } => written.len(),
            Pattern::Regular { chars, .. } => *chars,
        };
        // At least one: the text is read, and its case may be changed.
        1 + (1 + chars).saturating_mul(1 + text.len()) / 8
    }

    pub fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Regular { regex, .. } => regex.is_match(text),
            Pattern::Like {
                written,
                ignores_case: false,
            } => is_like(text.as_bytes(), written.as_bytes()),
            Pattern::Like { written, .. } => {
                is_like(text.to_lowercase().as_bytes(), written.as_bytes())
            }
        }
    }
}

/// Patterns that were written the same.
impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        use Pattern::{Like, Regular};
        match (self, other) {
            (Like { written: a, .. }, Like { written: b, .. }) => a == b,
            (Regular { regex: a, .. }, Regular { regex: b, .. }) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

/// A regular expression of PostgreSQL in the language of `regex`. None: it has what the two understand differently.
fn translated(written: &str) -> Option<String> {
    let mut made = String::new();
    let mut rest = written.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => literal(rest.next()?, &mut made)?,
            '{' => return None,
            '[' => {
                made.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    made.push('^');
                }
                let mut is_first = true;
                loop {
                    match rest.next()? {
                        ']' if !is_first => break,
                        '[' | '\\' => return None,
                        // A range, unless it stands at the beginning or the end.
                        '-' if !is_first && rest.peek() != Some(&']') => made.push('-'),
                        c if c.is_alphanumeric() => made.push(c),
                        c => literal(c, &mut made)?,
                    }
                    is_first = false;
                }
                made.push(']');
            }
            c => {
                made.push(c);
                let is_option = c == '(' && rest.next_if_eq(&'?').is_some();
                if is_option {
                    made.push('?');
                    made.push(rest.next_if_eq(&':')?);
                }
            }
        }
    }
    Some(made)
}

/// Adds a character that means itself. None: it may mean something else behind a backslash.
fn literal(c: char, made: &mut String) -> Option<()> {
    (!c.is_alphanumeric()).then(|| made.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(written: &str, text: &str) -> bool {
        let pattern = Pattern::read(written, false, false).expect("a pattern");
        pattern.matches(text)
    }

    fn regular(written: &str, text: &str) -> bool {
        let pattern = Pattern::read(written, true, false).expect("a pattern");
        pattern.matches(text)
    }

    #[test]
    fn patterns() {
        assert!(like("a%c_", "abbcd") && like("%", "") && like("a\\_b", "a_b"));
        assert!(!like("a%c_", "abbc") && !like("a\\_b", "axb") && !like("", "a"));
        assert!(regular("^(per.*)$", "person") && regular("^(p.rson)$", "person"));
        assert!(regular("^pg_temp_", "pg_temp_1") && !regular("^pg_temp_", "a_pg_temp_"));
        assert!(regular("^(a|bc|d)$", "bc") && !regular("^(a|bc|d)$", "bcd"));
        assert!(regular("b+", "abbc") && regular("^[a-c]?x$", "x") && !regular("^[^a-c]$", "b"));
        assert!(regular("", "") && regular("a*$", "b") && !regular("^(per)$", "person"));
        assert!(
            Pattern::read("a{2}", true, false).is_none()
                && Pattern::read("(a", true, false).is_none()
        );
        assert!(
            Pattern::read("\\d", true, false).is_none()
                && Pattern::read("a)", true, false).is_none()
        );
        let ignoring = Pattern::read("ÄB%", false, true).expect("a pattern");
        assert!(ignoring.matches("äbc"));
    }

    #[test]
    fn all_that_a_character_is_compared_with_is_work() {
        let weight = |written: &str| {
            let pattern = Pattern::read(written, true, false).expect("a pattern");
            pattern.weight(&"x".repeat(1_600))
        };
        let class = format!("[{}]", "a".repeat(1_000));
        assert!(weight(&class) >= weight(&"a".repeat(1_000)));
        assert!(weight("") >= 100, "the text is read");
    }

    #[test]
    fn no_pattern_takes_long() {
        let long = "%a".repeat(400);
        assert!(!like(&long, &"a".repeat(399)));
        let nested = format!(
            "{}a{}",
            "(".repeat(30),
            "*)*".repeat(30).replace("*)*", ")*")
        );
        assert!(!regular(&format!("^{nested}b$"), &"a".repeat(2_000)));
        assert!(Pattern::read(&"(".repeat(1_000), true, false).is_none());
        assert!(Pattern::read(&"a".repeat(2_000), false, false).is_none());
    }

    proptest! {
        #[test]
        fn any_pattern_ends(written in "[ab.*+?|()^$\\[\\]%_\\\\-]{0,12}", text in "[ab]{0,8}") {
            for pattern in [Pattern::read(&written, false, true), Pattern::read(&written, true, false)] {
                let _ = pattern.map(|pattern| pattern.matches(&text));
            }
        }
    }
}
