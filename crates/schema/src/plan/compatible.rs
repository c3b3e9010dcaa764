//! Which changes of a column's type leave stored rows valid as they are (02 §14.6).
//!
//! Rows are not rewritten for such a change, so their bytes must be the same value in the new type. The rule about sizes is that of
//! the reference, whose rows have a fixed part: both accept the same modules.

use std::fmt;

use lightcone_types::{AlgebraicType, ProductType, SumType};

use super::bounded::clipped;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible {
    /// The path to the difference in the old type, from the outside in; empty if the types differ as a whole.
    pub within: Vec<String>,
    pub why: Mismatch,
}

/// The difference of two types at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// As text, cut to a readable length.
    Type {
        old: String,
        new: String,
    },
    FewerVariants {
        old: usize,
        new: usize,
    },
    VariantName {
        position: usize,
        old: String,
        new: String,
    },
    Size {
        old: u64,
        new: u64,
    },
    Alignment {
        old: u64,
        new: u64,
    },
    FieldCount {
        old: usize,
        new: usize,
    },
    FieldName {
        position: usize,
        old: String,
        new: String,
    },
}

/// Whether a column of the first type may become one of the second; if not, the difference. Both are free of refs.
pub fn upgradable(old: &AlgebraicType, new: &AlgebraicType) -> Result<(), Incompatible> {
    compare(old, new).map(|_| ()).map_err(|mut found| {
        found.within.reverse();
        found
    })
}

/// The size of a value in the fixed part of a row, and its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub size_bytes: u64,
    pub align_bytes: u64,
}

impl Layout {
    const fn scalar(bytes: u64) -> Layout {
        Layout {
            size_bytes: bytes,
            align_bytes: bytes,
        }
    }

    pub fn of(ty: &AlgebraicType) -> Layout {
        use AlgebraicType as T;
        match ty {
            T::Bool | T::I8 | T::U8 => Layout::scalar(1),
            T::I16 | T::U16 => Layout::scalar(2),
            T::I32 | T::U32 | T::F32 => Layout::scalar(4),
            T::I64 | T::U64 | T::F64 => Layout::scalar(8),
            T::I128 | T::U128 => Layout::scalar(16),
            T::I256 | T::U256 => Layout::scalar(32),
            // Bytes elsewhere. A ref cannot be stored; it counts as such a place too.
            T::String | T::Array(_) | T::Ref(_) => Layout {
                size_bytes: 4,
                align_bytes: 2,
            },
            T::Product(product) => {
                let elements = product.elements.iter();
                Layout::of_product(elements.map(|element| Layout::of(&element.algebraic_type)))
            }
            T::Sum(sum) => {
                let variants = sum.variants.iter();
                Layout::of_sum(variants.map(|variant| Layout::of(&variant.algebraic_type)))
            }
        }
    }

    fn of_product(fields: impl Iterator<Item = Layout>) -> Layout {
        let mut whole = Layout {
            size_bytes: 0,
            align_bytes: 1,
        };
        for field in fields {
            let start = whole.size_bytes.next_multiple_of(field.align_bytes);
            whole.size_bytes = start + field.size_bytes;
            whole.align_bytes = whole.align_bytes.max(field.align_bytes);
        }
        whole.size_bytes = whole.size_bytes.next_multiple_of(whole.align_bytes);
        whole
    }

    fn of_sum(payloads: impl Iterator<Item = Layout>) -> Layout {
        let (size, align) = payloads.fold((0, 1), |(size, align), payload| {
            (payload.size_bytes.max(size), payload.align_bytes.max(align))
        });
        Layout {
            // The tag is as large as the alignment.
            size_bytes: align + size.next_multiple_of(align),
            align_bytes: align,
        }
    }
}

/// The layouts of both types, so that each part is looked at once. `within` is found from the inside out.
fn compare(old: &AlgebraicType, new: &AlgebraicType) -> Result<(Layout, Layout), Incompatible> {
    use AlgebraicType as T;
    match (old, new) {
        (T::Sum(old), T::Sum(new)) => compare_sums(old, new),
        (T::Product(old), T::Product(new)) => compare_products(old, new),
        (T::Array(old), T::Array(new)) => {
            compare(old, new).map_err(|found| found.inside("the elements"))?;
            let place = Layout {
                size_bytes: 4,
                align_bytes: 2,
            };
            Ok((place, place))
        }
        (old, new) if old == new => Ok((Layout::of(old), Layout::of(new))),
        (old, new) => Err(Mismatch::Type {
            old: clipped(old),
            new: clipped(new),
        }
        .here()),
    }
}

fn compare_sums(old: &SumType, new: &SumType) -> Result<(Layout, Layout), Incompatible> {
    let (before, after) = (old.variants.len(), new.variants.len());
    if after < before {
        return Err(Mismatch::FewerVariants {
            old: before,
            new: after,
        }
        .here());
    }
    let mut layouts = Vec::with_capacity(after);
    for (position, (old, new)) in old.variants.iter().zip(&new.variants).enumerate() {
        if old.name != new.name {
            return Err(Mismatch::VariantName {
                position,
                old: part_name(old.name(), position),
                new: part_name(new.name(), position),
            }
            .here());
        }
        let both = compare(&old.algebraic_type, &new.algebraic_type);
        layouts.push(both.map_err(|found| {
            found.inside(&format!("variant `{}`", part_name(old.name(), position)))
        })?);
    }
    let added = new.variants[before..].iter();
    let added = added.map(|variant| Layout::of(&variant.algebraic_type));
    let old = Layout::of_sum(layouts.iter().map(|(old, _)| *old));
    let new = Layout::of_sum(layouts.iter().map(|(_, new)| *new).chain(added));
    if old.align_bytes != new.align_bytes {
        return Err(Mismatch::Alignment {
            old: old.align_bytes,
            new: new.align_bytes,
        }
        .here());
    }
    if old.size_bytes != new.size_bytes {
        return Err(Mismatch::Size {
            old: old.size_bytes,
            new: new.size_bytes,
        }
        .here());
    }
    Ok((old, new))
}

fn compare_products(
    old: &ProductType,
    new: &ProductType,
) -> Result<(Layout, Layout), Incompatible> {
    if old.len() != new.len() {
        return Err(Mismatch::FieldCount {
            old: old.len(),
            new: new.len(),
        }
        .here());
    }
    let mut layouts = Vec::with_capacity(old.len());
    for (position, (old, new)) in old.elements.iter().zip(&new.elements).enumerate() {
        if old.name != new.name {
            return Err(Mismatch::FieldName {
                position,
                old: part_name(old.name(), position),
                new: part_name(new.name(), position),
            }
            .here());
        }
        let both = compare(&old.algebraic_type, &new.algebraic_type);
        layouts.push(both.map_err(|found| {
            found.inside(&format!("field `{}`", part_name(old.name(), position)))
        })?);
    }
    Ok((
        Layout::of_product(layouts.iter().map(|(old, _)| *old)),
        Layout::of_product(layouts.iter().map(|(_, new)| *new)),
    ))
}

fn part_name(name: Option<&str>, position: usize) -> String {
    name.map_or_else(|| position.to_string(), clipped)
}

impl Mismatch {
    fn here(self) -> Incompatible {
        Incompatible {
            within: Vec::new(),
            why: self,
        }
    }
}

impl Incompatible {
    fn inside(mut self, part: &str) -> Incompatible {
        self.within.push(part.to_owned());
        self
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.within {
            write!(f, "in {part}: ")?;
        }
        self.why.fmt(f)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Type { old, new } => write!(f, "{old} is another type than {new}"),
            Mismatch::FewerVariants { old, new } => {
                write!(f, "it had {old} variants and has {new}; keep all of them")
            }
            Mismatch::VariantName { position, old, new } => write!(
                f,
                "variant {position} was `{old}` and is `{new}`; keep its name, and put new variants at the end"
            ),
            Mismatch::Size { old, new } => write!(
                f,
                "a value takes {new} bytes in a row instead of {old}; a new variant must not be larger than the largest there was"
            ),
            Mismatch::Alignment { old, new } => write!(
                f,
                "a value is aligned to {new} bytes in a row instead of {old}; the parts of a new variant must not be wider \
                 than the widest there was"
            ),
            Mismatch::FieldCount { old, new } => {
                write!(f, "it had {old} fields and has {new}")
            }
            Mismatch::FieldName { position, old, new } => {
                write!(f, "field {position} was `{old}` and is `{new}`")
            }
        }
    }
}
