//! Which tables a query reads, and how they are joined.

use std::ops::Range;

use super::Parser;
use crate::ast::{ColumnName, Expression, Expressions, Join, TableRef};
use crate::error::{Result, SqlError};
use crate::lexer::{Comparison, Kind};
use crate::words;

impl Parser<'_> {
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        let start = self.at;
        if self.kind() == Kind::OpenParen {
            return Err(self.unsupported_table(start));
        }
        if self.is_one_of(words::NO_TABLE_NAME) {
            self.advance();
            return match self.kind() {
                Kind::OpenParen => Err(self.unsupported_table(start)),
                _ => self.expected("("),
            };
        }
        let name = self.relation()?;
        let (arguments, call) = match self.kind() {
            Kind::OpenParen => {
                let call = self.render_item(start);
                (self.tuple(SqlError::view_argument)?, Some(call))
            }
            _ => (Vec::new(), None),
        };
        let alias = if self.as_of_words().is_some() {
            None
        } else if self.take_word("AS") {
            Some(self.word()?)
        } else {
            match self.kind() {
                Kind::QuotedWord => Some(self.word()?),
                Kind::Word if !self.is_one_of(words::NO_TABLE_ALIAS) => Some(self.word()?),
                _ => None,
            }
        };
        if alias.is_some() && self.kind() == Kind::OpenParen {
            return Err(self.unsupported_table(start));
        }
        let alias = alias.unwrap_or_else(|| name.clone());
        Ok(TableRef {
            name,
            alias,
            arguments,
            call,
        })
    }

    /// `AS OF [SYSTEM TIME]` with a value behind it: how many words it is. Else `OF` is an alias.
    fn as_of_words(&self) -> Option<usize> {
        let words = match self.is_word_after(2, "SYSTEM") && self.is_word_after(3, "TIME") {
            true => 4,
            false => 2,
        };
        let is_here = self.is_word("AS") && self.is_word_after(1, "OF");
        let has_value = matches!(self.kind_after(words), Kind::Number | Kind::Text);
        let may_stand_here = self.language.is_ad_hoc() && !self.is_in_subquery();
        (is_here && has_value && may_stand_here).then_some(words)
    }

    /// The state that the whole statement is of, if it says so.
    pub(super) fn as_of(&mut self) -> Option<(String, Range<usize>)> {
        let words = self.as_of_words()?;
        let start = self.token().start;
        self.at += words;
        let end = self.token().end;
        Some((self.literal()?.text, start..end))
    }

    pub(super) fn joins(&mut self) -> Result<Vec<Join>> {
        let mut joins = Vec::new();
        loop {
            if self.kind() == Kind::Comma {
                return Err(SqlError::ImplicitJoin);
            }
            let outer = self.language.is_ad_hoc() && self.is_left_join();
            if self.is_one_of("LEFT RIGHT FULL NATURAL OUTER") {
                return Err(SqlError::NonInnerJoin);
            }
            let cross = self.is_word("CROSS");
            if cross || self.is_word("INNER") {
                self.advance();
                if cross && self.is_word("APPLY") {
                    return Err(SqlError::NonInnerJoin);
                }
                self.expect_word("JOIN")?;
            } else if !self.take_word("JOIN") {
                return Ok(joins);
            }
            let table = self.table_ref()?;
            let on = if cross { None } else { self.join_condition()? };
            if outer && on.is_none() {
                return Err(SqlError::NonInnerJoin);
            }
            joins.push(Join { table, on, outer });
        }
    }

    /// Moves to the `JOIN` of `LEFT [OUTER] JOIN`, if that is what stands here.
    fn is_left_join(&mut self) -> bool {
        let words = if self.is_word_after(1, "OUTER") { 2 } else { 1 };
        let there = self.is_word("LEFT") && self.is_word_after(words, "JOIN");
        if there {
            self.at += words;
        }
        there
    }

    fn join_condition(&mut self) -> Result<Option<(ColumnName, ColumnName)>> {
        if self.is_word("USING") {
            return Err(SqlError::NonInnerJoin);
        }
        if !self.take_word("ON") {
            return Ok(None);
        }
        let start = self.at;
        let Expressions(mut condition) = self.condition()?;
        if self.tokens[start..self.at]
            .iter()
            .any(|t| t.kind == Kind::OpenParen)
        {
            return Err(SqlError::NonInnerJoin);
        }
        // One comparison of two columns is three expressions, the comparison last.
        match (
            condition.len(),
            condition.pop(),
            condition.pop(),
            condition.pop(),
        ) {
            (
                3,
                Some(Expression::Compare(Comparison::Equal, 0, 1)),
                Some(Expression::Column(right)),
                Some(Expression::Column(left)),
            ) => Ok(Some((left, right))),
            _ => Err(SqlError::NonInnerJoin),
        }
    }
}
