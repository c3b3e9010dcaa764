//! Conditions to steps, from the end.

use std::cmp::Ordering;

use lightcone_table::RowLayout;

use super::cost::Cost;
use super::evaluate::Predicate;
use super::step::{Holds, Jumps, Operand, Place, Step, Target, ACCEPT, REJECT};
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId};
use crate::lexer::Comparison;

/// Stands for the part that was compiled last, and runs behind what comes next.
const BEHIND: Target = REJECT - 1;

/// Where a part of a condition goes on.
#[derive(Clone, Copy)]
struct Ways {
    jumps: Jumps,
    /// The part stands under an odd number of `NOT`s.
    negated: bool,
}

impl Ways {
    fn new(on_true: Target, on_false: Target) -> Ways {
        Ways {
            jumps: Jumps { on_true, on_false },
            negated: false,
        }
    }

    fn on(self, truth: bool) -> Target {
        self.jumps.on(truth)
    }

    fn swapped(self) -> Ways {
        let ways = Ways::new(self.on(false), self.on(true));
        Ways {
            negated: !self.negated,
            ..ways
        }
    }

    /// The same, but that one way leads to the part behind.
    fn behind_if(mut self, truth: bool) -> Ways {
        match truth {
            true => self.jumps.on_true = BEHIND,
            false => self.jumps.on_false = BEHIND,
        }
        self
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
            entry = compiler.tree(*conjunct, Ways::new(entry, REJECT));
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

/// How many registers each node needs: the operand of a comparison of truths that needs more goes first, so a text of
/// [`QUERY_BYTES_MAX`](crate::QUERY_BYTES_MAX) never needs more than about 14 of the 64.
fn register_needs(nodes: &[Node]) -> Vec<u8> {
    let mut needs: Vec<u8> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let of = |id: &NodeId| needs[*id as usize];
        let need = match node {
            Node::Constant(_)
            | Node::ColumnConstant(..)
            | Node::SenderConstant(..)
            | Node::Like { .. }
            | Node::IsNull { .. }
            | Node::Exists { .. }
            | Node::Columns(..) => 0,
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

/// Work that is still to be done. Code is made from the end.
enum Work {
    Node(NodeId, Ways),
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
    fn tree(&mut self, root: NodeId, jumps: Ways) -> Target {
        let mut behind = ACCEPT;
        let mut pending = vec![Work::Node(root, jumps)];
        while let Some(work) = pending.pop() {
            let (node, jumps) = self.jumps_of(work, behind);
            if jumps.on(true) == jumps.on(false) {
                behind = jumps.on(true);
            } else if let Some(entry) = self.node(node, jumps, &mut pending) {
                behind = entry;
            }
        }
        behind
    }

    /// Where a node goes on, now that the part behind it is compiled.
    fn jumps_of(&mut self, work: Work, behind: Target) -> (NodeId, Ways) {
        match work {
            Work::Node(node, mut ways) => {
                for target in [&mut ways.jumps.on_true, &mut ways.jumps.on_false] {
                    if *target == BEHIND {
                        *target = behind;
                    }
                }
                (node, ways)
            }
            Work::Kept { node, register } => {
                let mut keep = |truth| {
                    self.emit(Step::Keep {
                        register,
                        truth,
                        next: behind,
                    })
                };
                // No relation of such a condition is without a row.
                (node, Ways::new(keep(true), keep(false)))
            }
        }
    }

    /// Compiles a node and gives its entry. None if its parts are to be compiled first: they are pending now.
    fn node(&mut self, node: NodeId, jumps: Ways, pending: &mut Vec<Work>) -> Option<Target> {
        let nodes = self.nodes;
        match &nodes[node as usize] {
            Node::Constant(truth) => return Some(jumps.on(*truth)),
            Node::SenderConstant(..) | Node::ColumnConstant(_, _, Constant::Sender(_)) => {
                unreachable!("conditions are bound before they are compiled")
            }
            Node::ColumnConstant(column, test, Constant::Value(constant)) => {
                let operand = Operand::constant(test.scalar, constant)
                    .expect("constants are encoded as their column's type");
                return Some(self.test(*column, test.comparison, operand, jumps));
            }
            Node::Exists { relation, .. } => {
                // A subquery has a match unless its first relation has no row.
                let place = Place::Fixed {
                    relation: *relation,
                    offset: 0,
                };
                let operand = Operand::Nothing { is_option: false };
                return Some(self.test_at(place, Comparison::Equal, operand, jumps.swapped()));
            }
            Node::IsNull { column, is_option } => {
                let operand = Operand::Nothing {
                    is_option: *is_option,
                };
                return Some(self.test(*column, Comparison::Equal, operand, jumps));
            }
            Node::Like { column, pattern } => {
                let operand = Operand::Like(pattern.clone());
                return Some(self.test(*column, Comparison::Equal, operand, jumps));
            }
            // A value equals itself, also where it is no number. With several relations there may be no value.
            Node::Columns(left, right, test) if left == right && self.layouts.len() == 1 => {
                return Some(jumps.on(test.comparison.holds(Ordering::Equal)));
            }
            Node::Columns(left, right, test) => {
                let operand = Operand::Column(self.place(*right), test.scalar);
                return Some(self.test(*left, test.comparison, operand, jumps));
            }
            Node::Not(inner) => pending.push(Work::Node(*inner, jumps.swapped())),
            Node::And(left, right) => {
                pending.push(Work::Node(*left, jumps.behind_if(true)));
                pending.push(Work::Node(*right, jumps));
            }
            Node::Or(left, right) => {
                pending.push(Work::Node(*left, jumps.behind_if(false)));
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
        jumps: Ways,
    ) -> Target {
        self.test_at(self.place(column), comparison, operand, jumps)
    }

    fn test_at(
        &mut self,
        place: Place,
        comparison: Comparison,
        operand: Operand,
        jumps: Ways,
    ) -> Target {
        self.emit(Step::Test {
            place,
            holds: Holds::of(comparison).negated(jumps.negated),
            operand,
            jumps: jumps.jumps,
        })
    }

    fn compare_truths(
        &mut self,
        comparison: Comparison,
        left: NodeId,
        right: NodeId,
        jumps: Ways,
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
        let of_first = |second| Ways::new(outcome(true, second), outcome(false, second));
        if let Node::Constant(second) = self.nodes[second as usize] {
            return pending.push(Work::Node(first, of_first(second)));
        }
        if let Node::Constant(first) = self.nodes[first as usize] {
            let ways = Ways::new(outcome(first, true), outcome(first, false));
            return pending.push(Work::Node(second, ways));
        }
        // Registers below this one are used within the second operand.
        let register = need(second);
        let mut recall = |second: bool| {
            let jumps = of_first(second).jumps;
            match jumps.on_true == jumps.on_false {
                true => jumps.on_true,
                false => self.emit(Step::Recall { register, jumps }),
            }
        };
        let ways = Ways::new(recall(true), recall(false));
        pending.push(Work::Kept {
            node: first,
            register,
        });
        pending.push(Work::Node(second, ways));
    }
}
