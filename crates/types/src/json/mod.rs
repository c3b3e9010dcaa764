//! SATS-JSON (01 §1.7).
//!
//! JSON is parsed here rather than by a general crate because the rules need what those drop:
//! duplicate keys, and the digits of 128-bit integers.

mod decode;
mod emit;
mod error;
mod parse;
mod types;

pub use decode::{
    args_from_json, product_from_node, value_from_json, value_from_node, ProductRole,
};
pub use emit::{
    bsatn_to_json_named, bsatn_to_json_untyped, node_to_json, value_to_json_named,
    value_to_json_untyped, write_f64, write_string,
};
pub use error::JsonError;
pub use parse::{parse, parse_to_depth, Node, NodeKind, MAX_DEPTH};
pub use types::{
    description_from_node, description_to_json, product_type_from_node, product_type_to_json,
    META_ALGEBRAIC_TYPE, META_PRODUCT_TYPE, META_TYPES, META_TYPESPACE,
};
