//! `spacetime delete` (07 §5.2).

use reqwest::StatusCode;
use serde_json::Value;

use super::{Common, Context};
use crate::error::Result;
use crate::output::remark;
use crate::{http, prompt};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (client, identity, name) = args.common.reach(context, args.database).await?;

    let question = format!(
        "Are you sure you want to delete database {name} ({identity})? This action cannot be undone."
    );
    if !prompt::goes_on(&question, args.common.yes) {
        return Ok(());
    }
    let path = format!("/v1/database/{identity}");
    let response = client.send(client.delete(&path)).await?;
    if response.status() != StatusCode::PRECONDITION_REQUIRED {
        http::success_text(response).await?;
        remark!("Deleted database {name} ({identity}).");
        return Ok(());
    }
    // A server with nested databases wants to be sure about all of them.
    let answer = http::parse_json(&http::body_text(response).await?)?;
    remark!("Deleting this database deletes others too:");
    print_tree(&answer["database_tree"], 0);
    let question = "Are you sure you want to delete all of them?";
    if !prompt::goes_on(question, args.common.yes) {
        return Ok(());
    }
    let token = answer["confirmation_token"].as_str().unwrap_or_default();
    let path = format!("{path}?token={}", http::encode(token));
    client.text(client.delete(&path)).await?;
    remark!("Deleted database {name} ({identity}) and those below it.");
    Ok(())
}

fn print_tree(node: &Value, depth: usize) {
    let root = node.get("root").unwrap_or(node);
    let names = root["database_names"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    let (indent, names) = ("  ".repeat(depth), names.join(", "));
    let identity = root["database_identity"].as_str().unwrap_or("?");
    remark!("{indent}{identity} {names}");
    for child in node["children"].as_array().into_iter().flatten() {
        print_tree(child, depth + 1);
    }
}
