//! What a bundle imports from its host, checked before it travels (04 §12).

use std::collections::BTreeSet;

use crate::error::{Error, Result};

/// A bundle, and what it asks of its host and offers it.
pub struct Bundled {
    pub code: String,
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

/// `imports` are the specifiers that stayed outside the bundle.
pub fn check(imports: &[String], exports: &[String]) -> Result<()> {
    let mut majors = BTreeSet::new();
    for specifier in imports {
        match specifier.strip_prefix("spacetime:sys@").map(major) {
            Some(Some(number)) => {
                majors.insert(number);
            }
            Some(None) => {
                return Err(bad(format!(
                    "the bundle imports `{specifier}`, which is no version of the host's functions"
                )))
            }
            None => {}
        }
    }
    let mut sorted = majors.iter();
    match (sorted.next(), sorted.next()) {
        (None, _) => Err(bad(
            "the module does not import `spacetimedb/server`. Declare its tables and reducers with `schema` and `table` from there",
        )),
        (Some(_), Some(_)) => Err(bad(format!(
            "The module pulls in {} different versions of the `spacetimedb/server` package. `npm ls spacetimedb` shows who asks for them",
            majors.len()
        ))),
        (Some(2), None) if !exports.iter().any(|name| name == "default") => Err(bad(
            "the module does not export its schema. Write `export default spacetimedb;` in src/index.ts, where `spacetimedb` is what `schema({…})` returned",
        )),
        (Some(_), None) => Ok(()),
    }
}

fn major(version: &str) -> Option<u32> {
    let (major, minor) = version.split_once('.')?;
    minor.parse::<u32>().ok()?;
    major.parse().ok()
}

fn bad(message: impl Into<String>) -> Error {
    Error::coded("LC0636", message)
}

#[cfg(test)]
mod tests {
    use super::check;

    fn outcome(imports: &[&str], exports: &[&str]) -> String {
        let own = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        match check(&own(imports), &own(exports)) {
            Ok(()) => "ok".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_major_version_and_a_schema() {
        assert_eq!(
            outcome(
                &["spacetime:sys@2.0", "spacetime:sys@2.1"],
                &["add", "default"]
            ),
            "ok"
        );
        assert_eq!(outcome(&["spacetime:sys@1.0"], &[]), "ok");
        for (imports, exports, part) in [
            (
                &[][..],
                &["default"][..],
                "does not import `spacetimedb/server`",
            ),
            (
                &["spacetime:sys@1.0", "spacetime:sys@2.0"],
                &["default"],
                "2 different versions",
            ),
            (
                &["spacetime:sys@2.0"],
                &["add"],
                "does not export its schema",
            ),
            (&["spacetime:sys@two"], &["default"], "no version"),
        ] {
            let got = outcome(imports, exports);
            assert!(got.contains(part) && got.ends_with("[LC0636]"), "{got}");
        }
    }
}
