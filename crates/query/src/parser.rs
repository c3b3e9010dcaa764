//! Statements: tokens to [`ast`](crate::ast) (08 §5). Expressions are parsed in `expression`.

mod clauses;
mod select_list;
mod subquery;
mod tables;

use crate::ast::{AggregateName, ColumnName, Select, Shape, Statement};
use crate::error::{Result, SqlError, QUERY_BYTES_MAX};
use crate::lexer::{lex, unquote, Kind, Token};
use crate::words::{self, is_one_of};

/// Which language a text is read in. The two of the reference differ in some error texts and in `LIMIT` (08 §5.2, §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Subscription,
    AdHoc,
    /// The ad hoc language as programs for PostgreSQL write it: tables are in a schema, counts have a name of their own
    /// (08 §19).
    PostgreSql,
}

impl Language {
    pub fn is_ad_hoc(self) -> bool {
        self != Language::Subscription
    }
}

/// The schema that all tables are in.
const SCHEMA: &str = "public";

pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token],
    pub(crate) at: usize,
    pub(crate) language: Language,
    /// The aggregates of the condition that is being parsed, if it may have some: that of `HAVING`.
    pub(crate) aggregates: Option<Vec<AggregateName>>,
    subqueries: Subqueries,
}

/// How many subqueries there are.
#[derive(Clone, Copy, Default)]
struct Subqueries {
    /// Around the current position.
    depth: usize,
    /// In the text so far.
    count: usize,
}

/// Parses the one statement of `text`.
pub(crate) fn parse(text: &str, language: Language) -> Result<Statement> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(SqlError::too_long(text));
    }
    let tokens = &lex(text)?;
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        language,
        aggregates: None,
        subqueries: Subqueries::default(),
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

    pub(crate) fn is_one_of(&self, words: &str) -> bool {
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

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) {
            Ok(())
        } else {
            self.expected(word)
        }
    }

    /// `item { "," item }`
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.take(Kind::Comma) {
            list.push(item(self)?);
        }
        Ok(list)
    }

    fn skip_semicolons(&mut self) {
        while self.take(Kind::Semicolon) {}
    }

    /// A word, quoted or not.
    pub(crate) fn word(&mut self) -> Result<String> {
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
    pub(crate) fn relation(&mut self) -> Result<String> {
        let parts = self.parts()?;
        Ok(self.dotted(parts))
    }

    fn parts(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.word()?];
        while self.take(Kind::Period) {
            parts.push(self.word()?);
        }
        Ok(parts)
    }

    /// The parts of a name in one. What is in the schema is called as if there were none.
    fn dotted(&self, mut parts: Vec<String>) -> String {
        let is_in_schema = parts.len() > 1 && parts[0].eq_ignore_ascii_case(SCHEMA);
        if is_in_schema && self.language == Language::PostgreSql {
            parts.remove(0);
        }
        parts.join(".")
    }

    fn statement(&mut self) -> Result<Statement> {
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
        let known = is_one_of(word, "INSERT UPDATE DELETE SET SHOW");
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

    fn select(&mut self) -> Result<Select> {
        let start = self.at;
        self.expect_word("SELECT")?;
        let is_ad_hoc = self.language.is_ad_hoc();
        let has_distinct = is_ad_hoc || self.is_in_subquery();
        if self.is_word("DISTINCT") && (!has_distinct || self.is_word_after(1, "ON")) {
            return Err(self.unsupported_as(start, SqlError::UnsupportedSelect));
        }
        let mut shape = Shape {
            distinct: self.take_word("DISTINCT"),
            ..Shape::default()
        };
        self.take_word("ALL");
        let projection_at = self.at;
        let projection = match self.no_columns() {
            Some(projection) => projection,
            None => self.projection()?,
        };
        if self.is_word("INTO") {
            return Err(self.unsupported_as(start, SqlError::UnsupportedSelect));
        }
        if !self.take_word("FROM") {
            return match self.kind() {
                Kind::End | Kind::Semicolon => Err(SqlError::MissingFrom),
                _ => self.expected("FROM"),
            };
        }
        let from = self.table_ref()?;
        let joins = self.joins()?;
        let as_of = self.as_of();
        let condition = if self.take_word("WHERE") {
            Some(self.condition()?)
        } else {
            None
        };
        self.check_end_of_subquery()?;
        if is_ad_hoc {
            self.grouping(&mut shape)?;
        }
        self.check_items(&projection, &shape, projection_at)?;
        if self.is_one_of("GROUP HAVING WINDOW QUALIFY CLUSTER DISTRIBUTE SORT LATERAL") {
            return Err(self.unsupported_as(start, SqlError::UnsupportedSelect));
        }
        if self.is_one_of("UNION EXCEPT INTERSECT") {
            return Err(self.unsupported_as(start, SqlError::UnsupportedSetOperation));
        }
        let limit = match !is_ad_hoc && self.is_word("ORDER") {
            true => self.window(&mut shape, start)?,
            false => self.order_and_limit(&mut shape, start)?,
        };
        if self.is_one_of("ORDER OFFSET FETCH FOR") {
            return Err(self.unsupported_from(start));
        }
        Ok(Select {
            projection,
            from,
            joins,
            condition,
            limit,
            as_of,
            shape,
        })
    }

    fn order_and_limit(&mut self, shape: &mut Shape, start: usize) -> Result<Option<String>> {
        let is_ad_hoc = self.language.is_ad_hoc();
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
    fn window(&mut self, shape: &mut Shape, start: usize) -> Result<Option<String>> {
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

    /// A column where no other expression may stand.
    fn plain_column(&mut self) -> Result<ColumnName> {
        match self.kind() {
            Kind::Word | Kind::QuotedWord if self.kind_after(1) != Kind::OpenParen => {
                self.column_name()
            }
            Kind::End | Kind::Semicolon | Kind::Comma => self.expected("an expression:"),
            _ => Err(self.unsupported_expression(self.at)),
        }
    }

    pub(crate) fn is_word_after(&self, tokens: usize, word: &str) -> bool {
        self.tokens.get(self.at + tokens).is_some_and(|token| {
            token.kind == Kind::Word && self.slice(*token).eq_ignore_ascii_case(word)
        })
    }

    /// `word` or `relation.word`. The first word is known not to be special.
    pub(crate) fn column_name(&mut self) -> Result<ColumnName> {
        let mut parts = self.parts()?;
        let name = parts.pop().unwrap_or_default();
        let relation = (!parts.is_empty()).then(|| self.dotted(parts));
        Ok(ColumnName { relation, name })
    }

    /// Moves behind the parenthesis that closes the one at the current position.
    fn skip_parentheses(&mut self) -> Result<()> {
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
