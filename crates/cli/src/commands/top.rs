//! `spacetime top` (07 §5.16): what databases do at the moment, from two looks at their counters.

mod numbers;
mod rates;
mod screen;

use std::time::{Duration, Instant};

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::output::{self, print_json, remark, result, result_text, FormatOption};

use self::rates::{rates_between, Counted, Rates};
use self::screen::Size;

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
    let (min, max) = (INTERVAL_SECONDS_MIN, INTERVAL_SECONDS_MAX);
    match (min..=max).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!("from {min} to {max} seconds")),
    }
}

/// Lines and columns where a terminal does not say its size.
const USUAL_SIZE: (u16, u16) = (24, 80);
/// For one look.
const LOOK_TIME_MAX: Duration = Duration::from_secs(10);
/// So many looks may fail one after the other.
const LOOKS_FAILED_MAX: u32 = 30;

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let watched = Watched::find(context, &args).await?;
    let output = Output::of(&args);
    tokio::select! {
        ended = watch(&watched, &args, &output) => ended,
        _ = tokio::signal::ctrl_c() => {
            if matches!(output.form, Form::Drawn | Form::Printed) {
                remark!("");
            }
            Ok(())
        }
    }
}

/// The first look tells whether there is anything to see. Later ones may fail: servers are started anew.
async fn watch(watched: &Watched, args: &Args, output: &Output) -> Result<()> {
    let mut before = watched.look().await?;
    let (mut shown, mut failed) = (String::new(), 0);
    loop {
        tokio::time::sleep(Duration::from_secs_f64(args.interval)).await;
        let now = match watched.look().await {
            Ok(now) => now,
            Err(error) if output.ends || failed + 1 >= LOOKS_FAILED_MAX => return Err(error),
            Err(error) => {
                failed += 1;
                output.tell_trouble(&shown, &error, failed);
                continue;
            }
        };
        failed = 0;
        let rates = rates_between(&before, &now, args.database.is_some());
        shown = output.show(&rates, args.rows);
        if output.ends {
            return Ok(());
        }
        before = now;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    /// On a terminal, one over the other.
    Drawn,
    /// On a terminal that knows no more than lines, one after the other.
    Printed,
    /// Elsewhere.
    Text,
}

struct Output {
    form: Form,
    /// After the first.
    ends: bool,
}

impl Output {
    fn of(args: &Args) -> Output {
        let is_terminal = output::is_shown();
        let form = match args.format.is_json() {
            true => Form::Json,
            false if !is_terminal || args.once => Form::Text,
            false if output::is_dumb(std::env::var_os("TERM").as_deref()) => Form::Printed,
            false => Form::Drawn,
        };
        Output {
            form,
            ends: args.once || form == Form::Text,
        }
    }

    fn size(&self) -> Size {
        if self.form == Form::Text {
            return Size::ENDLESS;
        }
        let size = console::Term::stdout().size_checked();
        let size = size.filter(|(lines, columns)| *columns > 0 && *lines > 0);
        let (lines, columns) = size.unwrap_or(USUAL_SIZE);
        Size {
            columns: columns.into(),
            lines: match self.form {
                // Looks that stand one behind the other scroll.
                Form::Printed => usize::MAX,
                _ => lines.into(),
            },
        }
    }

    /// Gives what is shown now.
    fn show(&self, rates: &Rates, rows_max: usize) -> String {
        if self.form == Form::Json {
            print_json(&rates.to_json());
            return String::new();
        }
        let text = screen::text(rates, rows_max, self.size());
        match self.form {
            Form::Drawn => result_text!("{}", screen::drawn(&text)),
            Form::Printed => result!("{text}"),
            _ => result_text!("{text}"),
        }
        text
    }

    fn tell_trouble(&self, shown: &str, error: &Error, failed: u32) {
        let trouble = format!("look {failed} of {LOOKS_FAILED_MAX} failed: {error}");
        let trouble = screen::plain(&trouble);
        if self.form != Form::Drawn {
            return remark!("{trouble}");
        }
        let text = screen::with_trouble(shown, &trouble, self.size());
        result_text!("{}", screen::drawn(&text));
    }
}

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
        let looked = tokio::time::timeout(LOOK_TIME_MAX, self.ask()).await;
        let seconds = LOOK_TIME_MAX.as_secs();
        let late = || coded!("LC0602", "the server has not answered within {seconds} s");
        looked.unwrap_or_else(|_| Err(late()))
    }

    async fn ask(&self) -> Result<(Instant, Counted)> {
        let text = self.client.json(self.client.get(&self.path)).await?;
        let counted = serde_json::from_str(&text).map_err(caused!(
            "LC0616",
            "the server's metrics are not what this program knows: `{}`",
            http::shown(&text),
        ))?;
        Ok((Instant::now(), counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn terminals_that_only_print() {
        for (term, expected) in [(None, true), (Some("dumb"), true), (Some("xterm"), false)] {
            assert_eq!(
                output::is_dumb(term.map(AsRef::as_ref)),
                expected,
                "{term:?}"
            );
        }
    }
}
