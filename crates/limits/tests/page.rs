//! `docs/limits.md` says what the table says. After a change of the table: `UPDATE_GOLDEN=1 cargo test --workspace --test page`.

use std::path::{Path, PathBuf};

use lightcone_limits::{page_table, Limits, Subject, WebSocket};

const SUBJECTS: [(&str, Subject); 6] = [
    ("connections", Subject::Connections),
    ("websockets", Subject::WebSockets),
    ("queues", Subject::Queues),
    ("calls", Subject::Calls),
    ("queries", Subject::Queries),
    ("storage", Subject::Storage),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

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

#[test]
fn pages_name_keys_that_are_there() {
    let rows: Vec<_> = Limits::rows()
        .into_iter()
        .chain(WebSocket::rows())
        .collect();
    let mut pages = Vec::new();
    for folder in [docs(), docs().join("errors"), docs().join("interface")] {
        let entries = std::fs::read_dir(folder).expect("a folder");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(pages.len() > 100, "the search finds the pages");
    for path in pages {
        let text = std::fs::read_to_string(&path).expect("a page");
        for key in keys_in(&text) {
            let is_there = rows.iter().any(|row| row.key() == key);
            assert!(is_there, "{} names {key}", path.display());
        }
    }
}
