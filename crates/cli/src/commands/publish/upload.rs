//! Publishing one database: build, look for breaking changes (`check`), upload (07 §5.1).

use super::backfill;
use super::check::Checked;
use super::plan::{declined, DeleteData, Plan, Source, Upload, Yes};
use crate::build::{self, HostType};
use crate::claims::identity_of;
use crate::commands::{Auth, Context};
use crate::credentials::WhenMissing;
use crate::error::{Error, FileResult as _, Result};
use crate::http::{self, encode};
use crate::output::{remark, result};
use crate::prompt;
use lightcone_types::Identity;

pub(super) async fn publish(context: &mut Context, plan: &Plan) -> Result<()> {
    let auth = match plan.anonymous {
        true => Auth::Anonymous,
        false => Auth::Login {
            missing: match plan.says_yes(Yes::SkipLogin) {
                true => WhenMissing::Direct,
                false => WhenMissing::Ask,
            },
            insecure: plan.says_yes(Yes::Remote),
        },
    };
    let client = context.client(plan.server.as_deref(), auth).await?;
    let (parent, name) = split_name(plan)?;
    let (program, host_type) = program(plan)?;

    if !http::is_local(client.base()) {
        let host = client
            .base()
            .split_once("://")
            .map_or(client.base(), |(_, host)| host);
        remark!("You are about to publish to a non-local server: {host}");
        if !prompt::confirm(
            "Are you sure you want to proceed?",
            plan.says_yes(Yes::Remote),
        ) {
            remark!("Publish aborted by user.");
            return Err(declined("--yes=remote"));
        }
    }
    let server = plan
        .server
        .as_deref()
        .or(context.config.default_server())
        .unwrap_or(client.base());
    remark!("Uploading to {server} => {}", client.base());

    let upload = Upload {
        client: &client,
        plan,
        name: name.as_deref(),
        program,
        host_type,
    };
    if plan.dry_run {
        let Some(name) = &name else {
            result!("Without a name publishing would create a new database.");
            return Ok(());
        };
        return upload.dry_run(name).await;
    }
    let mut query: Vec<(&str, String)> = vec![("host_type", host_type.as_str().to_owned())];
    if let Some(name) = &name {
        if plan.delete_data == DeleteData::Always {
            upload.ask_to_destroy(name).await?;
            query.push(("clear", "true".to_owned()));
        } else {
            match upload.pre_publish(name).await? {
                Checked::New => {}
                Checked::Update { token } => {
                    query.push(("token", token));
                    query.push(("policy", "BreakClients".to_owned()));
                }
                Checked::Clear => query.push(("clear", "true".to_owned())),
            }
        }
    }
    if let Some(n) = plan.num_replicas {
        query.push(("num_replicas", n.to_string()));
    }
    if let Some(parent) = parent {
        query.push(("parent", parent));
    }
    if let Some(organization) = &plan.organization {
        query.push(("org", organization.clone()));
    }
    remark!("Publishing module...");
    upload.send(&query).await
}

/// `parent/child` is a parent and a name.
fn split_name(plan: &Plan) -> Result<(Option<String>, Option<String>)> {
    let Some(full) = &plan.name else {
        return Ok((plan.parent.clone(), None));
    };
    let (parent, name) = match full.split_once('/') {
        None => (plan.parent.clone(), full.clone()),
        Some((parent, name)) => {
            if plan.parent.as_deref().is_some_and(|other| other != parent) {
                bail!(
                    "LC0624",
                    "the name `{full}` and --parent {} contradict each other",
                    plan.parent.as_deref().unwrap_or("")
                );
            }
            (Some(parent.to_owned()), name.to_owned())
        }
    };
    for part in parent.iter().chain([&name]) {
        check_name(part)?;
    }
    Ok((parent, Some(name)))
}

/// [`check_name`] of a name that may have its parent's before it.
pub(super) fn check_full_name(full: &str) -> Result<()> {
    let (parent, name) = match full.split_once('/') {
        Some((parent, name)) => (Some(parent), name),
        None => (None, full),
    };
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

/// Builds or reads what is to be published.
fn program(plan: &Plan) -> Result<(Vec<u8>, HostType)> {
    let (path, host_type) = match &plan.source {
        Source::Wasm(path) => {
            remark!(
                "(WASM) Skipping build. Instead we are publishing {}",
                path.display()
            );
            (path.clone(), HostType::Wasm)
        }
        Source::Js(path) => {
            remark!(
                "(JS) Skipping build. Instead we are publishing {}",
                path.display()
            );
            (path.clone(), HostType::Js)
        }
        Source::Built(path, host_type) => (path.clone(), *host_type),
        Source::Project(directory) => {
            let built = build::build(
                directory,
                &build::Options::parse(plan.build_options.as_deref().unwrap_or(""))?,
            )?;
            build::advise(&built);
            (built.path, built.host_type)
        }
    };
    let bytes = std::fs::read(&path).or_cannot("read", &path)?;
    Ok((bytes, host_type))
}

impl Upload<'_> {
    async fn send(self, query: &[(&str, String)]) -> Result<()> {
        let query: Vec<String> = query
            .iter()
            .map(|(key, value)| format!("{key}={}", encode(value)))
            .collect();
        let query = query.join("&");
        let request = match self.name {
            Some(name) => self
                .client
                .put(&format!("/v1/database/{}?{query}", encode(name))),
            None => self.client.post(&format!("/v1/database?{query}")),
        };
        let request = request.body(self.program);
        let response = backfill::send_and_tell(self.client, self.name, request).await?;
        let status = response.status();
        let answer = http::parse_json(&http::json_text(response).await?)?;
        if let Some(denied) = answer.get("PermissionDenied") {
            let name = denied["name"].as_str().or(self.name).unwrap_or("that name");
            let mine = self.client.token().and_then(|t| identity_of(t).ok());
            let prefix = mine.map_or_else(|| "my".to_owned(), |me| me.to_hex()[..12].to_owned());
            bail!("LC0626", "Database {name} is not registered to you. Choose another name, for example: {prefix}-{name}");
        }
        let Some(success) = answer.get("Success") else {
            bail!(
                "LC0616",
                "the server answered {status} and: {}",
                http::shown(&answer.to_string())
            );
        };
        let op = match success["op"].as_str() {
            Some("created") => "Created new",
            _ => "Updated",
        };
        let identity = success["database_identity"].as_str().unwrap_or("?");
        match success["domain"].as_str() {
            Some(name) => {
                result!("{op} database with name: {name}, identity: {identity}");
                if self.client.base() == "https://maincloud.spacetimedb.com" {
                    remark!("Dashboard: https://spacetimedb.com/{name}");
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
