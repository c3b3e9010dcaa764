//! What stands behind a query's condition: groups, order and limits.

use super::{Language, Parser};
use crate::ast::{OrderItem, OrderTarget, Shape};
use crate::error::Result;
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn limit(&mut self, start: usize) -> Result<Option<String>> {
        if !self.is_word("LIMIT") {
            return Ok(None);
        }
        self.advance();
        if self.take_word("ALL") {
            return Ok(None);
        }
        self.count(start).map(Some)
    }

    /// A number of rows.
    pub(super) fn count(&mut self, start: usize) -> Result<String> {
        let token = self.token();
        let ends = |kind| matches!(kind, Kind::End | Kind::Semicolon | Kind::Word);
        if token.kind == Kind::End || token.kind == Kind::Semicolon {
            return self.expected("an expression:");
        }
        if self.language == Language::Subscription
            || token.kind != Kind::Number
            || !ends(self.kind_after(1))
        {
            return Err(self.unsupported_from(start));
        }
        let number = self.slice(token).trim_end_matches('L').to_owned();
        self.advance();
        Ok(number)
    }

    /// `GROUP BY` and `HAVING`.
    pub(super) fn grouping(&mut self, shape: &mut Shape) -> Result<()> {
        if self.is_word("GROUP") && self.is_word_after(1, "BY") {
            self.advance();
            self.advance();
            shape.group_by = self.list(Self::plain_column)?;
        }
        if self.take_word("HAVING") {
            self.aggregates = Some(Vec::new());
            let having = self.condition();
            shape.having_aggregates = self.aggregates.take().unwrap_or_default();
            shape.having = Some(having?);
        }
        Ok(())
    }

    pub(super) fn order_by(&mut self, shape: &mut Shape) -> Result<()> {
        if !self.is_word("ORDER") || !self.is_word_after(1, "BY") {
            return Ok(());
        }
        self.advance();
        self.advance();
        shape.order_by = self.list(Self::order_item)?;
        Ok(())
    }

    fn order_item(&mut self) -> Result<OrderItem> {
        let token = self.token();
        let target = if token.kind == Kind::Number {
            let position = self.slice(token).parse();
            let position = position.map_err(|_| self.unsupported_expression(self.at))?;
            self.advance();
            OrderTarget::Position(position)
        } else if self.is_function() {
            OrderTarget::Aggregate(self.aggregate_name()?)
        } else {
            OrderTarget::Column(self.plain_column()?)
        };
        let descending = self.take_word("DESC");
        let _ = descending || self.take_word("ASC");
        match self.is_word("NULLS") {
            true => Err(self.unsupported_expression(self.at)),
            false => Ok(OrderItem { target, descending }),
        }
    }
}
