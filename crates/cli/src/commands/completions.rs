//! `spacetime completions`: what a shell needs to complete our commands and options (07 §5.13).

use crate::output::result_text;
use clap::Command;
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
#[command(after_help = "Where the text belongs:\n  \
  bash        spacetime completions bash > ~/.local/share/bash-completion/completions/spacetime\n  \
  zsh         spacetime completions zsh > ~/.zfunc/_spacetime     (with ~/.zfunc in fpath)\n  \
  fish        spacetime completions fish > ~/.config/fish/completions/spacetime.fish\n  \
  powershell  spacetime completions powershell >> $PROFILE\n  \
  elvish      spacetime completions elvish >> ~/.config/elvish/rc.elv")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completions of `command`, the whole command line.
pub fn run(args: &Args, mut command: Command) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "spacetime", &mut text);
    result_text!("{}", String::from_utf8_lossy(&text));
}
