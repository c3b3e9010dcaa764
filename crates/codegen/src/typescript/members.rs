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
        Shape::Special(special) => format!("__t.{}()", to_camel(special.facts().name)),
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

    /// An object of members; one without any is on one line.
    pub fn object(text: &mut Text, open: &str, close: &str, members: &[Member]) {
        match members {
            [] => text.line(format!("{open}{close}")),
            members => text.block(open, close, |text| {
                members.iter().for_each(|member| member.write(text));
            }),
        };
    }

    pub fn write(&self, text: &mut Text) {
        let (key, builder) = (property(&self.key), &self.builder);
        let annotation = match self.recursive {
            true => ": __TypeBuilder<any, __AlgebraicTypeType>",
            false => "",
        };
        if self.mentions {
            text.block(format!("get {key}(){annotation} {{"), "},", |text| {
                text.line(format!("return {builder};"));
            });
        } else {
            text.line(format!("{key}: {builder},"));
        }
    }
}
