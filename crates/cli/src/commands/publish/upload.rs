//! Publishing one database: build, look for breaking changes (`check`), upload (07 §5.1).

use std::collections::BTreeMap;
use std::path::Path;

use super::backfill;
use super::check::Checked;
use super::environment;
use super::plan::{declined, DeleteData, Plan, Source, Upload, Yes};
use crate::address::{ACCOUNT_HOST, ACCOUNT_SERVER};
use crate::build::{self, Built, HostType};
use crate::claims::identity_of;
use crate::commands::env::{missing, missing_error};
use crate::commands::{Auth, Context};
use crate::definition;
use crate::error::{FileResult as _, Result};
use crate::http::{self, encode};
use crate::output::{remark, result};
use crate::prompt;
use lightcone_types::Identity;

pub(super) async fn publish(context: &mut Context, plan: &Plan) -> Result<()> {
    let (direct, insecure) = (plan.says_yes(Yes::SkipLogin), plan.says_yes(Yes::Remote));
    let auth = Auth::of(plan.anonymous, direct, insecure);
    let client = context.client(plan.server.as_deref(), auth).await?;
    let (parent, name) = split_name(plan)?;
    if plan.environment.only {
        let Some(name) = &name else {
            bail!("LC0639", "--env-only needs the name of a database");
        };
        return environment::publish(&client, name, &plan.environment).await;
    }
    let built = built(plan)?;
    let program = std::fs::read(&built.path).or_cannot("read", &built.path)?;
    let host_type = built.host_type;
    let declared = match environment::may_declare(&program) {
        true => definition::of_program(&built.path, host_type)?.environment_declarations(),
        false => Vec::new(),
    };
    let declared: Vec<String> = declared.into_iter().map(|declared| declared.name).collect();

    if !http::is_local(client.base()) {
        let base = client.base();
        let host = base.split_once("://").map_or(base, |(_, host)| host);
        remark!("You are about to publish to a non-local server: {host}");
        let question = "Are you sure you want to proceed?";
        if !prompt::confirm(question, plan.says_yes(Yes::Remote)) {
            remark!("Publish aborted by user.");
            return Err(declined("--yes=remote"));
        }
    }
    let server = plan.server.as_deref().or(context.config.default_server());
    let base = client.base();
    remark!("Uploading to {} => {base}", server.unwrap_or(base));

    let upload = Upload {
        client: &client,
        plan,
        name: name.as_deref(),
        program,
        host_type,
    };
    match &name {
        Some(name) if plan.dry_run => return upload.dry_run(name).await,
        None if plan.dry_run => {
            result!("Without a name publishing would create a new database.");
            return Ok(());
        }
        _ => {}
    }
    let mut query = vec![("host_type", host_type.as_str().to_owned())];
    let clear = ("clear", "true".to_owned());
    if let Some(name) = &name {
        if plan.delete_data == DeleteData::Always {
            upload.ask_to_destroy(name).await?;
            query.push(clear);
        } else {
            match upload.pre_publish(name).await? {
                Checked::New => {}
                Checked::Update { token } => {
                    query.extend([("token", token), ("policy", "BreakClients".to_owned())]);
                }
                Checked::Clear => query.push(clear),
            }
        }
    }
    query.extend(plan.num_replicas.map(|n| ("num_replicas", n.to_string())));
    query.extend(parent.map(|parent| ("parent", parent)));
    query.extend(plan.organization.clone().map(|owner| ("org", owner)));
    remark!("Publishing module...");
    let values = plan.environment.resolve(&declared);
    upload.send(&query, &values).await
}

/// `parent/child` is a parent and a name.
fn split_name(plan: &Plan) -> Result<(Option<String>, Option<String>)> {
    let Some(full) = &plan.name else {
        return Ok((plan.parent.clone(), None));
    };
    let (parent, name) = parts_of(full);
    let parent = match (parent, &plan.parent) {
        (Some(parent), Some(other)) if other != parent => {
            bail!(
                "LC0624",
                "the name `{full}` and --parent {other} contradict each other"
            )
        }
        (parent, other) => parent.or(other.as_deref()),
    };
    parent.into_iter().chain([name]).try_for_each(check_name)?;
    Ok((parent.map(str::to_owned), Some(name.to_owned())))
}

fn parts_of(full: &str) -> (Option<&str>, &str) {
    match full.split_once('/') {
        Some((parent, name)) => (Some(parent), name),
        None => (None, full),
    }
}

/// [`check_name`] of a name that may have its parent's before it.
pub(super) fn check_full_name(full: &str) -> Result<()> {
    let (parent, name) = parts_of(full);
    parent.into_iter().chain([name]).try_for_each(check_name)
}

/// The rule of 06 §4.1, told before anything is built.
fn check_name(name: &str) -> Result<()> {
    if Identity::parse_text(name).is_ok() {
        return Ok(());
    }
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let why = if name.is_empty() {
        "database names cannot be empty"
    } else if !name.chars().all(|c| is_word(c) || c == '-') {
        "invalid characters in database name"
    } else if name.split('-').any(str::is_empty) {
        "invalid hyphen in database name"
    } else {
        return Ok(());
    };
    Err(coded!("LC0624", "`{name}`: {why}. A name is lower-case letters and digits, with single hyphens between them."))
}

/// What is to be published, built if need be.
fn built(plan: &Plan) -> Result<Built> {
    let given = |kind: &str, path: &Path, host_type| {
        let shown = path.display();
        remark!("({kind}) Skipping build. Instead we are publishing {shown}");
        Built::new(path.to_owned(), host_type)
    };
    Ok(match &plan.source {
        Source::Wasm(path) => given("WASM", path, HostType::Wasm),
        Source::Js(path) => given("JS", path, HostType::Js),
        Source::Built(built) => built.clone(),
        Source::Project(directory) => {
            let options = build::Options::parse(plan.build_options.as_deref())?;
            let built = build::build(directory, &options)?;
            build::advise(&built);
            built
        }
    })
}

impl Upload<'_> {
    async fn send(self, query: &[(&str, String)], values: &BTreeMap<String, String>) -> Result<()> {
        let query = query.iter();
        let query = query.map(|(key, value)| format!("{key}={}", encode(value)));
        let query = query.collect::<Vec<_>>().join("&");
        let client = self.client;
        let request = match self.name.map(encode) {
            Some(name) => client.put(&format!("/v1/database/{name}?{query}")),
            None => client.post(&format!("/v1/database?{query}")),
        };
        let request = self.plan.environment.add_to(request, values);
        let request = request.body(self.program);
        let response = backfill::send_and_tell(client, self.name, request).await?;
        let status = response.status();
        let answer = http::parse_json(&http::json_text(response).await?)?;
        if let Some(denied) = answer.get("PermissionDenied") {
            let name = denied["name"].as_str().or(self.name).unwrap_or("that name");
            let mine = client.token().and_then(|t| identity_of(t).ok());
            let prefix = mine.map_or_else(|| "my".to_owned(), |me| me.to_hex()[..12].to_owned());
            bail!("LC0626", "Database {name} is not registered to you. Choose another name, for example: {prefix}-{name}");
        }
        if let Some(keys) = missing(&answer["EnvironmentError"]) {
            return Err(missing_error(&keys));
        }
        let Some(success) = answer.get("Success") else {
            let shown = http::shown(&answer.to_string());
            bail!("LC0616", "the server answered {status} and: {shown}");
        };
        let op = match success["op"] == "created" {
            true => "Created new",
            false => "Updated",
        };
        let identity = success["database_identity"].as_str().unwrap_or("?");
        match success["domain"].as_str() {
            Some(name) => {
                result!("{op} database with name: {name}, identity: {identity}");
                if client.base() == ACCOUNT_SERVER {
                    remark!("Dashboard: {ACCOUNT_HOST}/{name}");
                }
            }
            None => result!("{op} database with identity: {identity}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_follow_the_rule() {
        let identity = "c2".repeat(32);
        for name in ["a", "a-b-1", "test-1", &identity] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for (name, why) in [
            ("", "cannot be empty"),
            ("-a", "invalid hyphen"),
            ("a--b", "invalid hyphen"),
            ("A", "invalid characters"),
            ("a_b", "invalid characters"),
        ] {
            let error = check_name(name).expect_err(name).to_string();
            assert!(error.contains(why) && error.contains("[LC0624]"), "{error}");
        }
    }
}
