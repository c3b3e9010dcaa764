//! `spacetime doctor` (07 §5.14): is everything there, does it fit together, and what to do where it does not.
//!
//! It changes nothing and asks nothing; a part of the configuration that is broken is one more finding. `programs` looks at
//! toolchains, `machine` at directories and limits, `project` at the files around the current directory, `server` at the server.

mod machine;
mod programs;
mod project;
mod report;
mod run;
mod server;

use std::path::Path;

use self::report::{Report, State};
use crate::error::Result;
use crate::output::{print_json, result, result_text, FormatOption};
use crate::paths::Paths;
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server to look at; that of the project, or the default one, if it is left out
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask no server
    #[arg(long, conflicts_with = "server")]
    offline: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
    #[command(flatten)]
    output: FormatOption,
}

/// `config_path` is that of `cli.toml`, which may be missing or wrong.
pub async fn run(paths: &Paths, config_path: &Path, args: Args) -> Result<()> {
    let mut report = Report::default();
    let project = Project::find_unless(args.no_config, Path::new("."), None);
    let found = project.as_ref().ok().and_then(Option::as_ref);
    let needs = project::Needs::of(found);
    report.group("Programs");
    programs::check(&mut report, &needs).await;
    report.group("This machine");
    let config = machine::check(&mut report, paths, config_path);
    if !args.no_config {
        report.group("Project");
        project::check(&mut report, &project, &needs);
    }
    if !args.offline {
        report.group("Server");
        let server = args.server.clone().or_else(|| project::server(found));
        let asked = (server.as_deref(), args.server.is_some());
        server::check(&mut report, &config, asked, found).await;
    }
    finish(&report, args.output)
}

fn finish(report: &Report, output: FormatOption) -> Result<()> {
    let (errors, warnings) = (report.count(State::Error), report.count(State::Warning));
    match output.is_json() {
        true => print_json(&report.json()),
        false => {
            result_text!("{}", report.text());
            let counted =
                |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
            result!("\n{errors}, {warnings}.");
        }
    }
    if errors > 0 {
        bail!(
            "LC0880",
            "something is wrong here. What to do stands beside each error above."
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_report_lines_up_and_fails_for_errors_only() {
        let mut report = Report::default();
        report.group("One");
        report.ok("a", "fine");
        report.warning("long name", "so\nso", "do\nthis");
        report.group("Two");
        report.note("b", "missing", "get it");
        assert_eq!(
            report.text(),
            "One\n  ok       a          fine\n  warning  long name  so\n                      so\n                      → do\n                        this\n\nTwo\n  note     b          missing\n                      → get it\n"
        );
        let text = FormatOption {
            format: crate::output::Format::Text,
        };
        assert!(finish(&report, text).is_ok());
        report.error("c", "broken", "mend it");
        let error = finish(&report, text).expect_err("an error").to_string();
        assert!(error.contains("[LC0880]"), "{error}");
        let json = report.json();
        assert_eq!(json["is_ok"], false);
        assert_eq!(json["checks"][3]["state"], "error");
        assert_eq!(json["checks"][0]["advice"], Value::Null);
    }
}
