//! Types of the columns of a question, and their names in PostgreSQL.

use lightcone_types::AlgebraicType;

use super::types::{name_of_oid, oid_of};
use AlgebraicType as T;

/// What a column is announced as.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// One that columns of tables have, too.
    Of(T),
    /// Of a number that is written out, or a numeric: a float that is rounded as decimal numbers are.
    Decimal,
    /// Of a relation: a number that is shown as a name.
    Relation,
    /// Of a type: the same.
    Kind,
    /// `int2vector`: numbers with blanks between them.
    Vector,
    /// A place in a list with what is there: `x` and `n`.
    Pair,
    /// Of a parameter, by its number from 0: it is that of what it meets.
    Parameter(u16),
}

/// What lists are made of. All other arrays keep their type.
const ELEMENTS: [Type; 5] = [Type::TEXT, Type::INT2, Type::INT4, Type::INT8, Type::BOOL];

/// What types are called in casts.
const NAMES: [(&str, Type); 10] = [
    ("bool|boolean", Type::BOOL),
    ("int2|smallint", Type::INT2),
    ("int4|int|integer|cardinal_number", Type::INT4),
    ("int8|bigint|oid|xid", Type::INT8),
    ("float4|float8|real|double precision", Type::FLOAT),
    ("numeric|decimal", Type::Decimal),
    ("regclass", Type::Relation),
    ("regtype", Type::Kind),
    ("int2vector|oidvector", Type::Vector),
    (TEXT_NAMES, Type::TEXT),
];
const TEXT_NAMES: &str = "text|varchar|character varying|name|char|bpchar|character|unknown|json|jsonb|uuid|pg_node_tree\
    |regproc|regprocedure|regnamespace|regrole|regoper|regoperator|regconfig|regdictionary|aclitem|inet|sql_identifier\
    |character_data|yes_or_no|timestamp|timestamptz|timestamp without time zone|timestamp with time zone|interval|date";

impl Type {
    pub const BOOL: Type = Type::Of(T::Bool);
    pub const INT2: Type = Type::Of(T::I16);
    pub const INT4: Type = Type::Of(T::I32);
    pub const INT8: Type = Type::Of(T::I64);
    pub const FLOAT4: Type = Type::Of(T::F32);
    pub const FLOAT: Type = Type::Of(T::F64);
    pub const TEXT: Type = Type::Of(T::String);

    /// The type of a column in an expression, where an option is what it holds.
    pub fn operand(&self) -> Type {
        let inner = match self {
            Type::Of(ty) => ty.as_option(),
            _ => None,
        };
        inner.map_or_else(|| self.clone(), |inner| Type::Of(inner.clone()).operand())
    }

    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Type::Of(T::Integer(_) | T::F32 | T::F64) | Type::Decimal | Type::Relation | Type::Kind
        )
    }

    /// Of an integer that is none of the three.
    pub fn is_whole(&self) -> bool {
        let named = [Type::INT2, Type::INT4, Type::INT8];
        matches!(self, Type::Of(T::Integer(_))) && !named.contains(self)
    }

    /// The type of values that keep it: nothing is made of them but their texts.
    pub fn kept(&self) -> Option<&T> {
        match self {
            Type::Of(T::Integer(_) | T::F32 | T::F64 | T::Bool | T::String) => None,
            Type::Of(ty) => (!self.is_list()).then_some(ty),
            _ => None,
        }
    }

    pub fn element(&self) -> Type {
        match self {
            Type::Vector => Type::INT2,
            Type::Of(T::Array(element)) if self.is_list() => Type::Of((**element).clone()),
            _ => Type::TEXT,
        }
    }

    pub fn list(&self) -> Type {
        let element = match self {
            Type::Of(ty) if ELEMENTS.contains(self) => ty,
            _ if self.is_whole() || matches!(self, Type::Relation | Type::Kind) => &T::I64,
            _ => &T::String,
        };
        Type::Of(T::array(element.clone()))
    }

    pub fn is_list(&self) -> bool {
        match self {
            Type::Of(T::Array(of)) => ELEMENTS
                .iter()
                .any(|e| matches!(e, Type::Of(e) if *e == **of)),
            ty => *ty == Type::Vector,
        }
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
            Type::Decimal => "double precision",
            Type::Relation => "regclass",
            Type::Kind => "regtype",
            _ if self.is_whole() => "numeric",
            Type::Of(ty) if self.is_number() || *self == Type::BOOL => name_of_oid(oid_of(ty)),
            _ => "text",
        }
    }

    pub fn algebraic(&self) -> AlgebraicType {
        match self {
            Type::Of(ty) => ty.clone(),
            Type::Decimal => T::F64,
            _ => T::String,
        }
    }
}

/// The columns of a table, from their names and types: `s`, `i`, `l` numbers, `f` floats, `b` truths, `t` texts, `v` vectors, `S`
/// and `T` lists. What stands behind `=` is not looked at.
pub fn columns_of(written: &'static str) -> Vec<(&'static str, Type)> {
    let column = |written: &'static str| {
        let (name, ty) = written.split_once(':').expect("a name and a type");
        let ty = match &ty[..1] {
            "s" => Type::INT2,
            "i" => Type::INT4,
            "l" => Type::INT8,
            "f" => Type::FLOAT,
            "b" => Type::BOOL,
            "v" => Type::Vector,
            "S" => Type::INT2.list(),
            "T" => Type::TEXT.list(),
            _ => Type::TEXT,
        };
        (name, ty)
    };
    written.split_whitespace().map(column).collect()
}

/// The type of one of several values.
pub fn common(types: &[Type]) -> Type {
    let first = types.first().unwrap_or(&Type::TEXT);
    if types.iter().all(|ty| ty == first) {
        return first.clone();
    }
    if types.iter().all(|ty| ty.is_number()) {
        let of = |ty: &Type| types.contains(ty);
        return match of(&Type::FLOAT) || of(&Type::FLOAT4) {
            true => Type::FLOAT,
            false if of(&Type::Decimal) => Type::Decimal,
            false => Type::INT8,
        };
    }
    // A list may be written as a text.
    let mut others = types.iter().filter(|ty| **ty != Type::TEXT);
    match others.next() {
        Some(list) if list.is_list() && others.all(|ty| ty == list) => list.clone(),
        _ => Type::TEXT,
    }
}
