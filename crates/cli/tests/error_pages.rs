//! Every error code in the sources has its page in `docs/errors`, and every page belongs to a code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("a readable directory");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
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

fn used_codes() -> BTreeMap<String, PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates") {
        sources(&entry.expect("an entry").path().join("src"), &mut files);
    }
    let mut used = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable source");
        for code in codes_in(&text) {
            used.entry(code.to_owned()).or_insert_with(|| file.clone());
        }
    }
    used
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
    let used = used_codes();
    assert!(used.len() > 50, "the search finds the codes");
    let missing: Vec<_> = used
        .iter()
        .filter(|(code, _)| !pages.contains(*code))
        .collect();
    assert!(
        missing.is_empty(),
        "codes without docs/errors/<code>.md: {missing:#?}"
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
}
