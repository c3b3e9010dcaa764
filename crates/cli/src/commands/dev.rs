//! `spacetime dev` (07 §9): builds, publishes and generates at every change, shows the logs, and runs the client.
//!
//! `setup` finds out what is developed, `server` starts one if there is none, `cycle` is one round, `watch` waits for changes, `follow` shows logs, and
//! `client` runs the client's own development command.

mod client;
mod cycle;
mod follow;
mod server;
mod session;
mod setup;
mod watch;

use std::path::Path;

use super::Context;
use crate::error::{Error, Result};
use crate::output::{remark, remark_text};

pub use session::Args;

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let bindings = args.module_bindings_path.as_deref();
    if bindings.is_some_and(Path::is_absolute) {
        let text = "--module-bindings-path must be relative to the project";
        return Err(Error::Usage(text.into()));
    }
    // Logs, the client and rounds print at any time.
    crate::progress::off();
    let session = setup::session(context, args).await?;
    crate::npm::install_missing(session.package_directories())?;
    let mut changes = watch::watch(&session)?;
    cycle::run(context, &session).await?;
    // The user wants to see the outcome before the logs begin to scroll.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let mut client = client::Client::start(&session).await?;
    if !session.skip_publish {
        follow::start(context, &session).await?;
    }
    remark!("Watching for changes. Press Ctrl-C to stop.");
    let mut stop = std::pin::pin!(crate::signals::stop(true));
    loop {
        tokio::select! {
            _ = &mut stop => break,
            status = client.ended() => remark!("The client has ended ({status}); save a file or press Ctrl-C."),
            change = changes.next() => {
                let Some(change) = change else { break };
                remark!("\n{} changed.", change.display());
                let started = std::time::Instant::now();
                let outcome = tokio::select! {
                    _ = &mut stop => break,
                    outcome = cycle::run(context, &session) => outcome,
                };
                match outcome {
                    Ok(()) => remark!("Ready after {} ms.", started.elapsed().as_millis()),
                    Err(error) => {
                        remark_text!("{}", error.report());
                        remark!("Waiting for the next change.");
                    }
                }
            }
        }
    }
    Ok(())
}
