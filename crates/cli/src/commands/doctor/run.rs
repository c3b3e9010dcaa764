//! Runs other programs to hear what they are, without ever waiting for long.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Enough for a cold disk; a program that waits for a network or a person is given up.
pub(super) const TIME_MAX: Duration = Duration::from_secs(10);

/// What came of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The first line that it printed.
    Line(String),
    Missing,
    Failed(String),
}

pub(super) async fn first_line(
    program: impl AsRef<OsStr>,
    args: &[&str],
    directory: &Path,
) -> Outcome {
    let child = tokio::process::Command::new(program)
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(TIME_MAX, child).await {
        Err(_) => Outcome::Failed(format!("did not end in {} s", TIME_MAX.as_secs())),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Missing,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Ok(Ok(output)) if output.status.success() => Outcome::Line(line_of(&output.stdout)),
        Ok(Ok(output)) => {
            Outcome::Failed(format!("{}: {}", output.status, line_of(&output.stderr)))
        }
    }
}

/// The first line that says something.
fn line_of(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| !line.trim().is_empty());
    crate::http::shown(line.unwrap_or("nothing").trim())
}

/// The first number with dots in a text: `2.10.1` of `cargo 2.10.1 (abc)`.
pub(super) fn version_in(text: &str) -> Option<(u64, u64, u64)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '.';
    let starts = text.char_indices().filter(|(at, c)| {
        c.is_ascii_digit()
            && !text[..*at].ends_with(|before: char| is_word(before) && before != 'v')
    });
    starts.into_iter().find_map(|(at, _)| {
        let end = text[at..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let number = &text[at..end.map_or(text.len(), |end| at + end)];
        let mut parts = number.split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        Some((major, minor, parts.next().and_then(Result::ok).unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found() {
        for (text, want) in [
            ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", Some((1, 95, 0))),
            ("v22.3.1", Some((22, 3, 1))),
            ("10.9", Some((10, 9, 0))),
            ("wasm-opt version 120 (version_120-2)", None),
            ("x2.1.0", None),
            ("none", None),
            ("é1.2.3", None),
            ("", None),
        ] {
            assert_eq!(version_in(text), want, "{text}");
        }
    }

    #[tokio::test]
    async fn programs_are_heard() {
        let here = Path::new(".");
        assert_eq!(
            first_line("echo", &["one\ntwo"], here).await,
            Outcome::Line("one".into())
        );
        assert_eq!(first_line("/nowhere/x", &[], here).await, Outcome::Missing);
        let failed = first_line("sh", &["-c", "echo why >&2; exit 3"], here).await;
        assert!(
            matches!(&failed, Outcome::Failed(why) if why.ends_with("3: why")),
            "{failed:?}"
        );
    }
}
