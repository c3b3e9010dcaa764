//! Commands that a later version brings.

use crate::error::Error;

/// Whatever is given: the answer is the same.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _args: Vec<String>,
}

pub fn mcp() -> Error {
    Error::later(
        "`spacetime mcp`",
        "`spacetime sql`, `call` and `describe` do the same from a shell.",
    )
}
