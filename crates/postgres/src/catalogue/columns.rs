//! Columns of the module's tables, as expressions see them: numbers, texts, truths and lists are those of all questions, the
//! `none` of an option is NULL, and all else keeps its type.

use std::sync::Arc;

use lightcone_query::literal_value;
use lightcone_types::bsatn::decode_value;
use lightcone_types::{AlgebraicType, AlgebraicValue, Reader, Typespace};

use super::super::parameters::write_literal;
use super::stored::{typed, Stored, Types};
use super::values::{Type, Value};

impl Types {
    /// What a column is announced as.
    pub fn of(&mut self, ty: &AlgebraicType) -> Type {
        use AlgebraicType as T;
        match ty {
            T::Bool => return Type::Bool,
            T::I16 => return Type::Int2,
            T::I32 => return Type::Int4,
            T::I64 => return Type::Int8,
            T::F32 => return Type::Float4,
            T::F64 => return Type::Float,
            T::String => return Type::Text,
            T::Array(element)
                if matches!(**element, T::Bool | T::I16 | T::I32 | T::I64 | T::String) =>
            {
                return self.of(element).list();
            }
            _ => {}
        }
        let at = self.place(ty);
        match ty.is_integer() {
            true => Type::Whole(at),
            false => Type::Stored(at),
        }
    }

    /// The type of a column in an expression, where an option is what it holds.
    pub fn operand(&mut self, ty: Type) -> Type {
        let Type::Stored(at) = ty else {
            return ty;
        };
        match self.at(at).clone().as_option() {
            Some(inner) => {
                let inner = self.of(inner);
                self.operand(inner)
            }
            None => ty,
        }
    }
}

impl Value {
    /// A column of a row, from BSATN.
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
                Value::Stored(Arc::new(Stored {
                    ty: ty.clone(),
                    value,
                    weight,
                }))
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
            (Value::Stored(stored), ty) => {
                return (*stored.ty == *ty).then(|| stored.value.clone());
            }
            (Value::Bool(is), T::Bool) => V::Bool(*is),
            (Value::Text(text), T::String) => V::String((&**text).into()),
            (Value::Float(number), T::F32) => V::F32(*number as f32),
            (Value::Float(number), T::F64) => V::F64(*number),
            (Value::List(list), T::Array(element)) => {
                let elements = list.iter().map(|value| value.as_stored(element));
                V::Array(elements.collect::<Option<_>>()?)
            }
            (Value::Int(number), ty) if ty.is_integer() => literal_value(&number.to_string(), ty)?,
            _ => return None,
        })
    }
}

/// A literal of the ad hoc language with which a column is compared as it is with a value here. None: there is none.
pub(super) fn literal(ty: &AlgebraicType, value: &Value) -> Option<String> {
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
        let mut types = Types::default();
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
            let announced = types.of(&ty);
            assert_eq!(announced.algebraic(&types), ty);
        }
    }

    #[test]
    fn texts_are_values_of_columns() {
        let time = Arc::new(T::timestamp());
        let early = Value::typed("2025-02-10", &time).expect("a time");
        let late = Value::typed("2025-02-10 00:00:01", &time).expect("a time");
        assert_eq!(early.compare(&late), Some(Ordering::Less));
        let text = Value::Text("2025-02-10T00:00:01Z".into());
        assert_eq!(text.compare(&late), Some(Ordering::Equal));
        assert_eq!(Value::typed("x", &time), None);
    }
}
