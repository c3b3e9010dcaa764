//! Values that keep the type that they have in a table of the module.

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_types::{AlgebraicType, AlgebraicValue, TypePart};

use super::formats::{write, Format};
use super::literals::content_of;
use crate::literal::literal_value;

/// A value that keeps its type: a time, an identity, bytes, a number that is too large for others.
#[derive(Debug, PartialEq)]
pub struct Stored {
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

    /// Compares it with a text, as what it denotes.
    pub fn compare_text(&self, text: &str) -> Option<Ordering> {
        let other = typed(text, &self.ty)?;
        Some(self.value.value_cmp(&other))
    }
}

/// The value that a text denotes. None: it denotes none of this type.
pub fn typed(text: &str, ty: &AlgebraicType) -> Option<AlgebraicValue> {
    if ty.is_simple_enum() {
        let (tag, _) = TypePart::find(&ty.as_sum()?.variants, text)?;
        return Some(AlgebraicValue::enum_tag(tag.try_into().ok()?));
    }
    literal_value(&content_of(ty, text)?, ty)
}
