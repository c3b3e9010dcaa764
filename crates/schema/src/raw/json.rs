//! The JSON form of the raw structures (02 §15) and its acceptance rules (01 §1.7.5).

use std::fmt::Write;
use std::str::FromStr;

use lightcone_types::json::{parse_to_depth, write_string, NodeKind};
pub use lightcone_types::json::{JsonError, Node};
use lightcone_types::{hex_decode, hex_encode, ColId, TypeRef};

/// Arrays and objects may nest this deep; a definition that people write stays far below.
const DEPTH_MAX: usize = 512;

/// Reads one JSON value; only whitespace may follow it.
pub fn parse(text: &str) -> Result<Node<'_>, JsonError> {
    parse_to_depth(text, DEPTH_MAX)
}

/// Writing the JSON form.
pub trait ToJson {
    fn to_json(&self, out: &mut String);

    /// A list of such values. `u8` differs: bytes are a string of hex digits.
    fn list_to_json(list: &[Self], out: &mut String)
    where
        Self: Sized,
    {
        out.push('[');
        for (i, element) in list.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            element.to_json(out);
        }
        out.push(']');
    }
}

/// Reading the JSON form.
pub trait FromJson: Sized {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError>;

    /// A list of such values; `u8` differs, as in [`ToJson::list_to_json`].
    fn list_from_json(value: &Node<'_>) -> Result<Vec<Self>, JsonError> {
        let NodeKind::Array(elements) = &value.kind else {
            return Err(expected("an array", value));
        };
        let read = |(i, element)| Self::from_json(element).map_err(|e| e.in_element(i));
        elements.iter().enumerate().map(read).collect()
    }
}

/// The compact JSON text of a value.
pub fn to_string(value: &dyn ToJson) -> String {
    let mut out = String::new();
    value.to_json(&mut out);
    out
}

fn expected(what: &str, found: &Node<'_>) -> JsonError {
    JsonError::at(
        found,
        format!("expected {what}, found {}", found.describe()),
    )
}

// ---- products and sums -------------------------------------------------------------------------

pub(super) fn write_object(out: &mut String, fields: &[(&str, &dyn ToJson)]) {
    out.push('{');
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        value.to_json(out);
    }
    out.push('}');
}

pub(super) fn write_variant(out: &mut String, name: &str, payload: &dyn ToJson) {
    write_object(out, &[(name, payload)]);
}

/// The values of a product's fields in field order, from an object in any order or an array.
pub(super) fn product_fields<'a>(
    value: &'a Node<'a>,
    names: &[&str],
) -> Result<Vec<&'a Node<'a>>, JsonError> {
    match &value.kind {
        NodeKind::Array(elements) if elements.len() == names.len() => Ok(elements.iter().collect()),
        NodeKind::Array(elements) => {
            let (given, wanted) = (elements.len(), names.len());
            let text = format!(
                "invalid length {given}, expected product type <product> with {wanted} elements"
            );
            Err(JsonError::at(value, text))
        }
        NodeKind::Object(entries) => {
            let mut found: Vec<Option<&Node<'a>>> = vec![None; names.len()];
            for (name, field) in entries {
                let Some(position) = names.iter().position(|n| n == name) else {
                    let text = format!("unknown field `{name}`, expected {}", one_of(names));
                    return Err(JsonError::at(field, text));
                };
                if found[position].replace(field).is_some() {
                    return Err(JsonError::at(field, format!("duplicate field `{name}`")));
                }
            }
            let found = found.into_iter().zip(names);
            found
                .map(|(field, name)| field.ok_or_else(|| missing(value, name)))
                .collect()
        }
        _ => Err(expected("an object", value)),
    }
}

fn missing(value: &Node<'_>, name: &str) -> JsonError {
    JsonError::at(value, format!("missing field `{name}`"))
}

pub(super) fn next_field<'a, T: FromJson>(
    value: &Node<'_>,
    fields: &mut impl Iterator<Item = &'a Node<'a>>,
    name: &str,
) -> Result<T, JsonError> {
    let field = fields.next().ok_or_else(|| missing(value, name))?;
    T::from_json(field).map_err(|e| e.in_field(name))
}

/// The variant that an object `{name: payload}` or an array `[selector, payload]` picks. A selector
/// that reads as a tag number is one.
pub(super) fn sum_variant<'a>(
    value: &'a Node<'a>,
    sum_name: &str,
    variants: &[(u8, &str)],
) -> Result<(u8, &'a Node<'a>), JsonError> {
    let count = |text| Err(JsonError::at(value, text));
    let (selector, payload) = match &value.kind {
        NodeKind::Object(entries) => match &entries[..] {
            [(name, payload)] => (name.as_ref(), payload),
            _ => return count("expected map representing sum type to have exactly one field"),
        },
        NodeKind::Array(elements) => match &elements[..] {
            [selector, payload] => match &selector.kind {
                NodeKind::String(name) => (name.as_ref(), payload),
                NodeKind::Number(tag) => (*tag, payload),
                _ => return Err(expected("a variant's name or tag", selector)),
            },
            _ => return count("expected seq representing sum type to have exactly two fields"),
        },
        _ => return Err(expected(&format!("a variant of {sum_name}"), value)),
    };
    let by_tag = selector.parse::<u8>().ok();
    let found = variants.iter().find(|(tag, name)| match by_tag {
        Some(wanted) => *tag == wanted,
        None => *name == selector,
    });
    match found {
        Some((tag, _)) => Ok((*tag, payload)),
        None => Err(unknown_variant(value, selector, variants)),
    }
}

pub(super) fn unknown_variant(
    value: &Node<'_>,
    selector: &str,
    variants: &[(u8, &str)],
) -> JsonError {
    let names: Vec<&str> = variants.iter().map(|(_, name)| *name).collect();
    let text = format!("unknown variant `{selector}`, expected {}", one_of(&names));
    JsonError::at(value, text)
}

pub(super) fn variant_payload<T: FromJson>(value: &Node<'_>, name: &str) -> Result<T, JsonError> {
    T::from_json(value).map_err(|e| e.in_field(name))
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

// ---- leaves ------------------------------------------------------------------------------------

impl ToJson for () {
    fn to_json(&self, out: &mut String) {
        out.push_str("[]");
    }
}

impl FromJson for () {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        product_fields(value, &[]).map(drop)
    }
}

impl ToJson for bool {
    fn to_json(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

impl FromJson for bool {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        value.as_bool().ok_or_else(|| expected("a boolean", value))
    }
}

fn number<N: FromStr>(value: &Node<'_>, what: &str) -> Result<N, JsonError> {
    let NodeKind::Number(text) = value.kind else {
        return Err(expected("a number", value));
    };
    let parsed = text.parse();
    parsed.map_err(|_| JsonError::at(value, format!("number {text} is not {what}")))
}

macro_rules! integer_json {
    ($($int:ty),*) => { $(
        impl ToJson for $int {
            fn to_json(&self, out: &mut String) {
                let _ = write!(out, "{self}");
            }
        }
        impl FromJson for $int {
            fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
                number(value, concat!("a ", stringify!($int)))
            }
        }
    )* };
}
integer_json!(u16, u32, i128);

// A byte on its own does not occur; lists of bytes are hex strings.
impl ToJson for u8 {
    fn to_json(&self, out: &mut String) {
        let _ = write!(out, "{self}");
    }

    fn list_to_json(list: &[u8], out: &mut String) {
        write_string(&hex_encode(list), out);
    }
}

impl FromJson for u8 {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        number(value, "a byte")
    }

    fn list_from_json(value: &Node<'_>) -> Result<Vec<u8>, JsonError> {
        let bytes = match &value.kind {
            NodeKind::Array(elements) => return elements.iter().map(u8::from_json).collect(),
            NodeKind::String(text) => hex_decode(text),
            _ => None,
        };
        bytes.ok_or_else(|| expected("a byte array or hex string", value))
    }
}

impl ToJson for str {
    fn to_json(&self, out: &mut String) {
        write_string(self, out);
    }
}

impl ToJson for String {
    fn to_json(&self, out: &mut String) {
        write_string(self, out);
    }
}

impl FromJson for String {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        let text = value.as_str().ok_or_else(|| expected("a string", value))?;
        Ok(text.to_owned())
    }
}

impl ToJson for Box<str> {
    fn to_json(&self, out: &mut String) {
        write_string(self, out);
    }
}

impl FromJson for Box<str> {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        String::from_json(value).map(Into::into)
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self, out: &mut String) {
        T::list_to_json(self, out);
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        T::list_from_json(value)
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self, out: &mut String) {
        match self {
            Some(value) => write_variant(out, "some", value),
            None => write_variant(out, "none", &()),
        }
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        if value.is_null() {
            return Ok(None);
        }
        match sum_variant(value, "an option", &[(0, "some"), (1, "none")])? {
            (0, payload) => variant_payload(payload, "some").map(Some),
            (_, payload) => {
                let () = variant_payload(payload, "none")?;
                Ok(None)
            }
        }
    }
}

impl ToJson for ColId {
    fn to_json(&self, out: &mut String) {
        self.0.to_json(out);
    }
}

impl FromJson for ColId {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        FromJson::from_json(value).map(ColId)
    }
}

impl ToJson for TypeRef {
    fn to_json(&self, out: &mut String) {
        self.0.to_json(out);
    }
}

impl FromJson for TypeRef {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        FromJson::from_json(value).map(TypeRef)
    }
}

impl<T: ToJson> ToJson for Box<T> {
    fn to_json(&self, out: &mut String) {
        (**self).to_json(out);
    }
}

impl<T: FromJson> FromJson for Box<T> {
    fn from_json(value: &Node<'_>) -> Result<Self, JsonError> {
        T::from_json(value).map(Box::new)
    }
}
