//! Setting a key of a project file without losing what people have written into it.

use std::path::Path;

use serde_json::Value;

use super::parse_json5;
use crate::error::{FileResult as _, Result};
use crate::paths::text_if_there;

/// Sets a top-level key of a file, which is made if it does not exist. Comments survive: in a file that has some, the key is
/// put at the beginning.
pub fn set(path: &Path, key: &str, value: Value) -> Result<()> {
    let old = text_if_there(path)?.unwrap_or_default();
    let Some(new) = with_key(&old, key, value.clone()) else {
        let path = path.display();
        bail!(
            "LC0607",
            "{path}: cannot be changed here. Write this into it yourself: \"{key}\": {value}"
        );
    };
    std::fs::write(path, new).or_cannot("write", path)
}

/// The text with the key; `None` if it can only be had by losing something.
fn with_key(old: &str, key: &str, value: Value) -> Option<String> {
    let plain = if old.trim().is_empty() { "{}" } else { old };
    // Plain JSON has no comments to lose.
    if let Ok(Value::Object(mut settings)) = serde_json::from_str(plain) {
        settings.insert(key.to_owned(), value);
        return Some(format!("{:#}\n", Value::Object(settings)));
    }
    let Value::Object(mut settings) = parse_json5(Path::new(""), old).ok()? else {
        return None;
    };
    if settings.contains_key(key) {
        return None;
    }
    let start = opening_brace(old)? + 1;
    let new = format!("{}\n  \"{key}\": {value},{}", &old[..start], &old[start..]);
    settings.insert(key.to_owned(), value);
    let read_back = parse_json5(Path::new(""), &new).ok()?;
    (read_back == Value::Object(settings)).then_some(new)
}

/// The first `{` that is not in a comment.
fn opening_brace(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let skip = if rest.starts_with("//") {
            rest.find(['\n', '\r', '\u{2028}', '\u{2029}'])?
        } else if rest.starts_with("/*") {
            rest.find("*/")? + 2
        } else if rest.starts_with('{') {
            return Some(at);
        } else {
            rest.chars().next()?.len_utf8()
        };
        at += skip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(old: &str) -> String {
        with_key(old, "database", "shop".into()).unwrap_or_else(|| "lost".into())
    }

    #[test]
    fn what_people_wrote_stays() {
        assert_eq!(after(""), "{\n  \"database\": \"shop\"\n}\n");
        assert_eq!(
            after("{\"b\":1,\"database\":\"x\",\"a\":2}"),
            "{\n  \"b\": 1,\n  \"database\": \"shop\",\n  \"a\": 2\n}\n"
        );
        assert_eq!(
            after("// {mine}\n/* { */ { // here\n a: 1 }"),
            "// {mine}\n/* { */ {\n  \"database\": \"shop\", // here\n a: 1 }"
        );
        assert_eq!(
            after("{/* none */}"),
            "{\n  \"database\": \"shop\",/* none */}"
        );
        let deep = "[".repeat(100_000);
        for lost in ["{ database: 'x', }", "[]", "{", "// {", &deep] {
            assert_eq!(after(lost), "lost");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[\\[\\]{}:,'a1/*\\n é-]{0,30}") {
            if let Some(new) = with_key(&text, "database", "shop".into()) {
                let settings: Value = json5::from_str(&new).expect("still valid");
                proptest::prop_assert_eq!(&settings["database"], "shop");
            }
        }
    }
}
