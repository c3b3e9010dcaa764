//! Files of environment variables: lines `KEY=VALUE`, as many tools write them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use crate::error::{FileResult as _, Result};

/// The variables of a file, or of the standard input if it is `-`. No error shows a value.
pub fn read(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(caused!("LC0619", "cannot read from the standard input"))?;
        text
    } else {
        std::fs::read_to_string(path).or_cannot("read", path)?
    };
    parse(&text).map_err(|(line, why)| coded!("LC0639", "{}:{line}: {why}", path.display()))
}

/// An assignment as an argument of a command.
pub fn assignment(word: &str) -> Result<(String, String)> {
    match word.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(coded!(
            "LC0639",
            "a variable is given as KEY=VALUE, and one argument has no `=`"
        )),
    }
}

/// An error has the number of its line.
fn parse(text: &str) -> std::result::Result<BTreeMap<String, String>, (usize, &'static str)> {
    let mut variables = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (key, value) = line
            .split_once('=')
            .ok_or((number, "the line has no `=`"))?;
        let value = value_of(value.trim()).map_err(|why| (number, why))?;
        if variables.insert(key.trim().to_owned(), value).is_some() {
            return Err((number, "the variable is in the file already"));
        }
    }
    Ok(variables)
}

/// In single quotes all is as it stands, in double ones there are escapes, and without any a comment may follow.
fn value_of(text: &str) -> std::result::Result<String, &'static str> {
    const OPEN: &str = "the value has no closing quote, or something follows it";
    if let Some(text) = text.strip_prefix('\'') {
        let inner = text
            .strip_suffix('\'')
            .filter(|inner| !inner.contains('\''));
        return inner.map(str::to_owned).ok_or(OPEN);
    }
    let Some(text) = text.strip_prefix('"') else {
        let value = text.split_once(" #").map_or(text, |(value, _)| value);
        return Ok(value.trim_end().to_owned());
    };
    let mut value = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, rest.clone().next()) {
            ('"', None) => return Ok(value),
            ('"', Some(_)) => return Err(OPEN),
            ('\\', Some(escaped)) => {
                rest.next();
                value.push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
            }
            _ => value.push(c),
        }
    }
    Err(OPEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_lines_of_variables() {
        let text = "# a comment\n\nA=1\nexport B = 'x # \"y\\'\nC=\"a\\n\\\"b\\\\\"\nD= plain # comment\nE=\nF=a=b\r\n";
        let variables = parse(text).expect("a file");
        let expected = [
            ("A", "1"),
            ("B", "x # \"y\\"),
            ("C", "a\n\"b\\"),
            ("D", "plain"),
            ("E", ""),
            ("F", "a=b"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(variables, expected.into_iter().collect());
    }

    #[test]
    fn a_wrong_line_is_told_by_its_number() {
        for text in [
            "A=1\nsecret",
            "A=1\nB='secret",
            "A=1\nB=\"secret",
            "A=1\nB=\"x\"y",
            "A=1\nA=2",
        ] {
            let (line, why) = parse(text).expect_err(text);
            assert_eq!(line, 2, "{text}");
            assert!(!why.contains("secret"));
        }
    }
}
