//! The style of Rust: the beginning of a file, and names.

use std::collections::BTreeSet;

use lightcone_schema::case::{to_pascal, to_snake};

use crate::error::{Error, Result};
use crate::module::file_stem;
use crate::text::{Text, HEADER};

/// A file up to its imports.
pub(super) fn start() -> Text {
    let mut text = Text::new("    ");
    text.lines(HEADER).blank();
    text.line("#![allow(unused, clippy::all)]");
    text.line("use spacetimedb_sdk::__codegen::{self as __sdk, __lib, __sats, __ws};");
    text
}

/// Fields of these names need `r#`.
const KEYWORDS: &str = "\
    abstract as async await become box break const continue do dyn else enum extern false final fn for gen if impl in let loop \
    macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe unsized use virtual \
    where while yield";

/// A field, method or parameter.
pub(super) fn snake(name: &str) -> Result<String> {
    let snake = to_snake(name);
    match snake.as_str() {
        "self" | "super" | "crate" | "_" | "" => Err(Error::name(name, "Rust")),
        word if word.starts_with(|c: char| c.is_ascii_digit()) => Ok(format!("_{word}")),
        word if KEYWORDS.split(' ').any(|keyword| keyword == word) => Ok(format!("r#{word}")),
        _ => Ok(snake),
    }
}

/// A type or variant.
pub(super) fn pascal(name: &str) -> Result<String> {
    let pascal = to_pascal(name);
    match pascal.as_str() {
        "Self" | "" => Err(Error::name(name, "Rust")),
        _ => Ok(pascal),
    }
}

/// `use super::x_type::X;` for each type.
pub(super) fn import_types(text: &mut Text, types: &BTreeSet<&str>) {
    for name in types {
        text.line(format!("use super::{}::{name};", file_stem(name, "type")));
    }
}
