//! Checked conditions: names resolved, types known, constants encoded, and no other walk than from operands up.

use lightcone_types::ColId;

use crate::lexer::Comparison;
use crate::scalar::Scalar;

/// Position of a [`Node`] in its [`Condition`].
pub(crate) type NodeId = u32;

/// Something that is true or false of a row.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(bool),
    /// The column compared with a constant of its type, in BSATN.
    ColumnConstant {
        column: ColId,
        scalar: Scalar,
        comparison: Comparison,
        constant: Box<[u8]>,
    },
    /// Two columns of one type.
    Columns {
        left: ColId,
        right: ColId,
        scalar: Scalar,
        comparison: Comparison,
    },
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Not(NodeId),
    /// Two truth values compared, false being less than true.
    CompareTruths(Comparison, NodeId, NodeId),
}

/// The condition of a query on one relation, as a list of conjuncts over one tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    /// Operands stand before what uses them.
    pub nodes: Vec<Node>,
    /// The terms that the top level joins with `AND`; all must hold.
    pub conjuncts: Vec<NodeId>,
}

impl Condition {
    /// A condition whose root is the last node.
    pub fn new(nodes: Vec<Node>) -> Condition {
        let mut conjuncts = Vec::new();
        let mut pending: Vec<NodeId> = nodes
            .len()
            .checked_sub(1)
            .map(|root| root as NodeId)
            .into_iter()
            .collect();
        while let Some(id) = pending.pop() {
            match nodes[id as usize] {
                Node::And(left, right) => pending.extend([right, left]),
                _ => conjuncts.push(id),
            }
        }
        Condition { nodes, conjuncts }
    }

    /// The same condition, and a value that a column must have: the first of the conjuncts.
    pub fn and_equal(mut self, column: ColId, scalar: Scalar, constant: &[u8]) -> Condition {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node::ColumnConstant {
            column,
            scalar,
            comparison: Comparison::Equal,
            constant: constant.into(),
        });
        self.conjuncts.insert(0, id);
        self
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let of_constant = |node: &Node| match node {
            Node::ColumnConstant { constant, .. } => constant.len(),
            _ => 0,
        };
        let constants: usize = self.nodes.iter().map(of_constant).sum();
        self.nodes.capacity() * size_of::<Node>()
            + self.conjuncts.capacity() * size_of::<NodeId>()
            + constants
    }

    /// `column = constant` conjuncts: the conjunct's position, the column and the constant.
    ///
    /// A float zero is left out, as the two zeros are equal and encoded differently.
    pub fn equalities(&self) -> impl Iterator<Item = (usize, ColId, &[u8])> {
        self.conjuncts
            .iter()
            .enumerate()
            .filter_map(|(position, id)| match &self.nodes[*id as usize] {
                Node::ColumnConstant {
                    column,
                    scalar,
                    comparison: Comparison::Equal,
                    constant,
                } => {
                    let is_float_zero = matches!(scalar, Scalar::F32 | Scalar::F64)
                        && constant.iter().all(|b| *b == 0);
                    (!is_float_zero).then_some((position, *column, &**constant))
                }
                _ => None,
            })
    }
}
