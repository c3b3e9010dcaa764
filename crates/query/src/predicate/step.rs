//! The steps of a predicate: tests with two jump targets, and truth values in registers.

use std::cmp::Ordering;

use lightcone_types::IntegerType;

use crate::lexer::Comparison;
use crate::scalar::{
    content, f32_at, f64_at, i16_at, i32_at, i64_at, i8_at, u16_at, u32_at, u64_at, u8_at, Scalar,
};

/// Where to go on: an index of a step, or one of the two ends.
pub(super) type Target = u32;
pub(super) const ACCEPT: Target = u32::MAX;
pub(super) const REJECT: Target = u32::MAX - 1;

/// The two targets of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Jumps {
    pub on_true: Target,
    pub on_false: Target,
}

impl Jumps {
    #[inline]
    pub fn on(self, truth: bool) -> Target {
        match truth {
            true => self.on_true,
            false => self.on_false,
        }
    }
}

/// Where a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// At the same offset in every row of a relation.
    Fixed { relation: u16, offset: u32 },
    /// Behind columns whose size differs from row to row.
    Column { relation: u16, column: u16 },
}

impl Place {
    /// Columns that are walked over to come there.
    pub fn columns_before(self) -> usize {
        match self {
            Place::Fixed { .. } => 0,
            Place::Column { column, .. } => usize::from(column),
        }
    }

    pub fn relation(self) -> u16 {
        match self {
            Place::Fixed { relation, .. } | Place::Column { relation, .. } => relation,
        }
    }
}

/// The orderings under which a comparison holds, as [`Comparison::bits`]. And whether it stands under an odd number of
/// `NOT`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holds(u8);

const NEGATED: u8 = 0b1000;

impl Holds {
    pub fn of(comparison: Comparison) -> Holds {
        Holds(comparison.bits())
    }

    pub fn negated(self, negated: bool) -> Holds {
        match negated {
            true => Holds(self.0 | NEGATED),
            false => self,
        }
    }

    #[inline]
    pub fn on(self, ordering: Ordering) -> bool {
        self.0 >> (ordering as i8 + 1) & 1 != 0
    }

    /// How the test ends that is neither true nor false: nothing follows from it, nor from its negation.
    pub fn on_nothing(self) -> bool {
        self.0 & NEGATED != 0
    }
}

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    // Numbers that fit are variants by themselves: each test of a row takes one branch by the type.
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    /// One of more than 64 bits, in BSATN.
    WideInteger(IntegerType, Box<[u8]>),
    /// Its bits, so that equal operands are the same.
    F32(u32),
    F64(u64),
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
    pub fn constant(scalar: Scalar, bsatn: &[u8]) -> Option<Operand> {
        Some(match scalar {
            Scalar::Integer(integer) => match integer {
                IntegerType::U8 => Operand::U8(u8_at(bsatn)?),
                IntegerType::U16 => Operand::U16(u16_at(bsatn)?),
                IntegerType::U32 => Operand::U32(u32_at(bsatn)?),
                IntegerType::U64 => Operand::U64(u64_at(bsatn)?),
                IntegerType::I8 => Operand::I8(i8_at(bsatn)?),
                IntegerType::I16 => Operand::I16(i16_at(bsatn)?),
                IntegerType::I32 => Operand::I32(i32_at(bsatn)?),
                IntegerType::I64 => Operand::I64(i64_at(bsatn)?),
                wide => Operand::WideInteger(wide, bsatn.get(..wide.bytes())?.into()),
            },
            Scalar::F32 => Operand::F32(f32_at(bsatn)?.to_bits()),
            Scalar::F64 => Operand::F64(f64_at(bsatn)?.to_bits()),
            Scalar::Bytes => Operand::Bytes(content(bsatn)?.into()),
        })
    }

    /// Bytes outside of the operand itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Operand::WideInteger(_, constant) | Operand::Bytes(constant) => constant.len(),
            Operand::Like(pattern) => pattern.len(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
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
