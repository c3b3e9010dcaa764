//! `--format`: how lists and tables are printed (07 §2.1).
//!
//! In JSON all of them have one shape: one line with one object; the list is a member of it, an array of objects, and keys are
//! words with `_`. Members are added, and never renamed or given another meaning, so that scripts can rely on them.

use clap::ValueEnum;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
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
    println!("{list}");
}
