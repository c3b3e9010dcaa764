//! Predicates compiled to tests with two jump targets, evaluated on encoded rows without recursion or allocation.
//!
//! `AND`, `OR` and `NOT` cost nothing at run time: they only decide where a test goes on. `a = 1 AND (b = 2 OR c = 3)`
//! becomes
//!
//! ```text
//!   0: c = 3   true → accept   false → reject
//!   1: b = 2   true → accept   false → 0
//!   2: a = 1   true → 1        false → reject      ← entry
//! ```
//!
//! Code is made from the end, so every target is a smaller number than the step it stands in, and evaluation ends.

mod compile;
mod cost;
mod like;

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_table::RowLayout;
use lightcone_types::{I256, U256};

use self::cost::{Cost, BYTES_PER_STEP};
use self::like::is_like;
use crate::lexer::Comparison;
use crate::scalar::{
    compare_floats, content, f32_at, f64_at, i128_at, i16_at, i256_at, i32_at, i64_at, i8_at,
    u128_at, u16_at, u256_at, u32_at, u64_at, Scalar,
};

pub(crate) use self::compile::PredicateCompiler;

/// Where to go on: an index of a step, or one of the two ends.
type Target = u32;
const ACCEPT: Target = u32::MAX;
const REJECT: Target = u32::MAX - 1;

/// The two targets of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jumps {
    on_true: Target,
    on_false: Target,
}

impl Jumps {
    #[inline]
    fn on(self, truth: bool) -> Target {
        match truth {
            true => self.on_true,
            false => self.on_false,
        }
    }
}

/// Where a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the same offset in every row of a relation.
    Fixed { relation: u16, offset: u32 },
    /// Behind columns whose size differs from row to row.
    Column { relation: u16, column: u16 },
}

impl Place {
    /// Columns that are walked over to come there.
    fn columns_before(self) -> usize {
        match self {
            Place::Fixed { .. } => 0,
            Place::Column { column, .. } => usize::from(column),
        }
    }

    fn relation(self) -> u16 {
        match self {
            Place::Fixed { relation, .. } | Place::Column { relation, .. } => relation,
        }
    }
}

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

/// The orderings under which a comparison holds, as bits: less, equal, greater. And whether it stands under an odd number of
/// `NOT`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holds(u8);

const NEGATED: u8 = 0b1000;

impl Holds {
    fn of(comparison: Comparison) -> Holds {
        Holds(match comparison {
            Comparison::Less => 0b001,
            Comparison::Equal => 0b010,
            Comparison::Greater => 0b100,
            Comparison::LessOrEqual => 0b011,
            Comparison::GreaterOrEqual => 0b110,
            Comparison::NotEqual => 0b101,
        })
    }

    fn negated(self, negated: bool) -> Holds {
        match negated {
            true => Holds(self.0 | NEGATED),
            false => self,
        }
    }

    #[inline]
    fn on(self, ordering: Ordering) -> bool {
        self.0 >> (ordering as i8 + 1) & 1 != 0
    }

    /// How the test ends that is neither true nor false: nothing follows from it, nor from its negation.
    fn on_nothing(self) -> bool {
        self.0 & NEGATED != 0
    }
}

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(Box<u128>),
    U256(Box<U256>),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(Box<i128>),
    I256(Box<I256>),
    F32(f32),
    F64(f64),
    Bytes(Box<[u8]>),
    Column(Place, Scalar),
    /// Equal is what is like the pattern.
    Like(Box<str>),
    /// Equal is what has no value; of columns that are options or not.
    Nothing {
        is_option: bool,
    },
}

impl Operand {
    fn constant(scalar: Scalar, bsatn: &[u8]) -> Option<Operand> {
        Some(match scalar {
            Scalar::U8 => Operand::U8(*bsatn.first()?),
            Scalar::U16 => Operand::U16(u16_at(bsatn)?),
            Scalar::U32 => Operand::U32(u32_at(bsatn)?),
            Scalar::U64 => Operand::U64(u64_at(bsatn)?),
            Scalar::U128 => Operand::U128(Box::new(u128_at(bsatn)?)),
            Scalar::U256 => Operand::U256(Box::new(u256_at(bsatn)?)),
            Scalar::I8 => Operand::I8(i8_at(bsatn)?),
            Scalar::I16 => Operand::I16(i16_at(bsatn)?),
            Scalar::I32 => Operand::I32(i32_at(bsatn)?),
            Scalar::I64 => Operand::I64(i64_at(bsatn)?),
            Scalar::I128 => Operand::I128(Box::new(i128_at(bsatn)?)),
            Scalar::I256 => Operand::I256(Box::new(i256_at(bsatn)?)),
            Scalar::F32 => Operand::F32(f32_at(bsatn)?),
            Scalar::F64 => Operand::F64(f64_at(bsatn)?),
            Scalar::Bytes => Operand::Bytes(content(bsatn)?.into()),
        })
    }

    /// Bytes outside of the operand itself.
    fn heap_bytes(&self) -> usize {
        match self {
            Operand::U128(_) | Operand::I128(_) => size_of::<u128>(),
            Operand::U256(_) | Operand::I256(_) => size_of::<U256>(),
            Operand::Bytes(constant) => constant.len(),
            Operand::Like(pattern) => pattern.len(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Test {
        place: Place,
        holds: Holds,
        operand: Operand,
        jumps: Jumps,
    },
    /// Keeps a truth value in a register.
    Keep {
        register: u8,
        truth: bool,
        next: Target,
    },
    /// Looks at a register.
    Recall { register: u8, jumps: Jumps },
}

/// A condition on rows of one table, ready to be evaluated. Copies share their memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    steps: Arc<[Step]>,
    entry: Target,
    cost: Cost,
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
        Operand::U8(constant) => bytes.first()?.cmp(constant),
        Operand::U16(constant) => u16_at(bytes)?.cmp(constant),
        Operand::U32(constant) => u32_at(bytes)?.cmp(constant),
        Operand::U64(constant) => u64_at(bytes)?.cmp(constant),
        Operand::U128(constant) => u128_at(bytes)?.cmp(constant),
        Operand::U256(constant) => u256_at(bytes)?.cmp(constant),
        Operand::I8(constant) => i8_at(bytes)?.cmp(constant),
        Operand::I16(constant) => i16_at(bytes)?.cmp(constant),
        Operand::I32(constant) => i32_at(bytes)?.cmp(constant),
        Operand::I64(constant) => i64_at(bytes)?.cmp(constant),
        Operand::I128(constant) => i128_at(bytes)?.cmp(constant),
        Operand::I256(constant) => i256_at(bytes)?.cmp(constant),
        Operand::F32(constant) => compare_floats(f32_at(bytes)?.into(), (*constant).into()),
        Operand::F64(constant) => compare_floats(f64_at(bytes)?, *constant),
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
