//! The style of TypeScript: the beginning of a file, and names.

use lightcone_schema::case::to_pascal;

use crate::bindings::Options;
use crate::module::{file_stem, Level};
use crate::text::{Text, HEADER};

/// Needed by every file.
pub(super) struct Context<'a> {
    pub package: &'a str,
    pub options: &'a Options,
}

/// A file up to its imports.
pub(super) fn start() -> Text {
    let mut text = Text::new("  ");
    text.lines(HEADER).blank();
    text
}

/// Imports from the client package, under names that no user type has. `type X` imports a type.
pub(super) fn import(text: &mut Text, context: &Context<'_>, names: &[&str]) {
    text.line("/* eslint-disable */")
        .line("/* tslint:disable */");
    if names.is_empty() {
        return;
    }
    let close = format!("}} from \"{}\";", context.package);
    text.block("import {", close, |text| {
        for name in names {
            let bare = name.trim_start_matches("type ");
            text.line(format!("{name} as __{bare},"));
        }
    });
}

pub(super) fn property(name: &str) -> String {
    let mut chars = name.chars();
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    let is_plain =
        chars.next().is_some_and(is_start) && chars.all(|c| is_start(c) || c.is_numeric());
    match is_plain {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A string literal. Names are identifiers with dots at most; all else is escaped.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

/// `AddNumbersReducer`, with the namespaces of a submodule before it.
pub(super) fn item_name(level: &Level, accessor: &str, kind: &str) -> String {
    format!("{}{}{kind}", level.pascal_prefix(), to_pascal(accessor))
}

/// The module path of an item's file, seen from the root directory.
pub(super) fn item_path(level: &Level, accessor: &str, kind: &str) -> String {
    format!("{}{}", level.directory(), file_stem(accessor, kind))
}
