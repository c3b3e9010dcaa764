//! Types in JSON (01 §1.7.6).
//!
//! Reading goes through the type-of-types: the JSON of a type is the JSON of a value of that type,
//! so all acceptance rules hold without being written twice.

use super::decode::value_from_node;
use super::emit::{write_array, write_string};
use super::error::JsonError;
use super::parse::{parse, Node};
use crate::algebraic_type::{AlgebraicType, ProductType, TypePart, TypeRef};
use crate::bsatn::{Decode, Encode};
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

fn from_node<T: Decode>(meta: TypeRef, node: &Node<'_>) -> Result<T, JsonError> {
    let value = value_from_node(&META_TYPES, &AlgebraicType::Ref(meta), node)?;
    T::from_slice(&value.to_vec()).map_err(|e| JsonError::at(node, e.to_string()))
}

pub fn type_from_node(node: &Node<'_>) -> Result<AlgebraicType, JsonError> {
    from_node(META_ALGEBRAIC_TYPE, node)
}

pub fn type_from_json(text: &str) -> Result<AlgebraicType, JsonError> {
    type_from_node(&parse(text)?)
}

pub fn product_type_from_node(node: &Node<'_>) -> Result<ProductType, JsonError> {
    from_node(META_PRODUCT_TYPE, node)
}

pub fn product_type_from_json(text: &str) -> Result<ProductType, JsonError> {
    product_type_from_node(&parse(text)?)
}

pub fn typespace_from_node(node: &Node<'_>) -> Result<Typespace, JsonError> {
    from_node(META_TYPESPACE, node)
}

pub fn typespace_from_json(text: &str) -> Result<Typespace, JsonError> {
    typespace_from_node(&parse(text)?)
}

/// Appends the JSON form of a type: `{"U8":[]}`.
pub fn type_to_json(ty: &AlgebraicType, out: &mut String) {
    out.push_str("{\"");
    out.push_str(ty.constructor_name());
    out.push_str("\":");
    match ty {
        AlgebraicType::Ref(r) => out.push_str(&r.0.to_string()),
        AlgebraicType::Sum(sum) => write_list("variants", &sum.variants, out, write_part),
        AlgebraicType::Product(product) => product_type_to_json(product, out),
        AlgebraicType::Array(element) => type_to_json(element, out),
        _ => out.push_str("[]"),
    }
    out.push('}');
}

/// Appends the JSON form of a product type: `{"elements":[…]}`.
pub fn product_type_to_json(product: &ProductType, out: &mut String) {
    write_list("elements", &product.elements, out, write_part);
}

/// Appends the JSON form of a typespace: `{"types":[…]}`.
pub fn typespace_to_json(typespace: &Typespace, out: &mut String) {
    write_list("types", &typespace.types, out, type_to_json);
}

fn write_list<T>(key: &str, items: &[T], out: &mut String, write: fn(&T, &mut String)) {
    out.push_str("{\"");
    out.push_str(key);
    out.push_str("\":");
    write_array(items, out, write);
    out.push('}');
}

fn write_part(part: &TypePart, out: &mut String) {
    out.push_str("{\"name\":{");
    match part.name() {
        Some(name) => {
            out.push_str("\"some\":");
            write_string(name, out);
        }
        None => out.push_str("\"none\":[]"),
    }
    out.push_str("},\"algebraic_type\":");
    type_to_json(&part.algebraic_type, out);
    out.push('}');
}
