//! Texts as literals of the ad hoc language. Every literal is one token, or a sign and a number, whatever the text is.

use lightcone_types::{AlgebraicType, SpecialProduct};

use crate::literal::is_number;

/// Do values of a type have literals of our language?
pub fn has_literal(ty: &AlgebraicType) -> bool {
    use AlgebraicType as T;
    let special = ty.special_product();
    match ty {
        T::Array(_) => ty.is_bytes(),
        T::Sum(_) => false,
        T::Product(_) => !matches!(special, None | Some(SpecialProduct::TimeDuration)),
        _ => true,
    }
}

/// A text as a literal of our language. None: it is no value of the type.
pub fn write_literal(ty: &AlgebraicType, text: &str) -> Option<String> {
    use AlgebraicType as T;
    match ty {
        T::Bool => truth_of(text).map(|is| if is { "TRUE" } else { "FALSE" }.to_owned()),
        T::String => Some(quoted(text)),
        _ if ty.is_bytes() => Some(quoted(hex_digits(text))),
        _ => match ty.special_product() {
            Some(SpecialProduct::Identity | SpecialProduct::ConnectionId) => {
                Some(quoted(hex_digits(text)))
            }
            Some(SpecialProduct::Timestamp) => Some(quoted(&with_offset(text))),
            Some(SpecialProduct::Uuid) => Some(quoted(text)),
            Some(SpecialProduct::TimeDuration) => None,
            None => is_number(text.trim()).then(|| text.trim().to_owned()),
        },
    }
}

/// The truth that a text says.
pub fn truth_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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
