//! Values to JSON: the named and the untyped form (01 §1.7.2, §1.7.3). Output is compact.

use super::parse::{Node, NodeKind};
use crate::algebraic_type::{AlgebraicType, ProductType, SumType};
use crate::algebraic_value::{with_integer_value, AlgebraicValue};
use crate::bsatn::{decode_value, read_variant, Decode, DecodeError, Encode, Reader};
use crate::hex;
use crate::integer::{with_integer, IntegerType};
use crate::typespace::Typespace;

use std::fmt::{Display, Write};

/// Appends the untyped form: products are arrays, sums are `[tag, payload]`.
pub fn value_to_json_untyped(value: &AlgebraicValue, out: &mut String) {
    match value {
        AlgebraicValue::Sum { tag, value } => {
            write_sum_head(*tag, None, out);
            value_to_json_untyped(value, out);
            out.push(']');
        }
        AlgebraicValue::Product(elements) | AlgebraicValue::Array(elements) => {
            write_array(elements, out, value_to_json_untyped);
        }
        leaf => write_leaf(leaf, out),
    }
}

/// Appends the named form: products are objects keyed by element name, sums are
/// `{"variant": payload}`. Unnamed parts, and parts that do not match `ty`, take the untyped form.
pub fn value_to_json_named(
    typespace: &Typespace,
    ty: &AlgebraicType,
    value: &AlgebraicValue,
    out: &mut String,
) {
    let named = |ty: &AlgebraicType, value: &AlgebraicValue, out: &mut String| {
        value_to_json_named(typespace, ty, value, out)
    };
    match (typespace.follow(ty), value) {
        (
            Ok(AlgebraicType::Sum(sum)),
            AlgebraicValue::Sum {
                tag,
                value: payload,
            },
        ) if usize::from(*tag) < sum.variants.len() => {
            let variant = &sum.variants[usize::from(*tag)];
            let end = write_sum_head(*tag, variant.name(), out);
            named(&variant.algebraic_type, payload, out);
            out.push(end);
        }
        (Ok(AlgebraicType::Product(product)), AlgebraicValue::Product(elements))
            if product.len() == elements.len() =>
        {
            let has_names = has_names(product);
            out.push(if has_names { '{' } else { '[' });
            for (index, (e, value)) in product.elements.iter().zip(elements).enumerate() {
                write_element_head(index, e.name().filter(|_| has_names), out);
                named(&e.algebraic_type, value, out);
            }
            out.push(if has_names { '}' } else { ']' });
        }
        (Ok(AlgebraicType::Array(element)), AlgebraicValue::Array(elements)) => {
            write_array(elements, out, |value, out| named(element, value, out));
        }
        _ => value_to_json_untyped(value, out),
    }
}

/// Reads a value of type `ty` and appends its untyped form, without building the value.
pub fn bsatn_to_json_untyped(
    typespace: &Typespace,
    ty: &AlgebraicType,
    r: &mut Reader<'_>,
    out: &mut String,
) -> Result<(), DecodeError> {
    Transcoder {
        typespace,
        named: false,
        out,
    }
    .value(ty, r)
}

/// Reads a value of type `ty` and appends its named form, without building the value.
pub fn bsatn_to_json_named(
    typespace: &Typespace,
    ty: &AlgebraicType,
    r: &mut Reader<'_>,
    out: &mut String,
) -> Result<(), DecodeError> {
    Transcoder {
        typespace,
        named: true,
        out,
    }
    .value(ty, r)
}

struct Transcoder<'a> {
    typespace: &'a Typespace,
    named: bool,
    out: &'a mut String,
}

impl Transcoder<'_> {
    fn value(&mut self, ty: &AlgebraicType, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let typespace = self.typespace;
        let follow = |ty| {
            typespace
                .follow(ty)
                .map_err(|e| DecodeError::Other(e.to_string().into_boxed_str()))
        };
        match follow(ty)? {
            AlgebraicType::Sum(sum) => self.sum(sum, r),
            AlgebraicType::Product(product) => self.product(product, r),
            array @ AlgebraicType::Array(element) => match follow(element)? {
                AlgebraicType::Integer(IntegerType::U8) => self.leaf(array, r),
                element => self.array(element, r),
            },
            leaf => self.leaf(leaf, r),
        }
    }

    /// By itself, so that [`value`](Self::value), which calls itself, takes little of the stack.
    #[inline(never)]
    fn leaf(&mut self, ty: &AlgebraicType, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        match ty {
            AlgebraicType::Array(_) => write_hex(r.read_bytes()?, self.out),
            AlgebraicType::String => write_string(r.read_str()?, self.out),
            // The frequent ones, without a value in between.
            AlgebraicType::Integer(integer) => {
                with_integer!(*integer, N => write_integer(N::decode(r)?, self.out));
            }
            leaf => write_leaf(&decode_value(self.typespace, leaf, r)?, self.out),
        }
        Ok(())
    }

    fn sum(&mut self, sum: &SumType, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let (tag, variant) = read_variant(sum, r)?;
        let end = write_sum_head(tag, variant.name().filter(|_| self.named), self.out);
        r.nested(|r| self.value(&variant.algebraic_type, r))?;
        self.out.push(end);
        Ok(())
    }

    fn product(&mut self, product: &ProductType, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if product.is_empty() {
            r.count_empty_value()?;
        }
        let has_names = self.named && has_names(product);
        self.out.push(if has_names { '{' } else { '[' });
        r.nested(|r| {
            for (index, e) in product.elements.iter().enumerate() {
                write_element_head(index, e.name().filter(|_| has_names), self.out);
                self.value(&e.algebraic_type, r)?;
            }
            Ok(())
        })?;
        self.out.push(if has_names { '}' } else { ']' });
        Ok(())
    }

    fn array(&mut self, element: &AlgebraicType, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let count = r.read_u32()?;
        self.out.push('[');
        r.nested(|r| {
            for index in 0..count {
                if index > 0 {
                    self.out.push(',');
                }
                self.value(element, r)?;
            }
            Ok(())
        })?;
        self.out.push(']');
        Ok(())
    }
}

/// Unit and tuples are arrays even in the named form.
fn has_names(product: &ProductType) -> bool {
    !product.is_empty() && product.elements.iter().all(|e| e.name.is_some())
}

fn write_element_head(index: usize, name: Option<&str>, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
    if let Some(name) = name {
        write_string(name, out);
        out.push(':');
    }
}

/// Returns the character that closes the sum.
fn write_sum_head(tag: u8, name: Option<&str>, out: &mut String) -> char {
    match name {
        Some(name) => {
            out.push('{');
            write_string(name, out);
            out.push(':');
            '}'
        }
        None => {
            write_display(format_args!("[{tag},"), out);
            ']'
        }
    }
}

fn write_array<T>(elements: &[T], out: &mut String, mut write: impl FnMut(&T, &mut String)) {
    out.push('[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(element, out);
    }
    out.push(']');
}

fn write_leaf(value: &AlgebraicValue, out: &mut String) {
    use AlgebraicValue::*;
    match value {
        Sum { .. } | Product(_) | Array(_) => value_to_json_untyped(value, out),
        Bytes(bytes) => write_hex(bytes, out),
        String(text) => write_string(text, out),
        Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        F32(v) if !v.is_finite() => out.push_str("null"),
        F32(v) => write_display(format_args!("{v:?}"), out),
        F64(v) => write_f64(*v, out),
        integer => with_integer_value!(integer, v => write_integer(*v, out), else {}),
    }
}

/// Appends parsed JSON as it was, numbers digit for digit, without white space.
pub fn node_to_json(node: &Node<'_>, out: &mut String) {
    match &node.kind {
        NodeKind::Null => out.push_str("null"),
        NodeKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        NodeKind::Number(text) => out.push_str(text),
        NodeKind::String(text) => write_string(text, out),
        NodeKind::Array(elements) => write_array(elements, out, node_to_json),
        NodeKind::Object(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                node_to_json(value, out);
            }
            out.push('}');
        }
    }
}

/// Appends the shortest number that reads back as `value`, with a fraction or exponent; `null` if
/// it is not finite.
pub fn write_f64(value: f64, out: &mut String) {
    if value.is_finite() {
        write_display(format_args!("{value:?}"), out);
    } else {
        out.push_str("null");
    }
}

fn write_hex(bytes: &[u8], out: &mut String) {
    out.push('"');
    hex::encode_into(bytes, out);
    out.push('"');
}

/// Digits, or a string of hex if the type has more than 128 bits.
#[inline]
fn write_integer<N>(value: N, out: &mut String)
where
    N: Copy + Default + PartialOrd + Display + Encode + TryInto<i64> + TryInto<u128>,
{
    if size_of::<N>() > size_of::<u128>() {
        out.push('"');
        hex::write_number(value.to_vec(), value < N::default(), out);
        out.push('"');
        return;
    }
    // Much faster than the formatting of the standard library.
    let mut digits = itoa::Buffer::new();
    if let Ok(small) = TryInto::<i64>::try_into(value) {
        out.push_str(digits.format(small));
    } else if let Ok(large) = TryInto::<u128>::try_into(value) {
        out.push_str(digits.format(large));
    } else {
        write_display(format_args!("{value}"), out);
    }
}

fn write_display(arguments: std::fmt::Arguments<'_>, out: &mut String) {
    out.write_fmt(arguments)
        .expect("writing to a String cannot fail");
}

/// Appends a JSON string; only `"`, `\` and control characters are escaped.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut start = 0;
    for (position, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[start..position]);
        start = position + 1;
        if short.is_empty() {
            write_display(format_args!("\\u{byte:04x}"), out);
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
}
