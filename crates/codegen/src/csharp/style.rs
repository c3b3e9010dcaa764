//! The style of C#: indentation, braces, names.

use lightcone_schema::case::to_pascal;

use crate::error::{Error, Result};

pub(super) const UNIT: &str = "    ";

pub(super) fn is_identifier(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_first = |letter: char| letter.is_alphabetic() || letter == '_';
    name.starts_with(is_first) && name.chars().all(is_letter)
}

/// A type, member or variant. No keyword of C# begins with a capital letter.
pub(super) fn pascal(name: &str) -> Result<String> {
    let mut pascal = to_pascal(name);
    if pascal.starts_with(|first: char| first.is_ascii_digit()) {
        pascal.insert(0, '_');
    }
    match is_identifier(&pascal) {
        true => Ok(pascal),
        false => Err(Error::name(name, "C#")),
    }
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
