//! C# bindings for the package `SpacetimeDB.ClientSDK` (07 §8.2): which files there are, and how names are written.

mod functions;
mod root;
mod tables;
mod types;

use std::collections::BTreeMap;

use lightcone_schema::case::to_pascal;
use lightcone_types::AlgebraicType;

use crate::error::{Error, Result};
use crate::module::Level;
use crate::text::Text;
use crate::{GeneratedFile, Options, HEADER};

pub(crate) fn generate(
    level: &Level,
    namespace: &str,
    options: &Options,
) -> Result<Vec<GeneratedFile>> {
    if !namespace.split('.').all(is_identifier) {
        return Err(Error::CsharpNamespace(namespace.to_owned()));
    }
    let mut files = Vec::new();
    let mut add = |path: String, body: Text| {
        files.push(GeneratedFile {
            text: file(&path, namespace, options, body),
            path,
        });
    };
    for (name, reference) in &level.types.sorted {
        let body = types::file(level, name, *reference)?;
        add(format!("Types/{name}.g.cs"), body);
    }
    for (name, some) in nested_options(level)? {
        let body = types::nested_option_file(&name, &some);
        add(format!("Types/{name}.g.cs"), body);
    }
    for table in &level.tables {
        let body = tables::file(level, table)?;
        add(format!("Tables/{}.g.cs", pascal(&table.accessor)?), body);
    }
    for reducer in &level.reducers {
        let body = functions::reducer(level, reducer)?;
        let name = pascal(&reducer.accessor)?;
        add(format!("Reducers/{name}.g.cs"), body);
    }
    for procedure in &level.procedures {
        let body = functions::procedure(level, procedure)?;
        let name = pascal(&procedure.accessor)?;
        add(format!("Procedures/{name}.g.cs"), body);
    }
    add(ROOT.to_owned(), root::file(level)?);
    Ok(files)
}

/// The options inside of options that anything of the module has.
fn nested_options(level: &Level) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for reference in level.types.sorted.values() {
        let parts: Vec<&AlgebraicType> = match level.types.get(*reference) {
            Some(AlgebraicType::Product(product)) => {
                let types = product.elements.iter().map(|e| &e.algebraic_type);
                types.collect()
            }
            Some(AlgebraicType::Sum(sum)) => {
                sum.variants.iter().map(|v| &v.algebraic_type).collect()
            }
            _ => Vec::new(),
        };
        for part in parts {
            types::nested_options(&level.types, part, &mut found)?;
        }
    }
    for function in level.reducers.iter().chain(&level.procedures) {
        let types = function.params.iter().map(|(_, ty)| ty);
        for ty in types.chain([&function.return_type]) {
            types::nested_options(&level.types, ty, &mut found)?;
        }
    }
    Ok(found)
}

/// The file that ties everything together.
const ROOT: &str = "SpacetimeDBClient.g.cs";

/// A file around what stands in its namespace.
fn file(path: &str, namespace: &str, options: &Options, body: Text) -> String {
    let mut text = Text::new(UNIT);
    text.lines(HEADER).blank();
    if path == ROOT {
        text.line(format!(
            "// This was generated using spacetimedb cli version {} (commit {}).",
            options.cli_version, options.commit
        ));
        text.blank();
    }
    text.line("#nullable enable").blank();
    for name in [
        "System",
        "System.Collections.Generic",
        "System.Runtime.Serialization",
        "SpacetimeDB.ClientApi",
    ] {
        text.line(format!("using {name};"));
    }
    text.blank().line(format!("namespace {namespace}"));
    text.block("{", "}", |text| {
        // Inside, so that its names come before those of other namespaces whatever this one is called.
        text.line("using SpacetimeDB;").blank();
        text.lines(&body.finish());
    });
    text.finish()
}

/// What is one step of indentation.
const UNIT: &str = "    ";

/// A declaration with its braces on lines of their own.
fn braced(text: &mut Text, head: &str, body: impl FnOnce(&mut Text)) {
    text.line(head).block("{", "}", body);
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// A type, member or variant. No keyword of C# begins with a capital letter.
fn pascal(name: &str) -> Result<String> {
    let pascal = to_pascal(name);
    let pascal = match pascal.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("_{pascal}"),
        false => pascal,
    };
    if !is_identifier(&pascal) {
        return Err(Error::Name {
            name: name.to_owned(),
            language: "C#",
        });
    }
    Ok(pascal)
}

/// A member, which must not have the name of its class.
fn member(name: &str, class: &str) -> Result<String> {
    let mut member = pascal(name)?;
    if member == class {
        member.push('_');
    }
    Ok(member)
}

/// A parameter. The sign in front makes a name of what may be a keyword.
fn parameter(name: &str) -> Result<String> {
    let name = pascal(name)?;
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let camel: String = first.into_iter().chain(letters).collect();
    Ok(match KEYWORDS.contains(&camel.as_str()) {
        true => format!("@{camel}"),
        false => camel,
    })
}

const KEYWORDS: [&str; 77] = [
    "abstract",
    "as",
    "base",
    "bool",
    "break",
    "byte",
    "case",
    "catch",
    "char",
    "checked",
    "class",
    "const",
    "continue",
    "decimal",
    "default",
    "delegate",
    "do",
    "double",
    "else",
    "enum",
    "event",
    "explicit",
    "extern",
    "false",
    "finally",
    "fixed",
    "float",
    "for",
    "foreach",
    "goto",
    "if",
    "implicit",
    "in",
    "int",
    "interface",
    "internal",
    "is",
    "lock",
    "long",
    "namespace",
    "new",
    "null",
    "object",
    "operator",
    "out",
    "override",
    "params",
    "private",
    "protected",
    "public",
    "readonly",
    "ref",
    "return",
    "sbyte",
    "sealed",
    "short",
    "sizeof",
    "stackalloc",
    "static",
    "string",
    "struct",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "uint",
    "ulong",
    "unchecked",
    "unsafe",
    "ushort",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
];
