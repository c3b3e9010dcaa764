//! Types in C#, and the files of named types.

use std::collections::BTreeMap;

use lightcone_types::{AlgebraicType, TypeRef};

use super::style::{member, other_than, pascal, UNIT};
use crate::error::{Error, Result};
use crate::module::{Definition, Level, Shape, Types};
use crate::text::{filled, joined, Text};

pub(super) fn csharp_type(types: &Types, ty: &AlgebraicType, place: &str) -> Result<String> {
    let inner = |ty| csharp_type(types, ty, place);
    Ok(match types.shape(ty, place)? {
        Shape::Unit => "global::SpacetimeDB.Unit".into(),
        Shape::Never => {
            let (what, language) = ("a type without values", "C#");
            let place = place.to_owned();
            return Err(Error::Unsupported {
                place,
                what,
                language,
            });
        }
        Shape::Special(special) => format!("global::SpacetimeDB.{}", special.facts().name),
        Shape::ScheduleAt => "global::SpacetimeDB.ScheduleAt".into(),
        Shape::Option(some) => match types.shape(some, place)? {
            // `T??` is no type.
            Shape::Option(nested) => format!("{}?", nested_option_name(&inner(nested)?)),
            _ => format!("{}?", inner(some)?),
        },
        Shape::Result(ok, err) => {
            let (ok, err) = (inner(ok)?, inner(err)?);
            format!("global::SpacetimeDB.Result<{ok}, {err}>")
        }
        Shape::Bytes => "List<byte>".into(),
        Shape::Array(element) => format!("List<{}>", inner(element)?),
        Shape::Named(name) => name.to_owned(),
        Shape::Primitive(primitive) => primitive_type(primitive),
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

fn primitive_type(ty: &AlgebraicType) -> String {
    let name = match *ty {
        AlgebraicType::Bool => "bool",
        AlgebraicType::I8 => "sbyte",
        AlgebraicType::U8 => "byte",
        AlgebraicType::I16 => "short",
        AlgebraicType::U16 => "ushort",
        AlgebraicType::I32 => "int",
        AlgebraicType::U32 => "uint",
        AlgebraicType::I64 => "long",
        AlgebraicType::U64 => "ulong",
        AlgebraicType::Integer(wide) => return format!("global::SpacetimeDB.{}", wide.name()),
        AlgebraicType::F32 => "float",
        AlgebraicType::F64 => "double",
        // The special shapes were told apart above.
        _ => "string",
    };
    name.into()
}

/// The initial value of a field that would be null otherwise.
fn first_value(types: &Types, ty: &AlgebraicType, place: &str) -> Result<Option<String>> {
    Ok(match types.shape(ty, place)? {
        Shape::Primitive(AlgebraicType::String) => Some("\"\"".into()),
        Shape::Bytes | Shape::Array(_) => Some(format!("new {}()", csharp_type(types, ty, place)?)),
        Shape::Named(name) => match types.named(name) {
            Some(AlgebraicType::Product(_)) => Some(format!("new {name}()")),
            // An enum without variants is a plain one, too.
            Some(ty) if ty.parts().any(|(_, part)| !part.is_unit()) => Some("null!".into()),
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

/// A class of the fields that travel, with more members behind them.
pub(super) fn product_class(class: &str, bases: &str, fields: &[Field], more: &str) -> String {
    let each = |line: &dyn Fn(&Field) -> String| joined(fields.iter().map(line));
    let parameters = fields.iter().map(|f| format!("{UNIT}{} {}", f.ty, f.name));
    let parameters = parameters.collect::<Vec<_>>().join(",\n");
    let assigned = each(&|f| format!("{UNIT}this.{0} = {0};", f.name));
    let full_constructor = match fields {
        [] => String::new(),
        _ => format!("\npublic {class}(\n{parameters}\n)\n{{\n{assigned}}}\n\n"),
    };
    let with_value = fields.iter();
    let with_value = with_value.filter_map(|f| Some((&f.name, f.first_value.as_ref()?)));
    let first_values = joined(with_value.map(|(name, value)| format!("this.{name} = {value};")));
    let declared = each(&|f| {
        format!(
            "[DataMember(Name = \"{}\")]\npublic {} {};",
            f.wire_name, f.ty, f.name
        )
    });
    filled(
        include_str!("class.cs.txt"),
        &[
            ("class", class),
            ("bases", bases),
            ("fields", &declared),
            ("full constructor", &full_constructor),
            ("first values", &first_values),
            ("more", more),
        ],
    )
}

/// `Types/<Pascal>.g.cs`.
pub(super) fn file(level: &Level, name: &str, reference: TypeRef) -> Result<Text> {
    let mut text = Text::new(UNIT);
    let place = format!("type `{name}`");
    match level.types.definition(reference, &place)? {
        Definition::Product(parts) => {
            let fields = fields(&level.types, parts, name, &place)?;
            text.lines(&product_class(name, "", &fields, ""));
        }
        Definition::Sum(parts) => sum_type(&mut text, &level.types, name, &parts, &place)?,
    }
    Ok(text)
}

fn sum_type(
    text: &mut Text,
    types: &Types,
    name: &str,
    parts: &[(&str, &AlgebraicType)],
    place: &str,
) -> Result<()> {
    let mut variants = Vec::new();
    for (variant, ty) in parts {
        variants.push((csharp_type(types, ty, place)?, pascal(variant)?));
    }
    text.line("[global::SpacetimeDB.Type]");
    if parts.iter().all(|(_, ty)| ty.is_unit()) {
        text.line(format!("public enum {name}"))
            .block("{", "}", |text| {
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
    // A variant becomes a class inside of its sum.
    let variants = variants.iter();
    let variants =
        variants.map(|(ty, name_of)| format!("{UNIT}{ty} {}", other_than(name_of, name)));
    text.lines(&variants.collect::<Vec<_>>().join(",\n"));
    text.line(")>;");
}
