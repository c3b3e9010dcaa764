//! Types in Rust, and the files of named types.

use std::collections::BTreeSet;

use lightcone_types::{AlgebraicType, TypeRef};

use super::style::{import_types, pascal, snake, start};
use crate::error::Result;
use crate::module::{Definition, Level, Shape, Types};
use crate::text::joined;

pub(super) fn rust_type(types: &Types, ty: &AlgebraicType, place: &str) -> Result<String> {
    let inner = |ty| rust_type(types, ty, place);
    Ok(match types.shape(ty, place)? {
        Shape::Unit => "()".into(),
        Shape::Never => "std::convert::Infallible".into(),
        Shape::Special(special) => format!("__sdk::{}", special.facts().name),
        Shape::ScheduleAt => "__sdk::ScheduleAt".into(),
        Shape::Option(some) => format!("Option<{}>", inner(some)?),
        Shape::Result(ok, err) => format!("Result<{}, {}>", inner(ok)?, inner(err)?),
        Shape::Bytes => "Vec<u8>".into(),
        Shape::Array(element) => format!("Vec<{}>", inner(element)?),
        Shape::Named(name) => name.to_owned(),
        Shape::Primitive(AlgebraicType::Integer(integer)) if integer.bytes() > 16 => {
            format!("__sats::{}", integer.rust_name())
        }
        Shape::Primitive(AlgebraicType::String) => "String".into(),
        Shape::Primitive(primitive) => primitive.constructor_name().to_lowercase(),
    })
}

/// A type inside the definition of `owner`: direct recursion is boxed.
pub(super) fn part_type(
    types: &Types,
    owner: &str,
    ty: &AlgebraicType,
    place: &str,
) -> Result<String> {
    let written = rust_type(types, ty, place)?;
    let leads_back = |name: &str| name == owner || types.reaches(name, owner);
    match types.shape(ty, place)? {
        Shape::Named(name) if leads_back(name) => Ok(format!("Box<{written}>")),
        Shape::Option(some) => match types.shape(some, place)? {
            Shape::Named(name) if leads_back(name) => Ok(format!("Option<Box<{name}>>")),
            _ => Ok(written),
        },
        _ => Ok(written),
    }
}

/// `<snake>_type.rs`.
pub(super) fn file(level: &Level, name: &str, reference: TypeRef) -> Result<String> {
    let types = &level.types;
    let place = format!("type `{name}`");
    let mut mentioned = BTreeSet::new();
    let mut part = |ty| {
        types.mentioned(ty, &mut mentioned);
        part_type(types, name, ty, &place)
    };
    let mut more_traits = "";
    let mut lines = Vec::new();
    let kind = match types.definition(reference, &place)? {
        Definition::Product(fields) => {
            for (field, ty) in fields {
                let ty = part(ty)?;
                lines.push(format!("pub {}: {ty},", snake(field)?));
            }
            "struct"
        }
        Definition::Sum(variants) => {
            for (variant, ty) in &variants {
                lines.push(match ty.is_unit() {
                    true => format!("{},", pascal(variant)?),
                    false => format!("{}({}),", pascal(variant)?, part(ty)?),
                });
            }
            if !variants.is_empty() && variants.iter().all(|(_, ty)| ty.is_unit()) {
                more_traits = "#[derive(Copy, Eq, Hash)]";
            }
            "enum"
        }
    };
    mentioned.remove(name);
    let mut text = start();
    import_types(&mut text, &mentioned);
    text.template(
        include_str!("type.rs.txt"),
        &[
            ("name", name),
            ("kind", kind),
            ("more traits", more_traits),
            ("parts", &joined(lines)),
        ],
    );
    Ok(text.finish())
}
