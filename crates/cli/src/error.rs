//! What can go wrong in a command, and how it is told (07 §2).

use std::error::Error as StdError;
use std::path::Path;

/// An error of ours: its code, and its message as `format!` takes it.
macro_rules! coded {
    ($code:literal, $($message:tt)+) => {
        $crate::error::Error::coded($code, format!($($message)+))
    };
}

/// Returns such an error.
macro_rules! bail {
    ($($error:tt)+) => { return Err(coded!($($error)+)) };
}

/// Makes an error without a code, for texts that the reference has.
macro_rules! plain {
    ($($message:tt)+) => { $crate::error::Error::plain(format!($($message)+)) };
}

/// Makes an error with a code of its cause, for `map_err`.
macro_rules! caused {
    ($code:literal, $($message:tt)+) => {
        |cause| $crate::error::Error::caused($code, format!($($message)+), cause)
    };
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of ours: what happened and what to do, with a stable code that has a page in `docs/errors`.
    #[error("{message} [{code}]")]
    Coded {
        code: &'static str,
        message: String,
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// A text that comes from the server, or one that scripts know by heart.
    #[error("{0}")]
    Plain(String),
    /// The command line does not make sense; ends with status 2.
    #[error("{0}")]
    Usage(String),
    /// A program we ran failed and has said why; ends with its status.
    #[error("exit status {0}")]
    Exit(u8),
}

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What became of a file or directory.
pub trait FileResult<T> {
    /// An error says which one, and what could not be done: `verb` completes "cannot".
    fn or_cannot(self, verb: &str, path: &Path) -> Result<T>;
}

impl<T> FileResult<T> for std::io::Result<T> {
    fn or_cannot(self, verb: &str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::file(verb, path, cause))
    }
}

impl Error {
    pub fn coded(code: &'static str, message: impl Into<String>) -> Self {
        Self::Coded {
            code,
            message: message.into(),
            source: None,
        }
    }

    pub fn caused(
        code: &'static str,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Coded {
            code,
            message: message.into(),
            source: Some(source.into()),
        }
    }

    pub fn plain(message: impl Into<String>) -> Self {
        Self::Plain(message.into())
    }

    /// A file or directory that cannot be used. `verb` completes "cannot".
    pub fn file(verb: &str, path: &Path, source: std::io::Error) -> Self {
        Self::caused(
            "LC0619",
            format!("cannot {verb} {}", path.display()),
            source,
        )
    }

    /// Of a program that failed and has said why.
    pub fn of_status(status: std::process::ExitStatus) -> Self {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Self::Exit(code.unwrap_or(1))
    }

    /// Something of the command-line interface that a later version brings.
    pub fn later(what: &str, instead: &str) -> Self {
        Self::coded("LC0601", format!("{what} is not supported yet. {instead}"))
    }

    /// The same with something to know behind its message.
    pub fn with_note(self, note: &str) -> Self {
        self.with_message(|message| format!("{}\n{note}", message.trim_end()))
    }

    /// The same of what stands at this place of a file (`file:line:column: key`), if it does.
    pub fn said_at(self, place: Option<&str>) -> Self {
        match place {
            Some(place) => self.with_message(|message| format!("{place}: {message}")),
            None => self,
        }
    }

    fn with_message(mut self, change: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Coded { message, .. } | Self::Plain(message) | Self::Usage(message) => {
                *message = change(message);
            }
            Self::Exit(_) => {}
        }
        self
    }

    /// The status the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Coded { .. } | Self::Plain(_) => 1,
            Self::Usage(_) => 2,
            Self::Exit(status) => *status,
        }
    }

    /// The message and its chain of causes, for where it is clear that this is an error.
    pub fn text(&self) -> String {
        let report = self.report();
        report.trim_start_matches("Error: ").trim_end().to_owned()
    }

    /// Everything that goes to stderr: the message and its chain of causes.
    pub fn report(&self) -> String {
        match self {
            Self::Exit(_) => String::new(),
            Self::Usage(text) => format!("error: {}\n", text.trim_end()),
            Self::Plain(_) | Self::Coded { .. } => {
                let mut out = format!("Error: {self}\n");
                let first = self.source();
                let causes: Vec<_> =
                    std::iter::successors(first, |cause| (*cause).source()).collect();
                if !causes.is_empty() {
                    out.push_str("\nCaused by:\n");
                }
                for (number, cause) in causes.iter().enumerate() {
                    match causes.len() {
                        1 => out.push_str(&format!("    {cause}\n")),
                        _ => out.push_str(&format!("    {number}: {cause}\n")),
                    }
                }
                out
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_code_and_the_causes() {
        let error = Error::file(
            "read",
            Path::new("/x"),
            std::io::Error::other("disk on fire"),
        );
        assert_eq!(
            error.report(),
            "Error: cannot read /x [LC0619]\n\nCaused by:\n    disk on fire\n"
        );
        assert_eq!(error.exit_code(), 1);
        assert_eq!(Error::Usage("unknown".into()).exit_code(), 2);
        assert_eq!(Error::Exit(7).exit_code(), 7);
    }
}
