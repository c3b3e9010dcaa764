//! Errors of backups. Codes have their pages under `docs/errors/`.

/// Why bytes are no part of a backup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that were written as something else, or have changed.
    #[error("{file} is damaged: {found} [LC0551]")]
    Damaged { file: String, found: String },
    /// An intact file of another version.
    #[error("{file} has format {format} of backups, and this version reads format {supported}. Use the version that wrote it. [LC0552]")]
    Format {
        file: String,
        format: u32,
        supported: u32,
    },
}

impl Error {
    /// That what is called `file` is damaged.
    pub fn damaged(file: impl Into<String>, found: impl Into<String>) -> Error {
        Error::Damaged {
            file: file.into(),
            found: found.into(),
        }
    }
}
