//! `spacetime list` (07 §5.8).

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
    let client = context
        .client(args.server.as_deref(), Auth::new(false, args.yes))
        .await?;
    let me = me(&client)?;
    let answer = associated(&client, &me).await?;
    let own = with_names(&client, identities(&answer)?).await?;
    let shared = shared(&client, &answer).await?;
    if args.output.is_json() {
        print_json(&json!({
            "server": client.base(),
            "owner": me,
            "databases": own.iter().map(|(identity, names)| json!({ "identity": identity, "names": names })).collect::<Vec<_>>(),
            "shared": shared
                .iter()
                .map(|(identity, names, role)| json!({ "identity": identity, "names": names, "role": role }))
                .collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    result_text!("{}", text(&me, own, shared));
    Ok(())
}

/// The lists as people read them.
fn text(
    me: &str,
    own: Vec<(String, Vec<String>)>,
    shared: Vec<(String, Vec<String>, String)>,
) -> String {
    const HEADER: [&str; 3] = ["Database Name(s)", "Identity", "Role"];
    if own.is_empty() && shared.is_empty() {
        return format!("No databases found for {me}.\n");
    }
    let mut parts = Vec::new();
    if !own.is_empty() {
        let rows = own.into_iter();
        let rows = rows.map(|(identity, names)| vec![names.join(", "), identity]);
        let table = table::psql(&HEADER[..2], &rows.collect::<Vec<_>>());
        parts.push(format!("Associated databases for user {me}:\n\n{table}"));
    }
    if !shared.is_empty() {
        let rows = shared.into_iter();
        let rows = rows.map(|(identity, names, role)| vec![names.join(", "), identity, role]);
        let table = table::psql(&HEADER, &rows.collect::<Vec<_>>());
        parts.push(format!(
            "Databases of others in which user {me} has a role:\n\n{table}"
        ));
    }
    parts.join("\n")
}

fn me(client: &Client) -> Result<String> {
    Ok(identity_of(client.token().unwrap_or_default())?.to_hex())
}

/// The databases that belong to the client's user, with their names; the first `count` of them.
pub async fn databases(client: &Client, count: usize) -> Result<Vec<(String, Vec<String>)>> {
    let answer = associated(client, &me(client)?).await?;
    with_names(client, identities(&answer)?.into_iter().take(count)).await
}

/// What the server says of a user's databases.
async fn associated(client: &Client, me: &str) -> Result<Value> {
    let path = format!("/v1/identity/{me}/databases");
    client.value(client.get(&path)).await
}

fn identities(answer: &Value) -> Result<Vec<String>> {
    texts(answer, "identities")
}

async fn with_names(
    client: &Client,
    identities: impl IntoIterator<Item = String>,
) -> Result<Vec<(String, Vec<String>)>> {
    let mut databases = Vec::new();
    for identity in identities {
        let names = names(client, &identity).await?;
        databases.push((identity, names));
    }
    Ok(databases)
}

/// Those of others, with the user's roles. Other servers than Lightcone's tell none.
async fn shared(client: &Client, answer: &Value) -> Result<Vec<(String, Vec<String>, String)>> {
    let mut databases = Vec::new();
    for one in answer["roles"].as_array().into_iter().flatten() {
        let (Some(identity), Some(role)) = (one["identity"].as_str(), one["role"].as_str()) else {
            continue;
        };
        let names = names(client, identity).await?;
        databases.push((identity.to_owned(), names, role.to_owned()));
    }
    Ok(databases)
}

async fn names(client: &Client, identity: &str) -> Result<Vec<String>> {
    let path = format!("/v1/database/{}/names", http::encode(identity));
    texts(&client.value(client.get(&path)).await?, "names")
}

/// A member that is a list of texts.
fn texts(answer: &Value, member: &str) -> Result<Vec<String>> {
    let Some(list) = answer[member].as_array() else {
        let answer = answer.to_string();
        let shown = http::shown(&answer);
        bail!(
            "LC0616",
            "the server's answer has no list `{member}`: {shown}"
        );
    };
    let texts = list.iter().filter_map(Value::as_str);
    Ok(texts.map(str::to_owned).collect())
}
