//! Rust bindings for modules that send messages to this one by outbox tables (07 §8.3): one file, for the crate `spacetimedb`.

use std::collections::BTreeSet;

use lightcone_schema::ModuleDef;
use lightcone_types::{AlgebraicType, TypeRef};

use super::style::{pascal, snake};
use super::types::part_type;
use crate::bindings::GeneratedFile;
use crate::error::{Error, Result};
use crate::module::{Definition, Function, Level, Types};
use crate::text::{joined, Text, HEADER};

/// What the macro that looks for the columns of an outbox table is called, before the name of the reducer.
const MACRO: &str = "__spacetimedb_typecheck_outbox_";

pub(crate) fn generate(level: &Level, def: &ModuleDef) -> Result<Vec<GeneratedFile>> {
    let mut text = Text::new("    ");
    text.lines(HEADER).blank();
    text.lines(include_str!("remote.rs.txt"));
    let needed = needed(level);
    let types = level.types.sorted.iter();
    for (name, reference) in types.filter(|(name, _)| needed.contains(name.as_str())) {
        text.blank()
            .lines(&type_text(&level.types, name, *reference)?);
    }
    for reducer in &level.reducers {
        text.blank()
            .lines(&reducer_text(&level.types, reducer, def)?);
    }
    Ok(vec![GeneratedFile::new("mod.rs".to_owned(), text.finish())])
}

/// The types that reducers get.
fn needed(level: &Level) -> BTreeSet<&str> {
    let types = &level.types;
    let mut mentioned = BTreeSet::new();
    for (_, ty) in level.reducers.iter().flat_map(|reducer| &reducer.params) {
        types.mentioned(ty, &mut mentioned);
    }
    let names = types.sorted.keys().map(String::as_str);
    let is_needed = |name: &&str| {
        mentioned.contains(name) || mentioned.iter().any(|first| types.reaches(first, name))
    };
    names.filter(is_needed).collect()
}

fn type_text(types: &Types, name: &str, reference: TypeRef) -> Result<String> {
    let place = format!("type `{name}`");
    let part = |ty: &AlgebraicType| part_type(types, name, ty, &place);
    let mut lines = Vec::new();
    let kind = match types.definition(reference, &place)? {
        Definition::Product(fields) => {
            for (field, ty) in fields {
                lines.push(format!("    pub {}: {},", snake(field)?, part(ty)?));
            }
            "struct"
        }
        Definition::Sum(variants) => {
            for (variant, ty) in variants {
                lines.push(match ty.is_unit() {
                    true => format!("    {},", pascal(variant)?),
                    false => format!("    {}({}),", pascal(variant)?, part(ty)?),
                });
            }
            "enum"
        }
    };
    let lines = joined(lines);
    Ok(format!(
        "#[derive(spacetimedb::SpacetimeType, Clone, PartialEq, Debug)]\npub {kind} {name} {{\n{lines}}}\n"
    ))
}

/// The marker of a reducer, and the macro that gives the positions of the columns of an outbox table that are its arguments.
fn reducer_text(types: &Types, reducer: &Function, def: &ModuleDef) -> Result<String> {
    let accessor = reducer.accessor.replace('.', "_");
    let (marker, plain) = (snake(&accessor)?, snake(&accessor)?.replace("r#", ""));
    let known = def.reducer(&reducer.name);
    let (_, known) =
        known.ok_or_else(|| Error::missing_type(format!("reducer `{}`", reducer.name)))?;
    let arguments = format!("{}Args", pascal(&accessor)?);
    let (mut fields, mut columns, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    for (name, ty) in &reducer.params {
        let place = format!("reducer `{}`", reducer.name);
        let (param, ty) = (snake(name)?, part_type(types, "", ty, &place)?);
        fields.push(format!("    pub {param}: {ty},"));
        columns.push(format!(
            "__target::{MACRO}{plain}!(@{param} __target; $($columns)*)"
        ));
        rules.push(rules_of(&plain, &param, &within(types, &ty)));
    }
    let (fields, columns, rules) = (joined(fields), columns.join(", "), rules.concat());
    Ok(format!(
        "#[derive(spacetimedb::SpacetimeType, Clone, PartialEq, Debug)]
pub struct {arguments} {{
{fields}}}

#[allow(non_camel_case_types)]
pub struct {marker};

impl spacetimedb::rt::RemoteReducer for {marker} {{
    const NAME: &'static str = {name:?};
    const SIGNATURE_HASH: &'static str = \"{hash}\";
    type Args = {arguments};
}}

#[doc(hidden)]
macro_rules! {MACRO}{plain} {{
    ($target:path, {{ $($columns:tt)* }}) => {{{{
        #[allow(unused_imports)]
        use $target as __target;
        const COLUMNS: &[u16] = &[{columns}];
        COLUMNS
    }}}};
{rules}}}
#[doc(hidden)]
pub(crate) use {MACRO}{plain};
",
        name = reducer.name,
        hash = known.signature_hash(),
    ))
}

/// The rules that look through the columns for a parameter, and keep the position of the one with its name.
fn rules_of(reducer: &str, param: &str, ty: &str) -> String {
    let again = format!("$at::{MACRO}{reducer}!");
    format!(
        "    (@{param} $at:ident $($found:literal)*; ($index:literal, $column:ident: $ty:ty as {param}), $($rest:tt)*) => {{{{
        const _: fn($ty) -> {ty} = |value| value;
        {again}(@{param} $at $($found)* $index; $($rest)*)
    }}}};
    (@{param} $at:ident $($found:literal)*; ($index:literal, $column:ident: $ty:ty as $other:ident), $($rest:tt)*) => {{
        {again}(@{param} $at $($found)*; $($rest)*)
    }};
    (@{param} $at:ident $index:literal;) => {{
        $index
    }};
    (@{param} $at:ident;) => {{{{
        compile_error!(\"no column of the outbox table is for the parameter `{param}` of the reducer\");
        0
    }}}};
    (@{param} $at:ident $($index:literal)*;) => {{{{
        compile_error!(\"several columns of the outbox table are for the parameter `{param}` of the reducer\");
        0
    }}}};
"
    )
}

/// A type as code elsewhere says it, which knows these bindings as `$at`.
fn within(types: &Types, ty: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let mut before = ' ';
    let end = |out: &mut String, word: &mut String, before: char| {
        let is_named = before != ':' && types.named(word).is_some();
        out.push_str(if is_named { "$at::" } else { "" });
        out.push_str(word);
        word.clear();
    };
    for c in ty.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        end(&mut out, &mut word, before);
        out.push(c);
        before = c;
    }
    end(&mut out, &mut word, before);
    out.replace("__sats::", "$at::__sats::")
        .replace("__sdk::", "$at::__sdk::")
}
