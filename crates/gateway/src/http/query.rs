//! Query strings: known parameters at most once, unknown ones ignored (06 §1).

use crate::reply::Failure;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The decoded parameters of a query string, in order.
#[derive(Debug, Default)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
}

/// Most parameters that are looked at.
const PARAMETERS_MAX: usize = 256;

impl Query {
    pub(crate) fn parse(query: &str) -> Query {
        let parameters = form_urlencoded::parse(query.as_bytes()).into_owned();
        Query {
            parameters: parameters.take(PARAMETERS_MAX).collect(),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        let mut found = self.parameters.iter().filter(|(key, _)| key == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(wrong(format!("duplicate field `{name}`"))),
            (first, None) => Ok(first.map(|(_, value)| value.as_str())),
        }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Failure> {
        self.parsed(name, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("provided string was not `true` or `false`".to_owned()),
        })
    }

    pub(crate) fn number<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        self.parsed(name, |text| {
            text.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    /// One of a fixed set of words, case-sensitive.
    pub(crate) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Failure> {
        self.parsed(name, |text| {
            if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
                return Ok(*value);
            }
            let list: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let expected = match list.as_slice() {
                [one, other] => format!("{one} or {other}"),
                several => format!("one of {}", several.join(", ")),
            };
            Err(format!("unknown variant `{text}`, expected {expected}"))
        })
    }

    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let parsed = self.text(name)?.map(parse).transpose();
        parsed.map_err(wrong)
    }
}

pub(crate) fn wrong(reason: String) -> Failure {
    Failure::bad_request(format!("Failed to deserialize query string: {reason}"))
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Query::parse(parts.uri.query().unwrap_or("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse as _;

    #[test]
    fn parameters() {
        let query = Query::parse("a=1&b=x%20y+z&c&&bad=%zz&n=7&n2=x&w=Js&d=1&d=2");
        assert_eq!(query.text("a").expect("a"), Some("1"));
        assert_eq!(query.text("b").expect("b"), Some("x y z"));
        assert_eq!(query.text("c").expect("c"), Some(""));
        assert_eq!(query.text("none").expect("none"), None);
        assert_eq!(query.text("bad").expect("bad"), Some("%zz"));
        assert_eq!(query.number::<u32>("n").expect("n"), Some(7));
        assert!(query.number::<u32>("n2").is_err());
        assert!(query.boolean("a").is_err());
        assert_eq!(
            query.word("w", &[("Wasm", 1), ("Js", 2)]).expect("w"),
            Some(2)
        );
        assert!(query.word("w", &[("Wasm", 1), ("js", 2)]).is_err());
        let failure = query.text("d").expect_err("twice");
        assert_eq!(failure.into_response().status(), 400);
    }

    proptest::proptest! {
        #[test]
        fn any_query_is_answered(text in ".{0,60}") {
            let _ = Query::parse(&text).text("a");
        }
    }
}
