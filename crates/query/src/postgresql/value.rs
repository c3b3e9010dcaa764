//! Values of a question: what they are, how they compare, and how they are written.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use lightcone_types::Encode as _;

use super::formats::push_element;
use super::literals::truth_of;
use super::stored::Stored;
use super::types::oid_of;
use crate::sort_key::push_sort_key;

/// A list that is read from a text has at most so many elements.
pub const ELEMENTS_MAX: usize = 1 << 17;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(List),
    /// One of a table of the module that is none of these.
    Stored(Arc<Stored>),
}

/// The values of a list. Lists inside of it may be shared, so what would look at all of them is known from the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    values: Arc<[Value]>,
    /// The work that copying the values is, in steps.
    weight: usize,
    /// How many lists are in each other, without this one.
    depth: usize,
    is_row: bool,
}

impl List {
    /// How many lists are in each other.
    pub fn depth(&self) -> usize {
        1 + self.depth
    }

    /// The same as a row: it is not known how NULLs in it compare, where those of arrays are equal, and come last.
    pub fn into_row(self) -> List {
        let is_row = true;
        List { is_row, ..self }
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.values
    }
}

impl From<Vec<Value>> for List {
    fn from(values: Vec<Value>) -> List {
        let depth = |value: &Value| match value {
            Value::List(list) => list.depth(),
            _ => 0,
        };
        List {
            weight: weight(&values),
            depth: values.iter().map(depth).max().unwrap_or(0),
            values: values.into(),
            is_row: false,
        }
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> List {
        values.into_iter().collect::<Vec<_>>().into()
    }
}

macro_rules! from {
    ($($from:ty: $made:expr;)*) => {$(
        impl From<$from> for Value {
            fn from(from: $from) -> Value {
                $made(from.into())
            }
        }
    )*};
}

from! {
    bool: Value::Bool;
    i64: Value::Int;
    &str: Value::Text;
    String: Value::Text;
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// None: it is NULL, or no truth.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Bool(is) => Some(*is),
            Value::Text(text) => truth_of(text),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Float(number) => Some(*number as i64),
            Value::Bool(is) => Some(i64::from(*is)),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Null | Value::List(_) | Value::Stored(_) => None,
        }
    }

    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Stored(stored) if stored.is_number() => stored.shown().parse().ok(),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Stored(_) => None,
        }
    }

    /// The elements of a list, also of one that is written as text.
    pub fn list(&self) -> Option<List> {
        match self {
            Value::List(list) => Some(list.clone()),
            Value::Text(text) => list_of(text),
            _ => None,
        }
    }

    /// As PostgreSQL writes it. NULL is empty.
    pub fn shown(&self) -> Arc<str> {
        match self {
            Value::Null => "".into(),
            Value::Bool(is) => if *is { "true" } else { "false" }.into(),
            Value::Int(number) => number.to_string().into(),
            Value::Float(number) => number.to_string().into(),
            Value::Text(text) => text.clone(),
            Value::List(list) => {
                let mut out = String::from("{");
                for (nth, value) in list.iter().enumerate() {
                    out.push_str(if nth > 0 { "," } else { "" });
                    match value {
                        Value::Null => out.push_str("NULL"),
                        value => push_element(&value.shown(), &mut out),
                    }
                }
                (out + "}").into()
            }
            Value::Stored(stored) => stored.shown().into(),
        }
    }

    /// The work that copying it is, in steps.
    pub fn weight(&self) -> usize {
        match self {
            Value::Text(text) => 1 + text.len() / 16,
            Value::List(list) => list.weight.saturating_add(1),
            Value::Stored(stored) => stored.weight,
            _ => 1,
        }
    }

    /// The work of comparing it with another, in steps.
    pub fn comparing(&self, other: &Value) -> usize {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => 1 + a.len().min(b.len()) / 64,
            // A text may have to be read as a number or as a list.
            (Value::Text(_) | Value::List(_) | Value::Stored(_), _)
            | (_, Value::Text(_) | Value::List(_) | Value::Stored(_)) => {
                self.weight().saturating_add(other.weight())
            }
            _ => 1,
        }
    }

    /// None: one of them is NULL, or they have no order.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        use Value::{Bool, Int, List, Null, Stored, Text};
        match (self, other) {
            (Null, _) | (_, Null) => None,
            (Text(a), Text(b)) => Some(a.cmp(b)),
            (Int(a), Int(b)) => Some(a.cmp(b)),
            (Bool(_), _) | (_, Bool(_)) => Some(self.truth()?.cmp(&other.truth()?)),
            (Stored(a), Text(b)) => a.compare_text(b),
            (Text(_), Stored(_)) => other.compare(self).map(Ordering::reverse),
            (Stored(a), Stored(b)) if a.ty == b.ty => Some(a.value.value_cmp(&b.value)),
            (List(_), _) | (_, List(_)) => {
                let (a, b) = (self.list()?, other.list()?);
                let is_row = a.is_row || b.is_row;
                for (a, b) in a.iter().zip(b.iter()) {
                    let order = match !is_row && (a.is_null() || b.is_null()) {
                        true => a.is_null().cmp(&b.is_null()),
                        false => a.compare(b)?,
                    };
                    if order.is_ne() {
                        return Some(order);
                    }
                }
                Some(a.len().cmp(&b.len()))
            }
            _ => {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                self.number()?.push_key(&mut a);
                other.number()?.push_key(&mut b);
                Some(a.cmp(&b))
            }
        }
    }

    /// Are they lists with values that differ, whatever stands for the NULLs in them?
    pub fn differs(&self, other: &Value) -> bool {
        let (Value::List(a), Value::List(b)) = (self, other) else {
            return false;
        };
        let mut both = a.iter().zip(b.iter());
        both.any(|(a, b)| a.compare(b).is_some_and(Ordering::is_ne))
    }

    /// The number that it is, or that a text says.
    fn number(&self) -> Option<Value> {
        match self {
            Value::Int(_) | Value::Float(_) => Some(self.clone()),
            Value::Stored(stored) => stored.is_number().then(|| self.clone()),
            Value::Text(text) => {
                let whole = text.trim().parse().map(Value::Int);
                whole.ok().or_else(|| self.float().map(Value::Float))
            }
            _ => None,
        }
    }

    /// In an order of all values, NULLs last.
    pub fn order(&self, other: &Value) -> Ordering {
        let order = self.compare(other);
        order.unwrap_or_else(|| self.is_null().cmp(&other.is_null()))
    }

    /// What sort of values it is one of: those of one are equal if and only if their keys are.
    pub fn sort(&self) -> u8 {
        match self {
            Value::Bool(_) => 1,
            Value::Int(_) | Value::Float(_) => 2,
            Value::Stored(stored) if stored.is_number() => 2,
            Value::Text(_) => 3,
            Value::List(_) => 4,
            Value::Stored(_) => 5,
            Value::Null => 6,
        }
    }

    /// Appends bytes that sort as values do, and are not the beginning of those of another.
    pub fn push_key(&self, out: &mut Vec<u8>) {
        out.push(self.sort());
        match self {
            Value::Null => {}
            Value::Bool(is) => out.push(u8::from(*is)),
            Value::Text(text) => {
                // As keys of indexes have them, and fast: texts may be long.
                for (nth, part) in text.split('\0').enumerate() {
                    out.extend_from_slice(if nth > 0 { &[0, 0xff] } else { &[] });
                    out.extend_from_slice(part.as_bytes());
                }
                out.extend([0, 0]);
            }
            Value::List(list) => {
                for value in list.iter() {
                    value.push_key(out);
                }
                out.push(0);
            }
            Value::Stored(stored) if !stored.is_number() => {
                out.extend(oid_of(&stored.ty).to_be_bytes());
                push_sort_key(&stored.ty, &stored.value.to_vec(), false, out);
            }
            number => push_number(&number.shown(), out),
        }
    }
}

/// The work that copying values is, in steps.
pub fn weight(values: &[Value]) -> usize {
    let weights = values.iter().map(Value::weight);
    weights.fold(0, usize::saturating_add)
}

/// Appends bytes that sort as decimal numbers do, whatever they are kept as: a sign, how many digits there are before the point,
/// and the digits.
fn push_number(shown: &str, out: &mut Vec<u8>) {
    let unsigned = shown.strip_prefix('-').unwrap_or(shown);
    let is_negative = unsigned.len() < shown.len() && unsigned != "0";
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = match unsigned {
        "inf" | "NaN" => u16::MAX,
        _ => whole.len() as u16,
    };
    out.push(match (is_negative, unsigned) {
        (true, _) => 0,
        // What is no number comes last, and is the same as itself.
        (false, "NaN") => 2,
        (false, _) => 1,
    });
    let start = out.len();
    out.extend(digits.to_be_bytes());
    out.extend_from_slice(whole.as_bytes());
    out.extend_from_slice(fraction.as_bytes());
    out.push(0);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// `{a,"b c"}`, of one dimension; and numbers with blanks between them. None: it is none of them, or may have too many elements.
fn list_of(written: &str) -> Option<List> {
    let separates = |c: &char| *c == ',' || c.is_whitespace();
    if written.chars().filter(separates).count() >= ELEMENTS_MAX {
        return None;
    }
    let Some(inner) = written.strip_prefix('{') else {
        return Some(written.split_whitespace().map(Value::from).collect());
    };
    let inner = inner.strip_suffix('}')?;
    let mut list = Vec::new();
    if inner.is_empty() {
        return Some(list.into());
    }
    let mut characters = inner.chars();
    let (mut element, mut is_quoted, mut was_quoted) = (String::new(), false, false);
    loop {
        match characters.next() {
            Some('"') => {
                is_quoted = !is_quoted;
                was_quoted = true;
            }
            Some('\\') => element.push(characters.next()?),
            Some(c) if is_quoted || c != ',' => element.push(c),
            end => {
                let is_null = !was_quoted && element.eq_ignore_ascii_case("null");
                list.push((!is_null).then_some(element.as_str()).into());
                if end.is_none() {
                    return (!is_quoted).then(|| list.into());
                }
                element.clear();
                was_quoted = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_of_different_kinds_compare() {
        let list = |texts: &[&str]| Value::List(texts.iter().map(|t| Value::from(*t)).collect());
        for (a, b, expected) in [
            (Value::Int(5), "5".into(), Some(Ordering::Equal)),
            ("a".into(), "b".into(), Some(Ordering::Less)),
            (Value::Bool(true), "f".into(), Some(Ordering::Greater)),
            (Value::Null, "a".into(), None),
            (Value::Int(5), "x".into(), None),
            (Value::Int(5), " 5.5".into(), Some(Ordering::Less)),
            (list(&["a", "b"]), "{a,b}".into(), Some(Ordering::Equal)),
        ] {
            assert_eq!(a.compare(&b), expected, "{a:?} {b:?}");
        }
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            (-40..40_i32).prop_map(|n| f64::from(n) / 4.0),
            (-1e18..1e18_f64).prop_map(f64::trunc),
        ]
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(texts in prop::collection::vec(prop::option::of("[a \"\\\\{},é]{0,4}|null|NULL"), 0..5)) {
            let list = Value::List(texts.iter().map(|text| text.as_deref().into()).collect());
            prop_assert_eq!(Value::Text(list.shown()).list(), list.list());
        }

        #[test]
        fn any_text_is_a_list_or_none(written in "[{},\"\\\\a ]{0,12}") {
            let _ = list_of(&written);
        }

        #[test]
        fn keys_have_the_order_of_numbers(a in number(), b in number(), c: i64, d in -20_i64..20, text in "[a\0\u{ff}]{0,3}") {
            let expected = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
            prop_assert_eq!(Value::Float(a).compare(&Value::Float(b)), Some(expected));
            prop_assert_eq!(Value::Int(d).compare(&Value::Float(d as f64)), Some(Ordering::Equal));
            let of = |values: &[Value]| {
                let mut key = Vec::new();
                values.iter().for_each(|value| value.push_key(&mut key));
                key
            };
            prop_assert_eq!(of(&[c.into()]).cmp(&of(&[d.into()])), c.cmp(&d));
            let (first, second) = (text.as_str(), "a");
            let both = of(&[first.into(), c.into()]).cmp(&of(&[second.into(), d.into()]));
            prop_assert_eq!(both, first.cmp(second).then(c.cmp(&d)));
        }
    }
}
