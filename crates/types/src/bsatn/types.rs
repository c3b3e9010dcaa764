//! Types as BSATN values of the type-of-types (01 §1.4).

use super::decode::Decode;
use super::encode::Encode;
use super::reader::{DecodeError, Reader};
use crate::algebraic_type::{AlgebraicType, ProductType, SumType, TypePart, TypeRef};
use crate::typespace::Typespace;

impl Encode for AlgebraicType {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        match self {
            Self::Ref(r) => r.encode(out),
            Self::Sum(s) => s.encode(out),
            Self::Product(p) => p.encode(out),
            Self::Array(element) => element.encode(out),
            _ => {}
        }
    }
}

impl Decode for AlgebraicType {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.read_u8()? {
            0 => TypeRef::decode(r).map(Self::Ref),
            1 => r.nested(SumType::decode).map(Self::Sum),
            2 => r.nested(ProductType::decode).map(Self::Product),
            3 => r
                .nested(Self::decode)
                .map(|element| Self::Array(Box::new(element))),
            tag => Self::leaf_from_tag(tag).ok_or(DecodeError::invalid_tag(tag, "AlgebraicType")),
        }
    }
}

bsatn_products! {
    SumType { variants }
    ProductType { elements }
    TypePart { name, algebraic_type }
    Typespace { types }
}
