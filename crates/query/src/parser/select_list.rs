//! What comes out of a query: `SELECT` up to `FROM`.

use super::{Language, Parser};
use crate::ast::{AggregateName, ColumnItem, Function, Projection, SelectItem, Shape};
use crate::error::{Result, SqlError};
use crate::lexer::Kind;
use crate::words;

impl Parser<'_> {
    pub(super) fn projection(&mut self) -> Result<Projection> {
        let mut items = Vec::new();
        let mut wildcards = Vec::new();
        let mut count = 0usize;
        loop {
            count += 1;
            if self.take(Kind::Star) {
                wildcards.push(Projection::Star);
            } else if let Some(relation) = self.relation_star()? {
                wildcards.push(Projection::RelationStar(relation));
            } else if self.is_function() {
                let (aggregate, alias) = self.aggregate()?;
                items.push(SelectItem::Aggregate(aggregate, alias));
            } else {
                items.push(SelectItem::Column(self.column_item()?));
            }
            if !self.take(Kind::Comma) {
                break;
            }
        }
        match wildcards.pop() {
            Some(star) if count == 1 => Ok(star),
            Some(_) => Err(SqlError::MixedWildcard),
            None => Ok(Projection::Items(items)),
        }
    }

    /// A column beside an aggregate must be one of the groups'.
    pub(super) fn check_items(
        &self,
        projection: &Projection,
        shape: &Shape,
        start: usize,
    ) -> Result<()> {
        let Projection::Items(items) = projection else {
            return Ok(());
        };
        let is_column = |item: &SelectItem| matches!(item, SelectItem::Column(_));
        let is_grouped = shape.having.is_some() || !items.iter().all(is_column);
        match is_grouped && shape.group_by.is_empty() && items.iter().any(is_column) {
            true => Err(self.unsupported_projection(self.first_aggregate(start))),
            false => Ok(()),
        }
    }

    /// Where the first aggregate of a select list begins.
    fn first_aggregate(&self, start: usize) -> usize {
        let is_function = |at: &usize| {
            matches!(self.tokens[*at].kind, Kind::Word | Kind::QuotedWord)
                && self.tokens[*at + 1].kind == Kind::OpenParen
        };
        (start..self.at).find(is_function).unwrap_or(start)
    }
    /// `relation.*`, if that is what stands here.
    fn relation_star(&mut self) -> Result<Option<String>> {
        let start = self.at;
        let mut ahead = 0;
        while matches!(self.kind_after(ahead), Kind::Word | Kind::QuotedWord)
            && self.kind_after(ahead + 1) == Kind::Period
        {
            ahead += 2;
        }
        if ahead == 0 || self.kind_after(ahead) != Kind::Star {
            return Ok(None);
        }
        let mut parts = Vec::new();
        while self.kind() != Kind::Star {
            parts.push(self.word()?);
            self.advance();
        }
        self.advance();
        debug_assert_eq!(self.at, start + ahead + 1);
        Ok(Some(self.dotted(parts)))
    }

    pub(super) fn is_function(&self) -> bool {
        matches!(self.kind(), Kind::Word | Kind::QuotedWord)
            && self.kind_after(1) == Kind::OpenParen
            && !self.is_one_of(words::SPECIAL_EXPRESSIONS)
            && !self.is_word("NOT")
    }

    /// A function call as a select item, with its alias.
    fn aggregate(&mut self) -> Result<(AggregateName, String)> {
        let start = self.at;
        let name = self.aggregate_name();
        if name.is_err() {
            self.at = start;
            self.advance();
            self.skip_parentheses()?;
        }
        let end = self.at;
        if name.is_ok() && self.is_word("OVER") {
            return Err(self.unsupported_projection(start));
        }
        if !self.at_item_end()
            && !self.is_word("AS")
            && !matches!(self.kind(), Kind::Word | Kind::QuotedWord)
        {
            return Err(self.unsupported_projection(start));
        }
        let alias = match (self.column_alias()?, &name) {
            (Some(alias), _) => alias,
            // Others give options, which are no plain values there.
            (None, Ok(name))
                if self.language == Language::PostgreSql && name.function == Function::Count =>
            {
                name.function.name().to_owned()
            }
            (None, _) => return Err(SqlError::AggregateWithoutAlias),
        };
        match name {
            Ok(name) => Ok((name, alias)),
            Err(_) => Err(SqlError::UnsupportedAggregate(self.render(start, end))),
        }
    }

    /// `COUNT(*)`, or one of the aggregates of a column.
    pub(crate) fn aggregate_name(&mut self) -> Result<AggregateName> {
        let start = self.at;
        let function = Function::of(&self.word()?);
        let is_star = self.kind_after(1) == Kind::Star && self.kind_after(2) == Kind::CloseParen;
        let unsupported = |parser: &Self| SqlError::UnsupportedAggregate(parser.render_item(start));
        let function = function.ok_or_else(|| unsupported(self))?;
        self.advance();
        let column = match is_star {
            true if function == Function::Count => {
                self.advance();
                None
            }
            true => return Err(unsupported(self)),
            false if self.language.is_ad_hoc() => Some(self.plain_column()?),
            false => return Err(unsupported(self)),
        };
        match self.take(Kind::CloseParen) {
            true => Ok(AggregateName { function, column }),
            false => Err(unsupported(self)),
        }
    }

    fn column_item(&mut self) -> Result<ColumnItem> {
        let start = self.at;
        let starts_expression = self.is_one_of(words::VALUE_FUNCTIONS)
            || self.is_one_of(words::SPECIAL_EXPRESSIONS)
            || self.is_one_of("TRUE FALSE NULL NOT");
        match self.kind() {
            Kind::End
            | Kind::Semicolon
            | Kind::Comma
            | Kind::CloseParen
            | Kind::Comparison(_)
            | Kind::Period => {
                return self.expected("an expression:");
            }
            Kind::Word | Kind::QuotedWord if !starts_expression => {}
            _ => return Err(self.unsupported_projection(start)),
        }
        let column = self.column_name()?;
        if !self.at_item_end() && !matches!(self.kind(), Kind::Word | Kind::QuotedWord) {
            return Err(self.unsupported_projection(start));
        }
        if self.is_one_of(words::FOREIGN_INFIX) || self.is_one_of("AND OR") {
            return Err(self.unsupported_projection(start));
        }
        let alias = self.column_alias()?;
        Ok(ColumnItem { column, alias })
    }

    fn at_item_end(&self) -> bool {
        matches!(self.kind(), Kind::Comma | Kind::End | Kind::Semicolon)
            || self.is_one_of(words::NO_COLUMN_ALIAS)
    }

    fn column_alias(&mut self) -> Result<Option<String>> {
        if self.take_word("AS") {
            return self.word().map(Some);
        }
        match self.kind() {
            Kind::QuotedWord => self.word().map(Some),
            Kind::Word if !self.is_one_of(words::NO_COLUMN_ALIAS) => self.word().map(Some),
            _ => Ok(None),
        }
    }
}
