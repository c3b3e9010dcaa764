//! A statement as tokens of PostgreSQL's language, for what is answered by its shape. The language of 08 has its own, in `query`.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, TokenWithSpan, Tokenizer};

pub use sqlparser::tokenizer::Token;

/// Divides a text, without white space, comments, and the semicolons at its end. None: a quote or comment does not end.
pub fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, text)
        .tokenize()
        .ok()?;
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    while tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    Some(tokens)
}

/// The same, and where each begins, in bytes.
pub fn placed_tokens(text: &str) -> Option<(Vec<usize>, Vec<Token>)> {
    let found = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let (mut characters, mut here) = (text.char_indices(), Location::new(1, 1));
    let (mut places, mut tokens) = (Vec::new(), Vec::new());
    for TokenWithSpan { token, span } in found.ok()? {
        // Tokens are told by lines and columns, and come in their order.
        while here < span.start {
            here = match characters.next() {
                Some((_, '\n')) => Location::new(here.line + 1, 1),
                Some(_) => Location::new(here.line, here.column + 1),
                None => break,
            };
        }
        if !matches!(token, Token::Whitespace(_)) {
            places.push(characters.offset());
            tokens.push(token);
        }
    }
    while tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    Some((places, tokens))
}

/// The statements of a text, without the semicolons between them and what is empty; the last may end with some. None: a quote or comment does not end.
pub fn statements(text: &str) -> Option<Vec<&str>> {
    let (places, tokens) = placed_tokens(text)?;
    let ends = places.iter().zip(&tokens);
    let ends = ends.filter(|(_, token)| **token == Token::SemiColon);
    let (mut found, mut start) = (Vec::new(), 0);
    for end in ends.map(|(place, _)| *place).chain([text.len()]) {
        found.push(&text[start..end]);
        start = end + 1;
    }
    found.retain(|statement| !is_empty(statement));
    Some(found)
}

/// The word that a statement begins with, behind semicolons. The rest is not divided, unless a comment stands before it.
pub fn first_word(text: &str) -> Option<String> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let tokens = tokens(text)?;
        return word(tokens.iter().find(|token| **token != Token::SemiColon)?);
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    Some(text[..end.unwrap_or(text.len())].to_lowercase())
}

/// Is there nothing in it but white space, comments and semicolons?
pub fn is_empty(text: &str) -> bool {
    let first = text.trim_start().chars().next();
    first.is_none_or(|c| matches!(c, ';' | '-' | '/')) && tokens(text) == Some(Vec::new())
}

/// Is it this word, unquoted?
pub fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(of) if of.quote_style.is_none() && of.value.eq_ignore_ascii_case(word))
}

/// A name, folded if it is not quoted.
pub fn name(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}

/// The same of one that is not quoted.
pub fn word(token: &Token) -> Option<String> {
    name(token).filter(|_| matches!(token, Token::Word(word) if word.quote_style.is_none()))
}

/// What a string says.
pub fn text(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_divided() {
        let found = tokens("SELECT \"A\"\"b\".x, 'it''s' -- no\n/* no */ FROM t WHERE n >= 1.5;;");
        let expected = vec![
            Token::make_keyword("SELECT"),
            Token::make_word("A\"b", Some('"')),
            Token::Period,
            Token::make_word("x", None),
            Token::Comma,
            Token::SingleQuotedString("it's".to_owned()),
            Token::make_keyword("FROM"),
            Token::make_word("t", None),
            Token::make_keyword("WHERE"),
            Token::make_word("n", None),
            Token::GtEq,
            Token::Number("1.5".to_owned(), false),
        ];
        assert_eq!(found, Some(expected));
        assert_eq!(tokens("'open"), None);
        let b = Token::make_word("b", None);
        assert_eq!(tokens("/* /* */ a */ b"), Some(vec![b]));
        assert_eq!(tokens("/* /* */ a"), None);
        assert_eq!(tokens(" ; "), Some(Vec::new()));
        let escaped = Token::EscapedStringLiteral("it's\n".to_owned());
        assert_eq!(tokens(r"E'it\'s\n'"), Some(vec![escaped]));
    }

    #[test]
    fn statements_are_told_apart() {
        let text = "BEGIN; INSERT INTO t VALUES ('a;b') -- no;\n;; /* ; */ ; COMMIT;";
        let found = statements(text).expect("they end");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[1].contains("'a;b'"), "{found:?}");
        assert_eq!(found[2].trim(), "COMMIT;");
        assert_eq!(statements("BEGIN; 'x"), None);
    }

    #[test]
    fn places_are_bytes() {
        let text = "é 'ä\n' a\n\n b";
        let (places, _) = placed_tokens(text).expect("tokens");
        let expected = ["é", "'", "a", "b"].map(|of| text.find(of).expect("it is there"));
        assert_eq!(places, expected);
    }

    proptest! {
        #[test]
        fn any_text_is_divided_or_not(text in "[a'\"/*\\- ;1.é$\nEU&xX]{0,30}") {
            let placed = placed_tokens(&text);
            prop_assert_eq!(placed.clone().map(|(_, tokens)| tokens), tokens(&text));
            let (places, found) = placed.unwrap_or_default();
            prop_assert!(places.iter().all(|place| text.is_char_boundary(*place)));
            let (begun, first) = (first_word(&text), found.first().and_then(word));
            prop_assert!(first.is_none() || begun == first, "{begun:?}");
            prop_assert_eq!(is_empty(&text), tokens(&text) == Some(Vec::new()));
            let divided = statements(&text);
            prop_assert_eq!(divided.is_some(), tokens(&text).is_some());
            prop_assert!(divided.is_none_or(|all| all.iter().all(|one| text.contains(one))));
        }
    }
}
