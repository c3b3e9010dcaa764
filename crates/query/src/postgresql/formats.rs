//! Values as PostgreSQL's clients read them, as text or in binary (08 §19).

use std::fmt::Write as _;

use lightcone_types::bsatn::decode_value;
use lightcone_types::{
    hex_encode, AlgebraicType, AlgebraicValue, Encode, ProductType, Reader, ShownAs, Typespace,
};

use super::types::{integer_oid, oid, oid_of};

/// Microseconds from 1970 to 2000, where PostgreSQL's timestamps begin.
pub const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// How a client wants a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Binary,
}

/// Writes a value that is in BSATN.
pub fn write_bsatn(ty: &AlgebraicType, bsatn: &[u8], format: Format, out: &mut Vec<u8>) {
    let value = decode_value(&Typespace::default(), ty, &mut Reader::new(bsatn));
    write(ty, &value.expect("stored rows decode"), format, out);
}

/// Writes a value in a format.
pub fn write(ty: &AlgebraicType, value: &AlgebraicValue, format: Format, out: &mut Vec<u8>) {
    match format {
        Format::Binary => write_binary(ty, value, out),
        Format::Text => match value {
            AlgebraicValue::String(text) => out.extend_from_slice(text.as_bytes()),
            value => {
                let mut text = String::new();
                write_text(ty, value, &mut text);
                out.extend_from_slice(text.as_bytes());
            }
        },
    }
}

fn put(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("writing to a String cannot fail");
}

fn write_text(ty: &AlgebraicType, value: &AlgebraicValue, out: &mut String) {
    use AlgebraicValue as V;
    match value {
        V::String(text) => out.push_str(text),
        V::Bool(true) => out.push('t'),
        V::Bool(false) => out.push('f'),
        V::Bytes(bytes) => {
            out.push_str("\\x");
            out.push_str(&hex_encode(bytes));
        }
        V::Array(elements) => write_array(ty, elements.iter().map(Some), out),
        V::Sum { tag, .. } if ty.is_simple_enum() => {
            let variants = ty.as_sum().map(|sum| &*sum.variants).unwrap_or_default();
            let variant = variants.get(usize::from(*tag));
            out.push_str(variant.and_then(|v| v.name()).unwrap_or_default());
        }
        V::Sum { .. } => write_json(ty, value, out),
        V::Product(elements) => match special(ty, elements, "\\x") {
            Some(text) => out.push_str(&text),
            None => write_json(ty, value, out),
        },
        number => write_number(number, out),
    }
}

fn write_number(value: &AlgebraicValue, out: &mut String) {
    if let Some(number) = value.as_number() {
        put(out, number);
    }
}

/// A special product (01 §1.8): a text, or hex digits behind a prefix.
fn special(ty: &AlgebraicType, elements: &[AlgebraicValue], of_hex: &str) -> Option<String> {
    let special = ty.special_product()?;
    let text = special.text(elements.first()?)?;
    Some(match special.facts().shown_as {
        ShownAs::Bytes => of_hex.to_owned() + &text,
        _ => text,
    })
}

/// Writes an array whose elements may be NULL.
pub fn write_list(
    ty: &AlgebraicType,
    elements: &[Option<AlgebraicValue>],
    format: Format,
    out: &mut Vec<u8>,
) {
    let elements = elements.iter().map(Option::as_ref);
    match (format, ty) {
        (Format::Binary, AlgebraicType::Array(element)) if oid_of(ty) != oid::ANYARRAY => {
            write_binary_array(element, elements, out);
        }
        _ => {
            let mut text = String::new();
            write_array(ty, elements, &mut text);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// An array literal of PostgreSQL: `{e,"e",NULL}`.
fn write_array<'v>(
    ty: &AlgebraicType,
    elements: impl Iterator<Item = Option<&'v AlgebraicValue>>,
    out: &mut String,
) {
    let element_type = match ty {
        AlgebraicType::Array(element) => element,
        other => other,
    };
    out.push('{');
    let mut text = String::new();
    for (nth, element) in elements.enumerate() {
        if nth > 0 {
            out.push(',');
        }
        let Some(element) = element else {
            out.push_str("NULL");
            continue;
        };
        // An array in an array is a dimension of it.
        if matches!(element, AlgebraicValue::Array(_)) {
            write_text(element_type, element, out);
            continue;
        }
        text.clear();
        write_text(element_type, element, &mut text);
        push_element(&text, out);
    }
    out.push('}');
}

/// Adds the text of an element, in quotes if it would be read as something else without.
pub fn push_element(text: &str, out: &mut String) {
    let is_special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_whitespace();
    if !text.is_empty() && !text.contains(is_special) && !text.eq_ignore_ascii_case("null") {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// Products `{"field": value}` and sums `{"variant": value}`.
fn write_json(ty: &AlgebraicType, value: &AlgebraicValue, out: &mut String) {
    use AlgebraicValue as V;
    match value {
        V::Bool(value) => put(out, value),
        V::String(text) => write_json_string(text, out),
        V::Bytes(bytes) => {
            out.push_str("\"0x");
            out.push_str(&hex_encode(bytes));
            out.push('"');
        }
        V::F32(v) if !v.is_finite() => put(out, format_args!("\"{v}\"")),
        V::F64(v) if !v.is_finite() => put(out, format_args!("\"{v}\"")),
        V::Array(elements) => {
            let element_type = match ty {
                AlgebraicType::Array(element) => element,
                other => other,
            };
            out.push('[');
            for (nth, element) in elements.iter().enumerate() {
                if nth > 0 {
                    out.push_str(", ");
                }
                write_json(element_type, element, out);
            }
            out.push(']');
        }
        V::Sum { tag, value } => {
            let variants = ty.as_sum().map(|sum| &*sum.variants).unwrap_or_default();
            let variant = variants.get(usize::from(*tag));
            out.push('{');
            write_key(variant.and_then(|v| v.name()), usize::from(*tag), out);
            let payload = variant.map_or(&AlgebraicType::Bool, |v| &v.algebraic_type);
            match payload.special_product() {
                // Here the special product keeps its field.
                Some(kind) => {
                    out.push('{');
                    write_key(Some(kind.facts().field), 0, out);
                    write_json(payload, value, out);
                    out.push('}');
                }
                None => write_json(payload, value, out),
            }
            out.push('}');
        }
        V::Product(elements) => match special(ty, elements, "0x") {
            Some(text) => put(out, format_args!("\"{text}\"")),
            None => write_fields(ty.as_product(), elements, out),
        },
        number => write_number(number, out),
    }
}

fn write_fields(product: Option<&ProductType>, elements: &[AlgebraicValue], out: &mut String) {
    out.push('{');
    for (nth, element) in elements.iter().enumerate() {
        if nth > 0 {
            out.push_str(", ");
        }
        let declared = product.and_then(|product| product.elements.get(nth));
        write_key(declared.and_then(|e| e.name()), nth, out);
        let ty = declared.map_or(&AlgebraicType::Bool, |e| &e.algebraic_type);
        write_json(ty, element, out);
    }
    out.push('}');
}

fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => put(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_key(name: Option<&str>, position: usize, out: &mut String) {
    match name {
        Some(name) => write_json_string(name, out),
        None => put(out, format_args!("\"col_{position}\"")),
    }
    out.push_str(": ");
}

fn write_binary(ty: &AlgebraicType, value: &AlgebraicValue, out: &mut Vec<u8>) {
    use AlgebraicValue as V;
    match value {
        V::Bool(v) => out.push(u8::from(*v)),
        V::F32(v) => out.extend(v.to_be_bytes()),
        V::F64(v) => out.extend(v.to_be_bytes()),
        V::String(text) => out.extend_from_slice(text.as_bytes()),
        V::Bytes(bytes) => out.extend_from_slice(bytes),
        V::Array(elements) => match (oid_of(ty), ty) {
            (array, AlgebraicType::Array(element)) if array != oid::ANYARRAY => {
                write_binary_array(element, elements.iter().map(Some), out);
            }
            _ => write(ty, value, Format::Text, out),
        },
        V::Product(elements) => match ty.special_product() {
            Some(special) => write_binary_special(special.facts().shown_as, elements, out),
            None => write(ty, value, Format::Text, out),
        },
        V::Sum { .. } => write(ty, value, Format::Text, out),
        integer => write_binary_integer(integer, out),
    }
}

fn write_binary_integer(value: &AlgebraicValue, out: &mut Vec<u8>) {
    match (value.integer_type().map(integer_oid), value.to_i128()) {
        (Some(oid::INT2), Some(integer)) => out.extend((integer as i16).to_be_bytes()),
        (Some(oid::INT4), Some(integer)) => out.extend((integer as i32).to_be_bytes()),
        (Some(oid::INT8), Some(integer)) => out.extend((integer as i64).to_be_bytes()),
        _ => {
            let mut digits = String::new();
            write_number(value, &mut digits);
            write_numeric(&digits, out);
        }
    }
}

fn write_binary_special(shown_as: ShownAs, elements: &[AlgebraicValue], out: &mut Vec<u8>) {
    // Numbers are in BSATN with the lowest byte first.
    let reversed = elements.iter().flat_map(|number| {
        let mut bytes = number.to_vec();
        bytes.reverse();
        bytes
    });
    match shown_as {
        ShownAs::Bytes | ShownAs::Uuid => out.extend(reversed),
        ShownAs::Timestamp => {
            if let [AlgebraicValue::I64(us)] = elements {
                out.extend(us.saturating_sub(EPOCH_2000_US).to_be_bytes());
            }
        }
        ShownAs::Interval => {
            out.extend(reversed);
            // No days and no months.
            out.extend([0; 8]);
        }
    }
}

/// One dimension, elements with their lengths.
fn write_binary_array<'v>(
    element: &AlgebraicType,
    elements: impl ExactSizeIterator<Item = Option<&'v AlgebraicValue>> + Clone,
    out: &mut Vec<u8>,
) {
    let count = elements.len();
    let has_null = elements.clone().any(|value| value.is_none());
    out.extend(i32::from(count > 0).to_be_bytes());
    out.extend(i32::from(has_null).to_be_bytes());
    out.extend(oid_of(element).to_be_bytes());
    if count == 0 {
        return;
    }
    out.extend((count as i32).to_be_bytes());
    // The first subscript.
    out.extend(1_i32.to_be_bytes());
    for value in elements {
        match value {
            Some(value) => with_length(out, |out| write_binary(element, value, out)),
            None => out.extend((-1_i32).to_be_bytes()),
        }
    }
}

/// What `write` writes, behind its length.
pub fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    write(out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// An integer as PostgreSQL's numeric: digits to the base of 10,000.
fn write_numeric(decimal: &str, out: &mut Vec<u8>) {
    let (sign, decimal) = match decimal.strip_prefix('-') {
        Some(decimal) => (0x4000_u16, decimal),
        None => (0, decimal),
    };
    let mut digits: Vec<i16> = Vec::new();
    let mut end = decimal.len();
    while end > 0 {
        let start = end.saturating_sub(4);
        digits.push(decimal[start..end].parse().expect("decimal digits"));
        end = start;
    }
    if digits.iter().all(|digit| *digit == 0) {
        digits.clear();
    }
    let weight = digits.len().saturating_sub(1) as i16;
    digits.reverse();
    out.extend((digits.len() as i16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    // No digits behind the point.
    out.extend(0_i16.to_be_bytes());
    for digit in digits {
        out.extend(digit.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::{Identity, IntegerType, Uuid};
    use lightcone_vectors::file;

    fn type_of(name: &str) -> AlgebraicType {
        use AlgebraicType as T;
        if let Some(integer) = IntegerType::ALL.iter().find(|ty| ty.name() == name) {
            return T::Integer(*integer);
        }
        match name {
            "String" => T::String,
            "Bool" => T::Bool,
            "F32" => T::F32,
            "F64" => T::F64,
            "Bytes" => T::bytes(),
            "Identity" => T::identity(),
            "ConnectionId" => T::connection_id(),
            "Timestamp" => T::timestamp(),
            "TimeDuration" => T::time_duration(),
            "Uuid" => T::uuid(),
            "ScheduleAt" => T::schedule_at(),
            "Color" => T::sum([("red", T::unit()), ("green", T::unit())]),
            "st_var.value" => T::sum([("Bool", T::Bool), ("U64", T::U64)]),
            name => match name
                .split_once('<')
                .map(|(of, rest)| (of, rest.trim_end_matches('>')))
            {
                Some(("Option", inner)) => T::option(type_of(inner)),
                Some(("Array", inner)) => T::array(type_of(inner)),
                _ => panic!("no type {name}"),
            },
        }
    }

    fn value_of(ty: &str, text: &str) -> AlgebraicValue {
        use AlgebraicValue as V;
        let us = |text: &str| V::Product(vec![V::I64(text.parse().expect("a number"))]);
        match (ty, text) {
            ("String", text) => V::String(text.into()),
            ("Bool", text) => V::Bool(text == "true"),
            ("F32", "NaN") => V::F32(f32::NAN),
            ("F64", "infinity") => V::F64(f64::INFINITY),
            ("F64", "-infinity") => V::F64(f64::NEG_INFINITY),
            ("F64", text) => V::F64(text.parse().expect("a number")),
            ("Bytes", "ab cd") => V::Bytes(vec![0xab, 0xcd]),
            ("Identity", text) => Identity::parse_text(text).expect("an identity").into(),
            ("ConnectionId", "0xabc") => V::Product(vec![V::U128(0xabc)]),
            ("Timestamp", text) => us(text.trim_end_matches(" µs")),
            ("TimeDuration", "0") => us("0"),
            ("TimeDuration", "1 s") => us("1000000"),
            ("TimeDuration", "-1 s") => us("-1000000"),
            ("Uuid", text) => V::Product(vec![V::U128(Uuid::parse_text(text).expect("a UUID").0)]),
            ("Color", _) => V::Sum {
                tag: 0,
                value: Box::new(V::Product(Vec::new())),
            },
            ("Option<I32>", "some 1") => V::some(V::I32(1)),
            ("Option<I32>", "none") => V::Sum {
                tag: 1,
                value: Box::new(V::Product(Vec::new())),
            },
            ("ScheduleAt", _) => V::Sum {
                tag: 0,
                value: Box::new(us("1000000")),
            },
            ("st_var.value", _) => V::Sum {
                tag: 1,
                value: Box::new(V::U64(9)),
            },
            (ty, number) => {
                let mut bsatn = Vec::new();
                let number: i64 = number.parse().expect("a number");
                bsatn.extend(number.to_le_bytes());
                bsatn.resize(32, if number < 0 { 0xff } else { 0 });
                decode_value(
                    &Typespace::default(),
                    &type_of(ty),
                    &mut Reader::new(&bsatn),
                )
                .expect("a number")
            }
        }
    }

    #[test]
    fn types_and_texts_of_the_chapter() {
        assert!(file("08-replies.json")["postgres"]["values"].is_array());
        let values = file("08-replies.json")["postgres"]["values"].take();
        for entry in values.as_array().expect("entries") {
            let name = entry["type"].as_str().expect("a type");
            let ty = type_of(name);
            assert_eq!(u64::from(oid_of(&ty)), entry["oid"], "{entry}");
            let Some(value) = entry["value"].as_str() else {
                continue;
            };
            let mut out = Vec::new();
            write(&ty, &value_of(name, value), Format::Text, &mut out);
            assert_eq!(
                String::from_utf8_lossy(&out),
                entry["text"].as_str().expect("a text")
            );
        }
    }

    fn text(ty: &AlgebraicType, value: &AlgebraicValue) -> String {
        let mut out = String::new();
        write_text(ty, value, &mut out);
        out
    }

    #[test]
    fn arrays_and_nested_values_are_one_field() {
        use {AlgebraicType as T, AlgebraicValue as V};
        let strings =
            |texts: &[&str]| V::Array(texts.iter().map(|&t| V::String(t.into())).collect());
        let ty = T::array(T::String);
        assert_eq!(text(&ty, &strings(&[])), "{}");
        assert_eq!(
            text(
                &ty,
                &strings(&["a", "", "b c", "q\"\\", "NULL", "x,y", "{}"])
            ),
            r#"{a,"","b c","q\"\\","NULL","x,y","{}"}"#
        );
        let nested = T::array(T::array(T::I32));
        let value = V::Array(vec![V::Array(vec![V::I32(1), V::I32(2)])]);
        assert_eq!(text(&nested, &value), "{{1,2}}");
        let product = T::product([("id", T::identity()), ("s", T::option(T::String))]);
        let value = V::Product(vec![
            Identity::parse_text(&format!("{:064x}", 0xab))
                .expect("an identity")
                .into(),
            V::some(V::String("a\"b\\c\n".into())),
        ]);
        assert_eq!(
            text(&product, &value),
            format!(
                r#"{{"id": "0x{}ab", "s": {{"some": "a\"b\\c\n"}}}}"#,
                "0".repeat(62)
            )
        );
    }

    #[test]
    fn numbers_of_any_width_in_binary() {
        let numeric = |text: &str| {
            let mut out = Vec::new();
            write_numeric(text, &mut out);
            out
        };
        assert_eq!(numeric("0"), [0; 8]);
        assert_eq!(numeric("10000"), [0, 2, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(
            numeric("-12345"),
            [0, 2, 0, 1, 0x40, 0, 0, 0, 0, 1, 0x09, 0x29]
        );
    }
}
