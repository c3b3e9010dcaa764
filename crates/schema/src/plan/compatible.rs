//! Which changes of a column's type leave stored rows valid as they are (02 §14.6).
//!
//! Rows are not rewritten for such a change, so their bytes must be the same value in the new type. The rule about sizes is that of
//! the reference, whose rows have a fixed part: both accept the same modules.

use std::fmt;

use lightcone_types::AlgebraicType;

use super::bounded::clipped;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible {
    /// The path to the difference in the old type, from the outside in; empty if the types differ as a whole.
    pub within: Vec<String>,
    pub why: Mismatch,
}

/// The difference of two types at one place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// As text, cut to a readable length.
    #[error("{old} is another type than {new}")]
    Type { old: String, new: String },
    #[error("it had {old} variants and has {new}; keep all of them")]
    FewerVariants { old: usize, new: usize },
    #[error("variant {position} was `{old}` and is `{new}`; keep its name, and put new variants at the end")]
    VariantName {
        position: usize,
        old: String,
        new: String,
    },
    #[error("a value takes {new} bytes in a row instead of {old}; a new variant must not be larger than the largest there was")]
    Size { old: u64, new: u64 },
    #[error("a value is aligned to {new} bytes in a row instead of {old}; the parts of a new variant must not be wider \
             than the widest there was")]
    Alignment { old: u64, new: u64 },
    #[error("it had {old} fields and has {new}")]
    FieldCount { old: usize, new: usize },
    #[error("field {position} was `{old}` and is `{new}`")]
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
    /// Of a string or an array, whose bytes are elsewhere.
    const PLACE: Layout = Layout::new(4, 2);

    const fn new(size_bytes: u64, align_bytes: u64) -> Layout {
        Layout {
            size_bytes,
            align_bytes,
        }
    }

    const fn scalar(bytes: u64) -> Layout {
        Layout::new(bytes, bytes)
    }

    pub fn of(ty: &AlgebraicType) -> Layout {
        use AlgebraicType as T;
        match ty {
            T::Bool => Layout::scalar(1),
            T::Integer(integer) => Layout::scalar(integer.bytes() as u64),
            T::F32 => Layout::scalar(4),
            T::F64 => Layout::scalar(8),
            // A ref cannot be stored; it counts as a place too.
            T::String | T::Array(_) | T::Ref(_) => Layout::PLACE,
            T::Product(_) => Layout::of_product(ty.parts().map(|(_, part)| Layout::of(part))),
            T::Sum(_) => Layout::of_sum(ty.parts().map(|(_, part)| Layout::of(part))),
        }
    }

    fn of_product(fields: impl Iterator<Item = Layout>) -> Layout {
        let mut whole = Layout::new(0, 1);
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
        // The tag is as large as the alignment.
        Layout::new(align + size.next_multiple_of(align), align)
    }
}

/// The layouts of both types, so that each part is looked at once. `within` is found from the inside out.
fn compare(old: &AlgebraicType, new: &AlgebraicType) -> Result<(Layout, Layout), Incompatible> {
    use AlgebraicType as T;
    match (old, new) {
        (T::Sum(_), T::Sum(_)) => compare_sums(old, new),
        (T::Product(_), T::Product(_)) => compare_products(old, new),
        (T::Array(old), T::Array(new)) => {
            compare(old, new).map_err(|found| found.inside("the elements"))?;
            Ok((Layout::PLACE, Layout::PLACE))
        }
        (old, new) if old == new => Ok((Layout::of(old), Layout::of(new))),
        (old, new) => {
            let (old, new) = (clipped(old), clipped(new));
            Err(Mismatch::Type { old, new }.here())
        }
    }
}

fn compare_sums(
    old: &AlgebraicType,
    new: &AlgebraicType,
) -> Result<(Layout, Layout), Incompatible> {
    let (before, after) = (old.parts().count(), new.parts().count());
    if after < before {
        let (old, new) = (before, after);
        return Err(Mismatch::FewerVariants { old, new }.here());
    }
    let layouts = compare_parts(old, new, "variant", |position, old, new| {
        Mismatch::VariantName { position, old, new }
    })?;
    let added = new.parts().skip(before);
    let added = added.map(|(_, payload)| Layout::of(payload));
    let old = Layout::of_sum(layouts.iter().map(|(old, _)| *old));
    let new = Layout::of_sum(layouts.iter().map(|(_, new)| *new).chain(added));
    if old.align_bytes != new.align_bytes {
        let (old, new) = (old.align_bytes, new.align_bytes);
        return Err(Mismatch::Alignment { old, new }.here());
    }
    if old.size_bytes != new.size_bytes {
        let (old, new) = (old.size_bytes, new.size_bytes);
        return Err(Mismatch::Size { old, new }.here());
    }
    Ok((old, new))
}

fn compare_products(
    old: &AlgebraicType,
    new: &AlgebraicType,
) -> Result<(Layout, Layout), Incompatible> {
    let (before, after) = (old.parts().count(), new.parts().count());
    if before != after {
        let (old, new) = (before, after);
        return Err(Mismatch::FieldCount { old, new }.here());
    }
    let layouts = compare_parts(old, new, "field", |position, old, new| {
        Mismatch::FieldName { position, old, new }
    })?;
    Ok((
        Layout::of_product(layouts.iter().map(|(old, _)| *old)),
        Layout::of_product(layouts.iter().map(|(_, new)| *new)),
    ))
}

/// The layouts of the parts that both have, which must have the same names.
fn compare_parts(
    old: &AlgebraicType,
    new: &AlgebraicType,
    kind: &str,
    renamed: fn(usize, String, String) -> Mismatch,
) -> Result<Vec<(Layout, Layout)>, Incompatible> {
    let pairs = old.parts().zip(new.parts()).enumerate();
    let layouts = pairs.map(|(position, ((old_name, old), (new_name, new)))| {
        let name = part_name(old_name, position);
        if old_name != new_name {
            return Err(renamed(position, name, part_name(new_name, position)).here());
        }
        compare(old, new).map_err(|found| found.inside(&format!("{kind} `{name}`")))
    });
    layouts.collect()
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
