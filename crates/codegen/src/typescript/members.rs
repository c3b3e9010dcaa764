//! Types as builders; fields, variants and parameters.

use std::collections::BTreeSet;

use lightcone_schema::case::to_camel;
use lightcone_types::AlgebraicType;

use super::style::property;
use crate::error::Result;
use crate::module::{Shape, Types};
use crate::text::Text;

pub(super) fn builder(types: &Types, ty: &AlgebraicType, place: &str) -> Result<String> {
    Ok(match types.shape(ty, place)? {
        Shape::Unit => "__t.unit()".into(),
        Shape::Never => "__t.never()".into(),
        Shape::Special(special) => format!("__t.{}()", to_camel(special.name())),
        Shape::ScheduleAt => "__t.scheduleAt()".into(),
        Shape::Option(some) => format!("__t.option({})", builder(types, some, place)?),
        Shape::Result(ok, err) => {
            let (ok, err) = (builder(types, ok, place)?, builder(types, err, place)?);
            format!("__t.result({ok}, {err})")
        }
        Shape::Bytes => "__t.byteArray()".into(),
        Shape::Array(element) => format!("__t.array({})", builder(types, element, place)?),
        Shape::Named(name) => name.to_owned(),
        Shape::Primitive(primitive) => {
            format!("__t.{}()", primitive.constructor_name().to_lowercase())
        }
    })
}

/// A field, variant or parameter with its builder, and whether it must be a getter.
pub(super) struct Member {
    pub key: String,
    pub builder: String,
    /// The builder names a type that may be defined further down.
    mentions: bool,
    /// The type is recursive, so the compiler cannot infer it.
    pub recursive: bool,
}

impl Member {
    pub fn new(types: &Types, key: String, ty: &AlgebraicType, place: &str) -> Result<Self> {
        let mut mentioned = BTreeSet::new();
        types.mentioned(ty, &mut mentioned);
        Ok(Self {
            builder: builder(types, ty, place)?,
            mentions: !mentioned.is_empty(),
            recursive: false,
            key,
        })
    }

    pub fn write(text: &mut Text, member: &Member) {
        let (key, builder) = (property(&member.key), &member.builder);
        let annotation = match member.recursive {
            true => ": __TypeBuilder<any, __AlgebraicTypeType>",
            false => "",
        };
        if member.mentions {
            text.block(format!("get {key}(){annotation} {{"), "},", |text| {
                text.line(format!("return {builder};"));
            });
        } else {
            text.line(format!("{key}: {builder},"));
        }
    }
}
