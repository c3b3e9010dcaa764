//! Statements: tokens to [`ast`](crate::ast) (08 §5). Expressions are parsed in `expression`.

use crate::ast::{
    AggregateName, ColumnItem, ColumnName, Expression, Expressions, Function, Join, OrderItem,
    OrderTarget, Projection, Select, SelectItem, Shape, Statement, TableRef,
};
use crate::error::SqlError;
use crate::lexer::{unquote, Comparison, Kind, Token};
use crate::render::shown;
use crate::words::{self, is_one_of};

/// Which of the two languages a text is read in; they differ in some error texts and in `LIMIT` (08 §5.2, §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Subscription,
    AdHoc,
}

pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token],
    pub(crate) at: usize,
    pub(crate) language: Language,
    /// The aggregates of the condition that is being parsed, if it may have some: that of `HAVING`.
    pub(crate) aggregates: Option<Vec<AggregateName>>,
}

/// Parses the one statement of `text`. `tokens` are `text` lexed.
pub(crate) fn parse(
    text: &str,
    tokens: &[Token],
    language: Language,
) -> Result<Statement, SqlError> {
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        language,
        aggregates: None,
    };
    parser.skip_semicolons();
    if parser.kind() == Kind::End {
        return Err(SqlError::Empty);
    }
    let statement = parser.statement()?;
    if !matches!(parser.kind(), Kind::Semicolon | Kind::End) {
        return parser.expected("end of statement");
    }
    parser.skip_semicolons();
    if parser.kind() != Kind::End {
        return Err(SqlError::MultipleStatements);
    }
    Ok(statement)
}

impl Parser<'_> {
    pub(crate) fn token(&self) -> Token {
        // The last token is `End`, and nothing moves past it.
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub(crate) fn kind(&self) -> Kind {
        self.token().kind
    }

    pub(crate) fn kind_after(&self, tokens: usize) -> Kind {
        self.tokens
            .get(self.at + tokens)
            .map_or(Kind::End, |t| t.kind)
    }

    pub(crate) fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(crate) fn slice(&self, token: Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// The unquoted word at the current position.
    pub(crate) fn plain_word(&self) -> Option<&str> {
        let token = self.token();
        (token.kind == Kind::Word).then(|| self.slice(token))
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.plain_word()
            .is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    pub(crate) fn is_one_of(&self, words: &[&str]) -> bool {
        self.plain_word().is_some_and(|w| is_one_of(w, words))
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let there = self.is_word(word);
        if there {
            self.advance();
        }
        there
    }

    pub(crate) fn take(&mut self, kind: Kind) -> bool {
        let there = self.kind() == kind;
        if there {
            self.advance();
        }
        there
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), SqlError> {
        if self.take_word(word) {
            Ok(())
        } else {
            self.expected(word)
        }
    }

    pub(crate) fn expected<T>(&self, what: &str) -> Result<T, SqlError> {
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

    fn skip_semicolons(&mut self) {
        while self.take(Kind::Semicolon) {}
    }

    /// A word, quoted or not.
    pub(crate) fn word(&mut self) -> Result<String, SqlError> {
        let token = self.token();
        let word = match token.kind {
            Kind::Word => self.slice(token).to_owned(),
            Kind::QuotedWord => unquote(self.slice(token), '"'),
            _ => return self.expected("identifier"),
        };
        self.advance();
        Ok(word)
    }

    /// `word { "." word }`, dot-joined.
    pub(crate) fn relation(&mut self) -> Result<String, SqlError> {
        let mut name = self.word()?;
        while self.take(Kind::Period) {
            name.push('.');
            name.push_str(&self.word()?);
        }
        Ok(name)
    }

    fn statement(&mut self) -> Result<Statement, SqlError> {
        let subscription = self.language == Language::Subscription;
        let Some(word) = self.plain_word() else {
            return if self.kind() == Kind::OpenParen {
                Err(self.unsupported_statement())
            } else {
                self.expected("an SQL statement")
            };
        };
        if word.eq_ignore_ascii_case("SELECT") {
            return Ok(Statement::Select(Box::new(self.select()?)));
        }
        if word.eq_ignore_ascii_case("WITH") {
            return Err(self.unsupported_statement());
        }
        if !subscription && self.is_word("EXPLAIN") && self.is_word_after(1, "SELECT") {
            self.advance();
            return Ok(Statement::Explain(Box::new(self.select()?)));
        }
        let known = is_one_of(word, &["INSERT", "UPDATE", "DELETE", "SET", "SHOW"]);
        if !known && !is_one_of(word, words::FOREIGN_STATEMENTS) {
            return self.expected("an SQL statement");
        }
        if subscription {
            return Err(SqlError::NotSelect);
        }
        if !known {
            return Err(self.unsupported_statement());
        }
        self.other_statement()
    }

    fn select(&mut self) -> Result<Select, SqlError> {
        let start = self.at;
        self.expect_word("SELECT")?;
        let is_ad_hoc = self.language == Language::AdHoc;
        if self.is_word("DISTINCT") && (!is_ad_hoc || self.is_word_after(1, "ON")) {
            return Err(self.unsupported_select(start));
        }
        let mut shape = Shape {
            distinct: self.take_word("DISTINCT"),
            ..Shape::default()
        };
        self.take_word("ALL");
        let projection_at = self.at;
        let projection = self.projection()?;
        if self.is_word("INTO") {
            return Err(self.unsupported_select(start));
        }
        if !self.take_word("FROM") {
            return match self.kind() {
                Kind::End | Kind::Semicolon => Err(SqlError::MissingFrom),
                _ => self.expected("FROM"),
            };
        }
        let from = self.table_ref()?;
        let joins = self.joins()?;
        let condition = if self.take_word("WHERE") {
            Some(self.condition()?)
        } else {
            None
        };
        if is_ad_hoc {
            self.grouping(&mut shape)?;
        }
        let projection = self.grouped(projection, &shape, projection_at)?;
        if self.is_one_of(&[
            "GROUP",
            "HAVING",
            "WINDOW",
            "QUALIFY",
            "CLUSTER",
            "DISTRIBUTE",
            "SORT",
            "LATERAL",
        ]) {
            return Err(self.unsupported_select(start));
        }
        if self.is_one_of(&["UNION", "EXCEPT", "INTERSECT"]) {
            return Err(self.unsupported_set_operation(start));
        }
        let limit = match !is_ad_hoc && self.is_word("ORDER") {
            true => self.window(&mut shape, start)?,
            false => self.order_and_limit(&mut shape, start)?,
        };
        if self.is_one_of(&["ORDER", "OFFSET", "FETCH", "FOR"]) {
            return Err(self.unsupported_from(start));
        }
        Ok(Select {
            projection,
            from,
            joins,
            condition,
            limit,
            shape,
        })
    }

    fn order_and_limit(
        &mut self,
        shape: &mut Shape,
        start: usize,
    ) -> Result<Option<String>, SqlError> {
        let is_ad_hoc = self.language == Language::AdHoc;
        if is_ad_hoc {
            self.order_by(shape)?;
        }
        let mut limit = self.limit(start)?;
        if is_ad_hoc && self.take_word("OFFSET") {
            shape.offset = Some(self.count(start)?);
            let _ = self.take_word("ROW") || self.take_word("ROWS");
            if limit.is_none() {
                limit = self.limit(start)?;
            }
        }
        Ok(limit)
    }

    /// `ORDER BY … LIMIT n`, which can be subscribed to as a whole. Without its limit it is what it is in the reference.
    fn window(&mut self, shape: &mut Shape, start: usize) -> Result<Option<String>, SqlError> {
        let order_at = self.at;
        self.language = Language::AdHoc;
        let limit = self.order_and_limit(shape, start);
        self.language = Language::Subscription;
        match limit {
            Ok(Some(limit)) => Ok(Some(limit)),
            _ => {
                self.at = order_at;
                Err(self.unsupported_from(start))
            }
        }
    }

    fn limit(&mut self, start: usize) -> Result<Option<String>, SqlError> {
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
    fn count(&mut self, start: usize) -> Result<String, SqlError> {
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

    fn projection(&mut self) -> Result<Projection, SqlError> {
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

    /// A list of items as what it is in the reference's language, if it is something there.
    fn grouped(
        &self,
        projection: Projection,
        shape: &Shape,
        start: usize,
    ) -> Result<Projection, SqlError> {
        let Projection::Items(mut items) = projection else {
            return Ok(projection);
        };
        let is_column = |item: &SelectItem| matches!(item, SelectItem::Column(_));
        let is_grouped = !shape.group_by.is_empty() || shape.having.is_some();
        if !is_grouped && items.iter().all(is_column) {
            let column = |item| match item {
                SelectItem::Column(column) => Some(column),
                SelectItem::Aggregate(..) => None,
            };
            return Ok(Projection::Columns(
                items.into_iter().filter_map(column).collect(),
            ));
        }
        let is_only_count = |item: &SelectItem| {
            matches!(item, SelectItem::Aggregate(aggregate, _)
                if aggregate.function == Function::Count && aggregate.column.is_none())
        };
        if !is_grouped && items.len() == 1 && is_only_count(&items[0]) && !shape.distinct {
            if let Some(SelectItem::Aggregate(_, alias)) = items.pop() {
                return Ok(Projection::Count(alias));
            }
        }
        // A column beside an aggregate must be one of the groups'.
        if shape.group_by.is_empty() && items.iter().any(is_column) {
            return Err(self.unsupported_projection(self.first_aggregate(start)));
        }
        Ok(Projection::Items(items))
    }

    /// Where the first aggregate of a select list begins.
    fn first_aggregate(&self, start: usize) -> usize {
        let is_function = |at: &usize| {
            matches!(self.tokens[*at].kind, Kind::Word | Kind::QuotedWord)
                && self.tokens[*at + 1].kind == Kind::OpenParen
        };
        (start..self.at).find(is_function).unwrap_or(start)
    }

    /// `GROUP BY` and `HAVING`.
    fn grouping(&mut self, shape: &mut Shape) -> Result<(), SqlError> {
        if self.is_word("GROUP") && self.is_word_after(1, "BY") {
            self.advance();
            self.advance();
            loop {
                shape.group_by.push(self.plain_column()?);
                if !self.take(Kind::Comma) {
                    break;
                }
            }
        }
        if self.take_word("HAVING") {
            self.aggregates = Some(Vec::new());
            let having = self.condition();
            shape.having_aggregates = self.aggregates.take().unwrap_or_default();
            shape.having = Some(having?);
        }
        Ok(())
    }

    fn order_by(&mut self, shape: &mut Shape) -> Result<(), SqlError> {
        if !self.is_word("ORDER") || !self.is_word_after(1, "BY") {
            return Ok(());
        }
        self.advance();
        self.advance();
        loop {
            let token = self.token();
            let target = if token.kind == Kind::Number {
                let position = self.slice(token).parse();
                let position = position
                    .map_err(|_| SqlError::UnsupportedExpression(self.render_item(self.at)))?;
                self.advance();
                OrderTarget::Position(position)
            } else if self.is_function() {
                OrderTarget::Aggregate(self.aggregate_name()?)
            } else {
                OrderTarget::Column(self.plain_column()?)
            };
            let descending = self.take_word("DESC") || {
                self.take_word("ASC");
                false
            };
            if self.is_word("NULLS") {
                return Err(SqlError::UnsupportedExpression(self.render_item(self.at)));
            }
            shape.order_by.push(OrderItem { target, descending });
            if !self.take(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// A column where no other expression may stand.
    fn plain_column(&mut self) -> Result<ColumnName, SqlError> {
        match self.kind() {
            Kind::Word | Kind::QuotedWord if self.kind_after(1) != Kind::OpenParen => {
                self.column_name()
            }
            Kind::End | Kind::Semicolon | Kind::Comma => self.expected("an expression:"),
            _ => Err(SqlError::UnsupportedExpression(self.render_item(self.at))),
        }
    }

    /// `relation.*`, if that is what stands here.
    fn relation_star(&mut self) -> Result<Option<String>, SqlError> {
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
        Ok(Some(parts.join(".")))
    }

    fn is_function(&self) -> bool {
        matches!(self.kind(), Kind::Word | Kind::QuotedWord)
            && self.kind_after(1) == Kind::OpenParen
            && !self.is_one_of(words::SPECIAL_EXPRESSIONS)
            && !self.is_word("NOT")
    }

    /// A function call as a select item, with its alias.
    fn aggregate(&mut self) -> Result<(AggregateName, String), SqlError> {
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
        let Some(alias) = self.column_alias()? else {
            return Err(SqlError::AggregateWithoutAlias);
        };
        match name {
            Ok(name) => Ok((name, alias)),
            Err(_) => Err(SqlError::UnsupportedAggregate(self.render(start, end))),
        }
    }

    /// `COUNT(*)`, or one of the aggregates of a column.
    pub(crate) fn aggregate_name(&mut self) -> Result<AggregateName, SqlError> {
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
            false if self.language == Language::AdHoc => Some(self.plain_column()?),
            false => return Err(unsupported(self)),
        };
        match self.take(Kind::CloseParen) {
            true => Ok(AggregateName { function, column }),
            false => Err(unsupported(self)),
        }
    }

    pub(crate) fn is_word_after(&self, tokens: usize, word: &str) -> bool {
        self.tokens.get(self.at + tokens).is_some_and(|token| {
            token.kind == Kind::Word && self.slice(*token).eq_ignore_ascii_case(word)
        })
    }

    fn column_item(&mut self) -> Result<ColumnItem, SqlError> {
        let start = self.at;
        let starts_expression = self.is_one_of(words::VALUE_FUNCTIONS)
            || self.is_one_of(words::SPECIAL_EXPRESSIONS)
            || self.is_one_of(&["TRUE", "FALSE", "NULL", "NOT"]);
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
        if self.is_one_of(words::FOREIGN_INFIX) || self.is_one_of(&["AND", "OR"]) {
            return Err(self.unsupported_projection(start));
        }
        let alias = self.column_alias()?;
        Ok(ColumnItem { column, alias })
    }

    fn at_item_end(&self) -> bool {
        matches!(self.kind(), Kind::Comma | Kind::End | Kind::Semicolon)
            || self.is_one_of(words::NO_COLUMN_ALIAS)
    }

    fn column_alias(&mut self) -> Result<Option<String>, SqlError> {
        if self.take_word("AS") {
            return self.word().map(Some);
        }
        match self.kind() {
            Kind::QuotedWord => self.word().map(Some),
            Kind::Word if !self.is_one_of(words::NO_COLUMN_ALIAS) => self.word().map(Some),
            _ => Ok(None),
        }
    }

    /// `word` or `relation.word`. The first word is known not to be special.
    pub(crate) fn column_name(&mut self) -> Result<ColumnName, SqlError> {
        let mut parts = vec![self.word()?];
        while self.take(Kind::Period) {
            parts.push(self.word()?);
        }
        let name = parts.pop().unwrap_or_default();
        let relation = (!parts.is_empty()).then(|| parts.join("."));
        Ok(ColumnName { relation, name })
    }

    fn table_ref(&mut self) -> Result<TableRef, SqlError> {
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
        if self.kind() == Kind::OpenParen {
            return Err(self.unsupported_table(start));
        }
        let alias = if self.take_word("AS") {
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
        Ok(TableRef { name, alias })
    }

    fn joins(&mut self) -> Result<Vec<Join>, SqlError> {
        let mut joins = Vec::new();
        loop {
            if self.kind() == Kind::Comma {
                return Err(SqlError::ImplicitJoin);
            }
            let outer = self.language == Language::AdHoc && self.is_left_join();
            if self.is_one_of(&["LEFT", "RIGHT", "FULL", "NATURAL", "OUTER"]) {
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

    fn join_condition(&mut self) -> Result<Option<(ColumnName, ColumnName)>, SqlError> {
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

    /// Moves behind the parenthesis that closes the one at the current position.
    fn skip_parentheses(&mut self) -> Result<(), SqlError> {
        let mut depth = 0usize;
        loop {
            match self.kind() {
                Kind::OpenParen => depth += 1,
                Kind::CloseParen => depth -= 1,
                Kind::End => return self.expected(")"),
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return Ok(());
            }
        }
    }
}
