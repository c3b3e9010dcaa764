//! Texts as literals of the ad hoc language. Every literal is one token, or a sign and a number, whatever the text is.

use lightcone_types::{AlgebraicType, ShownAs};

use crate::literal::is_number;

/// Do values of a type have literals of our language?
pub fn has_literal(ty: &AlgebraicType) -> bool {
    use AlgebraicType as T;
    let special = ty.special_product();
    match ty {
        T::Array(_) => ty.is_bytes(),
        T::Sum(_) => false,
        T::Product(_) => special.is_some_and(|special| special.facts().literals.is_some()),
        _ => true,
    }
}

/// A text as a literal of our language. None: it is no value of the type.
pub fn write_literal(ty: &AlgebraicType, text: &str) -> Option<String> {
    let content = content_of(ty, text)?;
    let is_text = *ty == AlgebraicType::String || ty.is_bytes();
    Some(match is_text || ty.special_product().is_some() {
        true => format!("'{}'", content.replace('\'', "''")),
        false => content,
    })
}

/// What stands in such a literal, without quotes.
pub fn content_of(ty: &AlgebraicType, text: &str) -> Option<String> {
    use {AlgebraicType as T, ShownAs as S};
    let shown_as = ty.special_product().map(|special| special.facts().shown_as);
    Some(match (ty, shown_as) {
        (T::Bool, _) => if truth_of(text)? { "TRUE" } else { "FALSE" }.to_owned(),
        (T::String, _) | (_, Some(S::Uuid)) => text.to_owned(),
        (_, Some(S::Bytes)) => hex_digits(text).to_owned(),
        (_, Some(S::Timestamp)) => with_offset(text),
        (_, Some(S::Interval)) => return None,
        (_, None) if ty.is_bytes() => hex_digits(text).to_owned(),
        (_, None) => is_number(text.trim()).then(|| text.trim().to_owned())?,
    })
}

/// The truth that a text says.
pub fn truth_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn hex_digits(text: &str) -> &str {
    text.strip_prefix("\\x").unwrap_or(text)
}

/// A time without an offset is in UTC, the time zone of every session.
fn with_offset(text: &str) -> String {
    let has_time = text.contains(':');
    let of_time = text.get(10..).unwrap_or_default();
    match of_time.find(['Z', 'z', '+', '-']) {
        None if has_time => format!("{text}Z"),
        None => format!("{text}T00:00:00Z"),
        // An offset of hours only.
        Some(at) if of_time.len() - at == 3 => format!("{text}:00"),
        Some(_) => text.to_owned(),
    }
}
