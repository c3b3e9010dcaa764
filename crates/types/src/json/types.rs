//! Types in JSON (01 §1.7.6).
//!
//! All goes through the type-of-types: the JSON of a type is the JSON of a value of that type, so all rules hold without being
//! written twice.

use super::decode::value_from_node;
use super::emit::bsatn_to_json_named;
use super::error::JsonError;
use super::parse::Node;
use crate::algebraic_type::{AlgebraicType, ProductType, TypeRef};
use crate::bsatn::{Decode, Encode, Reader};
use crate::typespace::Typespace;
use std::sync::LazyLock;

/// `AlgebraicType` itself, as a type in [`META_TYPES`].
pub const META_ALGEBRAIC_TYPE: TypeRef = TypeRef(0);
const META_SUM_TYPE: TypeRef = TypeRef(1);
const META_SUM_TYPE_VARIANT: TypeRef = TypeRef(2);
/// `ProductType`, as a type in [`META_TYPES`].
pub const META_PRODUCT_TYPE: TypeRef = TypeRef(3);
const META_PRODUCT_TYPE_ELEMENT: TypeRef = TypeRef(4);
/// `Typespace`, as a type in [`META_TYPES`].
pub const META_TYPESPACE: TypeRef = TypeRef(5);

/// The types that describe types (01 §1.4). Descriptions of larger records append their own types
/// to a copy and refer to these by index.
pub static META_TYPES: LazyLock<Typespace> = LazyLock::new(|| {
    use AlgebraicType as T;
    let composed = [
        ("Ref", T::U32),
        ("Sum", T::Ref(META_SUM_TYPE)),
        ("Product", T::Ref(META_PRODUCT_TYPE)),
        ("Array", T::Ref(META_ALGEBRAIC_TYPE)),
    ];
    let leaves = (composed.len() as u8..).map_while(T::leaf_from_tag);
    let leaves = leaves.map(|leaf| (leaf.constructor_name(), T::unit()));
    let part = || {
        T::product([
            ("name", T::option(T::String)),
            ("algebraic_type", T::Ref(META_ALGEBRAIC_TYPE)),
        ])
    };
    Typespace::new(vec![
        T::sum(composed.into_iter().chain(leaves)),
        T::product([("variants", T::array(T::Ref(META_SUM_TYPE_VARIANT)))]),
        part(),
        T::product([("elements", T::array(T::Ref(META_PRODUCT_TYPE_ELEMENT)))]),
        part(),
        T::product([("types", T::array(T::Ref(META_ALGEBRAIC_TYPE)))]),
    ])
});

/// Appends the JSON of a description, which is a value of type `ty`.
pub fn description_to_json<T: Encode>(
    typespace: &Typespace,
    ty: &AlgebraicType,
    description: &T,
    out: &mut String,
) {
    let bytes = description.to_vec();
    let mut r = Reader::new(&bytes).trusting_depth();
    bsatn_to_json_named(typespace, ty, &mut r, out)
        .expect("what a description encodes to is a value of its type");
}

/// A description, which is a value of type `ty`, from its JSON.
pub fn description_from_node<T: Decode>(
    typespace: &Typespace,
    ty: &AlgebraicType,
    node: &Node<'_>,
) -> Result<T, JsonError> {
    let value = value_from_node(typespace, ty, node)?;
    T::from_slice(&value.to_vec()).map_err(|e| JsonError::at(node, e.to_string()))
}

pub fn product_type_from_node(node: &Node<'_>) -> Result<ProductType, JsonError> {
    description_from_node(&META_TYPES, &META_PRODUCT_TYPE.into(), node)
}

/// Appends the JSON form of a product type: `{"elements":[…]}`.
pub fn product_type_to_json(product: &ProductType, out: &mut String) {
    description_to_json(&META_TYPES, &META_PRODUCT_TYPE.into(), product, out);
}
