//! `spacetime rename` (07 §5.8).

use std::path::Path;

use serde_json::Value;

use super::{Auth, Context};
use crate::error::{Error, Result};
use crate::http;
use crate::output::{remark, result};
use crate::project::Project;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The identity (or the present name) of the database
    #[arg(value_name = "DATABASE-IDENTITY")]
    database: String,
    /// The new name
    #[arg(long, value_name = "NEW")]
    to: String,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing
    #[arg(short, long)]
    yes: bool,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let auth = Auth::new(false, args.yes);
    let client = context.client(args.server.as_deref(), auth).await?;
    let identity = client.database_identity(&args.database).await?.to_hex();
    let request = client.put(&format!("/v1/database/{identity}/names"));
    let response = client.send(request.json(&[&args.to])).await?;
    let status = response.status();
    let text = http::body_text(response).await?;
    if status.is_success() {
        result!("Name set to {} for identity {identity}.", args.to);
        note_project(&args.database, &args.to);
        return Ok(());
    }
    Err(explain(&text, &identity).unwrap_or_else(|| http::refusal(status, &text)))
}

/// Commands in a project go by the name that its files have.
fn note_project(old: &str, new: &str) {
    let Ok(Some(project)) = Project::find(Path::new("."), None) else {
        return;
    };
    let databases = project.databases().unwrap_or_default();
    if databases.iter().any(|database| database.name == old) {
        let files = project.file_names().join(" or ");
        remark!("The project here still names {old}: write {new} into {files}.");
    }
}

/// The refusals of 06 §5.10 in words.
fn explain(text: &str, identity: &str) -> Option<Error> {
    let answer: Value = serde_json::from_str(text).ok()?;
    if answer == "DatabaseNotFound" {
        return Some(coded!("LC0609", "There is no database {identity}."));
    }
    if answer.get("NotYourDatabase").is_some() {
        return Some(coded!("LC0615", "You cannot rename {identity}: it is not yours. `spacetime login show` says who you are."));
    }
    let text = if let Some(denied) = answer.get("PermissionDenied") {
        let domain = denied["domain"].as_str().unwrap_or("that name");
        format!("The name {domain} belongs to someone else. Choose another one.")
    } else if let Some(denied) = answer.get("PermissionDeniedOnAny") {
        let domains = &denied["domains"];
        format!("Some of these names belong to someone else: {domains}")
    } else {
        answer.get("OtherError")?.as_str()?.to_owned()
    };
    Some(Error::coded("LC0626", text))
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn refusals_are_explained() {
        for (text, part) in [
            (r#"{"NotYourDatabase":{"database":"c2"}}"#, "not yours"),
            (
                r#"{"PermissionDenied":{"domain":"shop"}}"#,
                "The name shop belongs",
            ),
            (
                r#"{"OtherError":"Cannot rename to x because it already is in use."}"#,
                "already is in use. [LC0626]",
            ),
            (r#""DatabaseNotFound""#, "no database"),
        ] {
            let error = explain(text, "c200").expect(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(explain("plain text", "c200").is_none());
    }
}
