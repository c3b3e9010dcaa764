//! Tokens to statements that write (08 §5.3).

use crate::ast::{Expressions, Statement, Value, ValueKind, Write};
use crate::error::SqlError;
use crate::lexer::{unquote, Comparison, Kind};
use crate::parser::Parser;
use crate::words;

/// The refusal of what stands where only a literal can, with its text.
type Unsupported = fn(String) -> SqlError;

impl Parser<'_> {
    /// A statement that is no query. Its first word is known to be one of these.
    pub(crate) fn other_statement(&mut self) -> Result<Statement, SqlError> {
        let start = self.at;
        if self.take_word("INSERT") {
            self.insert(start).map(Statement::Write)
        } else if self.take_word("UPDATE") {
            self.update(start).map(Statement::Write)
        } else if self.take_word("DELETE") {
            self.delete(start).map(Statement::Write)
        } else if self.take_word("SET") {
            self.set(start)
        } else {
            self.advance();
            self.show(start)
        }
    }

    fn insert(&mut self, start: usize) -> Result<Write, SqlError> {
        self.take_word("INTO");
        if self.is_word("TABLE") && self.kind_after(1) != Kind::OpenParen {
            return Err(self.unsupported_from(start));
        }
        let table = self.target()?;
        let columns = match self.kind() {
            Kind::OpenParen => Some(self.column_list()?),
            _ => None,
        };
        if !self.take_word("VALUES") {
            return match self.kind() {
                Kind::End | Kind::Semicolon => {
                    self.expected("SELECT, VALUES, or a subquery in the query body")
                }
                _ if self.is_word("DEFAULT") => Err(self.unsupported_from(start)),
                _ => Err(SqlError::UnsupportedInsert(self.render_rest(self.at))),
            };
        }
        let mut rows = Vec::new();
        loop {
            rows.push(self.tuple()?);
            if !self.take(Kind::Comma) {
                break;
            }
        }
        self.nothing_follows(start)?;
        Ok(Write::Insert {
            table,
            columns,
            rows,
        })
    }

    /// `( word { "," word } )`, or `()`.
    fn column_list(&mut self) -> Result<Vec<String>, SqlError> {
        self.advance();
        let mut columns = Vec::new();
        if self.take(Kind::CloseParen) {
            return Ok(columns);
        }
        loop {
            columns.push(self.word()?);
            if self.take(Kind::CloseParen) {
                return Ok(columns);
            }
            if !self.take(Kind::Comma) {
                return self.expected(", or )");
            }
        }
    }

    fn tuple(&mut self) -> Result<Vec<Value>, SqlError> {
        if !self.take(Kind::OpenParen) {
            return self.expected("(");
        }
        let mut values = Vec::new();
        if self.take(Kind::CloseParen) {
            return Ok(values);
        }
        loop {
            let start = self.at;
            values.push(self.value(SqlError::UnsupportedInsertValue)?);
            if self.take(Kind::CloseParen) {
                return Ok(values);
            }
            match self.kind() {
                Kind::Comma => self.advance(),
                Kind::End | Kind::Semicolon => return self.expected(")"),
                _ => return Err(SqlError::UnsupportedInsertValue(self.render_item(start))),
            }
        }
    }

    fn update(&mut self, start: usize) -> Result<Write, SqlError> {
        let table = self.target()?;
        if !self.take_word("SET") {
            return match self.kind() {
                Kind::End | Kind::Semicolon => self.expected("SET"),
                _ => Err(self.unsupported_from(start)),
            };
        }
        let mut assignments = Vec::new();
        loop {
            let column = self.relation()?;
            if !self.take(Kind::Comparison(Comparison::Equal)) {
                return self.expected("=");
            }
            let place = self.at;
            let value = self.value(SqlError::UnsupportedAssignment)?;
            if !self.at_value_end() {
                return Err(SqlError::UnsupportedAssignment(self.render_item(place)));
            }
            assignments.push((column, value));
            if !self.take(Kind::Comma) {
                break;
            }
        }
        let condition = self.rows_of_target(start)?;
        Ok(Write::Update {
            table,
            assignments,
            condition,
        })
    }

    /// Whether a value ends here, rather than being the beginning of an expression.
    fn at_value_end(&self) -> bool {
        matches!(self.kind(), Kind::Comma | Kind::End | Kind::Semicolon)
            || self.is_word("WHERE")
            || self.is_one_of(FOREIGN_CLAUSES)
    }

    fn delete(&mut self, start: usize) -> Result<Write, SqlError> {
        if !self.is_word("FROM") && matches!(self.kind(), Kind::Word | Kind::QuotedWord) {
            return Err(SqlError::MultiTableDelete);
        }
        self.expect_word("FROM")?;
        let place = self.at;
        let table = self.target()?;
        match self.kind() {
            Kind::Comma => return Err(SqlError::MultiTableDelete),
            Kind::End | Kind::Semicolon => {}
            Kind::Word if self.is_word("WHERE") || self.is_one_of(FOREIGN_CLAUSES) => {}
            Kind::Word | Kind::QuotedWord => {
                let text = self.render_until(place, "WHERE USING RETURNING");
                return Err(SqlError::UnsupportedDelete(text));
            }
            _ => {}
        }
        let condition = self.rows_of_target(start)?;
        Ok(Write::Delete { table, condition })
    }

    /// The table that is written to.
    fn target(&mut self) -> Result<String, SqlError> {
        if self.is_one_of(words::NO_TABLE_NAME) {
            return self.expected("a table name");
        }
        self.relation()
    }

    /// `[ WHERE predicate ]` and nothing behind it.
    fn rows_of_target(&mut self, start: usize) -> Result<Option<Expressions>, SqlError> {
        let condition = match self.take_word("WHERE") {
            true => Some(self.condition()?),
            false => None,
        };
        self.nothing_follows(start)?;
        Ok(condition)
    }

    fn nothing_follows(&self, start: usize) -> Result<(), SqlError> {
        match self.is_one_of(FOREIGN_CLAUSES) {
            true => Err(self.unsupported_from(start)),
            false => Ok(()),
        }
    }

    /// A literal, where nothing else is of use.
    fn value(&mut self, unsupported: Unsupported) -> Result<Value, SqlError> {
        let start = self.at;
        let token = self.token();
        let text = |from: usize, parser: &Self| parser.text[from..token.end].to_owned();
        let (kind, text) = match token.kind {
            Kind::Number => (ValueKind::Number, self.digits("")),
            Kind::Plus | Kind::Minus => {
                let sign = if token.kind == Kind::Plus { "+" } else { "-" };
                self.advance();
                if self.kind() != Kind::Number {
                    return Err(unsupported(self.render_item(start)));
                }
                (ValueKind::Number, self.digits(sign))
            }
            Kind::Text => (ValueKind::Text, unquote(self.slice(token), '\'')),
            Kind::HexNumber => (ValueKind::Hex, text(token.start + 2, self)),
            Kind::HexText => (ValueKind::Hex, unquote(self.slice(token), '\'')),
            Kind::Word if self.is_word("TRUE") => (ValueKind::Bool, "TRUE".to_owned()),
            Kind::Word if self.is_word("FALSE") => (ValueKind::Bool, "FALSE".to_owned()),
            Kind::Word if self.is_word("NULL") => {
                return Err(SqlError::UnsupportedLiteral("NULL".to_owned()));
            }
            Kind::ForeignLiteral => {
                return Err(SqlError::UnsupportedLiteral(self.render(start, start + 1)));
            }
            Kind::Colon => return Err(SqlError::UnsupportedLiteral(self.render_item(start))),
            Kind::End | Kind::Semicolon | Kind::Comma | Kind::CloseParen => {
                return self.expected("an expression:");
            }
            _ => return Err(unsupported(self.render_item(start))),
        };
        self.advance();
        Ok(Value { kind, text })
    }

    fn digits(&self, sign: &str) -> String {
        let digits = self.slice(self.token()).trim_end_matches('L');
        format!("{sign}{digits}")
    }

    fn set(&mut self, start: usize) -> Result<Statement, SqlError> {
        self.take_word("SESSION");
        if self.is_word("LOCAL") || self.is_word("TIME") {
            return Err(self.unsupported_from(start));
        }
        let name = self.relation()?;
        if !self.take_word("TO") && !self.take(Kind::Comparison(Comparison::Equal)) {
            return self.expected("equals sign or TO");
        }
        let value = self.value(SqlError::UnsupportedAssignment)?;
        if self.kind() == Kind::Comma {
            return Err(self.unsupported_from(start));
        }
        Ok(Statement::Set(name, value))
    }

    fn show(&mut self, start: usize) -> Result<Statement, SqlError> {
        const FOREIGN: &str = "TABLES COLUMNS FIELDS CREATE FUNCTIONS COLLATION EXTENDED FULL";
        if self.is_one_of(FOREIGN) {
            return Err(self.unsupported_from(start));
        }
        let mut words = vec![self.relation()?];
        while matches!(self.kind(), Kind::Word | Kind::QuotedWord) {
            words.push(self.relation()?);
        }
        Ok(Statement::Show(words.join(".")))
    }
}

/// These begin clauses that no statement that writes has.
const FOREIGN_CLAUSES: &str = "ON RETURNING FROM USING ORDER LIMIT";
