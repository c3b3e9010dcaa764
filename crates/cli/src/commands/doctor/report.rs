//! What `spacetime doctor` has found.

use serde_json::{json, Value};

/// How bad a finding is. Only errors make the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Ok,
    /// Nothing is wrong, but something cannot be done until it is there.
    Note,
    Warning,
    Error,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
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

    pub fn add(
        &mut self,
        name: &str,
        state: State,
        message: impl Into<String>,
        advice: Option<String>,
    ) {
        self.checks.push(Check {
            group: self.group,
            name: name.to_owned(),
            state,
            message: message.into(),
            advice,
        });
    }

    pub fn ok(&mut self, name: &str, message: impl Into<String>) {
        self.add(name, State::Ok, message, None);
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
        self.add(name, state, message, Some(advice.into()));
    }

    pub fn count(&self, state: State) -> usize {
        self.checks
            .iter()
            .filter(|check| check.state == state)
            .count()
    }

    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "group": check.group,
                    "name": check.name,
                    "state": check.state.as_str(),
                    "message": check.message,
                    "advice": check.advice,
                })
            })
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "compatible_version": crate::COMPATIBLE_VERSION,
            "is_ok": self.count(State::Error) == 0,
            "checks": checks,
        })
    }

    pub fn text(&self) -> String {
        let width = self
            .checks
            .iter()
            .map(|check| check.name.chars().count())
            .max();
        let width = width.unwrap_or(0);
        let mut out = String::new();
        let mut group = "";
        for check in &self.checks {
            if check.group != group {
                group = check.group;
                out.push_str(&format!(
                    "{}{group}\n",
                    if out.is_empty() { "" } else { "\n" }
                ));
            }
            let indent = format!("\n{:width$}", "", width = width + 13);
            let message = check.message.trim_end().replace('\n', &indent);
            let state = check.state.as_str();
            out.push_str(&format!(
                "  {state:<7}  {:<width$}  {message}\n",
                check.name
            ));
            if let Some(advice) = &check.advice {
                let advice = advice.trim_end().replace('\n', &format!("{indent}  "));
                out.push_str(&format!("{}→ {advice}\n", &indent[1..]));
            }
        }
        out
    }
}
