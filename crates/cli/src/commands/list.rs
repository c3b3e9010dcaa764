//! `spacetime list` (07 §5.8).

use serde::Serialize;
use serde_json::{json, Value};

use super::{Auth, Context};
use crate::claims::identity_of;
use crate::error::Result;
use crate::http::{self, Client};
use crate::output::{print_json, result_text, FormatOption};
use crate::table;

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
    let auth = Auth::new(false, args.yes);
    let client = context.client(args.server.as_deref(), auth).await?;
    let me = me(&client)?;
    let answer = associated(&client, &me).await?;
    let own = own(&client, &answer, usize::MAX).await?;
    let shared = shared(&client, &answer).await?;
    if args.output.is_json() {
        let server = client.base();
        print_json(&json!({ "server": server, "owner": me, "databases": own, "shared": shared }));
        return Ok(());
    }
    let mut parts = Vec::new();
    if !own.is_empty() {
        let table = table(&["Database Name(s)", "Identity"], own);
        parts.push(format!("Associated databases for user {me}:\n\n{table}"));
    }
    if !shared.is_empty() {
        let table = table(&["Database Name(s)", "Identity", "Role"], shared);
        parts.push(format!(
            "Databases of others in which user {me} has a role:\n\n{table}"
        ));
    }
    if parts.is_empty() {
        parts.push(format!("No databases found for {me}.\n"));
    }
    result_text!("{}", parts.join("\n"));
    Ok(())
}

/// A database that the user has, or has a role in.
#[derive(Debug, Serialize)]
pub struct Listed {
    pub identity: String,
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

impl Listed {
    async fn ask(client: &Client, identity: &str, role: Option<&str>) -> Result<Self> {
        let path = format!("/v1/database/{}/names", http::encode(identity));
        Ok(Self {
            identity: identity.to_owned(),
            names: texts(&client.value(client.get(&path)).await?, "names")?,
            role: role.map(str::to_owned),
        })
    }
}

fn table(header: &[&str], databases: Vec<Listed>) -> String {
    let rows = databases.into_iter().map(|one| {
        let row = [one.names.join(", "), one.identity].into_iter();
        row.chain(one.role).collect::<Vec<String>>()
    });
    table::psql(header, &rows.collect::<Vec<_>>())
}

fn me(client: &Client) -> Result<String> {
    Ok(identity_of(client.token().unwrap_or_default())?.to_hex())
}

/// The databases that belong to the client's user; the first `count` of them.
pub async fn databases(client: &Client, count: usize) -> Result<Vec<Listed>> {
    own(client, &associated(client, &me(client)?).await?, count).await
}

async fn associated(client: &Client, me: &str) -> Result<Value> {
    let path = format!("/v1/identity/{me}/databases");
    client.value(client.get(&path)).await
}

async fn own(client: &Client, answer: &Value, count: usize) -> Result<Vec<Listed>> {
    let mut databases = Vec::new();
    for identity in texts(answer, "identities")?.iter().take(count) {
        databases.push(Listed::ask(client, identity, None).await?);
    }
    Ok(databases)
}

/// Those of others, with the user's roles. Other servers than Lightcone's tell none.
async fn shared(client: &Client, answer: &Value) -> Result<Vec<Listed>> {
    let mut databases = Vec::new();
    for one in answer["roles"].as_array().into_iter().flatten() {
        if let (Some(identity), Some(role)) = (one["identity"].as_str(), one["role"].as_str()) {
            databases.push(Listed::ask(client, identity, Some(role)).await?);
        }
    }
    Ok(databases)
}

/// A member that is a list of texts.
fn texts(answer: &Value, member: &str) -> Result<Vec<String>> {
    let Some(list) = answer[member].as_array() else {
        let shown = http::shown(&answer.to_string());
        bail!(
            "LC0616",
            "the server's answer has no list `{member}`: {shown}"
        );
    };
    let texts = list.iter().filter_map(Value::as_str);
    Ok(texts.map(str::to_owned).collect())
}
