//! What the values of a column come to in a group: how many there are, their total, which is exact, or the best of them.

use crate::exact_sum::ExactSum;
use crate::execute::{NOTHING, SOME};
use crate::grouping::{Aggregate, GroupItem, Grouping};
use crate::scalar::Scalar;

/// A value on its way to be that of a group.
#[derive(Clone, Debug)]
pub(crate) struct Sum<B>(Kind<B>);

#[derive(Clone, Debug)]
enum Kind<B> {
    Count(u64),
    /// Of so many values.
    Total(Total, Scalar, u64),
    Average(Total, Scalar, u64),
    Best(B),
}

/// What is kept for the least or the greatest value.
pub(crate) trait Best {
    fn new(is_greatest: bool) -> Self;

    /// None if there is no value.
    fn value(&self) -> Option<&[u8]>;

    fn heap_bytes(&self) -> usize;
}

impl<B: Best> Sum<B> {
    /// Those of a group without rows.
    pub fn empty(grouping: &Grouping) -> Vec<Sum<B>> {
        let sums = grouping.aggregates().map(|(aggregate, _)| {
            Sum(match aggregate {
                Aggregate::Count => Kind::Count(0),
                Aggregate::Sum(scalar) => Kind::Total(Total::empty(scalar), scalar, 0),
                Aggregate::Average(scalar) => Kind::Average(Total::empty(scalar), scalar, 0),
                Aggregate::Min(_) => Kind::Best(B::new(false)),
                Aggregate::Max(_) => Kind::Best(B::new(true)),
            })
        });
        sums.collect()
    }

    /// A value comes, or goes that came before. What it is the best of has to be told by itself.
    #[inline]
    pub fn count(&mut self, value: &[u8], comes: bool) -> Option<&mut B> {
        let count = match &mut self.0 {
            Kind::Count(count) => count,
            Kind::Total(total, scalar, count) | Kind::Average(total, scalar, count) => {
                total.count(*scalar, value, comes);
                count
            }
            Kind::Best(best) => return Some(best),
        };
        match comes {
            true => *count += 1,
            false => *count -= 1,
        }
        None
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let heap = match &self.0 {
            Kind::Count(_) => 0,
            Kind::Total(_, scalar, _) | Kind::Average(_, scalar, _) => Total::heap_bytes(*scalar),
            Kind::Best(best) => best.heap_bytes(),
        };
        size_of::<Sum<B>>() + heap
    }

    fn push(&self, is_optional: bool, out: &mut Vec<u8>) {
        let is_none = match &self.0 {
            Kind::Count(_) => false,
            Kind::Total(.., count) | Kind::Average(.., count) => *count == 0,
            Kind::Best(best) => best.value().is_none(),
        };
        if is_optional {
            out.push(if is_none { NOTHING } else { SOME });
        }
        match &self.0 {
            _ if is_none => {}
            Kind::Count(count) => out.extend_from_slice(&count.to_le_bytes()),
            Kind::Total(total, ..) => total.push(out),
            Kind::Average(total, _, count) => {
                out.extend_from_slice(&total.average(*count).to_le_bytes());
            }
            Kind::Best(best) => out.extend_from_slice(best.value().unwrap_or_default()),
        }
    }
}

/// Writes the row of a group.
pub(crate) fn push_row<B: Best>(
    grouping: &Grouping,
    keys: &[Box<[u8]>],
    sums: &[Sum<B>],
    out: &mut Vec<u8>,
) {
    let mut sums = sums.iter();
    for item in &grouping.items {
        match item {
            GroupItem::Key(key) => out.extend_from_slice(&keys[*key]),
            GroupItem::Aggregate { is_optional, .. } => {
                let sum = sums.next().expect("each aggregate has one");
                sum.push(*is_optional, out);
            }
        }
    }
}

/// The total of the values of a column. Sums of numbers of 64 bits never get out of 128: there are not as many rows.
#[derive(Clone, Debug)]
enum Total {
    Integer(i128),
    Float(Box<ExactSum>),
}

impl Total {
    /// Of no values.
    fn empty(scalar: Scalar) -> Total {
        match scalar {
            Scalar::F32 | Scalar::F64 => Total::Float(Box::default()),
            _ => Total::Integer(0),
        }
    }

    /// Adds a value, or takes one out that was added.
    fn count(&mut self, scalar: Scalar, value: &[u8], comes: bool) {
        match (self, comes) {
            (Total::Integer(total), true) => *total += integer(scalar, value),
            (Total::Integer(total), false) => *total -= integer(scalar, value),
            (Total::Float(total), true) => total.add(float(scalar, value)),
            (Total::Float(total), false) => total.remove(float(scalar, value)),
        }
    }

    /// Writes it as the value of a `SUM`.
    fn push(&self, out: &mut Vec<u8>) {
        match self {
            Total::Integer(total) => out.extend_from_slice(&total.to_le_bytes()),
            Total::Float(total) => out.extend_from_slice(&total.value().to_le_bytes()),
        }
    }

    /// The value of an `AVG` of so many values.
    fn average(&self, count: u64) -> f64 {
        let total = match self {
            Total::Integer(total) => *total as f64,
            Total::Float(total) => total.value(),
        };
        total / count as f64
    }

    /// Bytes on the heap of a total of such values.
    fn heap_bytes(scalar: Scalar) -> usize {
        match scalar.is_float() {
            true => size_of::<ExactSum>(),
            false => 0,
        }
    }
}

fn integer(scalar: Scalar, value: &[u8]) -> i128 {
    match scalar {
        Scalar::Integer(integer) => integer.to_i128(value),
        _ => None,
    }
    .unwrap_or_default()
}

fn float(scalar: Scalar, value: &[u8]) -> f64 {
    scalar.float(value).unwrap_or_default()
}
