//! Commands that a later version brings.

use crate::error::Error;

/// Whatever is given: the answer is the same.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _args: Vec<String>,
}

pub fn dev() -> Error {
    Error::later(
        "`spacetime dev`",
        "Run `spacetime publish` after each change, and `spacetime logs -f` beside it.",
    )
}

pub fn mcp() -> Error {
    Error::later(
        "`spacetime mcp`",
        "`spacetime sql`, `call` and `describe` do the same from a shell.",
    )
}

pub fn generate() -> Error {
    Error::later(
        "`spacetime generate`",
        "The generator of the reference tools works on modules built here; so do its bindings with this server.",
    )
}

pub fn init() -> Error {
    Error::later(
        "`spacetime init`",
        "Copy `modules/transfer-rs` of the source tree as a start for a Rust module.",
    )
}
