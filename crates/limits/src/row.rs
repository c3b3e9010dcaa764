//! A row of the table of limits, for people.

/// The tables of `docs/limits.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Connections,
    WebSockets,
    Queues,
    Calls,
    Queries,
    Storage,
    Watching,
}

pub struct Row {
    pub(crate) section: &'static str,
    pub(crate) field: &'static str,
    /// Above the key in `config.toml`, each with a space before it.
    pub(crate) comment: &'static [&'static str],
    /// As TOML writes it.
    pub default: String,
    pub(crate) subject: Subject,
    pub(crate) bounds: &'static str,
    pub(crate) reached: &'static str,
}

impl Row {
    /// Such as `limits.call-ms-max`.
    pub fn key(&self) -> String {
        key(self.section, self.field)
    }
}

pub(crate) fn key(section: &str, field: &str) -> String {
    format!("{section}.{}", field.replace('_', "-"))
}
