//! The JSON form of the raw structures (02 §15). It is that of values of the types that describe them, so it has the
//! acceptance rules of all values (01 §1.7.5).

use std::sync::LazyLock;

use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::json::{
    description_from_node, description_to_json, parse_to_depth, JsonError, META_TYPES,
};
use lightcone_types::{AlgebraicType, Typespace};

use super::typed::Typed;
use super::v10::RawModuleDefV10Section;

/// Arrays and objects may nest this deep; a definition that people write stays far below.
const DEPTH_MAX: usize = 512;

/// The types that describe types, and version 10 of a module, which can hold itself.
static TYPES: LazyLock<Typespace> = LazyLock::new(|| {
    let mut types = META_TYPES.clone();
    let sections = Vec::<RawModuleDefV10Section>::ty();
    types
        .types
        .push(AlgebraicType::product([("sections", sections)]));
    types
});

/// The compact JSON text of a structure.
pub fn to_string<T: Encode + Typed>(value: &T) -> String {
    let mut out = String::new();
    description_to_json(&TYPES, &T::ty(), value, &mut out);
    out
}

/// A structure from its JSON text.
pub fn from_str<T: Decode + Typed>(text: &str) -> Result<T, JsonError> {
    let node = parse_to_depth(text, DEPTH_MAX)?;
    description_from_node(&TYPES, &T::ty(), &node)
}
