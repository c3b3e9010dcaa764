//! Types in C#, and the files of named types.

use std::collections::BTreeMap;

use lightcone_types::{AlgebraicType, ProductType, SumType, TypeRef};

use super::style::{braced, member, pascal, UNIT};
use crate::error::{Error, Result};
use crate::module::{Level, Shape, Types};
use crate::text::Text;

pub(super) fn csharp_type(types: &Types, ty: &AlgebraicType, place: &str) -> Result<String> {
    let inner = |ty| csharp_type(types, ty, place);
    Ok(match types.shape(ty, place)? {
        Shape::Unit => "global::SpacetimeDB.Unit".into(),
        Shape::Never => {
            return Err(Error::Unsupported {
                place: place.to_owned(),
                what: "a type without values",
                language: "C#",
            })
        }
        Shape::Identity => "global::SpacetimeDB.Identity".into(),
        Shape::ConnectionId => "global::SpacetimeDB.ConnectionId".into(),
        Shape::Timestamp => "global::SpacetimeDB.Timestamp".into(),
        Shape::TimeDuration => "global::SpacetimeDB.TimeDuration".into(),
        Shape::ScheduleAt => "global::SpacetimeDB.ScheduleAt".into(),
        Shape::Uuid => "global::SpacetimeDB.Uuid".into(),
        Shape::Option(some) => match types.shape(some, place)? {
            // `T??` is no type.
            Shape::Option(nested) => format!("{}?", nested_option_name(&inner(nested)?)),
            _ => format!("{}?", inner(some)?),
        },
        Shape::Result(ok, err) => {
            format!(
                "global::SpacetimeDB.Result<{}, {}>",
                inner(ok)?,
                inner(err)?
            )
        }
        Shape::Bytes => "List<byte>".into(),
        Shape::Array(element) => format!("List<{}>", inner(element)?),
        Shape::Named(name) => name.to_owned(),
        Shape::Primitive(primitive) => primitive_type(primitive).into(),
    })
}

/// The name of the type for an option of an option.
fn nested_option_name(some: &str) -> String {
    let words = some
        .trim_start_matches("global::")
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && !matches!(*word, "global" | "SpacetimeDB"));
    words.fold("OptionOf".to_owned(), |name, word| {
        let (first, rest) = word.split_at(1);
        name + &first.to_uppercase() + rest
    })
}

/// The types for options of options: names, and their inner options.
pub(super) fn nested_options(
    types: &Types,
    ty: &AlgebraicType,
    found: &mut BTreeMap<String, String>,
) -> Result<()> {
    let place = "an option";
    match types.shape(ty, place)? {
        Shape::Option(some) => {
            if let Shape::Option(nested) = types.shape(some, place)? {
                let nested = csharp_type(types, nested, place)?;
                found.insert(nested_option_name(&nested), nested);
            }
            nested_options(types, some, found)
        }
        Shape::Array(element) => nested_options(types, element, found),
        Shape::Result(ok, err) => {
            nested_options(types, ok, found)?;
            nested_options(types, err, found)
        }
        _ => Ok(()),
    }
}

/// The file of such a type: a sum with the bytes of an option.
pub(super) fn nested_option_file(name: &str, some: &str) -> Text {
    let mut text = Text::new(UNIT);
    let variants = [(some, "Some"), ("global::SpacetimeDB.Unit", "None")];
    let variants = variants.map(|(ty, variant)| (ty.to_owned(), variant.to_owned()));
    text.line("[global::SpacetimeDB.Type]");
    record(&mut text, name, &variants);
    text
}

fn primitive_type(ty: &AlgebraicType) -> &'static str {
    match ty {
        AlgebraicType::Bool => "bool",
        AlgebraicType::I8 => "sbyte",
        AlgebraicType::U8 => "byte",
        AlgebraicType::I16 => "short",
        AlgebraicType::U16 => "ushort",
        AlgebraicType::I32 => "int",
        AlgebraicType::U32 => "uint",
        AlgebraicType::I64 => "long",
        AlgebraicType::U64 => "ulong",
        AlgebraicType::I128 => "global::SpacetimeDB.I128",
        AlgebraicType::U128 => "global::SpacetimeDB.U128",
        AlgebraicType::I256 => "global::SpacetimeDB.I256",
        AlgebraicType::U256 => "global::SpacetimeDB.U256",
        AlgebraicType::F32 => "float",
        AlgebraicType::F64 => "double",
        // The special shapes were told apart above.
        _ => "string",
    }
}

/// The initial value of a field that would be null otherwise.
fn first_value(types: &Types, ty: &AlgebraicType, place: &str) -> Result<Option<String>> {
    Ok(match types.shape(ty, place)? {
        Shape::Primitive(AlgebraicType::String) => Some("\"\"".into()),
        Shape::Bytes | Shape::Array(_) => Some(format!("new {}()", csharp_type(types, ty, place)?)),
        Shape::Named(name) => match types.sorted.get(name).and_then(|r| types.get(*r)) {
            Some(AlgebraicType::Product(_)) => Some(format!("new {name}()")),
            Some(AlgebraicType::Sum(sum)) if !is_plain_enum(sum) => Some("null!".into()),
            _ => None,
        },
        Shape::Result(..) | Shape::ScheduleAt => Some("null!".into()),
        _ => None,
    })
}

/// A field of a class, with the texts that it needs.
pub(super) struct Field {
    pub name: String,
    pub wire_name: String,
    pub ty: String,
    first_value: Option<String>,
}

pub(super) fn fields<'a>(
    types: &Types,
    parts: impl IntoIterator<Item = (&'a str, &'a AlgebraicType)>,
    class: &str,
    place: &str,
) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    for (name, ty) in parts {
        fields.push(Field {
            name: member(name, class)?,
            wire_name: name.to_owned(),
            ty: csharp_type(types, ty, place)?,
            first_value: first_value(types, ty, place)?,
        });
    }
    Ok(fields)
}

/// A class of the fields that travel. `more` adds members.
pub(super) fn product_class(
    text: &mut Text,
    class: &str,
    bases: &str,
    fields: &[Field],
    more: impl FnOnce(&mut Text),
) {
    text.line("[global::SpacetimeDB.Type]")
        .line("[DataContract]");
    braced(
        text,
        &format!("public sealed partial class {class}{bases}"),
        |text| {
            for field in fields {
                text.line(format!("[DataMember(Name = \"{}\")]", field.wire_name));
                text.line(format!("public {} {};", field.ty, field.name));
            }
            if !fields.is_empty() {
                text.blank();
                full_constructor(text, class, fields);
                text.blank();
            }
            braced(text, &format!("public {class}()"), |text| {
                for field in fields {
                    if let Some(value) = &field.first_value {
                        text.line(format!("this.{} = {value};", field.name));
                    }
                }
            });
            more(text);
        },
    );
}

fn full_constructor(text: &mut Text, class: &str, fields: &[Field]) {
    text.line(format!("public {class}("));
    for (position, field) in fields.iter().enumerate() {
        let comma = if position + 1 < fields.len() { "," } else { "" };
        text.line(format!("{UNIT}{} {}{comma}", field.ty, field.name));
    }
    braced(text, ")", |text| {
        for field in fields {
            text.line(format!("this.{0} = {0};", field.name));
        }
    });
}

/// `Types/<Pascal>.g.cs`.
pub(super) fn file(level: &Level, name: &str, reference: TypeRef) -> Result<Text> {
    let mut text = Text::new(UNIT);
    let place = format!("type `{name}`");
    match level.types.get(reference) {
        Some(AlgebraicType::Product(product)) => {
            let parts = named_elements(product, &place)?;
            let fields = fields(&level.types, parts, name, &place)?;
            product_class(&mut text, name, "", &fields, |_| {});
        }
        Some(AlgebraicType::Sum(sum)) => sum_type(&mut text, &level.types, name, sum, &place)?,
        _ => return Err(Error::MissingType { place }),
    }
    Ok(text)
}

fn named_elements<'a>(
    product: &'a ProductType,
    place: &str,
) -> Result<Vec<(&'a str, &'a AlgebraicType)>> {
    let elements = product.elements.iter().map(|element| {
        let name = element.name().ok_or_else(|| Error::UnnamedField {
            place: place.to_owned(),
        })?;
        Ok((name, &element.algebraic_type))
    });
    elements.collect()
}

fn is_plain_enum(sum: &SumType) -> bool {
    sum.variants.iter().all(|v| v.algebraic_type.is_unit())
}

fn sum_type(text: &mut Text, types: &Types, name: &str, sum: &SumType, place: &str) -> Result<()> {
    let mut variants = Vec::new();
    for variant in &sum.variants {
        let variant_name = variant.name().ok_or_else(|| Error::UnnamedField {
            place: place.to_owned(),
        })?;
        let ty = csharp_type(types, &variant.algebraic_type, place)?;
        variants.push((ty, pascal(variant_name)?));
    }
    text.line("[global::SpacetimeDB.Type]");
    if is_plain_enum(sum) {
        braced(text, &format!("public enum {name}"), |text| {
            for (_, variant) in &variants {
                text.line(format!("{variant},"));
            }
        });
        return Ok(());
    }
    // A tuple has at least two elements.
    if variants.len() == 1 {
        variants.push(("global::SpacetimeDB.Unit".into(), "_Reserved".into()));
    }
    record(text, name, &variants);
    Ok(())
}

/// A sum with payloads.
fn record(text: &mut Text, name: &str, variants: &[(String, String)]) {
    text.line(format!(
        "public partial record {name} : global::SpacetimeDB.TaggedEnum<("
    ));
    for (position, (ty, variant)) in variants.iter().enumerate() {
        let comma = if position + 1 < variants.len() {
            ","
        } else {
            ""
        };
        text.line(format!("{UNIT}{ty} {}{comma}", other_than(variant, name)));
    }
    text.line(")>;");
}

/// A variant becomes a class inside of its sum, which must not have the same name.
fn other_than(variant: &str, name: &str) -> String {
    match variant == name {
        true => format!("{variant}_"),
        false => variant.to_owned(),
    }
}
