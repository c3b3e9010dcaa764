//! The raw module definition (02 §3–§5): exactly what a module's describe step returns, before
//! any check of its meaning. Every structure has its BSATN form ([`Encode`]/[`Decode`]) and its
//! JSON form ([`json`], 02 §15).

pub(crate) mod codec;
mod common;
pub mod json;
mod typed;
mod v10;
mod v9;

use lightcone_types::bsatn::{Decode, DecodeError, Encode, Reader};
use lightcone_types::AlgebraicType;

pub use common::*;
pub use typed::Typed;
pub use v10::*;
pub use v9::*;

pub use lightcone_types::json::JsonError;

pub use crate::table::IndexAlgorithm as RawIndexAlgorithm;

/// The version of a definition. It is kept with a loaded module because it changes behaviour
/// outside validation too (02 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RawVersion {
    V9,
    V10,
}

/// The envelope of a definition. Version 8 (modules from before 1.0) is refused when decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawModuleDef {
    V9(RawModuleDefV9),
    V10(RawModuleDefV10),
}

/// Why a version 8 definition is refused.
pub(crate) const V8_REFUSED: &str =
    "module definitions of version 8 (modules built before version 1.0) are not supported; \
     rebuild the module with a current version of its library [LC0201]";

impl Decode for RawModuleDef {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.read_u8()? {
            0 => Err(DecodeError::Other(V8_REFUSED.into())),
            1 => Ok(RawModuleDef::V9(Decode::decode(r)?)),
            2 => Ok(RawModuleDef::V10(Decode::decode(r)?)),
            tag => Err(DecodeError::invalid_tag(tag, "RawModuleDef")),
        }
    }
}

impl Encode for RawModuleDef {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            RawModuleDef::V9(def) => {
                out.push(1);
                def.encode(out);
            }
            RawModuleDef::V10(def) => {
                out.push(2);
                def.encode(out);
            }
        }
    }
}

impl Typed for RawModuleDef {
    fn ty() -> AlgebraicType {
        AlgebraicType::sum([
            ("V8BackCompat", AlgebraicType::never()),
            ("V9", RawModuleDefV9::ty()),
            ("V10", RawModuleDefV10::ty()),
        ])
    }
}

impl RawModuleDef {
    /// Reads the JSON form *with* the envelope, as `extract-schema` prints it (02 §2.1).
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        json::from_str(text)
    }

    /// Reads the JSON form *without* the envelope, as the schema endpoint answers (02 §15).
    pub fn from_schema_json(version: RawVersion, text: &str) -> Result<Self, JsonError> {
        match version {
            RawVersion::V9 => json::from_str(text).map(RawModuleDef::V9),
            RawVersion::V10 => json::from_str(text).map(RawModuleDef::V10),
        }
    }

    /// The JSON form with the envelope, compact.
    pub fn to_json_string(&self) -> String {
        json::to_string(self)
    }

    /// The JSON form without the envelope, compact.
    pub fn to_schema_json(&self) -> String {
        match self {
            RawModuleDef::V9(def) => json::to_string(def),
            RawModuleDef::V10(def) => json::to_string(def),
        }
    }
}
