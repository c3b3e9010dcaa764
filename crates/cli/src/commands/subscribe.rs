//! `spacetime subscribe` (07 §5.6). `socket` connects, `v3` and `v1` read what the server sends, `update` is what is printed.

mod socket;
mod update;
mod v1;
mod v3;

use std::time::Duration;

use super::{Auth, Common, Context};
use crate::error::Result;
use crate::output::{remark, result};
use crate::schema::Schema;
use crate::targets::After;
use socket::Socket;
use update::Event;

#[derive(Debug, clap::Args)]
#[command(override_usage = "spacetime subscribe [OPTIONS] [DATABASE] <QUERY>...")]
pub struct Args {
    /// The database (may be left out in a project with one) and the queries
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    /// End after this many updates
    #[arg(short, long, value_name = "N")]
    num_updates: Option<u32>,
    /// End after this many seconds
    #[arg(short, long, value_name = "SECS")]
    timeout: Option<u32>,
    /// Print the rows that are there at the start, too
    #[arg(long)]
    print_initial_update: bool,
    /// Show changes only when they are on disk
    #[arg(long, value_name = "BOOL")]
    confirmed: Option<bool>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let after = After::Required("QUERY");
    let (database, queries) = args.common.resolve(&args.args, after)?;
    let auth = Auth::new(args.anonymous, args.common.yes);
    let (client, identity) = context.reach(&database, auth).await?;
    let schema = Schema::fetch(&client, &identity).await?;

    let mut watch = Watch {
        schema,
        print_initial: args.print_initial_update,
        received: 0,
        wanted: args.num_updates,
        is_applied: false,
    };
    let mut socket = Socket::open(&client, &identity, args.confirmed).await?;
    socket.subscribe(&queries).await?;
    let seconds = args.timeout.unwrap_or(u32::MAX);
    let watching = watch.run(&mut socket);
    let watching = tokio::time::timeout(Duration::from_secs(seconds.into()), watching);
    let end = watching.await.unwrap_or(Ok(WatchEnd::Timeout(seconds)))?;
    // The server notices a closed socket too; politeness must not delay the end.
    let _ = tokio::time::timeout(Duration::from_millis(500), socket.close()).await;
    match (end, args.num_updates) {
        (WatchEnd::Enough, _) => Ok(()),
        (WatchEnd::Closed | WatchEnd::Timeout(_), None) if !watch.is_applied => Err(coded!(
            "LC0865",
            "the server at {} ended the connection, or let the time pass, before it had answered the subscription. `spacetime \
             logs` may say why.",
            client.base(),
        )),
        (WatchEnd::Timeout(_), None) => Ok(()),
        (WatchEnd::Closed, None) => {
            remark!("disconnected by server");
            Ok(())
        }
        (WatchEnd::Timeout(seconds), Some(wanted)) => Err(plain!(
            "subscription timed out after {seconds}s after receiving {}/{wanted} updates",
            watch.received,
        )),
        (WatchEnd::Closed, Some(wanted)) => Err(plain!("subscription closed after receiving {}/{wanted} updates", watch.received)),
    }
}

/// Why watching ended without an error.
#[derive(Debug, PartialEq, Eq)]
enum WatchEnd {
    Enough,
    Closed,
    Timeout(u32),
}

struct Watch {
    schema: Schema,
    print_initial: bool,
    received: u32,
    wanted: Option<u32>,
    /// The server has taken the queries.
    is_applied: bool,
}

impl Watch {
    async fn run(&mut self, socket: &mut Socket) -> Result<WatchEnd> {
        while let Some(events) = socket.next(&self.schema).await? {
            for event in events {
                if self.take(event)? {
                    return Ok(WatchEnd::Enough);
                }
            }
        }
        Ok(WatchEnd::Closed)
    }

    /// Handles one event; true if no more are wanted.
    fn take(&mut self, event: Event) -> Result<bool> {
        match event {
            Event::Applied(rows) => {
                self.is_applied = true;
                if self.print_initial {
                    result!("{}", rows.json());
                }
                // Only now is it known that the server takes the queries.
                Ok(self.wanted == Some(0))
            }
            Event::Refused(error) => Err(plain!("encountered error in initial subscribe: {error}")),
            Event::Update(update) => {
                result!("{}", update.json());
                self.received += 1;
                Ok(self.wanted.is_some_and(|wanted| self.received >= wanted))
            }
        }
    }
}
