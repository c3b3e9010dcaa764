//! A statement as words, for what is answered by its shape. Our own language has a lexer of its own, in `query`.

/// A piece of a statement. Comments and white space are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// In lower case, as PostgreSQL folds it.
    Word(String),
    /// `"…"`
    Quoted(String),
    /// `'…'`
    Text(String),
    Number(String),
    Symbol(char),
}

impl Piece {
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Piece::Word(w) if w == word)
    }

    pub fn is_symbol(&self, symbol: char) -> bool {
        *self == Piece::Symbol(symbol)
    }

    /// A name, quoted or not.
    pub fn name(&self) -> Option<&str> {
        match self {
            Piece::Word(name) | Piece::Quoted(name) => Some(name),
            _ => None,
        }
    }
}

/// Divides a text, without the semicolons at its end. None if a quote or comment does not end.
pub(super) fn pieces(text: &str) -> Option<Vec<Piece>> {
    let placed = placed_pieces(text)?;
    Some(placed.into_iter().map(|(_, piece)| piece).collect())
}

/// The same, each with the place where it begins.
pub(super) fn placed_pieces(text: &str) -> Option<Vec<(usize, Piece)>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let place = text.len() - rest.len();
        if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = behind_comment(rest)?;
        } else if let Some(text) = rest.strip_prefix(['\'', '"']) {
            let (inner, behind) = unquoted(text, c)?;
            let piece = match c {
                '"' => Piece::Quoted(inner),
                _ => Piece::Text(inner),
            };
            pieces.push((place, piece));
            rest = behind;
        } else if c.is_ascii_digit() {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
            let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
            pieces.push((place, Piece::Number(number.to_owned())));
            rest = behind;
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
            let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
            pieces.push((place, Piece::Word(word.to_lowercase())));
            rest = behind;
        } else {
            pieces.push((place, Piece::Symbol(c)));
            rest = &rest[c.len_utf8()..];
        }
    }
    while pieces
        .last()
        .is_some_and(|(_, piece): &(usize, Piece)| piece.is_symbol(';'))
    {
        pieces.pop();
    }
    Some(pieces)
}

/// What stands behind a block comment. Comments nest.
fn behind_comment(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut depth = 0_usize;
    loop {
        let next = rest.find(['/', '*'])?;
        rest = &rest[next..];
        if let Some(behind) = rest.strip_prefix("/*") {
            depth += 1;
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("*/") {
            depth -= 1;
            rest = behind;
            if depth == 0 {
                return Some(rest);
            }
        } else {
            rest = &rest[1..];
        }
    }
}

/// The content of what begins with a quote, and what stands behind it.
fn unquoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut rest = text;
    loop {
        let end = rest.find(quote)?;
        inner.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(behind) => {
                inner.push(quote);
                rest = behind;
            }
            None => return Some((inner, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_divided() {
        let found = pieces("SELECT \"A\"\"b\".x, 'it''s' -- no\n/* no */ FROM t WHERE n >= 1.5;;");
        let word = |text: &str| Piece::Word(text.to_owned());
        let expected = vec![
            word("select"),
            Piece::Quoted("A\"b".to_owned()),
            Piece::Symbol('.'),
            word("x"),
            Piece::Symbol(','),
            Piece::Text("it's".to_owned()),
            word("from"),
            word("t"),
            word("where"),
            word("n"),
            Piece::Symbol('>'),
            Piece::Symbol('='),
            Piece::Number("1.5".to_owned()),
        ];
        assert_eq!(found, Some(expected));
        assert_eq!(pieces("'open"), None);
        assert_eq!(pieces("/* /* */ a */ b"), Some(vec![word("b")]));
        assert_eq!(pieces("/* /* */ a"), None);
        assert_eq!(pieces(" ; "), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_text_is_divided_or_not(text in "[a'\"/*\\- ;1.é$]{0,30}") {
            let _ = pieces(&text);
        }
    }
}
