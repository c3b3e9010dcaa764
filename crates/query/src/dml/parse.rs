//! Tokens to statements that write (08 §5.3).

use crate::ast::{Change, Expressions, Statement, Value, Write};
use crate::error::{Result, SqlError};
use crate::lexer::{Comparison, Kind};
use crate::parser::Parser;
use crate::words;

/// The refusal of what stands where only a literal can, with its text.
type Unsupported = fn(String) -> SqlError;

impl Parser<'_> {
    /// A statement that is no query. Its first word is known to be one of these.
    pub(crate) fn other_statement(&mut self) -> Result<Statement> {
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

    fn insert(&mut self, start: usize) -> Result<Write> {
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
        let rows = self.list(|parser| parser.tuple(SqlError::UnsupportedInsertValue))?;
        self.nothing_follows(start)?;
        let change = Change::Insert(columns, rows);
        Ok(Write { table, change })
    }

    /// `( word { "," word } )`, or `()`.
    fn column_list(&mut self) -> Result<Vec<String>> {
        self.advance();
        if self.take(Kind::CloseParen) {
            return Ok(Vec::new());
        }
        let columns = self.list(Self::word)?;
        match self.take(Kind::CloseParen) {
            true => Ok(columns),
            false => self.expected(", or )"),
        }
    }

    /// Literals in parentheses.
    pub(crate) fn tuple(&mut self, unsupported: Unsupported) -> Result<Vec<Value>> {
        if !self.take(Kind::OpenParen) {
            return self.expected("(");
        }
        let mut values = Vec::new();
        if self.take(Kind::CloseParen) {
            return Ok(values);
        }
        loop {
            let start = self.at;
            values.push(self.value(unsupported)?);
            if self.take(Kind::CloseParen) {
                return Ok(values);
            }
            match self.kind() {
                Kind::Comma => self.advance(),
                Kind::End | Kind::Semicolon => return self.expected(")"),
                _ => return Err(unsupported(self.render_item(start))),
            }
        }
    }

    fn update(&mut self, start: usize) -> Result<Write> {
        let table = self.target()?;
        if !self.take_word("SET") {
            return match self.kind() {
                Kind::End | Kind::Semicolon => self.expected("SET"),
                _ => Err(self.unsupported_from(start)),
            };
        }
        let assignments = self.list(Self::assignment)?;
        let condition = self.rows_of_target(start)?;
        let change = Change::Update(assignments, condition);
        Ok(Write { table, change })
    }

    fn assignment(&mut self) -> Result<(String, Value)> {
        let column = self.relation()?;
        if !self.take(Kind::Comparison(Comparison::Equal)) {
            return self.expected("=");
        }
        let place = self.at;
        let value = self.value(SqlError::UnsupportedAssignment)?;
        // A value ends here, rather than being the beginning of an expression.
        let is_end = matches!(self.kind(), Kind::Comma | Kind::End | Kind::Semicolon)
            || self.is_word("WHERE")
            || self.is_one_of(FOREIGN_CLAUSES);
        match is_end {
            true => Ok((column, value)),
            false => Err(SqlError::UnsupportedAssignment(self.render_item(place))),
        }
    }

    fn delete(&mut self, start: usize) -> Result<Write> {
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
        let change = Change::Delete(self.rows_of_target(start)?);
        Ok(Write { table, change })
    }

    /// The table that is written to.
    fn target(&mut self) -> Result<String> {
        if self.is_one_of(words::NO_TABLE_NAME) {
            return self.expected("a table name");
        }
        self.relation()
    }

    /// `[ WHERE predicate ]` and nothing behind it.
    fn rows_of_target(&mut self, start: usize) -> Result<Option<Expressions>> {
        let condition = match self.take_word("WHERE") {
            true => Some(self.condition()?),
            false => None,
        };
        self.nothing_follows(start)?;
        Ok(condition)
    }

    fn nothing_follows(&self, start: usize) -> Result<()> {
        match self.is_one_of(FOREIGN_CLAUSES) {
            true => Err(self.unsupported_from(start)),
            false => Ok(()),
        }
    }

    /// A literal, where nothing else is of use.
    fn value(&mut self, unsupported: Unsupported) -> Result<Value> {
        let start = self.at;
        if let Some(literal) = self.literal() {
            return Ok(literal);
        }
        match self.kind() {
            Kind::Word if self.is_word("NULL") => {
                Err(SqlError::UnsupportedLiteral("NULL".to_owned()))
            }
            Kind::ForeignLiteral => {
                Err(SqlError::UnsupportedLiteral(self.render(start, start + 1)))
            }
            Kind::Colon => Err(SqlError::UnsupportedLiteral(self.render_item(start))),
            Kind::End | Kind::Semicolon | Kind::Comma | Kind::CloseParen => {
                self.expected("an expression:")
            }
            _ => Err(unsupported(self.render_item(start))),
        }
    }

    fn set(&mut self, start: usize) -> Result<Statement> {
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

    fn show(&mut self, start: usize) -> Result<Statement> {
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
