//! The style of C#: indentation, braces, names.

use lightcone_schema::case::to_pascal;

use crate::error::{Error, Result};

pub(super) const UNIT: &str = "    ";

pub(super) fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// A type, member or variant. No keyword of C# begins with a capital letter.
pub(super) fn pascal(name: &str) -> Result<String> {
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
pub(super) fn member(name: &str, class: &str) -> Result<String> {
    Ok(other_than(&pascal(name)?, class))
}

/// A name inside of a class, which must not have the same one.
pub(super) fn other_than(name: &str, class: &str) -> String {
    match name == class {
        true => format!("{name}_"),
        false => name.to_owned(),
    }
}

/// A parameter. The `@` makes a name of a keyword.
pub(super) fn parameter(name: &str) -> Result<String> {
    let name = pascal(name)?;
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    let camel: String = first.into_iter().chain(letters).collect();
    Ok(match KEYWORDS.split(' ').any(|keyword| keyword == camel) {
        true => format!("@{camel}"),
        false => camel,
    })
}

const KEYWORDS: &str = "\
    abstract as base bool break byte case catch char checked class const continue decimal default delegate \
    do double else enum event explicit extern false finally fixed float for foreach goto if implicit in int \
    interface internal is lock long namespace new null object operator out override params private protected \
    public readonly ref return sbyte sealed short sizeof stackalloc static string struct switch this throw \
    true try typeof uint ulong unchecked unsafe ushort using virtual void volatile while";
