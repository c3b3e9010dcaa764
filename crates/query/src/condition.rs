//! Checked conditions: names resolved, types known, constants encoded, and no other walk than from operands up.

use std::sync::Arc;

use lightcone_types::{view_args_hash, ColId, Identity};

use crate::lexer::Comparison;
use crate::literal;
use crate::scalar::Scalar;

/// Position of a [`Node`] in its [`Condition`].
pub(crate) type NodeId = u32;

/// Position of a [`Subquery`] in its [`Condition`].
pub(crate) type SubqueryId = u16;

/// A column of one of the relations of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnAt {
    /// Position of the relation in its query.
    pub relation: u16,
    pub column: ColId,
}

/// What a query gives the view that it reads, in BSATN; none if the view has no parameters.
pub type ViewArguments = Option<Arc<[u8]>>;

/// What `:sender` is where it stands (08 §4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderAs {
    Identity,
    /// The 32 bytes, big-endian.
    Bytes,
    /// The hidden column of the rows that a view has for the caller and these arguments (08 §10.1).
    ViewInstance(ViewArguments),
}

impl SenderAs {
    /// The value for this caller, in BSATN.
    pub fn bsatn(&self, sender: &Identity) -> Box<[u8]> {
        match self {
            SenderAs::Identity => sender.to_le_bytes().into(),
            SenderAs::ViewInstance(arguments) => {
                let arguments = arguments.as_deref().unwrap_or_default();
                let hashed = [&sender.as_le_bytes()[..], arguments].concat();
                view_args_hash(&hashed).0.into()
            }
            SenderAs::Bytes => literal::with_length(&sender.to_be_bytes())
                .expect("32 bytes have a length")
                .into(),
        }
    }
}

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// In BSATN.
    Value(Box<[u8]>),
    Sender(SenderAs),
}

impl Constant {
    /// The value in BSATN, for this caller.
    pub fn bound(&self, sender: &Identity) -> Box<[u8]> {
        match self {
            Constant::Value(value) => value.clone(),
            Constant::Sender(form) => form.bsatn(sender),
        }
    }
}

/// How values of a type are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub scalar: Scalar,
    pub comparison: Comparison,
}

impl Test {
    pub fn equal(scalar: Scalar) -> Test {
        let comparison = Comparison::Equal;
        Test { scalar, comparison }
    }

    /// With the operands exchanged.
    pub fn flipped(self) -> Test {
        Test {
            comparison: self.comparison.flipped(),
            ..self
        }
    }

    /// Does it hold of two values of the type?
    pub fn holds(self, left: &[u8], right: &[u8]) -> Node {
        let ordering = self.scalar.compare(left, right);
        let ordering = ordering.expect("both are values of the type");
        Node::Constant(self.comparison.holds(ordering))
    }

    pub fn is_equal(self) -> bool {
        self.comparison == Comparison::Equal
    }
}

/// Something that is true or false of a row of each relation.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(bool),
    /// A column compared with a constant of its type.
    ColumnConstant(ColumnAt, Test, Constant),
    /// `:sender` compared with a value in BSATN.
    SenderConstant(SenderAs, Test, Box<[u8]>),
    /// Two columns of one type.
    Columns(ColumnAt, ColumnAt, Test),
    /// A String column is like a pattern.
    Like {
        column: ColumnAt,
        pattern: Box<str>,
    },
    /// A column of a relation that may have no row has no value.
    IsNull {
        column: ColumnAt,
        is_option: bool,
    },
    /// A subquery has a match: then its first relation has a row.
    Exists {
        subquery: SubqueryId,
        relation: u16,
    },
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Not(NodeId),
    /// Two truth values compared, false being less than true.
    CompareTruths(Comparison, NodeId, NodeId),
}

impl Node {
    /// The nodes it is made of.
    pub fn operands(&self) -> [Option<NodeId>; 2] {
        match self {
            Node::And(left, right)
            | Node::Or(left, right)
            | Node::CompareTruths(_, left, right) => [Some(*left), Some(*right)],
            Node::Not(inner) => [Some(*inner), None],
            _ => [None, None],
        }
    }

    /// The columns it reads itself.
    pub fn columns(&self) -> [Option<ColumnAt>; 2] {
        match self {
            Node::ColumnConstant(column, ..)
            | Node::Like { column, .. }
            | Node::IsNull { column, .. } => [Some(*column), None],
            Node::Columns(left, right, _) => [Some(*left), Some(*right)],
            _ => [None, None],
        }
    }

    /// The columns that it says are equal.
    pub fn equal_columns(&self) -> Option<[ColumnAt; 2]> {
        match self {
            Node::Columns(left, right, test) if test.is_equal() => Some([*left, *right]),
            _ => None,
        }
    }

    /// The column that it says has a value, and that. Equal values of a column have equal bytes, but for floats, which are left out.
    pub fn equal_value(&self) -> Option<(ColumnAt, &Constant)> {
        match self {
            Node::ColumnConstant(column, test, constant)
                if test.is_equal() && !test.scalar.is_float() =>
            {
                Some((*column, constant))
            }
            _ => None,
        }
    }

    fn reads_sender(&self) -> bool {
        matches!(
            self,
            Node::SenderConstant(..) | Node::ColumnConstant(_, _, Constant::Sender(_))
        )
    }

    /// The same for one caller.
    fn bind(&self, sender: &Identity) -> Node {
        match self {
            Node::ColumnConstant(column, test, Constant::Sender(form)) => {
                Node::ColumnConstant(*column, *test, Constant::Value(form.bsatn(sender)))
            }
            Node::SenderConstant(form, test, constant) => test.holds(&form.bsatn(sender), constant),
            other => other.clone(),
        }
    }

    /// The same in a longer list of nodes, of a query with more relations.
    fn moved(&self, by: By, relation: &impl Fn(u16) -> u16) -> Node {
        let mut node = self.with(|id| id + by.nodes, relation);
        if let Node::Exists { subquery, .. } = &mut node {
            *subquery += by.subqueries;
        }
        node
    }

    /// The same of other nodes and relations.
    pub fn with(&self, operand: impl Fn(NodeId) -> NodeId, relation: impl Fn(u16) -> u16) -> Node {
        let mut node = self.clone();
        match &mut node {
            Node::ColumnConstant(column, ..)
            | Node::Like { column, .. }
            | Node::IsNull { column, .. } => {
                column.relation = relation(column.relation);
            }
            Node::Columns(left, right, _) => {
                left.relation = relation(left.relation);
                right.relation = relation(right.relation);
            }
            Node::Exists {
                relation: first, ..
            } => *first = relation(*first),
            Node::And(left, right)
            | Node::Or(left, right)
            | Node::CompareTruths(_, left, right) => {
                *left = operand(*left);
                *right = operand(*right);
            }
            Node::Not(inner) => *inner = operand(*inner),
            Node::Constant(_) | Node::SenderConstant(..) => {}
        }
        node
    }
}

/// A comparison of a column with a constant that must hold.
pub(crate) struct ConstantConjunct<'c> {
    /// Position among the conjuncts.
    pub position: usize,
    pub column: ColumnAt,
    pub test: Test,
    pub constant: &'c Constant,
    /// No other encoding is equal: that is so of all values but the zeros of floats.
    pub is_bytewise: bool,
}

/// How far nodes and subqueries move when a condition becomes part of another.
#[derive(Clone, Copy)]
struct By {
    nodes: NodeId,
    subqueries: SubqueryId,
}

/// Relations of a query of which only matters whether they have a match: a semi-join, or an anti-join, with what is around
/// them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subquery {
    /// One at least; those of the subqueries inside not counted.
    pub relations: Vec<u16>,
    /// What must hold of a match. They may read the relations around it.
    pub conjuncts: Vec<NodeId>,
    /// The subquery that it stands in, if it stands in one.
    pub parent: Option<SubqueryId>,
}

impl Subquery {
    fn moved(&self, by: By, relation: &impl Fn(u16) -> u16) -> Subquery {
        Subquery {
            relations: self.relations.iter().map(|&own| relation(own)).collect(),
            conjuncts: self.conjuncts.iter().map(|id| id + by.nodes).collect(),
            parent: self.parent.map(|parent| parent + by.subqueries),
        }
    }
}

/// The condition of a query, as a list of conjuncts over one tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    /// Operands stand before what uses them.
    pub nodes: Vec<Node>,
    /// The terms that the top level joins with `AND`; all must hold.
    pub conjuncts: Vec<NodeId>,
    /// Those that nodes name.
    pub subqueries: Vec<Subquery>,
}

impl Condition {
    /// Adds a node behind what it is made of.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    /// Adds the terms that this node joins with `AND`.
    pub fn add_conjuncts(&mut self, root: NodeId) {
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            match self.nodes[id as usize] {
                Node::And(left, right) => pending.extend([right, left]),
                _ => self.conjuncts.push(id),
            }
        }
    }

    /// Adds a value that a column must have too: the first of the conjuncts, as it is the one to find rows by.
    pub fn add_value(&mut self, column: ColumnAt, scalar: Scalar, constant: Constant) {
        self.conjuncts.insert(0, self.nodes.len() as NodeId);
        let node = Node::ColumnConstant(column, Test::equal(scalar), constant);
        self.nodes.push(node);
    }

    /// Adds a comparison of two columns that must hold too.
    pub fn add_equality(&mut self, left: ColumnAt, right: ColumnAt, scalar: Scalar) {
        self.conjuncts.push(self.nodes.len() as NodeId);
        let node = Node::Columns(left, right, Test::equal(scalar));
        self.nodes.push(node);
    }

    /// Takes in the nodes of another condition, whose relations are called differently here. Gives its conjuncts, which need
    /// not hold here.
    pub fn take_in(&mut self, other: &Condition, relation: &impl Fn(u16) -> u16) -> Vec<NodeId> {
        let by = By {
            nodes: self.nodes.len() as NodeId,
            subqueries: self.subqueries.len() as SubqueryId,
        };
        let nodes = other.nodes.iter().map(|node| node.moved(by, relation));
        self.nodes.extend(nodes);
        let subqueries = other.subqueries.iter();
        self.subqueries
            .extend(subqueries.map(|subquery| subquery.moved(by, relation)));
        other.conjuncts.iter().map(|id| id + by.nodes).collect()
    }

    /// Adds a subquery, with its condition, over relations of this query. Gives the node that it has a match.
    pub fn add_subquery(&mut self, condition: &Condition, relations: Vec<u16>) -> Node {
        let nested = self.subqueries.len();
        let conjuncts = self.take_in(condition, &|relation| relation);
        self.close_subquery(nested, relations, conjuncts)
    }

    /// Adds a subquery of what is there already: its conjuncts, and the subqueries in it, which begin at `nested`.
    pub fn close_subquery(
        &mut self,
        nested: usize,
        relations: Vec<u16>,
        conjuncts: Vec<NodeId>,
    ) -> Node {
        let subquery = self.subqueries.len() as SubqueryId;
        for inner in &mut self.subqueries[nested..] {
            inner.parent.get_or_insert(subquery);
        }
        let relation = relations[0];
        self.subqueries.push(Subquery {
            relations,
            conjuncts,
            parent: None,
        });
        Node::Exists { subquery, relation }
    }

    pub fn reads_sender(&self) -> bool {
        self.nodes.iter().any(Node::reads_sender)
    }

    /// The condition for one caller: nothing in it is `:sender`.
    pub fn bind(self: &Arc<Self>, sender: &Identity) -> Arc<Condition> {
        if !self.reads_sender() {
            return self.clone();
        }
        Arc::new(Condition {
            nodes: self.nodes.iter().map(|node| node.bind(sender)).collect(),
            conjuncts: self.conjuncts.clone(),
            subqueries: self.subqueries.clone(),
        })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let of_constant = |node: &Node| match node {
            Node::ColumnConstant(_, _, Constant::Value(value))
            | Node::SenderConstant(_, _, value) => value.len(),
            Node::Like { pattern, .. } => pattern.len(),
            _ => 0,
        };
        let constants: usize = self.nodes.iter().map(of_constant).sum();
        self.nodes.capacity() * size_of::<Node>()
            + self.conjuncts.capacity() * size_of::<NodeId>()
            + self.subqueries.capacity() * size_of::<Subquery>()
            + constants
    }

    /// Those of these conjuncts that compare a column with a constant.
    pub fn constants_of<'c>(
        &'c self,
        conjuncts: &'c [NodeId],
    ) -> impl Iterator<Item = ConstantConjunct<'c>> {
        let conjuncts = conjuncts.iter().enumerate();
        conjuncts.filter_map(|(position, id)| match &self.nodes[*id as usize] {
            Node::ColumnConstant(column, test, constant) => Some(ConstantConjunct {
                position,
                column: *column,
                test: *test,
                constant,
                is_bytewise: !is_float_zero(test.scalar, constant),
            }),
            _ => None,
        })
    }

    /// `column = constant` conjuncts. A float zero is left out, as the two zeros are equal and encoded differently.
    pub fn equalities(&self) -> impl Iterator<Item = ConstantConjunct<'_>> {
        self.equalities_of(&self.conjuncts)
    }

    /// Those of these conjuncts.
    pub fn equalities_of<'c>(
        &'c self,
        conjuncts: &'c [NodeId],
    ) -> impl Iterator<Item = ConstantConjunct<'c>> {
        self.constants_of(conjuncts)
            .filter(|c| c.test.is_equal() && c.is_bytewise)
    }

    /// Calls `visit` with a node and all that it is made of.
    fn visit_tree(&self, root: NodeId, mut visit: impl FnMut(&Node)) {
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            let node = &self.nodes[id as usize];
            visit(node);
            pending.extend(node.operands().into_iter().flatten());
        }
    }

    /// A node and all that it is made of, operands first.
    pub fn tree(&self, root: NodeId) -> Vec<NodeId> {
        let (mut ids, mut pending) = (Vec::new(), vec![root]);
        while let Some(id) = pending.pop() {
            ids.push(id);
            let operands = self.nodes[id as usize].operands();
            pending.extend(operands.into_iter().flatten());
        }
        // Operands stand before what uses them. `BETWEEN` and `IN` use one several times.
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    pub fn conjunct_reads_sender(&self, conjunct: NodeId) -> bool {
        let mut reads_sender = false;
        self.visit_tree(conjunct, |node| reads_sender |= node.reads_sender());
        reads_sender
    }

    /// The columns that a conjunct reads, some more than once.
    pub fn columns_of(&self, conjunct: NodeId) -> Vec<ColumnAt> {
        let mut columns = Vec::new();
        self.visit_tree(conjunct, |node| {
            columns.extend(node.columns().into_iter().flatten());
        });
        columns
    }

    /// The relations that a tree reads, ascending.
    pub fn relations_of(&self, root: NodeId) -> Vec<u16> {
        let mut relations = Vec::new();
        self.visit_tree(root, |node| {
            relations.extend(node.columns().into_iter().flatten().map(|c| c.relation));
        });
        relations.sort_unstable();
        relations.dedup();
        relations
    }

    /// The subqueries that a tree names. Each is named once.
    pub fn subqueries_of(&self, root: NodeId) -> Vec<SubqueryId> {
        let mut named = Vec::new();
        self.visit_tree(root, |node| {
            if let Node::Exists { subquery, .. } = node {
                named.push(*subquery);
            }
        });
        named
    }
}

fn is_float_zero(scalar: Scalar, constant: &Constant) -> bool {
    match constant {
        Constant::Value(value) if scalar.is_float() => value.iter().all(|b| *b == 0),
        _ => false,
    }
}
