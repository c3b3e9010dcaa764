//! `spacetime list` (07 §5.8).

use serde_json::Value;

use super::{Auth, Context};
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::{credentials, table};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing
    #[arg(short, long)]
    yes: bool,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let client = context
        .client(args.server.as_deref(), Auth::new(false, args.yes))
        .await?;
    let me = credentials::identity_of(client.token().unwrap_or_default())?.to_hex();
    let identities = texts(
        &client,
        &format!("/v1/identity/{me}/databases"),
        "identities",
    )
    .await?;
    if identities.is_empty() {
        println!("No databases found for {me}.");
        return Ok(());
    }
    let mut rows = Vec::with_capacity(identities.len());
    for identity in identities {
        let names = texts(&client, &format!("/v1/database/{identity}/names"), "names").await?;
        rows.push(vec![names.join(", "), identity]);
    }
    println!("Associated databases for user {me}:\n");
    print!(
        "{}",
        table::psql(&["Database Name(s)".into(), "Identity".into()], &rows)
    );
    Ok(())
}

/// A JSON answer's member that is a list of texts.
async fn texts(client: &Client, path: &str, member: &str) -> Result<Vec<String>> {
    let response = client.send(client.get(path)).await?;
    let status = response.status();
    let text = http::json_text(response).await?;
    if !status.is_success() {
        return Err(http::refusal(status, &text));
    }
    let answer = http::parse_json(&text)?;
    let list = answer[member].as_array().ok_or_else(|| {
        Error::coded(
            "LC0616",
            format!(
                "the server's answer has no list `{member}`: {}",
                http::shown(&text)
            ),
        )
    })?;
    Ok(list
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect())
}
