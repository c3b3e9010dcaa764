//! What a question to the catalogue consists of.

/// `[WITH …] query [ORDER BY …] [LIMIT …] [OFFSET …]`
#[derive(Debug)]
pub(super) struct Select {
    pub with: Vec<(String, Vec<String>, Select)>,
    pub first: Core,
    pub others: Vec<(SetOperation, Core)>,
    pub order: Vec<Order>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetOperation {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Debug)]
pub(super) enum Core {
    Select(Box<SelectCore>),
    Values(Vec<Vec<Expr>>),
    Nested(Box<Select>),
}

#[derive(Debug, Default)]
pub(super) struct SelectCore {
    pub distinct: Distinct,
    pub items: Vec<Item>,
    pub from: Vec<From>,
    pub filter: Option<Expr>,
    pub group: Vec<Expr>,
    pub having: Option<Expr>,
}

#[derive(Debug, Default)]
pub(super) enum Distinct {
    #[default]
    No,
    Rows,
    On(Vec<Expr>),
}

#[derive(Debug)]
pub(super) enum Item {
    /// `*`, or `t.*`.
    All(Option<String>),
    Expr(Expr, Option<String>),
}

/// What is read, and how it is joined with what stands before it.
#[derive(Debug)]
pub(super) struct From {
    pub join: Join,
    pub source: Source,
    pub alias: Option<String>,
    pub columns: Vec<String>,
    pub on: On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Debug)]
pub(super) enum On {
    Nothing,
    Expr(Expr),
    Using(Vec<String>),
}

#[derive(Debug)]
pub(super) enum Source {
    /// Parts of a name.
    Relation(Vec<String>),
    Select {
        select: Box<Select>,
        is_lateral: bool,
    },
    Function {
        call: Expr,
        is_numbered: bool,
    },
    Group(Vec<From>),
}

#[derive(Debug)]
pub(super) struct Order {
    pub expr: Expr,
    pub is_descending: bool,
    pub nulls_first: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    Concatenate,
    Like(Like),
}

/// A comparison of a text with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Like {
    pub is_not: bool,
    pub is_regular: bool,
    pub ignores_case: bool,
}

#[derive(Debug)]
pub(super) struct Call {
    pub name: String,
    pub arguments: Vec<Expr>,
    pub is_distinct: bool,
    pub order: Vec<Order>,
    pub filter: Option<Expr>,
    pub over: Option<Window>,
}

#[derive(Debug)]
pub(super) struct Window {
    pub partition: Vec<Expr>,
    pub order: Vec<Order>,
}

#[derive(Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Parts of a name.
    Column(Vec<String>),
    Call(Box<Call>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Binary(Operator, Box<(Expr, Expr)>),
    IsNull(Box<Expr>),
    /// Equal, where NULL is equal to NULL.
    IsSame(Box<(Expr, Expr)>),
    InList(Box<Expr>, Vec<Expr>),
    InSelect(Box<Expr>, Box<Select>),
    /// `left = ANY (list)`, `left <> ALL (list)`
    Any(Operator, Box<(Expr, Expr)>),
    All(Operator, Box<(Expr, Expr)>),
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// With the name of the type.
    Cast(Box<Expr>, String),
    Exists(Box<Select>),
    Scalar(Box<Select>),
    ArrayOfSelect(Box<Select>),
    Array(Vec<Expr>),
    Element(Box<(Expr, Expr)>),
    Field(Box<Expr>, String),
}
