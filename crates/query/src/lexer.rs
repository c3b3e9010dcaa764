//! Query text to tokens (08 §2).
//!
//! Tokens are spans of the text; their contents are read on demand, so lexing allocates one vector.

use std::cmp::Ordering;

use crate::error::{Result, SqlError};

/// A comparison operator (08 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The operator in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// The orders in which it holds, as bits: less, equal, greater.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Comparison::Less => 0b001,
            Comparison::Equal => 0b010,
            Comparison::Greater => 0b100,
            Comparison::LessOrEqual => 0b011,
            Comparison::GreaterOrEqual => 0b110,
            Comparison::NotEqual => 0b101,
        }
    }

    /// Does it hold of two values in this order?
    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        self.bits() >> (ordering as i8 + 1) & 1 != 0
    }

    /// The operator that says the same with its operands exchanged.
    pub(crate) fn flipped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// `"…"`
    QuotedWord,
    Number,
    /// `'…'`
    Text,
    /// `0x…`
    HexNumber,
    /// `x'…'`
    HexText,
    /// `E'…'`, `N'…'`, `$…$`, `$1`, `?`: lexed, but no value of ours.
    ForeignLiteral,
    Comparison(Comparison),
    Comma,
    OpenParen,
    CloseParen,
    Semicolon,
    Period,
    Colon,
    Star,
    Plus,
    Minus,
    /// Any other operator or character.
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Byte span in the text.
    pub start: usize,
    pub end: usize,
    /// 1-based, in characters.
    pub line: u32,
    pub column: u32,
}

/// The operators that are not comparisons, none before a longer one that starts with it. A [`Kind::Symbol`] of another spelling ends an expression.
pub(crate) const FOREIGN_OPERATORS: [&str; 27] = [
    "<=>", "->>", "#>>", "!~*", "::", ":=", "=>", "||", "<<", ">>", "->", "@>", "<@", "#>", "#-",
    "@@", "@?", "&&", "!~", "~*", "/", "%", "|", "&", "^", "#", "~",
];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
}

/// Splits `text` into tokens; the last one is [`Kind::End`].
pub(crate) fn lex(text: &str) -> Result<Vec<Token>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        column: 1,
    };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        lexer.skip_blank()?;
        let (start, line, column) = (lexer.at, lexer.line, lexer.column);
        let kind = lexer.token()?;
        tokens.push(Token {
            kind,
            start,
            end: lexer.at,
            line,
            column,
        });
        if kind == Kind::End {
            return Ok(tokens);
        }
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word_part(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || c == '_' || c == '$'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn bump_if(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.bump();
        }
        there
    }

    fn bump_while(&mut self, accept: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&accept) {
            self.bump();
        }
    }

    fn error<T>(&self, what: &str, line: u32, column: u32) -> Result<T> {
        Err(SqlError::Syntax(format!(
            "{what} at Line: {line}, Column {column}"
        )))
    }

    /// Skips white space and comments; block comments nest.
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            self.bump_while(char::is_whitespace);
            if self.rest().starts_with("--") {
                self.bump_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                self.skip_block_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_block_comment(&mut self) -> Result<()> {
        let mut depth = 0usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
            } else if rest.starts_with("*/") {
                depth -= 1;
            } else if self.bump().is_some() {
                continue;
            } else {
                return self.error(
                    "Unexpected EOF while in a multi-line comment",
                    self.line,
                    self.column,
                );
            }
            self.bump();
            self.bump();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Kind> {
        let Some(c) = self.peek() else {
            return Ok(Kind::End);
        };
        if self.peek_second() == Some('\'') {
            let prefixed = match c {
                'x' | 'X' => Some((Kind::HexText, false)),
                'n' | 'N' => Some((Kind::ForeignLiteral, false)),
                'e' | 'E' => Some((Kind::ForeignLiteral, true)),
                _ => None,
            };
            if let Some((kind, backslash_escapes)) = prefixed {
                self.bump();
                self.quoted('\'', backslash_escapes)?;
                return Ok(kind);
            }
        }
        if is_word_start(c) {
            self.bump_while(is_word_part);
            return Ok(Kind::Word);
        }
        if c.is_ascii_digit()
            || (c == '.' && self.peek_second().is_some_and(|d| d.is_ascii_digit()))
        {
            return Ok(self.number());
        }
        match c {
            '\'' => self.quoted('\'', false).map(|()| Kind::Text),
            '"' => self.quoted('"', false).map(|()| Kind::QuotedWord),
            '$' => self.dollar(),
            _ => Ok(self.operator(c)),
        }
    }

    /// `D+[.D*]` or `.D+`, an exponent if a digit follows it, an `L`; or `0x` and hex digits.
    fn number(&mut self) -> Kind {
        let start = self.at;
        self.bump_while(|c| c.is_ascii_digit());
        if &self.text[start..self.at] == "0" && self.bump_if('x') {
            self.bump_while(|c| c.is_ascii_hexdigit());
            return Kind::HexNumber;
        }
        if self.bump_if('.') {
            self.bump_while(|c| c.is_ascii_digit());
        }
        let mut ahead = self.rest().chars();
        if matches!(ahead.next(), Some('e' | 'E')) {
            let (sign, digit) = match ahead.next() {
                Some('+' | '-') => (true, ahead.next()),
                other => (false, other),
            };
            if digit.is_some_and(|d| d.is_ascii_digit()) {
                self.bump();
                if sign {
                    self.bump();
                }
                self.bump_while(|c| c.is_ascii_digit());
            }
        }
        self.bump_if('L');
        Kind::Number
    }

    /// A quoted run in which the doubled quote stands for itself.
    fn quoted(&mut self, quote: char, backslash_escapes: bool) -> Result<()> {
        let (line, column) = (self.line, self.column);
        self.bump();
        loop {
            match self.bump() {
                Some('\\') if backslash_escapes => {
                    self.bump();
                }
                Some(c) if c == quote => {
                    if !self.bump_if(quote) {
                        return Ok(());
                    }
                }
                Some(_) => {}
                None if quote == '"' => {
                    return self.error("Expected close delimiter '\"' before EOF.", line, column)
                }
                None => return self.error("Unterminated string literal", line, column),
            }
        }
    }

    /// `$1`, `$$…$$` or `$tag$…$tag$`.
    fn dollar(&mut self) -> Result<Kind> {
        let (line, column) = (self.line, self.column);
        let start = self.at;
        self.bump();
        self.bump_while(|c| c.is_alphanumeric() || c == '_');
        if self.bump_if('$') {
            let tag = &self.text[start..self.at];
            let Some(length) = self.rest().find(tag) else {
                return self.error("Unterminated dollar-quoted string", line, column);
            };
            let end = self.at + length + tag.len();
            while self.at < end {
                self.bump();
            }
        }
        Ok(Kind::ForeignLiteral)
    }

    fn operator(&mut self, c: char) -> Kind {
        let rest = self.rest();
        if let Some(operator) = FOREIGN_OPERATORS.iter().find(|o| rest.starts_with(**o)) {
            for _ in 0..operator.len() {
                self.bump();
            }
            return Kind::Symbol;
        }
        self.bump();
        match c {
            '=' => {
                self.bump_if('=');
                Kind::Comparison(Comparison::Equal)
            }
            '!' if self.bump_if('=') => Kind::Comparison(Comparison::NotEqual),
            '<' if self.bump_if('=') => Kind::Comparison(Comparison::LessOrEqual),
            '<' if self.bump_if('>') => Kind::Comparison(Comparison::NotEqual),
            '<' => Kind::Comparison(Comparison::Less),
            '>' if self.bump_if('=') => Kind::Comparison(Comparison::GreaterOrEqual),
            '>' => Kind::Comparison(Comparison::Greater),
            ',' => Kind::Comma,
            '(' => Kind::OpenParen,
            ')' => Kind::CloseParen,
            ';' => Kind::Semicolon,
            '.' => Kind::Period,
            ':' => Kind::Colon,
            '*' => Kind::Star,
            '+' => Kind::Plus,
            '-' => Kind::Minus,
            '?' => Kind::ForeignLiteral,
            _ => Kind::Symbol,
        }
    }
}

/// The content of a quoted token: the text between its quotes, doubled quotes undone.
pub(crate) fn unquote(token: &str, quote: char) -> String {
    let inner = token
        .find(quote)
        .and_then(|open| token.get(open + 1..token.len() - 1))
        .unwrap_or_default();
    let doubled = [quote, quote].iter().collect::<String>();
    inner.replace(&doubled, quote.encode_utf8(&mut [0; 4]))
}
