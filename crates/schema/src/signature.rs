//! The hash by which a sender knows the parameters of a reducer of another database (02 §8.7a).

use lightcone_types::bsatn::Encode;
use lightcone_types::{AlgebraicType, Hash, ProductType, TypeRef, Typespace};
use rustc_hash::FxHashMap;

/// What the hashed bytes begin with.
const DOMAIN: &[u8] = b"spacetimedb:idc:reducer-signature:v1\0";

/// The hash for parameters with canonical names, whose refs point into `typespace`.
pub(crate) fn hash(typespace: &Typespace, params: ProductType) -> Hash {
    let mut params = AlgebraicType::Product(params);
    let used = Used::by(&params, typespace);
    used.renumber(&mut params);
    let mut bytes = DOMAIN.to_vec();
    params.encode(&mut bytes);
    AlgebraicType::unit().encode(&mut bytes);
    AlgebraicType::String.encode(&mut bytes);
    (used.types.len() as u32).encode(&mut bytes);
    for ty in &used.types {
        let mut ty = (*ty).clone();
        used.renumber(&mut ty);
        ty.encode(&mut bytes);
    }
    Hash::keccak256(&bytes)
}

/// The types that some types use, in the order of their first use.
struct Used<'t> {
    types: Vec<&'t AlgebraicType>,
    numbers: FxHashMap<TypeRef, u32>,
}

impl<'t> Used<'t> {
    /// Refs may lead through as many types as there are, so this does not recurse.
    fn by(params: &AlgebraicType, typespace: &'t Typespace) -> Used<'t> {
        let mut used = Used {
            types: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let mut ahead = Vec::new();
        push_refs(params, &mut ahead);
        while let Some(next) = ahead.pop() {
            let Some(ty) = typespace.get(next) else {
                continue;
            };
            let number = used.types.len() as u32;
            if let std::collections::hash_map::Entry::Vacant(entry) = used.numbers.entry(next) {
                entry.insert(number);
                used.types.push(ty);
                push_refs(ty, &mut ahead);
            }
        }
        used
    }

    fn renumber(&self, ty: &mut AlgebraicType) {
        match ty {
            AlgebraicType::Ref(to) => {
                if let Some(&number) = self.numbers.get(to) {
                    *to = TypeRef(number);
                }
            }
            AlgebraicType::Product(product) => {
                let elements = product.elements.iter_mut();
                elements.for_each(|element| self.renumber(&mut element.algebraic_type));
            }
            AlgebraicType::Sum(sum) => {
                let variants = sum.variants.iter_mut();
                variants.for_each(|variant| self.renumber(&mut variant.algebraic_type));
            }
            AlgebraicType::Array(element) => self.renumber(element),
            _ => {}
        }
    }
}

/// The refs of a type, the first one on top. Types are nested within a bound, as they were decoded.
fn push_refs(ty: &AlgebraicType, refs: &mut Vec<TypeRef>) {
    match ty {
        AlgebraicType::Ref(to) => refs.push(*to),
        AlgebraicType::Product(product) => {
            let elements = product.elements.iter().rev();
            elements.for_each(|element| push_refs(&element.algebraic_type, refs));
        }
        AlgebraicType::Sum(sum) => {
            let variants = sum.variants.iter().rev();
            variants.for_each(|variant| push_refs(&variant.algebraic_type, refs));
        }
        AlgebraicType::Array(element) => push_refs(element, refs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params<const N: usize>(params: [(&str, AlgebraicType); N]) -> ProductType {
        match AlgebraicType::product(params) {
            AlgebraicType::Product(product) => product,
            _ => unreachable!("it is a product"),
        }
    }

    #[test]
    fn hashes_are_those_of_the_reference() {
        let none = Typespace::default();
        let text = |params| hash(&none, params).to_hex();
        assert_eq!(
            text(params([("body", AlgebraicType::String)])),
            "386957a94632958d5ae8343e258f3a6f9dce9d7dafc46831050894baa7a4e4e1"
        );
        assert_eq!(
            text(params([])),
            "bc436888fd947d2bfd49ed6bddad31f0245c34fd42c85f9360fa0b477aa957fc"
        );
    }

    #[test]
    fn places_in_the_typespace_do_not_matter() {
        let to = AlgebraicType::reference;
        let point = AlgebraicType::product([("x", AlgebraicType::I32)]);
        let line = |point, next| {
            let next = AlgebraicType::array(to(next));
            AlgebraicType::product([("from", to(point)), ("to", to(point)), ("next", next)])
        };
        let one = Typespace {
            types: vec![AlgebraicType::Bool, point.clone(), line(1, 2)],
        };
        let other = Typespace {
            types: vec![line(3, 0), AlgebraicType::Bool, AlgebraicType::U8, point],
        };
        let of = |typespace, line| hash(typespace, params([("line", to(line))]));
        assert_eq!(of(&one, 2), of(&other, 0));
        assert_ne!(of(&one, 2), hash(&one, params([("other", to(2))])));
    }
}
