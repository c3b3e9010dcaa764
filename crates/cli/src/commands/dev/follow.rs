//! The logs of the databases, as they come.

use std::time::Duration;

use super::session::Session;
use crate::commands::{logs, Auth, Context};
use crate::error::Result;
use crate::http::Client;
use crate::output::remark_text;

const AFTER_AN_ERROR: Duration = Duration::from_secs(10);
/// A stream that ends cleanly is opened again soon, but not so soon that a server which ends all of them is kept busy.
const AFTER_THE_END: Duration = Duration::from_millis(100);

/// One task per database, for as long as the command runs.
pub async fn start(context: &mut Context, session: &Session) -> Result<()> {
    for target in &session.targets {
        let auth = Auth::new(false, true);
        let client = context.client(target.server.as_deref(), auth).await?;
        let prefix = match session.targets.len() {
            1 => String::new(),
            _ => format!("[{}] ", target.database),
        };
        tokio::spawn(follow(client, target.database.clone(), prefix));
    }
    Ok(())
}

async fn follow(client: Client, database: String, prefix: String) {
    let mut lines = 10;
    loop {
        let pause = match logs::follow(&client, &database, lines, &prefix).await {
            Ok(()) => AFTER_THE_END,
            Err(error) => {
                remark_text!("{}", error.report());
                AFTER_AN_ERROR
            }
        };
        // What was shown once is not shown again.
        lines = 0;
        tokio::time::sleep(pause).await;
    }
}
