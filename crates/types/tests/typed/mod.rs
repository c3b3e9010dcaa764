//! Types and values in the entries of vectors.

use crate::common::{type_from_json, typespace_from_json};
use lightcone_types::json::value_from_json;
use lightcone_types::{AlgebraicType, AlgebraicValue, Typespace};
use lightcone_vectors::Entry;
use serde_json::Value;

pub trait Typed {
    fn ty(&self) -> AlgebraicType;

    /// The types that refs point into: a list of types, the whole typespace, or absent.
    fn typespace(&self) -> Typespace;

    /// The value that a SATS-JSON text says.
    fn read(&self, text: &str) -> Result<AlgebraicValue, String> {
        value_from_json(&self.typespace(), &self.ty(), text).map_err(|error| error.to_string())
    }
}

impl Typed for Entry {
    fn ty(&self) -> AlgebraicType {
        type_from_json(&self.0["type"].to_string()).expect("a type")
    }

    fn typespace(&self) -> Typespace {
        match self.0.get("typespace") {
            None => Typespace::default(),
            Some(Value::Array(types)) => {
                let types = types.iter().map(|ty| type_from_json(&ty.to_string()));
                Typespace::new(types.collect::<Result<_, _>>().expect("types"))
            }
            Some(typespace) => typespace_from_json(&typespace.to_string()).expect("a typespace"),
        }
    }
}
