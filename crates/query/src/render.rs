//! Parts of the caller's text as messages quote them.

use crate::error::{Result, SqlError};
use crate::lexer::Kind;
use crate::parser::{Language, Parser};
use crate::words::{self, is_one_of};

impl Parser<'_> {
    fn statement_end(&self) -> usize {
        let rest = &self.tokens[self.at..];
        self.at
            + rest
                .iter()
                .take_while(|t| !matches!(t.kind, Kind::End | Kind::Semicolon))
                .count()
    }

    /// Refuses the token at the current position.
    pub(crate) fn expected<T>(&self, what: &str) -> Result<T> {
        let token = self.token();
        Err(SqlError::Syntax(if token.kind == Kind::End {
            format!("Expected {what}, found: EOF")
        } else {
            format!(
                "Expected {what}, found: {} at Line: {}, Column {}",
                shown(self.slice(token)),
                token.line,
                token.column
            )
        }))
    }

    pub(crate) fn unsupported_statement(&self) -> SqlError {
        self.unsupported_from(self.at)
    }

    pub(crate) fn unsupported_from(&self, start: usize) -> SqlError {
        SqlError::Unsupported(self.render_rest(start))
    }

    /// Refuses what the subscription language has an error of its own for.
    pub(crate) fn unsupported_as(
        &self,
        start: usize,
        subscribed: fn(String) -> SqlError,
    ) -> SqlError {
        match self.language {
            Language::Subscription => subscribed(self.render_rest(start)),
            Language::AdHoc | Language::PostgreSql => self.unsupported_from(start),
        }
    }

    pub(crate) fn unsupported_expression(&self, start: usize) -> SqlError {
        SqlError::UnsupportedExpression(self.render_item(start))
    }

    pub(crate) fn unsupported_projection(&self, start: usize) -> SqlError {
        SqlError::UnsupportedProjectionExpression(self.render_item(start))
    }

    pub(crate) fn unsupported_table(&self, start: usize) -> SqlError {
        SqlError::UnsupportedFrom(self.render_item(start))
    }

    /// The tokens from `start` up to the end of the statement.
    pub(crate) fn render_rest(&self, start: usize) -> String {
        self.render(start, self.statement_end())
    }

    /// The tokens from `start` up to one of `words`, or to the end of the statement.
    pub(crate) fn render_until(&self, start: usize, words: &str) -> String {
        let rest = &self.tokens[start..self.statement_end()];
        let is_end =
            |t: &crate::lexer::Token| t.kind == Kind::Word && is_one_of(self.slice(*t), words);
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        self.render(start, start + length)
    }

    /// The tokens from `start` up to the end of the list item or clause they stand in.
    pub(crate) fn render_item(&self, start: usize) -> String {
        const ENDS: &str = "AND OR FROM WHERE JOIN INNER CROSS LEFT RIGHT FULL GROUP HAVING ORDER LIMIT OFFSET UNION EXCEPT INTERSECT";
        let mut depth = 0usize;
        let mut between = false;
        let mut end = start;
        for token in &self.tokens[start..] {
            match token.kind {
                Kind::End | Kind::Semicolon => break,
                Kind::OpenParen => depth += 1,
                Kind::CloseParen if depth == 0 => break,
                Kind::CloseParen => depth -= 1,
                Kind::Comma if depth == 0 => break,
                Kind::Word if depth == 0 && end > start => {
                    let word = self.slice(*token);
                    if between && word.eq_ignore_ascii_case("AND") {
                        between = false;
                    } else if is_one_of(word, ENDS) {
                        break;
                    }
                    between |= word.eq_ignore_ascii_case("BETWEEN");
                }
                _ => {}
            }
            end += 1;
        }
        self.render(start, end)
    }

    /// The tokens of a range in the spacing and letter case of a formatted statement.
    pub(crate) fn render(&self, start: usize, end: usize) -> String {
        let mut out = String::new();
        let mut glue = true;
        for (i, token) in self.tokens[start..end].iter().enumerate() {
            let slice = self.slice(*token);
            let tight = match token.kind {
                Kind::Comma | Kind::CloseParen | Kind::Period => true,
                Kind::OpenParen => {
                    i > 0 && {
                        let before = self.tokens[start + i - 1];
                        before.kind == Kind::Word && !is_one_of(self.slice(before), words::CAPITALS)
                    }
                }
                _ => slice == "::",
            };
            if !glue && !tight {
                out.push(' ');
            }
            match token.kind {
                Kind::Word if is_one_of(slice, words::CAPITALS) => {
                    out.push_str(&slice.to_ascii_uppercase())
                }
                Kind::HexNumber => {
                    out.push_str("X'");
                    out.push_str(&slice[2..]);
                    out.push('\'');
                }
                _ => out.push_str(slice),
            }
            let sign = matches!(token.kind, Kind::Plus | Kind::Minus)
                && (i == 0
                    || !matches!(
                        self.tokens[start + i - 1].kind,
                        Kind::Word
                            | Kind::QuotedWord
                            | Kind::Number
                            | Kind::Text
                            | Kind::CloseParen
                    ));
            glue = sign
                || matches!(token.kind, Kind::OpenParen | Kind::Period | Kind::Colon)
                || slice == "::";
        }
        if is_one_of(out.trim(), "BEGIN") {
            return "BEGIN TRANSACTION".to_owned();
        }
        shown(&out)
    }
}

/// At most this many characters of the caller's text come back in a message.
const SHOWN_CHARS_MAX: usize = 2_000;

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}
