//! Values become those of other types: of columns of the module, of casts, of answers.

use std::sync::Arc;

use lightcone_types::bsatn::decode_value;
use lightcone_types::{AlgebraicType, AlgebraicValue, Reader, Typespace};

use super::cells::Cell;
use super::column_type::Type;
use super::failure::{state, Done, Failure};
use super::literals::write_literal;
use super::session::Session;
use super::stored::{typed, Stored};
use super::types::{name_of_oid, oid_of_name};
use super::value::Value;
use crate::literal::literal_value;

impl Value {
    /// A column of a row, from BSATN. Numbers, texts, truths and lists are those of all questions, the `none` of an option is NULL,
    /// and all else keeps its type.
    pub fn of_stored(ty: &Arc<AlgebraicType>, reader: &mut Reader<'_>) -> Value {
        let before = reader.remaining().len();
        let value = decode_value(&Typespace::default(), ty, reader).expect("stored rows decode");
        let bytes = before - reader.remaining().len();
        Value::kept(ty, value, 1 + bytes / 16)
    }

    /// A text as a value of a type. None: it denotes none.
    pub fn typed(text: &str, ty: &Arc<AlgebraicType>) -> Option<Value> {
        let weight = 1 + text.len() / 16;
        typed(text, ty).map(|value| Value::kept(ty, value, weight))
    }

    fn kept(ty: &Arc<AlgebraicType>, value: AlgebraicValue, weight: usize) -> Value {
        match (ty.as_option(), value) {
            (Some(inner), AlgebraicValue::Sum { tag: 0, value }) => {
                // A type may be large, so it is copied only for a value that keeps it.
                plain(&value)
                    .unwrap_or_else(|| Value::kept(&Arc::new(inner.clone()), *value, weight))
            }
            (Some(_), _) => Value::Null,
            (None, value) => plain(&value).unwrap_or_else(|| {
                let ty = ty.clone();
                Value::Stored(Arc::new(Stored { ty, value, weight }))
            }),
        }
    }

    /// As a value of a type of the module. None: it is none.
    pub fn as_stored(&self, ty: &AlgebraicType) -> Option<AlgebraicValue> {
        use {AlgebraicType as T, AlgebraicValue as V};
        if let Some(inner) = ty.as_option() {
            return match self {
                Value::Null => Some(V::none()),
                value => value.as_stored(inner).map(V::some),
            };
        }
        Some(match (self, ty) {
            (Value::Null, _) => return None,
            (Value::Stored(stored), ty) if *stored.ty == *ty => stored.value.clone(),
            (value, T::Bool) => V::Bool(value.truth()?),
            (value, T::String) => V::String((&*value.shown()).into()),
            (value, T::F32) => {
                let number = value.float()?;
                let stored = number as f32;
                V::F32((stored.is_finite() || !number.is_finite()).then_some(stored)?)
            }
            (value, T::F64) => V::F64(value.float()?),
            (value, &T::I16) => V::I16(value.int()?.try_into().ok()?),
            (value, &T::I32) => V::I32(value.int()?.try_into().ok()?),
            (value, &T::I64) => V::I64(value.int()?),
            (Value::List(list), T::Array(element)) => {
                let elements = list.iter().map(|value| value.as_stored(element));
                V::Array(elements.collect::<Option<_>>()?)
            }
            (Value::Int(number), ty) if ty.is_integer() => literal_value(&number.to_string(), ty)?,
            _ => return None,
        })
    }

    /// # Errors
    /// There is no such value of the type.
    pub fn cast(self, from: &Type, to: &Type, session: &dyn Session) -> Done<Value> {
        if self.is_null() {
            return Ok(self);
        }
        let invalid = |message| Failure::new(state::INVALID_TEXT, message);
        let wrong = |value: &Value| invalid(format!("{:?} is no {to:?}", value.shown()));
        let named = |kind: &str, find: &dyn Fn(&str) -> Option<i64>| {
            let name = self.shown();
            let found = self.int().or_else(|| find(&name)).map(Value::Int);
            found.ok_or_else(|| invalid(format!("{kind} \"{name}\" does not exist")))
        };
        Ok(match to {
            &Type::BOOL => {
                let truth = self.truth().or(self.int().map(|n| n != 0));
                truth.ok_or_else(|| wrong(&self))?.into()
            }
            &(Type::INT2 | Type::INT4 | Type::INT8) => {
                let number = match self {
                    Value::Float(number) => {
                        whole(number, from).ok_or_else(Failure::out_of_range)?
                    }
                    _ => self.int().ok_or_else(|| wrong(&self))?,
                };
                let fits = match *to {
                    Type::INT2 => i16::try_from(number).is_ok(),
                    Type::INT4 => i32::try_from(number).is_ok(),
                    _ => true,
                };
                let number = fits.then_some(Value::Int(number));
                number.ok_or_else(Failure::out_of_range)?
            }
            &(Type::FLOAT | Type::FLOAT4 | Type::Decimal) => {
                Value::Float(self.float().ok_or_else(|| wrong(&self))?)
            }
            Type::Relation => named("relation", &|name| session.oid(name))?,
            Type::Kind => named("type", &|name| {
                let short = name.strip_prefix("pg_catalog.").unwrap_or(name);
                oid_of_name(short.trim_matches('"')).map(i64::from)
            })?,
            &(Type::TEXT | Type::Pair) => match from {
                Type::Relation => match session.relation(self.int().unwrap_or_default()) {
                    Some(name) => name.into(),
                    None => Value::Text(self.shown()),
                },
                Type::Kind => name_of_oid(self.int().unwrap_or_default() as u32).into(),
                Type::Vector => {
                    let list = self.list().unwrap_or_default();
                    let shown: Vec<Arc<str>> = list.iter().map(Value::shown).collect();
                    shown.join(" ").into()
                }
                _ => {
                    let shown = self.shown();
                    shown.strip_prefix("pg_catalog.").unwrap_or(&shown).into()
                }
            },
            to if to.is_list() => {
                let list = self.list().ok_or_else(|| wrong(&self))?;
                let (from, to) = (from.element(), to.element());
                let cast = list
                    .iter()
                    .map(|value| value.clone().cast(&from, &to, session));
                Value::List(cast.collect::<Result<_, _>>()?)
            }
            _ => self,
        })
    }

    /// As a value of a column of an answer. None: it is none of the column's type.
    pub fn cell(&self, ty: &Type, session: &dyn Session) -> Option<Cell> {
        Some(match (self, ty) {
            (Value::Null, Type::Of(ty)) if ty.as_option().is_some() => {
                Cell::Value(AlgebraicValue::none())
            }
            (Value::Null, _) => Cell::Null,
            (value, Type::Of(AlgebraicType::Array(element))) if ty.is_list() => {
                let of = |value: &Value| match value {
                    Value::Null => Some(None),
                    value => value.as_stored(element).map(Some),
                };
                Cell::List(value.list()?.iter().map(of).collect::<Option<_>>()?)
            }
            (value, Type::Of(ty)) => Cell::Value(value.as_stored(ty)?),
            (value, Type::Decimal) => Cell::Value(AlgebraicValue::F64(value.float()?)),
            (value, ty) => {
                let text = value.clone().cast(ty, &Type::TEXT, session).ok()?;
                Cell::Value(AlgebraicValue::String((&*text.shown()).into()))
            }
        })
    }
}

/// A literal of the ad hoc language with which a column is compared as it is with a value here. None: there is none.
pub fn literal(ty: &AlgebraicType, value: &Value) -> Option<String> {
    use AlgebraicType as T;
    let is_same = match (value, ty) {
        (Value::Bool(_), T::Bool) | (Value::Text(_), T::String) => true,
        (Value::Int(_) | Value::Float(_), T::F64) => true,
        (Value::Int(_) | Value::Text(_), ty) => ty.is_integer(),
        (Value::Stored(stored), ty) => *stored.ty == *ty,
        _ => false,
    };
    write_literal(ty, &value.shown()).filter(|_| is_same)
}

/// The next integer; of two that are as near, the even one for a float, and the one farther from zero for a decimal number, as
/// PostgreSQL has it. None: there is none of 64 bits.
fn whole(number: f64, ty: &Type) -> Option<i64> {
    let whole = match ty {
        &(Type::FLOAT | Type::FLOAT4) => number.round_ties_even(),
        _ => number.round(),
    };
    let end = 2_f64.powi(63);
    (-end..end).contains(&whole).then_some(whole as i64)
}

/// A value as those of all questions. None: it is none of them.
fn plain(value: &AlgebraicValue) -> Option<Value> {
    use AlgebraicValue as V;
    Some(match value {
        V::Bool(is) => Value::Bool(*is),
        V::String(text) => Value::Text((&**text).into()),
        V::I8(n) => Value::Int((*n).into()),
        V::U8(n) => Value::Int((*n).into()),
        V::I16(n) => Value::Int((*n).into()),
        V::U16(n) => Value::Int((*n).into()),
        V::I32(n) => Value::Int((*n).into()),
        V::U32(n) => Value::Int((*n).into()),
        V::I64(n) => Value::Int(*n),
        V::U64(n) => Value::Int((*n).try_into().ok()?),
        V::I128(n) => Value::Int((*n).try_into().ok()?),
        V::U128(n) => Value::Int((*n).try_into().ok()?),
        V::I256(n) => Value::Int(n.to_string().parse().ok()?),
        V::U256(n) => Value::Int(n.to_string().parse().ok()?),
        // The number that is shown.
        V::F32(n) => Value::Float(n.to_string().parse().ok()?),
        V::F64(n) => Value::Float(*n),
        V::Array(elements) => Value::List(elements.iter().map(plain).collect::<Option<_>>()?),
        V::Sum { .. } | V::Product(_) | V::Bytes(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::Encode as _;
    use std::cmp::Ordering;
    use AlgebraicType as T;

    #[test]
    fn columns_come_out_as_they_are() {
        for (ty, value) in [
            (T::U64, AlgebraicValue::U64(u64::MAX)),
            (T::U64, AlgebraicValue::U64(7)),
            (T::F32, AlgebraicValue::F32(0.1)),
            (T::option(T::U32), AlgebraicValue::none()),
            (
                T::option(T::U32),
                AlgebraicValue::some(AlgebraicValue::U32(3)),
            ),
            (T::array(T::U8), AlgebraicValue::Bytes(vec![1, 2])),
            (
                T::array(T::U32),
                AlgebraicValue::Array(vec![AlgebraicValue::U32(3)]),
            ),
            (
                T::timestamp(),
                AlgebraicValue::Product(vec![AlgebraicValue::I64(5)]),
            ),
        ] {
            let bsatn = value.to_vec();
            let shared = Arc::new(ty.clone());
            let read = Value::of_stored(&shared, &mut Reader::new(&bsatn));
            assert_eq!(read.as_stored(&ty), Some(value), "{ty:?}");
            assert_eq!(Type::Of(ty.clone()).algebraic(), ty);
        }
    }

    #[test]
    fn texts_are_values_of_columns() {
        let time = Arc::new(T::timestamp());
        let early = Value::typed("2025-02-10", &time).expect("a time");
        let late = Value::typed("2025-02-10 00:00:01", &time).expect("a time");
        assert_eq!(early.compare(&late), Some(Ordering::Less));
        let text = Value::from("2025-02-10T00:00:01Z");
        assert_eq!(text.compare(&late), Some(Ordering::Equal));
        assert_eq!(Value::typed("x", &time), None);
    }
}
