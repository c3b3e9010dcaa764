//! `spacetime collaborators`: who else may do what with a database.

use clap::Subcommand;
use lightcone_types::Identity;
use serde_json::Value;

use super::{Context, OneDatabase};
use crate::error::Result;
use crate::http;
use crate::output::{result, result_text};
use crate::table;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show who may do what
    List {
        #[command(flatten)]
        of: OneDatabase,
    },
    /// Give an identity a role, in the place of the one that it has
    Add {
        /// Whom, as `spacetime login show` tells it
        identity: String,
        #[command(flatten)]
        of: OneDatabase,
        /// What for: a reader sees all rows and the log, a publisher also updates the module and changes rows, an owner does all that
        /// you may
        #[arg(short, long, default_value = "reader", value_parser = ["reader", "publisher", "owner"])]
        role: String,
    },
    /// Take the role of an identity away
    Remove {
        /// Whose; you may give your own role back
        identity: String,
        #[command(flatten)]
        of: OneDatabase,
    },
}

pub async fn run(context: &mut Context, command: Command) -> Result<()> {
    match command {
        Command::List { of } => list(context, of).await,
        Command::Add { identity, of, role } => set(context, of, &identity, Some(&role)).await,
        Command::Remove { identity, of } => set(context, of, &identity, None).await,
    }
}

/// Gives an identity a role, or takes it away.
async fn set(
    context: &mut Context,
    of: OneDatabase,
    identity: &str,
    role: Option<&str>,
) -> Result<()> {
    let Ok(identity) = Identity::parse_text(identity) else {
        bail!("LC0875", "`{identity}` is not an identity: 64 hexadecimal digits, as `spacetime login show` prints them");
    };
    let identity = identity.to_hex();
    let (client, database) = of.identify(context).await?;
    let path = format!("/v1/database/{database}/collaborators/{identity}");
    let Some(role) = role else {
        client.text(client.delete(&path)).await?;
        result!("{identity} has no role in {database} any more.");
        return Ok(());
    };
    let body = serde_json::json!({ "role": role });
    client.text(client.put(&path).json(&body)).await?;
    let article = if role == "owner" { "an" } else { "a" };
    result!("{identity} is now {article} {role} of {database}.");
    Ok(())
}

async fn list(context: &mut Context, of: OneDatabase) -> Result<()> {
    let (client, database) = of.identify(context).await?;
    let path = format!("/v1/database/{database}/collaborators");
    let answer = client.value(client.get(&path)).await?;
    let (owner, others) = (answer["owner"].as_str(), answer["collaborators"].as_array());
    let Some((owner, others)) = owner.zip(others) else {
        let shown = http::shown(&answer.to_string());
        bail!(
            "LC0616",
            "the server's answer has no collaborators: {shown}"
        );
    };
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut rows = vec![vec![owner.to_owned(), "owner".to_owned()]];
    let others = others.iter();
    rows.extend(others.map(|other| vec![word(other, "identity"), word(other, "role")]));
    result_text!("{}", table::psql(&["Identity", "Role"], &rows));
    Ok(())
}
