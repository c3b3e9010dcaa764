//! The raw structures as types, which give them their JSON form.

use lightcone_types::json::{META_ALGEBRAIC_TYPE, META_PRODUCT_TYPE, META_TYPESPACE};
use lightcone_types::{AlgebraicType, ColId, Hash, ProductType, TypeRef, Typespace};

/// A structure whose BSATN is that of values of a type.
pub trait Typed {
    /// The type. Its refs point into the types that describe types, and to version 10 of a module behind them.
    fn ty() -> AlgebraicType;
}

macro_rules! typed {
    ($($name:ty => $ty:expr),* $(,)?) => {$(
        impl Typed for $name {
            fn ty() -> AlgebraicType {
                $ty
            }
        }
    )*};
}

typed! {
    bool => AlgebraicType::Bool,
    u8 => AlgebraicType::U8,
    u32 => AlgebraicType::U32,
    i128 => AlgebraicType::I128,
    String => AlgebraicType::String,
    ColId => AlgebraicType::U16,
    Hash => AlgebraicType::HASH,
    TypeRef => AlgebraicType::U32,
    AlgebraicType => META_ALGEBRAIC_TYPE.into(),
    ProductType => META_PRODUCT_TYPE.into(),
    Typespace => META_TYPESPACE.into(),
}

impl<T: Typed> Typed for Vec<T> {
    fn ty() -> AlgebraicType {
        AlgebraicType::array(T::ty())
    }
}

impl<T: Typed> Typed for Option<T> {
    fn ty() -> AlgebraicType {
        AlgebraicType::option(T::ty())
    }
}
