//! Values that keep the type that they have in a table of the module.

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_query::literal_value;
use lightcone_types::{AlgebraicType, AlgebraicValue};

use super::super::parameters::write_literal;
use super::super::types::is_simple_enum;
use super::super::values::{write, Format};

/// The types of columns of the module that a question names, each once.
#[derive(Default)]
pub(super) struct Types(Vec<Arc<AlgebraicType>>);

impl Types {
    pub fn at(&self, at: u16) -> &Arc<AlgebraicType> {
        &self.0[usize::from(at)]
    }

    /// Where a type is.
    pub fn place(&mut self, ty: &AlgebraicType) -> u16 {
        let known = self.0.iter().position(|known| **known == *ty);
        let at = known.unwrap_or_else(|| {
            self.0.push(Arc::new(ty.clone()));
            self.0.len() - 1
        });
        // A question names fewer columns.
        u16::try_from(at).unwrap_or(u16::MAX)
    }
}

/// A value that keeps its type: a time, an identity, bytes, a number that is too large for others.
#[derive(Debug, PartialEq)]
pub(super) struct Stored {
    pub ty: Arc<AlgebraicType>,
    pub value: AlgebraicValue,
    /// The work that copying it is, in steps.
    pub weight: usize,
}

impl Stored {
    pub fn is_number(&self) -> bool {
        self.ty.is_integer()
    }

    pub fn shown(&self) -> String {
        let mut out = Vec::new();
        write(&self.ty, &self.value, Format::Text, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// None: they have no order.
    pub fn compare(&self, other: &Stored) -> Option<Ordering> {
        match self.is_number() && other.is_number() {
            true => Some(compared(&self.shown(), &other.shown())),
            false => (self.ty == other.ty).then(|| self.value.value_cmp(&other.value)),
        }
    }

    /// The same with a text, as what it denotes.
    pub fn compare_text(&self, text: &str) -> Option<Ordering> {
        let other = typed(text, &self.ty)?;
        Some(self.value.value_cmp(&other))
    }

    pub fn compare_int(&self, number: i64) -> Option<Ordering> {
        self.is_number()
            .then(|| compared(&self.shown(), &number.to_string()))
    }
}

/// Compares integers by their digits.
fn compared(a: &str, b: &str) -> Ordering {
    let of = |number: &str| match number.strip_prefix('-') {
        Some(digits) => (true, digits.to_owned()),
        None => (false, number.to_owned()),
    };
    let ((a_is_negative, a), (b_is_negative, b)) = (of(a), of(b));
    let order = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
    match (a_is_negative, b_is_negative) {
        (false, false) => order,
        (true, true) => order.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// The value that a text denotes. None: it denotes none of this type.
pub(super) fn typed(text: &str, ty: &AlgebraicType) -> Option<AlgebraicValue> {
    if is_simple_enum(ty) {
        let mut variants = ty.as_sum()?.variants.iter();
        let tag = variants.position(|variant| variant.name() == Some(text))?;
        return Some(AlgebraicValue::enum_tag(tag.try_into().ok()?));
    }
    let literal = write_literal(ty, text)?;
    let quoted = literal
        .strip_prefix('\'')
        .and_then(|l| l.strip_suffix('\''));
    match quoted {
        Some(quoted) => literal_value(&quoted.replace("''", "'"), ty),
        None => literal_value(&literal, ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_have_the_order_of_numbers(a: i128, b: i128, c in -20_i128..20, d in -20_i128..20) {
            prop_assert_eq!(compared(&a.to_string(), &b.to_string()), a.cmp(&b));
            prop_assert_eq!(compared(&c.to_string(), &d.to_string()), c.cmp(&d));
        }
    }
}
