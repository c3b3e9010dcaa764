//! JSON to values, driven by the expected type (01 §1.7.5).

use super::error::JsonError;
use super::parse::{is_integer, parse, shortened, Node, NodeKind};
use crate::algebraic_type::{AlgebraicType, ProductType, SumType, TypePart};
use crate::algebraic_value::AlgebraicValue;
use crate::bsatn::{decode_integer, encode_value, Reader};
use crate::hex;
use crate::integer::{with_integer, IntegerType};
use crate::typespace::Typespace;

/// The word for a product in error texts (01 §1.7.8).
#[derive(Clone, Copy, Debug)]
pub enum ProductRole<'a> {
    /// A record or tuple.
    Product,
    /// The arguments of the named reducer, procedure or view, and the canonical names of its parameters.
    Arguments(&'a str, &'a [String]),
}

pub fn value_from_json(
    typespace: &Typespace,
    ty: &AlgebraicType,
    text: &str,
) -> Result<AlgebraicValue, JsonError> {
    value_from_node(typespace, ty, &parse(text)?)
}

/// Parses `text` as the arguments of `function`, an array or an object keyed by parameter names, as declared or as in
/// `canonical_names`, and returns their BSATN.
pub fn args_from_json(
    typespace: &Typespace,
    params: &ProductType,
    canonical_names: &[String],
    function: &str,
    text: &str,
) -> Result<Vec<u8>, JsonError> {
    let node = parse(text)?;
    let role = ProductRole::Arguments(function, canonical_names);
    let mut bsatn = Vec::new();
    for value in product_from_node(typespace, params, role, &node)? {
        encode_value(&value, &mut bsatn);
    }
    Ok(bsatn)
}

pub fn value_from_node(
    typespace: &Typespace,
    ty: &AlgebraicType,
    node: &Node<'_>,
) -> Result<AlgebraicValue, JsonError> {
    use AlgebraicType as T;
    use AlgebraicValue as V;
    let follow = |ty| {
        typespace
            .follow(ty)
            .map_err(|e| JsonError::at(node, e.to_string()))
    };
    Ok(match follow(ty)? {
        T::Ref(_) => unreachable!("follow() ends at another constructor"),
        T::Sum(sum) => return sum_from_node(typespace, sum, node),
        T::Product(product) => V::Product(product_from_node(
            typespace,
            product,
            ProductRole::Product,
            node,
        )?),
        // An empty array, too, must be of a type that exists, as in BSATN.
        T::Array(element) => match follow(element)? {
            T::Integer(IntegerType::U8) => V::Bytes(bytes_from_node(node)?),
            _ => V::Array(array_from_node(typespace, element, node)?),
        },
        T::String => match &node.kind {
            NodeKind::String(s) => V::String(s.as_ref().into()),
            _ => return Err(invalid_type(node, "a string")),
        },
        T::Bool => match node.kind {
            NodeKind::Bool(b) => V::Bool(b),
            _ => return Err(invalid_type(node, "a boolean")),
        },
        T::Integer(ty) => integer_from_node(*ty, node)?,
        // Converted from binary64; a magnitude beyond binary32 becomes an infinity.
        T::F32 => V::F32(float(node, "f32")? as f32),
        T::F64 => V::F64(float(node, "f64")?),
    })
}

fn invalid_type(node: &Node<'_>, expected: &str) -> JsonError {
    JsonError::at(
        node,
        format!("invalid type: {}, expected {expected}", node.describe()),
    )
}

fn invalid_value(node: &Node<'_>, expected: &str) -> JsonError {
    JsonError::at(
        node,
        format!("invalid value: {}, expected {expected}", node.describe()),
    )
}

fn integer_from_node(ty: IntegerType, node: &Node<'_>) -> Result<AlgebraicValue, JsonError> {
    let name = ty.rust_name();
    if ty.bytes() > size_of::<u128>() {
        let bytes = hex_number(node, ty)?;
        let value = decode_integer(ty, &mut Reader::new(&bytes));
        return value.map_err(|error| JsonError::at(node, error.to_string()));
    }
    with_integer!(ty, N => match size_of::<N>() > size_of::<u64>() {
        true => wide_integer::<N>(node, name).map(AlgebraicValue::from),
        false => integer::<N>(node, name).map(AlgebraicValue::from),
    })
}

/// Integers up to 64 bits. `-0` is a float in JSON readers of this width.
fn integer<N: std::str::FromStr>(node: &Node<'_>, name: &str) -> Result<N, JsonError> {
    match node.kind {
        NodeKind::Number("-0") => Err(JsonError::at(
            node,
            format!("invalid type: floating point `-0.0`, expected {name}"),
        )),
        NodeKind::Number(text) if is_integer(text) => {
            text.parse().map_err(|_| invalid_value(node, name))
        }
        _ => Err(invalid_type(node, name)),
    }
}

/// 128-bit integers. `parse` rejects any sign for `u128`, as the rules want.
fn wide_integer<N: std::str::FromStr>(node: &Node<'_>, name: &str) -> Result<N, JsonError> {
    match node.kind {
        NodeKind::Number(text) if is_integer(text) => text
            .parse()
            .map_err(|_| JsonError::at(node, format!("number out of range for {name}"))),
        _ => Err(invalid_type(node, name)),
    }
}

/// The BSATN of an integer of more than 128 bits.
fn hex_number(node: &Node<'_>, ty: IntegerType) -> Result<Vec<u8>, JsonError> {
    let expected = format!("{} as a `0x` hex string", ty.rust_name());
    match &node.kind {
        NodeKind::String(text) => hex::parse_number(text, ty.bytes(), ty.is_signed())
            .ok_or_else(|| invalid_value(node, &expected)),
        _ => Err(invalid_type(node, &expected)),
    }
}

fn float(node: &Node<'_>, name: &str) -> Result<f64, JsonError> {
    match node.kind {
        NodeKind::Number(text) => text
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .ok_or_else(|| JsonError::at(node, "number out of range")),
        _ => Err(invalid_type(node, name)),
    }
}

fn bytes_from_node(node: &Node<'_>) -> Result<Vec<u8>, JsonError> {
    const EXPECTED: &str = "a byte array or hex string";
    match &node.kind {
        NodeKind::String(text) => hex::decode(text).ok_or_else(|| invalid_value(node, EXPECTED)),
        NodeKind::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, e)| integer(e, "u8").map_err(|error| error.in_element(index)))
            .collect(),
        _ => Err(invalid_type(node, EXPECTED)),
    }
}

fn array_from_node(
    typespace: &Typespace,
    element: &AlgebraicType,
    node: &Node<'_>,
) -> Result<Vec<AlgebraicValue>, JsonError> {
    let NodeKind::Array(elements) = &node.kind else {
        return Err(invalid_type(node, "an array"));
    };
    let values = elements.iter().enumerate().map(|(index, e)| {
        value_from_node(typespace, element, e).map_err(|error| error.in_element(index))
    });
    values.collect()
}

/// The elements of a product from an array, or from an object with every name exactly once.
pub fn product_from_node(
    typespace: &Typespace,
    product: &ProductType,
    role: ProductRole<'_>,
    node: &Node<'_>,
) -> Result<Vec<AlgebraicValue>, JsonError> {
    let expected = || match role {
        ProductRole::Product => format!("product type <product> with {} elements", product.len()),
        ProductRole::Arguments(function, _) => {
            format!(
                "reducer args for {function} with {} elements",
                product.len()
            )
        }
    };
    match &node.kind {
        NodeKind::Array(elements) if elements.len() == product.len() => {
            let pairs = product.elements.iter().zip(elements).enumerate();
            pairs
                .map(|(index, (e, node))| {
                    value_from_node(typespace, &e.algebraic_type, node)
                        .map_err(|error| error.in_element(index))
                })
                .collect()
        }
        NodeKind::Array(elements) => Err(JsonError::at(
            node,
            format!("invalid length {}, expected {}", elements.len(), expected()),
        )),
        NodeKind::Object(entries) => named_product(typespace, product, role, node, entries),
        _ => Err(invalid_type(node, &expected())),
    }
}

fn named_product(
    typespace: &Typespace,
    product: &ProductType,
    role: ProductRole<'_>,
    node: &Node<'_>,
    entries: &[(std::borrow::Cow<'_, str>, Node<'_>)],
) -> Result<Vec<AlgebraicValue>, JsonError> {
    let (what, canonical_names) = match role {
        ProductRole::Product => ("field", &[][..]),
        ProductRole::Arguments(_, names) => ("reducer argument", names),
    };
    let mut values: Vec<Option<AlgebraicValue>> = vec![None; product.len()];
    for (key, entry) in entries {
        let canonical = || {
            let index = canonical_names.iter().position(|name| name == key)?;
            Some((index, product.elements.get(index)?))
        };
        let declared = TypePart::find(&product.elements, key);
        let Some((index, element)) = declared.or_else(canonical) else {
            let names = product.elements.iter().map(|e| e.name());
            let message = format!(
                "unknown {what} `{}`, {}",
                shortened(key),
                expected_names(names)
            );
            return Err(JsonError::at(entry, message));
        };
        if values[index].is_some() {
            return Err(JsonError::at(entry, format!("duplicate {what} `{key}`")));
        }
        let value = value_from_node(typespace, &element.algebraic_type, entry)
            .map_err(|error| error.in_field(key))?;
        values[index] = Some(value);
    }
    let named = values.into_iter().zip(&product.elements).enumerate();
    named
        .map(|(index, (value, element))| {
            value.ok_or_else(|| match element.name() {
                Some(name) => JsonError::at(node, format!("missing {what} `{name}`")),
                None => JsonError::at(node, format!("missing {what} `{index}`")),
            })
        })
        .collect()
}

fn sum_from_node(
    typespace: &Typespace,
    sum: &SumType,
    node: &Node<'_>,
) -> Result<AlgebraicValue, JsonError> {
    let (tag, payload) = match &node.kind {
        NodeKind::Null if sum.is_option() => return Ok(AlgebraicValue::none()),
        NodeKind::Object(entries) => match &entries[..] {
            [(key, payload)] => (tag_of_text(sum, key, payload)?, payload),
            _ => {
                return Err(JsonError::at(
                    node,
                    "expected map representing sum type to have exactly one field",
                ))
            }
        },
        NodeKind::Array(elements) => match &elements[..] {
            [selector, payload] => (tag_of_selector(sum, selector)?, payload),
            _ => {
                return Err(JsonError::at(
                    node,
                    "expected seq representing sum type to have exactly two fields",
                ))
            }
        },
        _ => return Err(invalid_type(node, "sum type")),
    };
    let variant = &sum.variants[usize::from(tag)];
    let value =
        value_from_node(typespace, &variant.algebraic_type, payload).map_err(
            |error| match variant.name() {
                Some(name) => error.in_field(name),
                None => error.in_element(1),
            },
        )?;
    Ok(AlgebraicValue::sum(tag, value))
}

fn tag_of_selector(sum: &SumType, selector: &Node<'_>) -> Result<u8, JsonError> {
    match &selector.kind {
        NodeKind::Number(_) => known_tag(sum, integer(selector, "u8")?, selector),
        NodeKind::String(text) => tag_of_text(sum, text, selector),
        _ => Err(invalid_type(selector, "variant name or tag")),
    }
}

/// A text that reads as a tag is one, even if a variant has that name.
fn tag_of_text(sum: &SumType, text: &str, place: &Node<'_>) -> Result<u8, JsonError> {
    if let Ok(tag) = text.parse() {
        return known_tag(sum, tag, place);
    }
    let found = TypePart::find(&sum.variants, text);
    let found = found.and_then(|(index, _)| u8::try_from(index).ok());
    found.ok_or_else(|| unknown_variant(sum, text, place))
}

fn known_tag(sum: &SumType, tag: u8, place: &Node<'_>) -> Result<u8, JsonError> {
    if usize::from(tag) < sum.variants.len() {
        return Ok(tag);
    }
    Err(unknown_variant(sum, &tag.to_string(), place))
}

fn unknown_variant(sum: &SumType, text: &str, place: &Node<'_>) -> JsonError {
    let names = expected_names(sum.variants.iter().map(|v| v.name()));
    JsonError::at(
        place,
        format!("unknown variant `{}`, {names}", shortened(text)),
    )
}

/// ``expected `a` ``, ``expected `a` or `b` ``, ``expected one of `a`, `b`, `c` ``.
fn expected_names<'a>(names: impl Iterator<Item = Option<&'a str>>) -> String {
    let quoted: Vec<String> = names
        .enumerate()
        .map(|(index, name)| match name {
            Some(name) => format!("`{name}`"),
            None => format!("`{index}`"),
        })
        .collect();
    match &quoted[..] {
        [] => "there are none".to_owned(),
        [one] => format!("expected {one}"),
        [one, two] => format!("expected {one} or {two}"),
        many => format!("expected one of {}", many.join(", ")),
    }
}
