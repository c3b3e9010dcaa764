//! What `spacetime doctor` has found.

use serde::Serialize;
use serde_json::{json, Value};

/// How bad a finding is. Only errors make the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// Nothing is wrong, but something cannot be done until it is there.
    Note,
    Warning,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    group: &'static str,
    name: String,
    pub state: State,
    message: String,
    /// What to do.
    advice: Option<String>,
}

/// What has been found, in the order in which it is shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub checks: Vec<Check>,
    group: &'static str,
}

impl Report {
    pub fn group(&mut self, group: &'static str) {
        self.group = group;
    }

    fn add(&mut self, name: &str, state: State, message: String, advice: Option<String>) {
        self.checks.push(Check {
            group: self.group,
            name: name.to_owned(),
            state,
            message,
            advice,
        });
    }

    pub fn ok(&mut self, name: &str, message: impl Into<String>) {
        self.add(name, State::Ok, message.into(), None);
    }

    pub fn error(&mut self, name: &str, message: impl Into<String>, advice: impl Into<String>) {
        self.bad(name, State::Error, message, advice);
    }

    pub fn warning(&mut self, name: &str, message: impl Into<String>, advice: impl Into<String>) {
        self.bad(name, State::Warning, message, advice);
    }

    pub fn note(&mut self, name: &str, message: impl Into<String>, advice: impl Into<String>) {
        self.bad(name, State::Note, message, advice);
    }

    pub fn bad(
        &mut self,
        name: &str,
        state: State,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(name, state, message.into(), Some(advice.into()));
    }

    pub fn count(&self, state: State) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.state == state).count()
    }

    pub fn json(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "compatible_version": crate::COMPATIBLE_VERSION,
            "is_ok": self.count(State::Error) == 0,
            "checks": self.checks,
        })
    }

    pub fn text(&self) -> String {
        let widths = self.checks.iter().map(|check| check.name.chars().count());
        let width = widths.max().unwrap_or(0);
        let indent = format!("\n{:width$}", "", width = width + 13);
        let mut out = String::new();
        let mut group = "";
        for check in &self.checks {
            if check.group != group {
                let blank = if out.is_empty() { "" } else { "\n" };
                group = check.group;
                out.push_str(&format!("{blank}{group}\n"));
            }
            let (name, message) = (&check.name, check.message.trim_end());
            let message = message.replace('\n', &indent);
            let state = format!("{:?}", check.state).to_lowercase();
            out.push_str(&format!("  {state:<7}  {name:<width$}  {message}\n"));
            if let Some(advice) = &check.advice {
                let advice = advice.trim_end().replace('\n', &format!("{indent}  "));
                out.push_str(&format!("{}→ {advice}\n", &indent[1..]));
            }
        }
        out
    }
}
