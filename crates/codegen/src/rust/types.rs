//! Types in Rust, and the files of named types.

use std::collections::BTreeSet;

use lightcone_types::{AlgebraicType, TypeRef};

use super::style::{import_types, pascal, snake, start};
use crate::error::{Error, Result};
use crate::module::{Level, Shape, Types};

pub(super) fn rust_type(types: &Types, ty: &AlgebraicType, place: &str) -> Result<String> {
    let inner = |ty| rust_type(types, ty, place);
    Ok(match types.shape(ty, place)? {
        Shape::Unit => "()".into(),
        Shape::Never => "std::convert::Infallible".into(),
        Shape::Identity => "__sdk::Identity".into(),
        Shape::ConnectionId => "__sdk::ConnectionId".into(),
        Shape::Timestamp => "__sdk::Timestamp".into(),
        Shape::TimeDuration => "__sdk::TimeDuration".into(),
        Shape::ScheduleAt => "__sdk::ScheduleAt".into(),
        Shape::Uuid => "__sdk::Uuid".into(),
        Shape::Option(some) => format!("Option<{}>", inner(some)?),
        Shape::Result(ok, err) => format!("Result<{}, {}>", inner(ok)?, inner(err)?),
        Shape::Bytes => "Vec<u8>".into(),
        Shape::Array(element) => format!("Vec<{}>", inner(element)?),
        Shape::Named(name) => name.to_owned(),
        Shape::Primitive(primitive) => primitive_type(primitive).into(),
    })
}

fn primitive_type(ty: &AlgebraicType) -> &'static str {
    match ty {
        AlgebraicType::Bool => "bool",
        AlgebraicType::I8 => "i8",
        AlgebraicType::U8 => "u8",
        AlgebraicType::I16 => "i16",
        AlgebraicType::U16 => "u16",
        AlgebraicType::I32 => "i32",
        AlgebraicType::U32 => "u32",
        AlgebraicType::I64 => "i64",
        AlgebraicType::U64 => "u64",
        AlgebraicType::I128 => "i128",
        AlgebraicType::U128 => "u128",
        AlgebraicType::I256 => "__sats::i256",
        AlgebraicType::U256 => "__sats::u256",
        AlgebraicType::F32 => "f32",
        AlgebraicType::F64 => "f64",
        // The special shapes were told apart above.
        _ => "String",
    }
}

/// A type inside the definition of `owner`: direct recursion is boxed.
fn part_type(types: &Types, owner: &str, ty: &AlgebraicType, place: &str) -> Result<String> {
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
    let mut text = start();
    let unnamed = || Error::UnnamedField {
        place: place.clone(),
    };
    let derive =
        "#[derive(__lib::ser::Serialize, __lib::de::Deserialize, Clone, PartialEq, Debug)]";
    match types.get(reference) {
        Some(AlgebraicType::Product(product)) => {
            let mut fields = Vec::new();
            for element in &product.elements {
                types.mentioned(&element.algebraic_type, &mut mentioned);
                let ty = part_type(types, name, &element.algebraic_type, &place)?;
                fields.push((snake(element.name().ok_or_else(unnamed)?)?, ty));
            }
            mentioned.remove(name);
            import_types(&mut text, &mentioned);
            text.blank().line(derive).line("#[sats(crate = __lib)]");
            text.block(format!("pub struct {name} {{"), "}", |text| {
                for (field, ty) in &fields {
                    text.line(format!("pub {field}: {ty},"));
                }
            });
        }
        Some(AlgebraicType::Sum(sum)) => {
            let mut variants = Vec::new();
            for variant in &sum.variants {
                types.mentioned(&variant.algebraic_type, &mut mentioned);
                let variant_name = pascal(variant.name().ok_or_else(unnamed)?)?;
                if variant.algebraic_type.is_unit() {
                    variants.push(variant_name);
                } else {
                    let ty = part_type(types, name, &variant.algebraic_type, &place)?;
                    variants.push(format!("{variant_name}({ty})"));
                }
            }
            mentioned.remove(name);
            import_types(&mut text, &mentioned);
            text.blank().line(derive).line("#[sats(crate = __lib)]");
            if sum.is_simple_enum() {
                text.line("#[derive(Copy, Eq, Hash)]");
            }
            text.block(format!("pub enum {name} {{"), "}", |text| {
                for variant in &variants {
                    text.line(format!("{variant},"));
                }
            });
        }
        _ => return Err(Error::MissingType { place }),
    }
    text.blank()
        .block(format!("impl __sdk::InModule for {name} {{"), "}", |text| {
            text.line("type Module = super::RemoteModule;");
        });
    Ok(text.finish())
}
