//! Subqueries: `( SELECT … )` behind `IN` and `EXISTS` (08 §5.4).

use super::{Parser, Subqueries};
use crate::ast::{Projection, Select};
use crate::error::{Result, SqlError, SUBQUERIES_MAX, SUBQUERY_DEPTH_MAX};
use crate::lexer::Kind;

impl Parser<'_> {
    /// A subquery with its parentheses, of which the first one is known to be there.
    pub(crate) fn subquery(&mut self) -> Result<Box<Select>> {
        if self.aggregates.is_some() {
            return Err(SqlError::Subquery(
                "subqueries stand in WHERE: HAVING has none",
            ));
        }
        let Subqueries { depth, count } = self.subqueries;
        if depth == SUBQUERY_DEPTH_MAX || count == SUBQUERIES_MAX {
            return Err(SqlError::TooManySubqueries);
        }
        self.advance();
        self.subqueries = Subqueries {
            depth: depth + 1,
            count: count + 1,
        };
        let select = self.select()?;
        self.subqueries.depth = depth;
        match self.take(Kind::CloseParen) {
            true => Ok(Box::new(select)),
            false => self.expected(")"),
        }
    }

    pub(super) fn is_in_subquery(&self) -> bool {
        self.subqueries.depth > 0
    }

    /// Is this `( SELECT`, so many tokens from here?
    pub(crate) fn is_subquery_after(&self, tokens: usize) -> bool {
        self.kind_after(tokens) == Kind::OpenParen && self.is_word_after(tokens + 1, "SELECT")
    }

    /// The `1` of `EXISTS (SELECT 1 FROM …)`, or another literal, which stands for no column.
    pub(super) fn no_columns(&mut self) -> Option<Projection> {
        let is_literal = match self.kind() {
            Kind::Number | Kind::Text | Kind::HexNumber | Kind::HexText => true,
            Kind::Word => self.is_one_of("TRUE FALSE NULL"),
            _ => false,
        };
        if !self.is_in_subquery() || !is_literal || !self.is_word_after(1, "FROM") {
            return None;
        }
        self.advance();
        Some(Projection::Items(Vec::new()))
    }

    /// Refuses the clauses that a subquery does not have.
    pub(super) fn check_end_of_subquery(&self) -> Result<()> {
        let clauses = "GROUP HAVING ORDER LIMIT OFFSET FETCH";
        match self.is_in_subquery() && self.is_one_of(clauses) {
            true => Err(SqlError::Subquery(
                "subqueries have no GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET or FETCH",
            )),
            false => Ok(()),
        }
    }
}
