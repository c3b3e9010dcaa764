//! Every error code in the sources has its page in `docs/errors`, and every page belongs to a code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of what is shipped: the crates, and the TypeScript SDK.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates") {
        collect(&entry.expect("an entry").path().join("src"), &mut found);
    }
    collect(&root().join("sdk-ts/src"), &mut found);
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("a readable directory");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path
            .extension()
            .is_some_and(|e| e == "rs" || e == "ts" || e == "tsx")
        {
            found.push(path);
        }
    }
}

/// Places like `[LC0602]` and `"LC0602"`: the first is how users see a code, the second how it is passed on.
fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("LC").filter_map(|(start, _)| {
        let before = text[..start].chars().next_back()?;
        let code = text.get(start..start + 6)?;
        let after = text[start + 6..].chars().next()?;
        let is_code = code[2..].bytes().all(|b| b.is_ascii_digit());
        (is_code && matches!((before, after), ('[', ']') | ('"', '"'))).then_some(code)
    })
}

/// What runs: no unit tests, no comments, and no lists of codes that are types only.
fn running(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let runs = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with('*') && !line.starts_with("| \"LC")
    };
    let lines: Vec<&str> = text[..end].lines().filter(runs).collect();
    lines.join("\n")
}

/// The codes that something raises, with the first file that does.
fn raised_codes() -> BTreeMap<String, PathBuf> {
    let mut raised = BTreeMap::new();
    for file in sources() {
        let text = std::fs::read_to_string(&file).expect("a readable source");
        for code in codes_in(&running(&text)) {
            raised
                .entry(code.to_owned())
                .or_insert_with(|| file.clone());
        }
    }
    raised
}

fn pages() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("docs/errors")).expect("the pages");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    names
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
        .filter(|name| name != "README")
        .collect()
}

#[test]
fn every_code_has_a_page() {
    let pages = pages();
    let raised = raised_codes();
    assert!(raised.len() > 50, "the search finds the codes");
    let missing: Vec<_> = raised
        .iter()
        .filter(|(code, _)| !pages.contains(*code))
        .collect();
    assert!(
        missing.is_empty(),
        "codes without docs/errors/<code>.md: {missing:#?}"
    );
}

#[test]
fn every_page_has_its_code() {
    let raised = raised_codes();
    let idle: Vec<_> = pages()
        .into_iter()
        .filter(|page| !raised.contains_key(page))
        .collect();
    assert!(
        idle.is_empty(),
        "pages of codes that nothing raises: {idle:?}"
    );
}

#[test]
fn every_page_is_about_its_code_and_says_what_to_do() {
    for page in pages() {
        let text =
            std::fs::read_to_string(root().join(format!("docs/errors/{page}.md"))).expect("a page");
        assert!(
            text.starts_with(&format!("# {page}")),
            "{page} begins with its code"
        );
        assert!(text.contains("What to do"), "{page} says what to do");
    }
}

#[test]
fn codes_are_recognised() {
    let text = r#"a [LC0123] b "LC0456" c LC0789 [LC12] LCxxxx [LC012"#;
    assert_eq!(codes_in(text).collect::<Vec<_>>(), ["LC0123", "LC0456"]);
    let text = "// [LC0001]\n  | \"LC0002\"\n * [LC0003]\n x(\"LC0004\");\n#[cfg(test)]\nmod tests { \"LC0005\" }";
    assert_eq!(codes_in(&running(text)).collect::<Vec<_>>(), ["LC0004"]);
}
