//! From a text to the tree that `sqlparser` makes of it, within bounds.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{Expr, Query, Statement};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Expressions and questions may be nested so deep.
const DEPTH_MAX: usize = 48;
/// A question has at most so many words and signs: a chain of operators is a tree as high as it is long.
pub const TOKENS_MAX: usize = 16_384;
/// A question of so many words and signs, in so many parentheses, has room on any stack.
const SMALL_TOKENS_MAX: usize = 1_000;
const SMALL_DEPTH_MAX: usize = 12;
/// The parser tries several meanings of some words. It looks at a token so often at most, on average.
const LOOKS_PER_TOKEN_MAX: usize = 32;

/// PostgreSQL's dialect, as far as questions need it. It ends a parser that looks too often.
#[derive(Debug, Default)]
struct Bounded {
    looks_left: Cell<usize>,
}

const POSTGRESQL: PostgreSqlDialect = PostgreSqlDialect {};

impl Bounded {
    fn look(&self) -> Result<(), ParserError> {
        let left = self.looks_left.get().checked_sub(1);
        // No other error ends what the parser only tries.
        self.looks_left
            .set(left.ok_or(ParserError::RecursionLimitExceeded)?);
        Ok(())
    }
}

/// What the dialect has, by its name.
macro_rules! has {
    ($($name:ident)*) => {$(
        fn $name(&self) -> bool {
            true
        }
    )*};
}

impl Dialect for Bounded {
    has! {
        supports_array_typedef_with_brackets
        supports_comma_separated_trim
        supports_comparison_in_between_low_bound
        supports_cte_materialization
        supports_filter_during_aggregation
        supports_insert_table_alias
        supports_notnull_operator
        supports_table_inheritance_markers
        supports_tilde_like_match_operator
    }

    fn dialect(&self) -> TypeId {
        POSTGRESQL.dialect()
    }

    fn parse_prefix(&self, _: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.look().err().map(Err)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match self.look() {
            Ok(()) => POSTGRESQL.get_next_precedence(parser),
            Err(ended) => Some(Err(ended)),
        }
    }

    fn prec_value(&self, of: Precedence) -> u8 {
        POSTGRESQL.prec_value(of)
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        POSTGRESQL.is_delimited_identifier_start(c)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        POSTGRESQL.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        POSTGRESQL.is_identifier_part(c)
    }

    fn is_custom_type_typed_string(&self, first: Keyword, is_qualified: bool) -> bool {
        POSTGRESQL.is_custom_type_typed_string(first, is_qualified)
    }
}

/// May its tree need more stack than others?
pub fn is_large(tokens: &[Token]) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0);
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = depth.max(deepest);
    }
    tokens.len() > SMALL_TOKENS_MAX || deepest > SMALL_DEPTH_MAX
}

/// The question that tokens are. The error says why they are none.
pub fn read(tokens: Vec<Token>) -> Result<Query, String> {
    parsed(tokens, |parser| parser.parse_query().map(|query| *query))
}

/// The statement that changes rows which tokens are. The error says why they are none.
pub fn read_write(tokens: Vec<Token>) -> Result<Statement, String> {
    parsed(tokens, |parser| {
        let first = parser.next_token();
        match &first.token {
            Token::Word(word) if word.keyword == Keyword::INSERT => parser.parse_insert(first),
            Token::Word(word) if word.keyword == Keyword::UPDATE => parser.parse_update(first),
            Token::Word(word) if word.keyword == Keyword::DELETE => parser.parse_delete(first),
            _ => Err(ParserError::ParserError(
                "it is no INSERT, UPDATE or DELETE".to_owned(),
            )),
        }
    })
}

fn parsed<T>(
    tokens: Vec<Token>,
    parse: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
) -> Result<T, String> {
    let dialect = Bounded::default();
    dialect
        .looks_left
        .set(LOOKS_PER_TOKEN_MAX * (1 + tokens.len()));
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens(tokens);
    let read = parse(&mut parser).and_then(|read| {
        parser.expect_token(&Token::EOF)?;
        Ok(read)
    });
    read.map_err(|error| match error {
        ParserError::RecursionLimitExceeded => "it is nested too deep".to_owned(),
        ParserError::ParserError(reason) | ParserError::TokenizerError(reason) => reason,
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod writes;
