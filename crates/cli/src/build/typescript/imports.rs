//! What a bundle imports from its host, checked before it travels (04 §12).

use std::collections::BTreeSet;

use crate::error::Result;

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
        if let Some(version) = specifier.strip_prefix("spacetime:sys@") {
            let Some(number) = major(version) else {
                bail!(
                    "LC0636",
                    "the bundle imports `{specifier}`, which is no version of the host's functions"
                );
            };
            majors.insert(number);
        }
    }
    let exports_schema = exports.iter().any(|name| name == "default");
    match (majors.len(), majors.first()) {
        (0, _) => bail!(
            "LC0636",
            "the module does not import `spacetimedb/server`. Declare its tables and reducers with `schema` and `table` from there",
        ),
        (1, Some(2)) if !exports_schema => bail!(
            "LC0636",
            "the module does not export its schema. Write `export default spacetimedb;` in src/index.ts, where `spacetimedb` is what `schema({{…}})` returned",
        ),
        (1, _) => Ok(()),
        (count, _) => bail!(
            "LC0636",
            "The module pulls in {count} different versions of the `spacetimedb/server` package. `npm ls spacetimedb` shows who asks for them",
        ),
    }
}

fn major(version: &str) -> Option<u32> {
    let (major, minor) = version.split_once('.')?;
    minor.parse::<u32>().ok()?;
    major.parse().ok()
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
