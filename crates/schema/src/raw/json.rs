//! The JSON form of the raw structures (02 §15) and its acceptance rules (01 §1.7.5).

use std::fmt::Write;

use lightcone_types::{ColId, TypeRef};

use super::json_text::write_string;
pub use super::json_text::{parse, Json, JsonError};

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
    fn from_json(value: &Json) -> Result<Self, JsonError>;

    /// A list of such values; `u8` differs, as in [`ToJson::list_to_json`].
    fn list_from_json(value: &Json) -> Result<Vec<Self>, JsonError> {
        let Json::Array(elements) = value else {
            return Err(expected("an array", value));
        };
        let read = |(i, element)| Self::from_json(element).map_err(|e| e.within(format!("[{i}]")));
        elements.iter().enumerate().map(read).collect()
    }
}

/// The compact JSON text of a value.
pub fn to_string(value: &dyn ToJson) -> String {
    let mut out = String::new();
    value.to_json(&mut out);
    out
}

fn expected(what: &str, found: &Json) -> JsonError {
    JsonError::new(format!("expected {what}, found {}", found.kind()))
}

// ---- products and sums -------------------------------------------------------------------------

pub(super) fn write_object(out: &mut String, fields: &[(&str, &dyn ToJson)]) {
    out.push('{');
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, name);
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
    value: &'a Json,
    names: &[&str],
) -> Result<Vec<&'a Json>, JsonError> {
    match value {
        Json::Array(elements) if elements.len() == names.len() => Ok(elements.iter().collect()),
        Json::Array(elements) => Err(JsonError::new(format!(
            "invalid length {}, expected product type <product> with {} elements",
            elements.len(),
            names.len()
        ))),
        Json::Object(entries) => {
            let mut found: Vec<Option<&Json>> = vec![None; names.len()];
            for (name, value) in entries {
                let Some(position) = names.iter().position(|n| n == name) else {
                    return Err(JsonError::new(format!(
                        "unknown field `{name}`, expected {}",
                        one_of(names)
                    )));
                };
                if found[position].replace(value).is_some() {
                    return Err(JsonError::new(format!("duplicate field `{name}`")));
                }
            }
            let required = |(value, name): (Option<&'a Json>, &&str)| {
                value.ok_or_else(|| JsonError::new(format!("missing field `{name}`")))
            };
            found.into_iter().zip(names).map(required).collect()
        }
        other => Err(expected("an object", other)),
    }
}

pub(super) fn next_field<'a, T: FromJson>(
    fields: &mut impl Iterator<Item = &'a Json>,
    name: &str,
) -> Result<T, JsonError> {
    let value = fields
        .next()
        .ok_or_else(|| JsonError::new(format!("missing field `{name}`")))?;
    T::from_json(value).map_err(|e| e.within(name))
}

/// The variant that an object `{name: payload}` or an array `[selector, payload]` picks. A selector
/// that reads as a tag number is one.
pub(super) fn sum_variant<'a>(
    value: &'a Json,
    sum_name: &str,
    variants: &[(u8, &str)],
) -> Result<(u8, &'a Json), JsonError> {
    let (selector, payload) = match value {
        Json::Object(entries) => match &entries[..] {
            [(name, payload)] => (name, payload),
            _ => {
                return Err(JsonError::new(
                    "expected map representing sum type to have exactly one field",
                ))
            }
        },
        Json::Array(elements) => match &elements[..] {
            [Json::String(selector) | Json::Number(selector), payload] => (selector, payload),
            _ => {
                return Err(JsonError::new(
                    "expected seq representing sum type to have exactly two fields",
                ))
            }
        },
        other => return Err(expected(&format!("a variant of {sum_name}"), other)),
    };
    let by_tag = selector.parse::<u8>().ok();
    let found = variants.iter().find(|(tag, name)| match by_tag {
        Some(wanted) => *tag == wanted,
        None => *name == selector.as_str(),
    });
    match found {
        Some((tag, _)) => Ok((*tag, payload)),
        None => Err(unknown_variant(selector, variants)),
    }
}

pub(super) fn unknown_variant(selector: &str, variants: &[(u8, &str)]) -> JsonError {
    let names: Vec<&str> = variants.iter().map(|(_, name)| *name).collect();
    JsonError::new(format!(
        "unknown variant `{selector}`, expected {}",
        one_of(&names)
    ))
}

pub(super) fn variant_payload<T: FromJson>(payload: &Json, name: &str) -> Result<T, JsonError> {
    T::from_json(payload).map_err(|e| e.within(name))
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
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        product_fields(value, &[]).map(drop)
    }
}

impl ToJson for bool {
    fn to_json(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

impl FromJson for bool {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        match value {
            Json::Bool(b) => Ok(*b),
            other => Err(expected("a boolean", other)),
        }
    }
}

macro_rules! integer_json {
    ($($int:ty),*) => { $(
        impl ToJson for $int {
            fn to_json(&self, out: &mut String) {
                let _ = write!(out, "{self}");
            }
        }
        impl FromJson for $int {
            fn from_json(value: &Json) -> Result<Self, JsonError> {
                match value {
                    Json::Number(text) => text.parse().map_err(|_| {
                        JsonError::new(format!("number {text} is not a {}", stringify!($int)))
                    }),
                    other => Err(expected("a number", other)),
                }
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
        out.push('"');
        for byte in list {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('"');
    }
}

impl FromJson for u8 {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        match value {
            Json::Number(text) => text
                .parse()
                .map_err(|_| JsonError::new(format!("number {text} is not a byte"))),
            other => Err(expected("a byte", other)),
        }
    }

    fn list_from_json(value: &Json) -> Result<Vec<u8>, JsonError> {
        match value {
            Json::Array(elements) => elements.iter().map(u8::from_json).collect(),
            Json::String(text) => hex_bytes(text).ok_or_else(|| {
                JsonError::new(format!(
                    "invalid value: string {text:?}, expected a byte array or hex string"
                ))
            }),
            other => Err(expected("a byte array or hex string", other)),
        }
    }
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

impl ToJson for str {
    fn to_json(&self, out: &mut String) {
        write_string(out, self);
    }
}

impl ToJson for String {
    fn to_json(&self, out: &mut String) {
        write_string(out, self);
    }
}

impl FromJson for String {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        match value {
            Json::String(text) => Ok(text.clone()),
            other => Err(expected("a string", other)),
        }
    }
}

impl ToJson for Box<str> {
    fn to_json(&self, out: &mut String) {
        write_string(out, self);
    }
}

impl FromJson for Box<str> {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        String::from_json(value).map(Into::into)
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self, out: &mut String) {
        T::list_to_json(self, out);
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
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
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        if *value == Json::Null {
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
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        FromJson::from_json(value).map(ColId)
    }
}

impl ToJson for TypeRef {
    fn to_json(&self, out: &mut String) {
        self.0.to_json(out);
    }
}

impl FromJson for TypeRef {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        FromJson::from_json(value).map(TypeRef)
    }
}

impl<T: ToJson> ToJson for Box<T> {
    fn to_json(&self, out: &mut String) {
        (**self).to_json(out);
    }
}

impl<T: FromJson> FromJson for Box<T> {
    fn from_json(value: &Json) -> Result<Self, JsonError> {
        T::from_json(value).map(Box::new)
    }
}
