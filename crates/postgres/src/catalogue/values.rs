//! Values in an answer of the catalogue: what they are, how they compare, and how they become others.

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_types::{AlgebraicType, AlgebraicValue};

use super::super::table::Cell;
use super::super::types::{name_of_oid, oid_of_name};
use super::stored::{Stored, Types};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(Arc<[Value]>),
    /// One of a table of the module that is none of these.
    Stored(Arc<Stored>),
}

/// What a column is announced as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
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
    Float4,
    /// Of a column of the module: an integer that is none of the three.
    Whole(u16),
    /// The same of any other type.
    Stored(u16),
    /// Of a parameter, by its number from 0: it is that of what it meets.
    Parameter(u16),
}

pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

impl Type {
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Type::Int2
                | Type::Int4
                | Type::Int8
                | Type::Float
                | Type::Float4
                | Type::Whole(_)
                | Type::Relation
                | Type::Kind
        )
    }

    pub fn element(self) -> Type {
        match self {
            Type::Vector | Type::Int2List => Type::Int2,
            Type::Int4List => Type::Int4,
            Type::Int8List => Type::Int8,
            Type::BoolList => Type::Bool,
            _ => Type::Text,
        }
    }

    pub fn list(self) -> Type {
        match self {
            Type::Int2 => Type::Int2List,
            Type::Int4 => Type::Int4List,
            Type::Int8 | Type::Whole(_) | Type::Relation | Type::Kind => Type::Int8List,
            Type::Bool => Type::BoolList,
            _ => Type::TextList,
        }
    }

    pub fn is_list(self) -> bool {
        use Type::{BoolList, Int2List, Int4List, Int8List, TextList, Vector};
        matches!(
            self,
            Vector | TextList | Int2List | Int4List | Int8List | BoolList
        )
    }

    /// The type that a name in a cast means. None: it is not known.
    pub fn named(name: &str) -> Option<Type> {
        Some(match name {
            "bool" | "boolean" => Type::Bool,
            "int2" | "smallint" => Type::Int2,
            "int4" | "int" | "integer" | "cardinal_number" => Type::Int4,
            "int8" | "bigint" | "oid" | "xid" | "numeric" | "decimal" => Type::Int8,
            "float4" | "float8" | "real" | "double precision" => Type::Float,
            "regclass" => Type::Relation,
            "regtype" => Type::Kind,
            "text"
            | "varchar"
            | "character varying"
            | "name"
            | "char"
            | "bpchar"
            | "character"
            | "regproc"
            | "regprocedure"
            | "regnamespace"
            | "regrole"
            | "regoper"
            | "regoperator"
            | "regconfig"
            | "regdictionary"
            | "unknown"
            | "sql_identifier"
            | "character_data"
            | "yes_or_no"
            | "json"
            | "jsonb"
            | "uuid"
            | "pg_node_tree"
            | "aclitem"
            | "inet"
            | "timestamp"
            | "timestamptz"
            | "timestamp without time zone"
            | "timestamp with time zone"
            | "interval"
            | "date" => Type::Text,
            "int2vector" | "oidvector" => Type::Vector,
            name => {
                let element = name.strip_suffix("[]")?;
                let element = Type::named(element).filter(|ty| !ty.is_list())?;
                element.list()
            }
        })
    }

    pub fn algebraic(self, types: &Types) -> AlgebraicType {
        use AlgebraicType as T;
        match self {
            Type::Float4 => T::F32,
            Type::Whole(at) | Type::Stored(at) => AlgebraicType::clone(types.at(at)),
            Type::Bool => T::Bool,
            Type::Int2 => T::I16,
            Type::Int4 => T::I32,
            Type::Int8 => T::I64,
            Type::Float => T::F64,
            Type::Text
            | Type::Relation
            | Type::Kind
            | Type::Vector
            | Type::Pair
            | Type::Parameter(_) => T::String,
            Type::TextList => T::array(T::String),
            Type::Int2List => T::array(T::I16),
            Type::Int4List => T::array(T::I32),
            Type::Int8List => T::array(T::I64),
            Type::BoolList => T::array(T::Bool),
        }
    }
}

/// Names of relations by their numbers, and the other way round.
pub(super) trait Names {
    fn relation(&self, oid: i64) -> Option<String>;
    fn oid(&self, name: &str) -> Option<i64>;
}

/// What a value cannot become.
pub(super) struct NoSuch(pub String);

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// None: it is NULL, or no truth.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Bool(is) => Some(*is),
            Value::Text(text) => truth_of(text),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Float(number) => Some(*number as i64),
            Value::Bool(is) => Some(i64::from(*is)),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Null | Value::List(_) | Value::Stored(_) => None,
        }
    }

    pub fn float(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Stored(stored) if stored.is_number() => stored.shown().parse().ok(),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Stored(_) => None,
        }
    }

    /// The elements of a list, also of one that is written as text.
    pub fn list(&self) -> Option<Arc<[Value]>> {
        match self {
            Value::List(list) => Some(list.clone()),
            Value::Text(text) => list_of(text),
            _ => None,
        }
    }

    /// As PostgreSQL writes it. NULL is empty.
    pub fn shown(&self) -> Arc<str> {
        match self {
            Value::Null => "".into(),
            Value::Bool(is) => if *is { "true" } else { "false" }.into(),
            Value::Int(number) => number.to_string().into(),
            Value::Float(number) => number.to_string().into(),
            Value::Text(text) => text.clone(),
            Value::List(list) => {
                let shown: Vec<String> = list.iter().map(Value::shown_in_list).collect();
                format!("{{{}}}", shown.join(",")).into()
            }
            Value::Stored(stored) => stored.shown().into(),
        }
    }

    fn shown_in_list(&self) -> String {
        let shown = match self {
            Value::Null => return "NULL".to_owned(),
            value => value.shown(),
        };
        let is_special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_whitespace();
        let is_null = shown.eq_ignore_ascii_case("null");
        match is_null || shown.is_empty() || shown.contains(is_special) {
            true => format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\"")),
            false => shown.to_string(),
        }
    }

    /// The work that copying it is, in steps.
    pub fn weight(&self) -> usize {
        match self {
            Value::Text(text) => 1 + text.len() / 16,
            Value::List(list) => 1 + list.iter().map(Value::weight).sum::<usize>(),
            Value::Stored(stored) => stored.weight,
            _ => 1,
        }
    }

    /// The work of comparing it with another, in steps.
    pub fn comparing(&self, other: &Value) -> usize {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => 1 + a.len().min(b.len()) / 64,
            // A text may have to be read as a number or as a list.
            (Value::Text(_) | Value::List(_) | Value::Stored(_), _)
            | (_, Value::Text(_) | Value::List(_) | Value::Stored(_)) => {
                self.weight() + other.weight()
            }
            _ => 1,
        }
    }

    /// None: one of them is NULL, or they have no order.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        use Value::{Bool, Float, Int, List, Null, Stored, Text};
        match (self, other) {
            (Null, _) | (_, Null) => None,
            (Text(a), Text(b)) => Some(a.cmp(b)),
            (Int(a), Int(b)) => Some(a.cmp(b)),
            (Bool(a), Bool(b)) => Some(a.cmp(b)),
            (Stored(a), Stored(b)) => a.compare(b),
            (Stored(a), Text(b)) => a.compare_text(b),
            (Text(a), Stored(b)) => b.compare_text(a).map(Ordering::reverse),
            (Stored(a), Int(b)) => a.compare_int(*b),
            (Int(a), Stored(b)) => b.compare_int(*a).map(Ordering::reverse),
            (Bool(_), _) | (_, Bool(_)) => Some(self.truth()?.cmp(&other.truth()?)),
            (Int(_), Text(_)) | (Text(_), Int(_)) if self.int().and(other.int()).is_some() => {
                Some(self.int()?.cmp(&other.int()?))
            }
            (Int(_) | Float(_), _) | (_, Int(_) | Float(_)) => {
                let (a, b) = (self.float()?, other.float()?);
                // What is no number comes last, and is the same as itself.
                let order = a.partial_cmp(&b);
                order.or_else(|| Some(a.is_nan().cmp(&b.is_nan())))
            }
            (List(_), _) | (_, List(_)) => {
                let (a, b) = (self.list()?, other.list()?);
                for (a, b) in a.iter().zip(b.iter()) {
                    match a.compare(b)? {
                        Ordering::Equal => {}
                        unequal => return Some(unequal),
                    }
                }
                Some(a.len().cmp(&b.len()))
            }
        }
    }

    /// In an order of all values, NULLs last.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.compare(other).unwrap_or(Ordering::Equal),
        }
    }

    pub fn cast(self, from: Type, to: Type, names: &dyn Names) -> Result<Value, NoSuch> {
        if self.is_null() {
            return Ok(self);
        }
        let wrong = |value: &Value| NoSuch(format!("{:?} is no {to:?}", value.shown()));
        Ok(match to {
            Type::Bool => Value::Bool(
                self.truth()
                    .or(self.int().map(|n| n != 0))
                    .ok_or_else(|| wrong(&self))?,
            ),
            Type::Int2 | Type::Int4 | Type::Int8 => match self {
                Value::Float(number) => Value::Int(number.round() as i64),
                _ => Value::Int(self.int().ok_or_else(|| wrong(&self))?),
            },
            Type::Float | Type::Float4 => Value::Float(self.float().ok_or_else(|| wrong(&self))?),
            Type::Whole(_) | Type::Stored(_) | Type::Parameter(_) => self,
            Type::Relation => match self.int() {
                Some(oid) => Value::Int(oid),
                None => {
                    let name = self.shown();
                    let oid = names.oid(&name);
                    Value::Int(
                        oid.ok_or_else(|| NoSuch(format!("relation \"{name}\" does not exist")))?,
                    )
                }
            },
            Type::Kind => match self.int() {
                Some(oid) => Value::Int(oid),
                None => {
                    let name = self.shown();
                    let short = name.strip_prefix("pg_catalog.").unwrap_or(&name);
                    let oid = oid_of_name(short.trim_matches('"'));
                    Value::Int(
                        oid.ok_or_else(|| NoSuch(format!("type \"{name}\" does not exist")))?
                            .into(),
                    )
                }
            },
            Type::Text | Type::Pair => match from {
                Type::Relation => {
                    let oid = self.int().unwrap_or_default();
                    let name = names.relation(oid);
                    name.map_or_else(|| Value::Text(self.shown()), |name| text(&name))
                }
                Type::Kind => text(name_of_oid(self.int().unwrap_or_default() as u32)),
                Type::Vector => Value::Text(self.vector()),
                _ => {
                    let shown = self.shown();
                    text(shown.strip_prefix("pg_catalog.").unwrap_or(&shown))
                }
            },
            Type::Vector
            | Type::TextList
            | Type::Int2List
            | Type::Int4List
            | Type::Int8List
            | Type::BoolList => {
                let list = self.list().ok_or_else(|| wrong(&self))?;
                let element = to.element();
                let cast = list
                    .iter()
                    .map(|value| value.clone().cast(from.element(), element, names));
                Value::List(cast.collect::<Result<_, _>>()?)
            }
        })
    }

    fn vector(&self) -> Arc<str> {
        let list = self.list().unwrap_or_default();
        let shown: Vec<Arc<str>> = list.iter().map(Value::shown).collect();
        shown.join(" ").into()
    }

    /// As a value of a column of an answer. None: it is none of the column's type.
    pub fn cell(&self, ty: Type, types: &Types, names: &dyn Names) -> Option<Cell> {
        if let Type::Whole(at) | Type::Stored(at) = ty {
            let ty = types.at(at);
            return match self.is_null() && ty.as_option().is_none() {
                true => Some(Cell::Null),
                false => self.as_stored(ty).map(Cell::Value),
            };
        }
        if self.is_null() {
            return Some(Cell::Null);
        }
        if !ty.is_list() || ty == Type::Vector {
            return self.answered(ty, names).map(Cell::Value);
        }
        let of = |value: &Value| match value {
            Value::Null => Some(None),
            value => value.answered(ty.element(), names).map(Some),
        };
        let elements = self.list()?.iter().map(of).collect::<Option<_>>();
        elements.map(Cell::List)
    }

    /// The same of one that is neither NULL nor a list.
    fn answered(&self, ty: Type, names: &dyn Names) -> Option<AlgebraicValue> {
        use AlgebraicValue as V;
        Some(match ty {
            Type::Bool => V::Bool(self.truth()?),
            Type::Int2 => V::I16(self.int()?.try_into().ok()?),
            Type::Int4 => V::I32(self.int()?.try_into().ok()?),
            Type::Int8 => V::I64(self.int()?),
            Type::Float => V::F64(self.float()?),
            Type::Float4 => V::F32(self.float()? as f32),
            Type::Text => V::String((&*self.shown()).into()),
            Type::Relation | Type::Kind | Type::Vector | Type::Pair => {
                let shown = self.clone().cast(ty, Type::Text, names).ok()?;
                V::String((&*shown.shown()).into())
            }
            Type::TextList | Type::Int2List | Type::Int4List | Type::Int8List | Type::BoolList => {
                return None
            }
            Type::Whole(_) | Type::Stored(_) | Type::Parameter(_) => return None,
        })
    }
}

fn truth_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// `{a,"b c"}`, of one dimension; and numbers with blanks between them.
fn list_of(written: &str) -> Option<Arc<[Value]>> {
    let Some(inner) = written.strip_prefix('{') else {
        return Some(written.split_whitespace().map(text).collect());
    };
    let inner = inner.strip_suffix('}')?;
    let mut list = Vec::new();
    if inner.is_empty() {
        return Some(list.into());
    }
    let mut characters = inner.chars();
    let (mut element, mut is_quoted, mut was_quoted) = (String::new(), false, false);
    loop {
        match characters.next() {
            Some('"') => {
                is_quoted = !is_quoted;
                was_quoted = true;
            }
            Some('\\') => element.push(characters.next()?),
            Some(c) if is_quoted || c != ',' => element.push(c),
            end => {
                let is_null = !was_quoted && element.eq_ignore_ascii_case("null");
                list.push(if is_null { Value::Null } else { text(&element) });
                if end.is_none() {
                    return (!is_quoted).then(|| list.into());
                }
                element.clear();
                was_quoted = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_of_different_kinds_compare() {
        let list = |texts: &[&str]| Value::List(texts.iter().map(|t| text(t)).collect());
        for (a, b, expected) in [
            (Value::Int(5), text("5"), Some(Ordering::Equal)),
            (text("a"), text("b"), Some(Ordering::Less)),
            (Value::Bool(true), text("f"), Some(Ordering::Greater)),
            (Value::Null, text("a"), None),
            (Value::Int(5), text("x"), None),
            (list(&["a", "b"]), text("{a,b}"), Some(Ordering::Equal)),
        ] {
            assert_eq!(a.compare(&b), expected, "{a:?} {b:?}");
        }
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(texts in prop::collection::vec(prop::option::of("[a \"\\\\{},é]{0,4}|null|NULL"), 0..5)) {
            let value = |t: &Option<String>| t.as_ref().map_or(Value::Null, |t| text(t));
            let list = Value::List(texts.iter().map(value).collect());
            prop_assert_eq!(Value::Text(list.shown()).list(), list.list());
        }

        #[test]
        fn any_text_is_a_list_or_none(written in "[{},\"\\\\a ]{0,12}") {
            let _ = list_of(&written);
        }
    }
}
