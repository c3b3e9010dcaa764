//! Names of the tables of a backfill, which are hidden from queries and modules.

/// What the names of hidden tables begin with. No identifier does.
const HIDDEN: char = '$';
pub(crate) const NEW: &str = "$new.";
pub(crate) const DONE: &str = "$done.";
pub(crate) const AGAIN: &str = "$again";
pub(crate) const STATE: &str = "$backfill";

/// Whether a table is one of a backfill, which neither queries nor modules are to know.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with(HIDDEN)
}

/// The name that a table, or a part of it, has until it takes its place.
pub(crate) fn new_name(name: &str) -> String {
    format!("{NEW}{name}")
}

/// A text without the names that only the backfill knows.
pub(crate) fn shown(text: &str) -> String {
    text.replace(NEW, "")
}
