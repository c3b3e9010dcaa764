//! `spacetime top` (07 §5.16): what databases do at the moment, from two looks at their counters.

mod numbers;
mod rates;
mod screen;

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::output::{print_json, FormatOption};

use self::rates::{rates_between, Counted};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database; all of the server if it is left out, which the server tells programs on its machine only
    database: Option<String>,
    /// Look once, for as long as the interval, and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = interval)]
    interval: f64,
    /// How many databases, functions and tables to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    common: Common,
}

const INTERVAL_SECONDS_MIN: f64 = 0.1;
const INTERVAL_SECONDS_MAX: f64 = 3600.0;

fn interval(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (INTERVAL_SECONDS_MIN..=INTERVAL_SECONDS_MAX).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!(
            "from {INTERVAL_SECONDS_MIN} to {INTERVAL_SECONDS_MAX} seconds"
        )),
    }
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let watched = Watched::find(context, &args).await?;
    let is_live = !args.once && std::io::stdout().is_terminal() && !args.format.is_json();
    let repeats = !args.once && (is_live || args.format.is_json());
    let shown = async {
        let mut before = watched.look().await?;
        loop {
            tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
            let now = watched.look().await?;
            let rates = rates_between(&before, &now, args.database.is_some());
            if args.format.is_json() {
                print_json(&rates.to_json());
            } else {
                let text = screen::text(&rates, args.rows);
                print!("{}", if is_live { screen::drawn(&text) } else { text });
                let _ = std::io::stdout().flush();
            }
            if !repeats {
                return Ok(());
            }
            before = now;
        }
    };
    tokio::select! {
        ended = shown => ended,
        _ = tokio::signal::ctrl_c() => {
            if is_live {
                println!();
            }
            Ok(())
        }
    }
}

/// What is looked at.
struct Watched {
    client: Client,
    path: String,
}

impl Watched {
    async fn find(context: &mut Context, args: &Args) -> Result<Watched> {
        let auth = Auth::new(args.database.is_none(), args.common.yes);
        let client = context.client(args.common.server.as_deref(), auth).await?;
        let path = match &args.database {
            None => "/v1/metrics?format=json".to_owned(),
            Some(database) => {
                let identity = client.database_identity(database).await?;
                format!("/v1/database/{}/metrics", identity.to_hex())
            }
        };
        Ok(Watched { client, path })
    }

    async fn look(&self) -> Result<(Instant, Counted)> {
        let response = self.client.send(self.client.get(&self.path)).await?;
        let status = response.status();
        let text = http::json_text(response).await?;
        if !status.is_success() {
            return Err(http::refusal(status, &text));
        }
        let counted = serde_json::from_str(&text).map_err(|error| {
            Error::caused(
                "LC0616",
                format!(
                    "the server's metrics are not what this program knows: `{}`",
                    http::shown(&text)
                ),
                error,
            )
        })?;
        Ok((Instant::now(), counted))
    }
}
