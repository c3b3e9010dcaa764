//! Values as people read them in table cells (08 §18).

use std::fmt::Write;

use crate::algebraic_type::{AlgebraicType, ProductType};
use crate::algebraic_value::AlgebraicValue;
use crate::hex;
use crate::typespace::Typespace;

/// The text of a cell: strings in double quotes, bytes and identities as `0x…`, RFC 3339 times,
/// products `(a = 1, b = "x")`, sums `(variant = value)`, unit `()`.
///
/// A value that does not match its type is still rendered, by its own form.
pub fn format_value(typespace: &Typespace, ty: &AlgebraicType, value: &AlgebraicValue) -> String {
    let mut out = String::new();
    write_value(typespace, ty, value, &mut out);
    out
}

fn write_value(
    typespace: &Typespace,
    ty: &AlgebraicType,
    value: &AlgebraicValue,
    out: &mut String,
) {
    // Stands in for a type that cannot be followed: every value has a form of its own.
    const UNKNOWN: AlgebraicType = AlgebraicType::Bool;
    let ty = typespace.follow(ty).unwrap_or(&UNKNOWN);
    match value {
        AlgebraicValue::Sum { tag, value } => {
            let variant = ty.as_sum().and_then(|s| s.variants.get(usize::from(*tag)));
            out.push('(');
            match variant.and_then(|v| v.name()) {
                Some(name) => out.push_str(name),
                None => write_unnamed(usize::from(*tag), out),
            }
            out.push_str(" = ");
            let payload_type = variant.map_or(&UNKNOWN, |v| &v.algebraic_type);
            write_payload(typespace, payload_type, value, out);
            out.push(')');
        }
        AlgebraicValue::Product(elements) => match ty.as_product() {
            Some(product) => write_product(typespace, product, elements, out),
            None => write_product(typespace, &ProductType::unit(), elements, out),
        },
        AlgebraicValue::Array(elements) => {
            let element_type = match ty {
                AlgebraicType::Array(element) => element,
                _ => &UNKNOWN,
            };
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(typespace, element_type, element, out);
            }
            out.push(']');
        }
        leaf => write_leaf(leaf, out),
    }
}

/// The payload of a sum. Special products keep their field name here, as in
/// `(Time = (__timestamp_micros_since_unix_epoch__ = 1970-01-01T00:00:00+00:00))`.
fn write_payload(
    typespace: &Typespace,
    ty: &AlgebraicType,
    value: &AlgebraicValue,
    out: &mut String,
) {
    let special = typespace
        .follow(ty)
        .ok()
        .and_then(|t| t.as_product())
        .and_then(|p| p.special());
    match special {
        Some(special) => {
            out.push('(');
            out.push_str(special.facts().field);
            out.push_str(" = ");
            write_value(typespace, ty, value, out);
            out.push(')');
        }
        None => write_value(typespace, ty, value, out),
    }
}

fn write_product(
    typespace: &Typespace,
    product: &ProductType,
    elements: &[AlgebraicValue],
    out: &mut String,
) {
    let special = product.special().zip(elements.first());
    if let Some(cell) = special.and_then(|(special, element)| special.cell(element)) {
        return out.push_str(&cell);
    }
    out.push('(');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let declared = product.elements.get(index);
        match declared.and_then(|e| e.name()) {
            Some(name) => out.push_str(name),
            None => write_unnamed(index, out),
        }
        out.push_str(" = ");
        let ty = declared.map_or(&AlgebraicType::Bool, |e| &e.algebraic_type);
        write_value(typespace, ty, element, out);
    }
    out.push(')');
}

fn write_leaf(value: &AlgebraicValue, out: &mut String) {
    match value {
        AlgebraicValue::Bytes(bytes) => {
            out.push_str("0x");
            hex::encode_into(bytes, out);
        }
        AlgebraicValue::String(text) => write_quoted(text, out),
        AlgebraicValue::Bool(v) => write_display(v, out),
        number => number
            .as_number()
            .into_iter()
            .for_each(|v| write_display(v, out)),
    }
}

fn write_unnamed(index: usize, out: &mut String) {
    out.push_str("col_");
    write_display(&index, out);
}

/// Quotes and backslashes stay as they are, as users of the reference CLI expect; control characters
/// would break the table.
fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

fn write_display(value: &dyn std::fmt::Display, out: &mut String) {
    write!(out, "{value}").expect("writing to a String cannot fail");
}
