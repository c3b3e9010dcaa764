//! Case conversion of names (02 §8.2).
//!
//! Written out instead of taken from the crate `convert_case`, whose rules changed after the version
//! that the format was defined with (0.6.0); the tests compare with that version.

use unicode_segmentation::UnicodeSegmentation;

/// `countFresh` → `count_fresh`: tables, functions, views, columns, product fields.
pub fn to_snake(name: &str) -> String {
    let words: Vec<String> = words(name).into_iter().map(|w| w.to_lowercase()).collect();
    words.join("_")
}

/// `RedApple` → `redApple`: sum variants.
pub fn to_camel(name: &str) -> String {
    let words = words(name);
    let mut out = String::with_capacity(name.len());
    for (i, word) in words.iter().enumerate() {
        if i == 0 {
            out.push_str(&word.to_lowercase());
        } else {
            push_capitalised(&mut out, word);
        }
    }
    out
}

/// `player_row` → `PlayerRow`: types and the segments of their scope.
pub fn to_pascal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in words(name) {
        push_capitalised(&mut out, word);
    }
    out
}

fn push_capitalised(out: &mut String, word: &str) {
    let mut chars = word.chars();
    if let Some(first) = chars.next() {
        out.extend(first.to_uppercase());
        out.push_str(&chars.as_str().to_lowercase());
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Separator,
    Other,
}

fn classify(grapheme: &str) -> Class {
    let mut bytes = grapheme.bytes();
    if let (Some(byte), None) = (bytes.next(), bytes.next()) {
        return match byte {
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'_' | b'-' | b' ' => Class::Separator,
            _ => Class::Other,
        };
    }
    let (upper, lower) = (grapheme.to_uppercase(), grapheme.to_lowercase());
    if upper == lower {
        Class::Other
    } else if grapheme == upper {
        Class::Upper
    } else if grapheme == lower {
        Class::Lower
    } else {
        Class::Other
    }
}

/// Splits a name into its words; separators and empty words are dropped.
fn words(name: &str) -> Vec<&str> {
    let graphemes: Vec<(usize, Class)> = name
        .grapheme_indices(true)
        .map(|(at, g)| (at, classify(g)))
        .collect();
    let mut words = Vec::new();
    let mut start = 0;
    for (i, &(at, class)) in graphemes.iter().enumerate() {
        if class == Class::Separator {
            words.push(&name[start..at]);
            // Separators are one ASCII byte.
            start = at + 1;
            continue;
        }
        let Some(&(next_at, next)) = graphemes.get(i + 1) else {
            continue;
        };
        let pair = matches!(
            (class, next),
            (Class::Lower, Class::Upper)
                | (Class::Upper, Class::Digit)
                | (Class::Digit, Class::Upper | Class::Lower)
                | (Class::Lower, Class::Digit)
        );
        // The last capital of a run belongs to the word it begins: `XMLHttp` is `XML`, `Http`.
        let run_ends = (class, next) == (Class::Upper, Class::Upper)
            && graphemes
                .get(i + 2)
                .is_some_and(|&(_, after)| after == Class::Lower);
        if pair || run_ends {
            words.push(&name[start..next_at]);
            start = next_at;
        }
    }
    words.push(&name[start..]);
    words.retain(|word| !word.is_empty());
    words
}
