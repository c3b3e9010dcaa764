//! Predicates evaluated on encoded rows.

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_table::RowLayout;
use lightcone_types::cmp_floats;

use super::cost::{Cost, BYTES_PER_STEP};
use super::like::is_like;
use super::step::{Operand, Place, Step, Target, ACCEPT, REJECT};
use crate::scalar::{
    content, f32_at, f64_at, i16_at, i32_at, i64_at, i8_at, u16_at, u32_at, u64_at, u8_at,
};

/// One row of each relation of a query, where they lie.
pub trait Tuple {
    /// The row of a relation with its layout; `None` if the relation has no row here.
    fn row(&self, relation: u16) -> Option<(&RowLayout, &[u8])>;
}

/// A row of the only relation there is.
struct OneRow<'r> {
    layout: &'r RowLayout,
    row: &'r [u8],
}

impl Tuple for OneRow<'_> {
    #[inline(always)]
    fn row(&self, _relation: u16) -> Option<(&RowLayout, &[u8])> {
        Some((self.layout, self.row))
    }
}

/// A condition on rows of one table, ready to be evaluated. Copies share their memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Predicate {
    pub(super) steps: Arc<[Step]>,
    pub(super) entry: Target,
    pub(super) cost: Cost,
}

impl Predicate {
    /// Does `row` match? `layout` is the layout of the table the predicate was compiled for, `row` a valid row of it.
    ///
    /// Values compare by the order of 01 §1.6.1. Bytes that are too short for the layout do not match.
    #[inline]
    pub fn matches(&self, layout: &RowLayout, row: &[u8]) -> bool {
        self.matches_tuple(&OneRow { layout, row })
    }

    /// The same for a condition on several relations. A comparison with a row that is not there is neither true nor false.
    #[inline]
    pub fn matches_tuple(&self, tuple: &impl Tuple) -> bool {
        let mut at = self.entry;
        // One bit per register.
        let mut registers = 0u64;
        while let Some(step) = self.steps.get(at as usize) {
            at = match step {
                Step::Test {
                    place,
                    holds,
                    operand,
                    jumps,
                } => match compare(tuple, *place, operand) {
                    Some(ordering) => jumps.on(holds.on(ordering)),
                    None if is_row_missing(tuple, *place, operand) => match operand {
                        Operand::Nothing { .. } => jumps.on_true,
                        _ => jumps.on(holds.on_nothing()),
                    },
                    None => return false,
                },
                Step::Keep {
                    register,
                    truth,
                    next,
                } => {
                    registers = registers & !(1 << register) | u64::from(*truth) << register;
                    *next
                }
                Step::Recall { register, jumps } => jumps.on(registers >> register & 1 != 0),
            };
        }
        at == ACCEPT
    }

    /// What evaluating this on a row of so many bytes takes at most, in steps of a few nanoseconds.
    #[inline]
    pub fn steps(&self, row_bytes: usize) -> usize {
        let of_row = self.cost.whole_rows * (row_bytes / BYTES_PER_STEP);
        self.cost.steps + of_row
    }

    /// Bytes of memory, which copies share.
    pub fn memory_bytes(&self) -> usize {
        let of_operand = |step: &Step| match step {
            Step::Test { operand, .. } => operand.heap_bytes(),
            Step::Keep { .. } | Step::Recall { .. } => 0,
        };
        let operands: usize = self.steps.iter().map(of_operand).sum();
        size_of_val(&*self.steps) + operands
    }

    /// True of a predicate that no row matches.
    pub fn is_never(&self) -> bool {
        self.entry == REJECT
    }
}

#[inline]
fn bytes_at(tuple: &impl Tuple, place: Place) -> Option<&[u8]> {
    match place {
        Place::Fixed { relation, offset } => tuple.row(relation)?.1.get(offset as usize..),
        Place::Column { relation, column } => {
            let (layout, row) = tuple.row(relation)?;
            Some(layout.column(row, usize::from(column)))
        }
    }
}

#[inline]
fn compare(tuple: &impl Tuple, place: Place, operand: &Operand) -> Option<Ordering> {
    let bytes = bytes_at(tuple, place)?;
    Some(match operand {
        Operand::U8(constant) => u8_at(bytes)?.cmp(constant),
        Operand::U16(constant) => u16_at(bytes)?.cmp(constant),
        Operand::U32(constant) => u32_at(bytes)?.cmp(constant),
        Operand::U64(constant) => u64_at(bytes)?.cmp(constant),
        Operand::I8(constant) => i8_at(bytes)?.cmp(constant),
        Operand::I16(constant) => i16_at(bytes)?.cmp(constant),
        Operand::I32(constant) => i32_at(bytes)?.cmp(constant),
        Operand::I64(constant) => i64_at(bytes)?.cmp(constant),
        Operand::WideInteger(integer, constant) => return integer.compare(bytes, constant),
        Operand::F32(bits) => cmp_floats(f32_at(bytes)?.into(), f32::from_bits(*bits).into()),
        Operand::F64(bits) => cmp_floats(f64_at(bytes)?, f64::from_bits(*bits)),
        Operand::Bytes(constant) => content(bytes)?.cmp(constant),
        Operand::Nothing { is_option } => match *is_option && bytes.first() == Some(&1) {
            true => Ordering::Equal,
            false => Ordering::Less,
        },
        Operand::Like(pattern) => match is_like(content(bytes)?, pattern.as_bytes()) {
            true => Ordering::Equal,
            false => Ordering::Less,
        },
        Operand::Column(other, scalar) => scalar.compare(bytes, bytes_at(tuple, *other)?)?,
    })
}

/// Is a row not there that a test looks at?
#[cold]
fn is_row_missing(tuple: &impl Tuple, place: Place, operand: &Operand) -> bool {
    let is_missing = |place: Place| tuple.row(place.relation()).is_none();
    match operand {
        Operand::Column(other, _) => is_missing(place) || is_missing(*other),
        _ => is_missing(place),
    }
}
