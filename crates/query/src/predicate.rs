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

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, I256, U256};

use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId};
use crate::lexer::Comparison;
use crate::scalar::{
    compare_floats, content, f32_at, f64_at, i128_at, i16_at, i256_at, i32_at, i64_at, i8_at,
    u128_at, u16_at, u256_at, u32_at, u64_at, Scalar,
};

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

    fn swapped(self) -> Jumps {
        Jumps {
            on_true: self.on_false,
            on_false: self.on_true,
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

/// The orderings under which a comparison holds, as bits: less, equal, greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holds(u8);

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

    #[inline]
    fn on(self, ordering: Ordering) -> bool {
        self.0 >> (ordering as i8 + 1) & 1 != 0
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

/// Bytes that are compared, or walked over, in the time of one step.
const BYTES_PER_STEP: usize = 8;

/// What evaluating a predicate takes at most, in steps: comparisons of a number, a few nanoseconds each. Every step is gone
/// through once at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    /// On any row.
    steps: usize,
    /// Tests that may have to look at all bytes of a row.
    whole_rows: usize,
}

impl Cost {
    fn of(steps: &[Step], layouts: &[&RowLayout]) -> Cost {
        let mut cost = Cost {
            steps: steps.len(),
            whole_rows: 0,
        };
        for step in steps {
            let Step::Test { place, operand, .. } = step else {
                continue;
            };
            let other = match operand {
                Operand::Column(other, _) => Some(*other),
                _ => None,
            };
            for place in [Some(*place), other].into_iter().flatten() {
                let first_walked = first_walked(layouts[usize::from(place.relation())]);
                cost.steps += place.columns_before();
                cost.whole_rows += usize::from(place.columns_before() > first_walked);
            }
            match operand {
                Operand::Bytes(constant) => cost.steps += constant.len() / BYTES_PER_STEP,
                Operand::Column(_, Scalar::Bytes) => cost.whole_rows += 1,
                _ => {}
            }
        }
        cost
    }
}

/// The first column whose size is found only by walking over its elements.
fn first_walked(layout: &RowLayout) -> usize {
    let is_walked = |column: &usize| {
        let skipped = match layout.column_type(*column) {
            AlgebraicType::String => true,
            ty => ty.is_bytes() || layout.column_size(*column).is_some(),
        };
        !skipped
    };
    let columns = layout.column_count();
    (0..columns).find(is_walked).unwrap_or(columns)
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

    /// The same for a condition on several relations. A comparison with a row that is not there makes the whole not match.
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

/// Compiles conjuncts of one condition.
pub(crate) struct PredicateCompiler<'c> {
    condition: &'c Condition,
    registers: Vec<u8>,
    layouts: Vec<&'c RowLayout>,
}

impl<'c> PredicateCompiler<'c> {
    /// `layouts` are those of the relations that the condition is on. Nothing in it may be `:sender` any more.
    pub fn new(condition: &'c Condition, layouts: Vec<&'c RowLayout>) -> PredicateCompiler<'c> {
        PredicateCompiler {
            registers: register_needs(&condition.nodes),
            condition,
            layouts,
        }
    }

    /// The predicate that all of the given conjuncts hold; `None` if they always do.
    pub fn compile(&self, conjuncts: &[NodeId]) -> Option<Predicate> {
        let mut compiler = Compiler {
            nodes: &self.condition.nodes,
            registers: &self.registers,
            layouts: &self.layouts,
            steps: Vec::new(),
        };
        let mut entry = ACCEPT;
        for conjunct in conjuncts.iter().rev() {
            let jumps = Jumps {
                on_true: entry,
                on_false: REJECT,
            };
            entry = compiler.tree(*conjunct, jumps);
        }
        let steps = if entry >= REJECT {
            Vec::new()
        } else {
            compiler.steps
        };
        (entry != ACCEPT).then(|| Predicate {
            cost: Cost::of(&steps, &self.layouts),
            steps: steps.into(),
            entry,
        })
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
        Operand::Column(other, scalar) => scalar.compare(bytes, bytes_at(tuple, *other)?)?,
    })
}

/// How many registers each node needs: the operand of a comparison of truths that needs more goes first, so a text of
/// [`QUERY_BYTES_MAX`](crate::QUERY_BYTES_MAX) never needs more than about 14 of the 64.
fn register_needs(nodes: &[Node]) -> Vec<u8> {
    let mut needs: Vec<u8> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let of = |id: &NodeId| needs[*id as usize];
        let need = match node {
            Node::Constant(_)
            | Node::ColumnConstant { .. }
            | Node::SenderConstant { .. }
            | Node::Columns { .. } => 0,
            Node::Not(inner) => of(inner),
            Node::And(left, right) | Node::Or(left, right) => of(left).max(of(right)),
            Node::CompareTruths(_, left, right) => {
                let (more, less) = (of(left).max(of(right)), of(left).min(of(right)));
                more.max(less + 1)
            }
        };
        needs.push(need);
    }
    needs
}

struct Compiler<'a> {
    nodes: &'a [Node],
    registers: &'a [u8],
    layouts: &'a [&'a RowLayout],
    steps: Vec<Step>,
}

/// Work that is still to be done. Code is made from the end: "the part behind" is what was compiled last, and runs after
/// this one.
enum Work {
    Node(NodeId, Jumps),
    /// A node that goes on to the part behind if it is true.
    TrueGoesOn {
        node: NodeId,
        on_false: Target,
    },
    /// A node that goes on to the part behind if it is false.
    FalseGoesOn {
        node: NodeId,
        on_true: Target,
    },
    /// A node whose truth is kept in a register for the part behind.
    Kept {
        node: NodeId,
        register: u8,
    },
}

impl Compiler<'_> {
    fn emit(&mut self, step: Step) -> Target {
        self.steps.push(step);
        (self.steps.len() - 1) as Target
    }

    fn place(&self, at: ColumnAt) -> Place {
        let (relation, column) = (at.relation, at.column.0);
        let layout = self.layouts[usize::from(relation)];
        let start = layout.constant_start(usize::from(column));
        match start.and_then(|offset| u32::try_from(offset).ok()) {
            Some(offset) => Place::Fixed { relation, offset },
            None => Place::Column { relation, column },
        }
    }

    /// Compiles a tree and gives its entry.
    fn tree(&mut self, root: NodeId, jumps: Jumps) -> Target {
        let mut behind = ACCEPT;
        let mut pending = vec![Work::Node(root, jumps)];
        while let Some(work) = pending.pop() {
            let (node, jumps) = self.jumps_of(work, behind);
            if jumps.on_true == jumps.on_false {
                behind = jumps.on_true;
            } else if let Some(entry) = self.node(node, jumps, &mut pending) {
                behind = entry;
            }
        }
        behind
    }

    /// Where a node goes on, now that the part behind it is compiled.
    fn jumps_of(&mut self, work: Work, behind: Target) -> (NodeId, Jumps) {
        let (node, on_true, on_false) = match work {
            Work::Node(node, jumps) => return (node, jumps),
            Work::TrueGoesOn { node, on_false } => (node, behind, on_false),
            Work::FalseGoesOn { node, on_true } => (node, on_true, behind),
            Work::Kept { node, register } => {
                let mut keep = |truth| {
                    self.emit(Step::Keep {
                        register,
                        truth,
                        next: behind,
                    })
                };
                (node, keep(true), keep(false))
            }
        };
        (node, Jumps { on_true, on_false })
    }

    /// Compiles a node and gives its entry. None if its parts are to be compiled first: they are pending now.
    fn node(&mut self, node: NodeId, jumps: Jumps, pending: &mut Vec<Work>) -> Option<Target> {
        let nodes = self.nodes;
        match &nodes[node as usize] {
            Node::Constant(truth) => return Some(jumps.on(*truth)),
            Node::SenderConstant { .. } => {
                unreachable!("conditions are bound before they are compiled")
            }
            Node::ColumnConstant {
                column,
                scalar,
                comparison,
                constant,
            } => {
                let Constant::Value(constant) = constant else {
                    unreachable!("conditions are bound before they are compiled");
                };
                let operand = Operand::constant(*scalar, constant)
                    .expect("constants are encoded as their column's type");
                return Some(self.test(*column, *comparison, operand, jumps));
            }
            // A value equals itself, also where it is no number.
            Node::Columns {
                left,
                right,
                comparison,
                ..
            } if left == right => {
                return Some(jumps.on(Holds::of(*comparison).on(Ordering::Equal)));
            }
            Node::Columns {
                left,
                right,
                scalar,
                comparison,
            } => {
                let operand = Operand::Column(self.place(*right), *scalar);
                return Some(self.test(*left, *comparison, operand, jumps));
            }
            Node::Not(inner) => pending.push(Work::Node(*inner, jumps.swapped())),
            Node::And(left, right) => {
                pending.push(Work::TrueGoesOn {
                    node: *left,
                    on_false: jumps.on_false,
                });
                pending.push(Work::Node(*right, jumps));
            }
            Node::Or(left, right) => {
                pending.push(Work::FalseGoesOn {
                    node: *left,
                    on_true: jumps.on_true,
                });
                pending.push(Work::Node(*right, jumps));
            }
            Node::CompareTruths(comparison, left, right) => {
                self.compare_truths(*comparison, *left, *right, jumps, pending);
            }
        }
        None
    }

    fn test(
        &mut self,
        column: ColumnAt,
        comparison: Comparison,
        operand: Operand,
        jumps: Jumps,
    ) -> Target {
        let place = self.place(column);
        self.emit(Step::Test {
            place,
            holds: Holds::of(comparison),
            operand,
            jumps,
        })
    }

    fn compare_truths(
        &mut self,
        comparison: Comparison,
        left: NodeId,
        right: NodeId,
        jumps: Jumps,
        pending: &mut Vec<Work>,
    ) {
        let need = |id: NodeId| self.registers[id as usize];
        let (first, second, comparison) = if need(left) >= need(right) {
            (left, right, comparison)
        } else {
            (right, left, comparison.flipped())
        };
        let holds = Holds::of(comparison);
        let outcome = |first: bool, second: bool| jumps.on(holds.on(first.cmp(&second)));
        if let Node::Constant(second) = self.nodes[second as usize] {
            let jumps = Jumps {
                on_true: outcome(true, second),
                on_false: outcome(false, second),
            };
            pending.push(Work::Node(first, jumps));
            return;
        }
        if let Node::Constant(first) = self.nodes[first as usize] {
            let jumps = Jumps {
                on_true: outcome(first, true),
                on_false: outcome(first, false),
            };
            pending.push(Work::Node(second, jumps));
            return;
        }
        // Registers below this one are used within the second operand.
        let register = need(second);
        let mut recall = |second: bool| {
            let jumps = Jumps {
                on_true: outcome(true, second),
                on_false: outcome(false, second),
            };
            match jumps.on_true == jumps.on_false {
                true => jumps.on_true,
                false => self.emit(Step::Recall { register, jumps }),
            }
        };
        let jumps = Jumps {
            on_true: recall(true),
            on_false: recall(false),
        };
        pending.push(Work::Kept {
            node: first,
            register,
        });
        pending.push(Work::Node(second, jumps));
    }
}
