//! Yes/no questions (07 §2).

use std::io::{BufRead, IsTerminal};

use crate::error::Result;
use crate::output::{remark, remark_text};

/// Asks on stderr, since a question is no result, and reads the answer from stdin; anything but `y` or `yes` is no. With `yes` set
/// no question is asked.
pub fn confirm(question: &str, yes: bool) -> bool {
    if yes {
        remark!("Skipping confirmation due to --yes");
        return true;
    }
    remark_text!("{question} [y/N] ");
    is_yes(&read_line())
}

/// The same, where no means that nothing happens.
pub fn goes_on(question: &str, yes: bool) -> bool {
    let goes_on = confirm(question, yes);
    if !goes_on {
        remark!("Aborting");
    }
    goes_on
}

/// Shows a prompt and reads one line; empty at the end of input.
pub fn ask(prompt: &str) -> String {
    remark_text!("{prompt}");
    read_line()
}

/// The same with what an empty line stands for.
pub fn ask_or(question: &str, default: &str) -> String {
    let answer = ask(&format!("{question} ({default}): "));
    match answer.is_empty() {
        true => default.to_owned(),
        false => answer,
    }
}

/// Asks in a thread of its own, so that Ctrl-C is heard while there is no answer.
pub async fn in_background<T: Send + 'static>(
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(ask)
        .await
        .map_err(caused!("LC0620", "asking broke off"))
}

/// True if there is a user to ask.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal()
}

fn read_line() -> String {
    // A closed stdin is an answer too: no.
    let mut line = String::new();
    let stdin = std::io::stdin();
    let _ = stdin.lock().read_line(&mut line);
    // No Enter has ended the line of the question.
    if !stdin.is_terminal() {
        remark!("");
    }
    line.trim().to_owned()
}

fn is_yes(answer: &str) -> bool {
    matches!(&*answer.to_ascii_lowercase(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y", "Y", "yes", "YES"].iter().all(|a| is_yes(a)));
        assert!(!["", "n", "yess", "ye", "ja"].iter().any(|a| is_yes(a)));
    }
}
