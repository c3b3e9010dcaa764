//! Types of the columns of a question, and their names in PostgreSQL.

use std::sync::Arc;

use lightcone_types::AlgebraicType;

/// What a column is announced as.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float,
    Text,
    /// Of a relation: a number that is shown as a name.
    Relation,
    /// Of a type: the same.
    Kind,
    /// `int2vector`: numbers with blanks between them.
    Vector,
    TextList,
    Int2List,
    Int4List,
    Int8List,
    BoolList,
    /// A place in a list with what is there: `x` and `n`.
    Pair,
    /// Of a column of the module: an integer that is none of the three.
    Whole(Arc<AlgebraicType>),
    /// The same of any other type.
    Stored(Arc<AlgebraicType>),
    /// Of a parameter, by its number from 0: it is that of what it meets.
    Parameter(u16),
}

/// Types of stored columns that have one of ours.
const PLAIN: [(AlgebraicType, Type); 7] = [
    (AlgebraicType::Bool, Type::Bool),
    (AlgebraicType::I16, Type::Int2),
    (AlgebraicType::I32, Type::Int4),
    (AlgebraicType::I64, Type::Int8),
    (AlgebraicType::F32, Type::Float4),
    (AlgebraicType::F64, Type::Float),
    (AlgebraicType::String, Type::Text),
];

/// Elements and lists of them.
const LISTS: [(Type, Type); 5] = [
    (Type::Text, Type::TextList),
    (Type::Int2, Type::Int2List),
    (Type::Int4, Type::Int4List),
    (Type::Int8, Type::Int8List),
    (Type::Bool, Type::BoolList),
];

/// What types are called in casts.
const NAMES: [(&str, Type); 9] = [
    ("bool|boolean", Type::Bool),
    ("int2|smallint", Type::Int2),
    ("int4|int|integer|cardinal_number", Type::Int4),
    ("int8|bigint|oid|xid", Type::Int8),
    (FLOAT_NAMES, Type::Float),
    ("regclass", Type::Relation),
    ("regtype", Type::Kind),
    ("int2vector|oidvector", Type::Vector),
    (TEXT_NAMES, Type::Text),
];
const FLOAT_NAMES: &str = "float4|float8|real|double precision|numeric|decimal";
const TEXT_NAMES: &str = "text|varchar|character varying|name|char|bpchar|character|unknown|json|jsonb|uuid|pg_node_tree\
    |regproc|regprocedure|regnamespace|regrole|regoper|regoperator|regconfig|regdictionary|aclitem|inet|sql_identifier\
    |character_data|yes_or_no|timestamp|timestamptz|timestamp without time zone|timestamp with time zone|interval|date";

impl Type {
    /// What a column of the module is announced as.
    pub fn of(ty: &AlgebraicType) -> Type {
        let plain = |ty: &AlgebraicType| PLAIN.iter().find(|(known, _)| known == ty);
        let element = match ty {
            AlgebraicType::Array(element) => plain(element),
            _ => None,
        };
        match (plain(ty), element) {
            (Some((_, plain)), _) => plain.clone(),
            (_, Some((_, element))) if element.list().element() == *element => element.list(),
            _ if ty.is_integer() => Type::Whole(Arc::new(ty.clone())),
            _ => Type::Stored(Arc::new(ty.clone())),
        }
    }

    /// The type of a column in an expression, where an option is what it holds.
    pub fn operand(&self) -> Type {
        let inner = match self {
            Type::Stored(ty) => ty.as_option(),
            _ => None,
        };
        inner.map_or_else(|| self.clone(), |inner| Type::of(inner).operand())
    }

    pub fn is_number(&self) -> bool {
        use Type::{Float, Float4, Int2, Int4, Int8, Kind, Relation, Whole};
        matches!(
            self,
            Int2 | Int4 | Int8 | Float | Float4 | Whole(_) | Relation | Kind
        )
    }

    pub fn element(&self) -> Type {
        let known = LISTS.iter().find(|(_, list)| list == self);
        match known {
            Some((element, _)) => element.clone(),
            None if *self == Type::Vector => Type::Int2,
            None => Type::Text,
        }
    }

    pub fn list(&self) -> Type {
        let known = LISTS.iter().find(|(element, _)| element == self);
        match self {
            Type::Whole(_) | Type::Relation | Type::Kind => Type::Int8List,
            _ => known.map_or(Type::TextList, |(_, list)| list.clone()),
        }
    }

    pub fn is_list(&self) -> bool {
        *self == Type::Vector || LISTS.iter().any(|(_, list)| list == self)
    }

    /// The type that a name in a cast means. None: it is not known.
    pub fn named(name: &str) -> Option<Type> {
        let is_named = |(names, _): &&(&str, _)| names.split('|').any(|known| known == name);
        if let Some((_, ty)) = NAMES.iter().find(is_named) {
            return Some(ty.clone());
        }
        let element = Type::named(name.strip_suffix("[]")?)?;
        (!element.is_list()).then(|| element.list())
    }

    /// What it is called where two do not go together.
    pub fn name(&self) -> &'static str {
        match self {
            Type::Bool => "boolean",
            Type::Int2 => "smallint",
            Type::Int4 => "integer",
            Type::Int8 => "bigint",
            Type::Float4 => "real",
            Type::Float => "double precision",
            Type::Whole(_) => "numeric",
            Type::Relation => "regclass",
            Type::Kind => "regtype",
            _ => "text",
        }
    }

    pub fn algebraic(&self) -> AlgebraicType {
        match self {
            Type::Whole(ty) | Type::Stored(ty) => AlgebraicType::clone(ty),
            ty if ty.is_list() && *ty != Type::Vector => {
                AlgebraicType::array(ty.element().algebraic())
            }
            ty => {
                let known = PLAIN.iter().find(|(_, plain)| plain == ty);
                known.map_or(AlgebraicType::String, |(plain, _)| plain.clone())
            }
        }
    }
}

/// The columns of a table, from their names and types: `s`, `i`, `l` numbers, `f` floats, `b` truths, `t` texts, `v` vectors, `S`
/// and `T` lists. What stands behind `=` is not looked at.
pub fn columns_of(written: &'static str) -> Vec<(&'static str, Type)> {
    let column = |written: &'static str| {
        let (name, ty) = written.split_once(':').expect("a name and a type");
        let ty = match &ty[..1] {
            "s" => Type::Int2,
            "i" => Type::Int4,
            "l" => Type::Int8,
            "f" => Type::Float,
            "b" => Type::Bool,
            "v" => Type::Vector,
            "S" => Type::Int2List,
            "T" => Type::TextList,
            _ => Type::Text,
        };
        (name, ty)
    };
    written.split_whitespace().map(column).collect()
}

/// The type of one of several values.
pub fn common(types: &[Type]) -> Type {
    let first = types.first().unwrap_or(&Type::Text);
    if types.iter().all(|ty| ty == first) {
        return first.clone();
    }
    if types.iter().all(|ty| ty.is_number()) {
        let is_float = types.contains(&Type::Float) || types.contains(&Type::Float4);
        return if is_float { Type::Float } else { Type::Int8 };
    }
    // A list may be written as a text.
    let mut others = types.iter().filter(|ty| **ty != Type::Text);
    match others.next() {
        Some(list) if list.is_list() && others.all(|ty| ty == list) => list.clone(),
        _ => Type::Text,
    }
}
