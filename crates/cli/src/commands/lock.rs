//! `spacetime lock` and `spacetime unlock` (07 §5.8).

use super::{Context, OneDatabase};
use crate::error::Result;
use crate::output::result;

pub async fn run(context: &mut Context, of: OneDatabase, lock: bool) -> Result<()> {
    let (client, identity) = of.identify(context).await?;
    let action = if lock { "lock" } else { "unlock" };
    let path = format!("/v1/database/{identity}/{action}");
    client.text(client.post(&path)).await?;
    if lock {
        result!("Database {identity} is now locked. It cannot be deleted until unlocked.");
    } else {
        result!("Database {identity} is now unlocked. It can be deleted.");
    }
    Ok(())
}
