//! `spacetime lock` and `spacetime unlock` (07 §5.8).

use super::{Auth, Context};
use crate::error::Result;
use crate::http;
use crate::targets::{self, Rest};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
}

pub async fn run(context: &mut Context, args: Args, lock: bool) -> Result<()> {
    let known = targets::known(args.no_config)?;
    let given: Vec<String> = args.database.into_iter().collect();
    let (database, _) = targets::resolve(&known, &given, Rest::None, args.server.as_deref())?;
    let client = context
        .client(database.server.as_deref(), Auth::new(false, false))
        .await?;
    let identity = client.database_identity(&database.name).await?.to_hex();
    let action = if lock { "lock" } else { "unlock" };
    let response = client
        .send(client.post(&format!("/v1/database/{identity}/{action}")))
        .await?;
    http::success_text(response).await?;
    if lock {
        println!("Database {identity} is now locked. It cannot be deleted until unlocked.");
    } else {
        println!("Database {identity} is now unlocked. It can be deleted.");
    }
    Ok(())
}
