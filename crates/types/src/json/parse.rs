//! A strict JSON parser that keeps number texts, key order and duplicate keys.

use std::borrow::Cow;

use super::error::JsonError;
use crate::hex;

/// Nested arrays and objects a JSON text may have; one more is a parse error (01 §1.5.3).
pub const MAX_DEPTH: usize = 127;

/// A parsed JSON value and where it ends in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    pub kind: NodeKind<'a>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind<'a> {
    Null,
    Bool(bool),
    /// The text of the number, which follows the JSON grammar.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    /// Entries in the order of the text; keys may repeat.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl JsonError {
    /// An error about a parsed value, for readers of records built on [`Node`].
    pub fn at(node: &Node<'_>, message: impl Into<String>) -> Self {
        Self::new(message, node.line, node.column)
    }
}

impl<'a> Node<'a> {
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.as_object()?
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, node)| node)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(s) => Some(s),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Node<'a>]> {
        match &self.kind {
            NodeKind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Node<'a>)]> {
        match &self.kind {
            NodeKind::Object(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        match self.kind {
            NodeKind::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            NodeKind::Bool(b) => Some(b),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.kind == NodeKind::Null
    }

    /// The value as error texts name it: ``string "x"``, ``integer `5` ``, `sequence`, `map`.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Null => "null".to_owned(),
            NodeKind::Bool(b) => format!("boolean `{b}`"),
            NodeKind::Number(text) if is_integer(text) => format!("integer `{}`", shortened(text)),
            NodeKind::Number(text) => format!("floating point `{}`", shortened(text)),
            NodeKind::String(s) => format!("string {:?}", shortened(s)),
            NodeKind::Array(_) => "sequence".to_owned(),
            NodeKind::Object(_) => "map".to_owned(),
        }
    }
}

/// Keeps echoed input out of errors beyond a readable length.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const SHOWN_CHARACTERS_MAX: usize = 100;
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// True for a number text without fraction and exponent.
pub(crate) fn is_integer(number: &str) -> bool {
    !number.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'))
}

/// Parses one JSON value with nothing but whitespace after it.
pub fn parse(text: &str) -> Result<Node<'_>, JsonError> {
    parse_to_depth(text, MAX_DEPTH)
}

/// The same with another bound on nested arrays and objects.
pub fn parse_to_depth(text: &str, depth_max: usize) -> Result<Node<'_>, JsonError> {
    let mut parser = Parser {
        text,
        depth_max,
        position: 0,
        line: 1,
        line_start: 0,
    };
    let node = parser.value(0)?;
    parser.skip_whitespace();
    if parser.position < text.len() {
        parser.position += 1;
        return Err(parser.error("trailing characters"));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    depth_max: usize,
    position: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, message: &str) -> JsonError {
        JsonError::new(message, self.line, self.column())
    }

    fn column(&self) -> u32 {
        u32::try_from(self.position - self.line_start).unwrap_or(u32::MAX)
    }

    fn node(&self, kind: NodeKind<'a>) -> Node<'a> {
        Node {
            kind,
            line: self.line,
            column: self.column(),
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_whitespace(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' => self.position += 1,
                b'\n' => {
                    self.position += 1;
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.position;
                }
                _ => return,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        self.skip_whitespace();
        let kind = match self.peek() {
            Some(b'[' | b'{') if depth >= self.depth_max => {
                Err(self.unexpected("", "recursion limit exceeded"))
            }
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            _ => self.leaf(),
        };
        kind.map(|kind| self.node(kind))
    }

    /// By itself, so that [`value`](Self::value), which calls itself, takes little of the stack.
    #[inline(never)]
    fn leaf(&mut self) -> Result<NodeKind<'a>, JsonError> {
        match self.peek() {
            Some(b'n') => self.literal("null", NodeKind::Null),
            Some(b't') => self.literal("true", NodeKind::Bool(true)),
            Some(b'f') => self.literal("false", NodeKind::Bool(false)),
            Some(b'"') => self.string().map(NodeKind::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("EOF while parsing a value", "expected value")),
        }
    }

    /// An error at the next byte, or at the end of the text.
    fn unexpected(&mut self, at_end: &str, otherwise: &str) -> JsonError {
        if self.peek().is_none() {
            return self.error(at_end);
        }
        self.position += 1;
        self.error(otherwise)
    }

    fn literal(&mut self, text: &str, kind: NodeKind<'a>) -> Result<NodeKind<'a>, JsonError> {
        for expected in text.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.unexpected("EOF while parsing a value", "expected ident"));
            }
            self.position += 1;
        }
        Ok(kind)
    }

    fn array(&mut self, depth: usize) -> Result<NodeKind<'a>, JsonError> {
        self.position += 1;
        let mut elements = Vec::new();
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(NodeKind::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b']') => {
                    self.position += 1;
                    return Ok(NodeKind::Array(elements));
                }
                _ => return Err(self.unexpected("EOF while parsing a list", "expected `,` or `]`")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<NodeKind<'a>, JsonError> {
        const AT_END: &str = "EOF while parsing an object";
        self.position += 1;
        let mut entries = Vec::new();
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(NodeKind::Object(entries));
        }
        loop {
            self.skip_whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(AT_END, "key must be a string"));
            }
            let key = self.string()?;
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.unexpected(AT_END, "expected `:`"));
            }
            self.position += 1;
            entries.push((key, self.value(depth + 1)?));
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b'}') => {
                    self.position += 1;
                    return Ok(NodeKind::Object(entries));
                }
                _ => return Err(self.unexpected(AT_END, "expected `,` or `}`")),
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        self.position - start
    }

    fn number(&mut self) -> Result<NodeKind<'a>, JsonError> {
        let start = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let integer_digits = self.digits();
        if integer_digits == 0 || (leading_zero && integer_digits > 1) {
            return Err(self.error("invalid number"));
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            if self.digits() == 0 {
                return Err(self.error("invalid number"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            if self.digits() == 0 {
                return Err(self.error("invalid number"));
            }
        }
        Ok(NodeKind::Number(&self.text[start..self.position]))
    }

    /// The string at the cursor, which stands on its opening quote.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.position += 1;
        let mut start = self.position;
        let mut unescaped = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error("EOF while parsing a string")),
                Some(b'"') => {
                    let tail = &self.text[start..self.position];
                    self.position += 1;
                    if unescaped.is_empty() {
                        return Ok(Cow::Borrowed(tail));
                    }
                    unescaped.push_str(tail);
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => {
                    unescaped.push_str(&self.text[start..self.position]);
                    self.position += 1;
                    unescaped.push(self.escape()?);
                    start = self.position;
                }
                Some(0..=0x1f) => {
                    self.position += 1;
                    return Err(self.error(
                        "control character (\\u0000-\\u001F) found while parsing a string",
                    ));
                }
                Some(_) => self.position += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let Some(byte) = self.peek() else {
            return Err(self.error("EOF while parsing a string"));
        };
        self.position += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.error("invalid escape")),
        })
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_hex_digits()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        if first >= 0xdc00 || !self.text[self.position..].starts_with("\\u") {
            return Err(self.error("lone leading surrogate in hex escape"));
        }
        self.position += 2;
        let second = self.four_hex_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.error("lone leading surrogate in hex escape"));
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            .ok_or_else(|| self.error("invalid unicode code point"))
    }

    fn four_hex_digits(&mut self) -> Result<u32, JsonError> {
        let mut value = 0;
        for _ in 0..4 {
            match self.peek() {
                None => return Err(self.error("EOF while parsing a string")),
                Some(byte) => match hex::digit(byte) {
                    Some(digit) => value = value << 4 | u32::from(digit),
                    None => return Err(self.error("invalid escape")),
                },
            }
            self.position += 1;
        }
        Ok(value)
    }
}
