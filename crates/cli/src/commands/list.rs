//! `spacetime list` (07 §5.8).

use serde_json::{json, Value};

use super::{Auth, Context};
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::output::{print_json, FormatOption};
use crate::{credentials, table};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    output: FormatOption,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let client = context
        .client(args.server.as_deref(), Auth::new(false, args.yes))
        .await?;
    let me = me(&client)?;
    let databases = databases(&client, usize::MAX).await?;
    if args.output.is_json() {
        let databases: Vec<Value> = databases
            .into_iter()
            .map(|(identity, names)| json!({ "identity": identity, "names": names }))
            .collect();
        print_json(&json!({ "server": client.base(), "owner": me, "databases": databases }));
        return Ok(());
    }
    if databases.is_empty() {
        println!("No databases found for {me}.");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = databases
        .into_iter()
        .map(|(identity, names)| vec![names.join(", "), identity])
        .collect();
    println!("Associated databases for user {me}:\n");
    print!(
        "{}",
        table::psql(&["Database Name(s)".into(), "Identity".into()], &rows)
    );
    Ok(())
}

fn me(client: &Client) -> Result<String> {
    Ok(credentials::identity_of(client.token().unwrap_or_default())?.to_hex())
}

/// The databases of the client's user, with their names; the first `count` of them.
pub async fn databases(client: &Client, count: usize) -> Result<Vec<(String, Vec<String>)>> {
    let path = format!("/v1/identity/{}/databases", me(client)?);
    let identities = texts(client, &path, "identities").await?;
    let mut databases = Vec::with_capacity(identities.len().min(count));
    for identity in identities.into_iter().take(count) {
        let names = texts(client, &format!("/v1/database/{identity}/names"), "names").await?;
        databases.push((identity, names));
    }
    Ok(databases)
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
