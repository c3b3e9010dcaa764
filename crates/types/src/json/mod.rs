//! SATS-JSON (01 §1.7).
//!
//! JSON is parsed here rather than by a general crate because the rules need what those drop:
//! duplicate keys, and the digits of 128-bit integers.

mod decode;
mod emit;
mod parse;
mod types;

pub use decode::{
    args_from_json, product_from_node, value_from_json, value_from_node, ProductRole,
};
pub use emit::{
    bsatn_to_json_named, bsatn_to_json_untyped, node_to_json, value_to_json_named,
    value_to_json_untyped, write_f64, write_string,
};
pub use parse::{parse, Node, NodeKind};
pub use types::{
    product_type_from_json, product_type_from_node, product_type_to_json, type_from_json,
    type_from_node, type_to_json, typespace_from_json, typespace_from_node, typespace_to_json,
    META_ALGEBRAIC_TYPE, META_PRODUCT_TYPE, META_TYPES, META_TYPESPACE,
};

/// Nested arrays and objects a JSON text may have; one more is a parse error (01 §1.5.3).
pub const MAX_DEPTH: usize = 127;

/// JSON that is malformed or not of the expected type. The text starts with the path to the
/// offending value and ends with its place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    path: String,
    message: String,
    line: u32,
    column: u32,
}

impl JsonError {
    pub(crate) fn new(message: impl Into<String>, line: u32, column: u32) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            line,
            column,
        }
    }

    /// An error about a parsed value, for readers of records built on [`Node`].
    pub fn at(node: &Node<'_>, message: impl Into<String>) -> Self {
        Self::new(message, node.line, node.column)
    }

    /// The error as seen from the object around it.
    pub fn in_field(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// The error as seen from the array around it.
    pub fn in_element(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }

    /// The path to the offending value, `pos.x[2]`; empty for the outermost value.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong, without path and place (01 §1.7.8).
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(
            f,
            "{} at line {} column {}",
            self.message, self.line, self.column
        )
    }
}

impl std::error::Error for JsonError {}
