//! `docs/limits.md` says what the table says. After a change of the table: `UPDATE_GOLDEN=1 cargo test --workspace --test page`.

use std::path::{Path, PathBuf};

use lightcone_limits::{page_table, Limits, Subject, WebSocket};

const SUBJECTS: [(&str, Subject); 7] = [
    ("connections", Subject::Connections),
    ("websockets", Subject::WebSockets),
    ("queues", Subject::Queues),
    ("calls", Subject::Calls),
    ("queries", Subject::Queries),
    ("storage", Subject::Storage),
    ("watching", Subject::Watching),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// An alias of `limits.client-bytes-max`.
const OLDER_NAME: &str = "limits.outgoing-queue-bytes";

/// The page with the table of a subject between its marks.
fn with_table(page: &str, mark: &str, subject: Subject) -> String {
    let begin = format!("<!-- limits: {mark} -->\n");
    let (before, rest) = page.split_once(&begin).expect(mark);
    let end = rest.find("<!-- end of limits -->").expect(mark);
    format!("{before}{begin}\n{}\n{}", page_table(subject), &rest[end..])
}

#[test]
fn the_page_has_the_rows_of_the_table() {
    let path = docs().join("limits.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let mut expected = page.clone();
    for (mark, subject) in SUBJECTS {
        expected = with_table(&expected, mark, subject);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).expect("the page is written");
        return;
    }
    let differs = expected
        .lines()
        .zip(page.lines())
        .find(|(expected, is)| expected != is);
    assert!(
        expected == page,
        "docs/limits.md is not what the table says; run this with UPDATE_GOLDEN=1. First difference: {differs:#?}"
    );
}

#[test]
fn every_limit_is_on_the_page() {
    let tables: String = SUBJECTS.map(|(_, subject)| page_table(subject)).concat();
    for row in Limits::rows().iter().chain(&WebSocket::rows()) {
        let cell = format!("| `{}` |", row.key());
        assert_eq!(tables.matches(&cell).count(), 1, "{cell}");
    }
}

/// Words like `limits.call-ms-max`.
fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-' || c == '.';
    text.split(move |c| !is_part(c))
        .map(|word| word.trim_end_matches(['.', '-']))
        .filter(|word| word.starts_with("limits.") || word.starts_with("websocket."))
        .filter(|word| word.contains('-'))
}

/// The pages, and the sources with their error texts.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|e| e == "md" || e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn pages_and_errors_name_keys_that_are_there() {
    let rows = || Limits::rows().into_iter().chain(WebSocket::rows());
    let mut files = Vec::new();
    texts(&docs(), &mut files);
    texts(&docs().join("../crates"), &mut files);
    assert!(files.len() > 500, "the search finds the files");
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        for key in keys_in(&text) {
            let is_there = rows().any(|row| row.key() == key) || key == OLDER_NAME;
            assert!(is_there, "{} names {key}", path.display());
        }
    }
}
