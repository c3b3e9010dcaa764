//! What publishing would do to a database that is there: asking the server, telling the user, asking him (07 §5.1).

use reqwest::StatusCode;
use serde_json::Value;

use super::plan::{declined, DeleteData, Upload, Yes};
use super::rows;
use crate::error::{Error, Result};
use crate::http::{self, encode};
use crate::output::{remark, result, Stream};
use crate::prompt;

/// What the server makes of the new module, and the user of that.
pub(super) enum Checked {
    New,
    Update { token: String },
    Clear,
}

impl Upload<'_> {
    pub(super) async fn ask_to_destroy(&self, name: &str) -> Result<()> {
        let yes = self.plan.says_yes(Yes::DeleteData);
        if !yes {
            self.check_terminal(name, "delete the data")?;
        }
        remark!("This will DESTROY the current {name} module, and ALL corresponding data.");
        rows::print_what_is_lost(self.client, name, Stream::Remark).await?;
        let question = format!("Are you sure you want to proceed? [deleting {name}]");
        if prompt::in_background(move || prompt::confirm(&question, yes)).await? {
            return Ok(());
        }
        remark!("Aborting");
        Err(match self.plan.terminal_only {
            true => declined("--delete-data=on-conflict"),
            false => declined("--yes=delete-data"),
        })
    }

    /// `spacetime dev` without a terminal cannot ask.
    fn check_terminal(&self, name: &str, what: &str) -> Result<()> {
        if !self.plan.terminal_only || prompt::is_interactive() {
            return Ok(());
        }
        Err(coded!(
            "LC0863",
            "`{name}` was not updated: that would {what}, and there is no terminal to ask at. Start `spacetime dev` with \
             --delete-data=on-conflict to have data deleted whenever the module does not fit them, with --yes to have all \
             questions answered yes, or run `spacetime publish` yourself.",
        ))
    }

    pub(super) async fn pre_publish(&self, name: &str) -> Result<Checked> {
        remark!("Checking for breaking changes...");
        let Some(answer) = self.planned(name, "").await? else {
            return Ok(Checked::New);
        };
        match (answer.get("AutoMigrate"), answer.get("ManualMigrate")) {
            (Some(auto), _) => self.auto_migrate(name, auto).await,
            (None, Some(manual)) => self.manual_migrate(name, manual).await,
            (None, None) => Err(unknown_plan(&answer)),
        }
    }

    /// The server's plan; none if there is no such database.
    async fn planned(&self, name: &str, more: &str) -> Result<Option<Value>> {
        let style = match std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) {
            true => "NoColor",
            false => "AnsiColor",
        };
        // The reference's command sends one name of the style, its server reads the other.
        let path = format!(
            "/v1/database/{}/pre_publish?pretty_print_style={style}&style={style}&host_type={}{more}",
            encode(name),
            self.host_type.as_str()
        );
        let request = self.client.post(&path).body(self.program.clone());
        let response = self.client.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return http::parse_json(&http::json_text(response).await?).map(Some);
        }
        let body = http::body_text(response).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(http::refusal(status, &body)),
            _ => bail!(
                "LC0629",
                "Pre-publish check failed with status {status}: {body}"
            ),
        }
    }

    async fn accepts_major_upgrade(&self, name: &str, plan: &Value) -> Result<()> {
        if plan["major_version_upgrade"] != Value::Bool(true) || self.plan.says_yes(Yes::Migrate) {
            return Ok(());
        }
        remark!("This is a major version upgrade of {name}, from 1.0 to 2.0: its module was built with a library of 1.0, and this one was built with one of 2.0.\nOnce it is published, a module of 1.0 may not be taken again.");
        self.check_terminal(name, "make the database one of the new major version")?;
        let answer = prompt::in_background(|| prompt::ask("Type `upgrade` to accept it: ")).await?;
        match &*answer {
            "upgrade" => Ok(()),
            _ => Err(plain!(
                "Aborting because major version upgrade was not accepted."
            )),
        }
    }

    async fn auto_migrate(&self, name: &str, auto: &Value) -> Result<Checked> {
        self.accepts_major_upgrade(name, auto).await?;
        print_plan(auto, Stream::Remark);
        if let Some(obstacle) = obstacle(name, auto) {
            return self.conflict(name, obstacle).await;
        }
        if auto["break_clients"] == Value::Bool(true) {
            let yes = self.plan.says_yes(Yes::BreakClients);
            let question = "The above changes will BREAK existing clients. Do you want to proceed?";
            let ask = move || prompt::confirm(question, yes);
            if (!self.plan.break_clients || yes) && !prompt::in_background(ask).await? {
                remark!("Publishing aborted by user");
                return Err(declined("--break-clients"));
            }
        }
        match auto["token"].as_str().map(str::to_owned) {
            Some(token) => Ok(Checked::Update { token }),
            None => bail!("LC0616", "the migration plan has no token"),
        }
    }

    async fn manual_migrate(&self, name: &str, manual: &Value) -> Result<Checked> {
        self.accepts_major_upgrade(name, manual).await?;
        remark!("{}", manual["reason"].as_str().unwrap_or_default());
        if self.plan.delete_data != DeleteData::OnConflict {
            remark!("Aborting publish due to required manual migration.");
        }
        self.conflict(name, needs_manual_migration(name)).await
    }

    /// The module does not fit the data, which go if the user wants that.
    async fn conflict(&self, name: &str, error: Error) -> Result<Checked> {
        if self.plan.delete_data != DeleteData::OnConflict {
            return Err(error);
        }
        // `spacetime dev` asks without having been told to delete anything.
        if !self.plan.terminal_only || self.plan.says_yes(Yes::DeleteData) {
            remark!("Proceeding with database clear due to --delete-data=on-conflict.");
        }
        self.ask_to_destroy(name).await?;
        Ok(Checked::Clear)
    }

    /// `--dry-run`: the plan, tried on a copy of the data, and nothing else.
    pub(super) async fn dry_run(&self, name: &str) -> Result<()> {
        if self.plan.delete_data == DeleteData::Always {
            result!("This would DESTROY the current {name} module, and ALL corresponding data.");
            return rows::print_what_is_lost(self.client, name, Stream::Result).await;
        }
        remark!("Trying the changes on a copy of the data...");
        let Some(answer) = self.planned(name, "&dry_run=true").await? else {
            result!("`{name}` does not exist: publishing would create it.");
            return Ok(());
        };
        let conflict = match (answer.get("AutoMigrate"), answer.get("ManualMigrate")) {
            (Some(auto), _) => {
                print_plan(auto, Stream::Result);
                let obstacle = obstacle(name, auto);
                if obstacle.is_none() {
                    rows::print_rehearsal(auto);
                }
                obstacle
            }
            (None, Some(manual)) => {
                result!("{}", manual["reason"].as_str().unwrap_or_default());
                Some(needs_manual_migration(name))
            }
            (None, None) => return Err(unknown_plan(&answer)),
        };
        match conflict {
            None => Ok(()),
            Some(_) if self.plan.delete_data == DeleteData::OnConflict => {
                result!("--delete-data=on-conflict would DESTROY all data of {name}.");
                rows::print_what_is_lost(self.client, name, Stream::Result).await
            }
            Some(error) => Err(error),
        }
    }
}

fn print_plan(auto: &Value, to: Stream) {
    let text = auto["migrate_plan"].as_str().unwrap_or_default();
    let text = match names_nothing(text) {
        true => "Nothing of the schema changes.",
        false => text,
    };
    to.line(format_args!("{text}"));
    rows::print_touched(auto, to);
}

/// Is a plan a frame with its title, and nothing below?
fn names_nothing(plan: &str) -> bool {
    let plan = console::strip_ansi_codes(plan);
    let mut words = plan.lines().map(str::trim);
    words.all(|line| line == "Database Migration Plan" || !line.contains(char::is_alphanumeric))
}

/// What the server knows to be in the way. The text of the plan says it too.
fn obstacle(name: &str, auto: &Value) -> Option<Error> {
    let mut obstacles = auto["obstacles"].as_array()?.iter();
    let first = obstacles.find_map(Value::as_str)?;
    Some(coded!("LC0867", "`{name}` was not updated. {first}"))
}

fn needs_manual_migration(name: &str) -> Error {
    coded!(
        "LC0629",
        "The module does not fit the data of `{name}`. Write a migration function for the changed tables (docs/migrations.md), \
         keep them as they were, publish to another name, or give up the data with --delete-data.",
    )
}

fn unknown_plan(answer: &Value) -> Error {
    coded!(
        "LC0616",
        "the server's migration plan is of an unknown kind: {answer}"
    )
}

#[cfg(test)]
mod tests {
    use super::names_nothing;

    #[test]
    fn a_plan_without_steps_is_known() {
        let rule = "─".repeat(60);
        let empty = format!("{rule}\n\u{1b}[1mDatabase Migration Plan\u{1b}[0m\n{rule}\n\n");
        assert!(names_nothing(&empty) && names_nothing(""));
        assert!(!names_nothing(&format!("{empty}▸ Created table: t\n")));
        assert!(!names_nothing("THE PLAN"));
    }
}
