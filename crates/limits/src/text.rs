//! The table as text, for `config.toml` and `docs/limits.md`.

use std::fmt::Write as _;

use crate::row::{Row, Subject};
use crate::table::{Limits, WebSocket};

/// The keys of a section as the first start writes them: each with its comment, commented out at its default.
pub fn written(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for line in row.comment {
            let _ = writeln!(text, "#{line}");
        }
        let _ = writeln!(text, "# {} = {}", row.field.replace('_', "-"), row.default);
    }
    text
}

/// The table of a subject in `docs/limits.md`.
pub fn page_table(subject: Subject) -> String {
    let mut text =
        "| key | default | bounds | when it is reached |\n|---|---|---|---|\n".to_owned();
    for row in WebSocket::rows().into_iter().chain(Limits::rows()) {
        if row.subject == subject {
            let (key, default) = (row.key(), row.default.trim_matches('"'));
            let _ = writeln!(
                text,
                "| `{key}` | `{default}` | {} | {} |",
                row.bounds, row.reached
            );
        }
    }
    text
}
