//! Everything that the commands print, and where it goes.
//!
//! The *result* of a command goes to standard output, where other programs read it: [`result!`], [`result_text!`]. Everything else is
//! a *remark* and goes to standard error: progress, questions, warnings, what a login says: [`remark!`], [`remark_text!`]. Nothing else
//! in this crate writes to either (`clippy::print_stdout`, `clippy::print_stderr`, and `clippy.toml` beside `Cargo.toml`).
//!
//! `--format` says how lists and tables are printed (07 §2.1). In JSON all of them have one shape: one line with one object; the list
//! is a member of it, an array of objects, and keys are words with `_`. Members are added, and never renamed or given another meaning,
//! so that scripts can rely on them.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::Stdio;

use clap::ValueEnum;
use serde_json::Value;

/// What a shell reports of programs that end because their output is not read: 128 + SIGPIPE.
const NO_READER_STATUS: i32 = 141;

/// A line of the result.
macro_rules! result {
    ($($text:tt)*) => { $crate::output::Stream::Result.line(format_args!($($text)*)) };
}

/// The same without a line break.
macro_rules! result_text {
    ($($text:tt)*) => { $crate::output::Stream::Result.text(format_args!($($text)*)) };
}

/// A line for the user who watches the command.
macro_rules! remark {
    ($($text:tt)*) => { $crate::output::Stream::Remark.line(format_args!($($text)*)) };
}

/// The same without a line break.
macro_rules! remark_text {
    ($($text:tt)*) => { $crate::output::Stream::Remark.text(format_args!($($text)*)) };
}

pub(crate) use {remark, remark_text, result, result_text};

/// What a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The result: standard output.
    Result,
    /// What is said meanwhile: standard error.
    Remark,
}

impl Stream {
    pub fn line(self, text: Arguments<'_>) {
        self.text(format_args!("{text}\n"));
    }

    /// Ends the command where a result cannot be written: quietly, as a killed program would, if its reader has seen enough.
    pub fn text(self, text: Arguments<'_>) {
        match self {
            Self::Result => {
                if let Err(error) = write_result(text) {
                    end_without_reader(&error);
                }
            }
            // The work goes on without its spectators.
            Self::Remark => {
                let _ = std::io::stderr().lock().write_fmt(text);
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "all results go through this function"
)]
pub(crate) fn write_result(text: Arguments<'_>) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_fmt(text)?;
    stdout.flush()
}

fn end_without_reader(error: &std::io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(NO_READER_STATUS);
    }
    remark!("Error: the result cannot be written: {error} [LC0619]");
    std::process::exit(1)
}

/// True if the result is shown on a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub fn is_shown() -> bool {
    std::io::stdout().is_terminal()
}

/// True for a terminal that does not move its cursor.
pub fn is_dumb(term: Option<&std::ffi::OsStr>) -> bool {
    // Elsewhere the variable is not usual.
    cfg!(unix) && term.is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Where programs that a command runs write what would be their result: it is none of the command's.
pub fn of_children() -> Stdio {
    Stdio::from(std::io::stderr())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[value(alias = "default", alias = "txt")]
    Text,
    Json,
}

/// The option, for commands that print a list.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormatOption {
    /// How the list is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

impl FormatOption {
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }
}

pub fn print_json(list: &Value) {
    result!("{list}");
}
