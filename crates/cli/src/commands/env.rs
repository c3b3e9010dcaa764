//! `spacetime env`: variables of the environment of a database (07 §5.17).

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{ArgAction, Subcommand};
use lightcone_schema::is_sealed;
use serde_json::Value;

use super::sql::{self, Statement};
use super::{Auth, Common, Context};
use crate::env_file;
use crate::error::Result;
use crate::http;
use crate::output::{result, result_text};
use crate::targets::After;

/// The headers that name variables which go, and which are secrets (06 §5.3).
pub(super) const REMOVE: &str = "spacetime-environment-remove";
pub(super) const SECRET_KEYS: &str = "spacetime-environment-secret";

/// In the place of a value that is not shown.
const SECRET: &str = "(secret)";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show all variables and their values
    List(ReadArgs),
    /// Show the value of one
    Get(ReadArgs),
    /// Set variables of the running module, without publishing it
    Set(SetArgs),
    /// Remove variables of the running module
    Unset(UnsetArgs),
}

#[derive(Debug, clap::Args)]
pub struct ReadArgs {
    /// The database (may be left out in a project with one), and the key where one is wanted
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    /// Wait until what the query sees is on disk
    #[arg(long, value_name = "BOOL")]
    confirmed: Option<bool>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// The database (may be left out in a project with one), and KEY=VALUE for each variable
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    /// Take variables from a file with lines KEY=VALUE too; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// The value of this variable is a secret: modules read it, and it is never shown
    #[arg(long, value_name = "KEY", action = ArgAction::Append)]
    secret: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
pub struct UnsetArgs {
    /// The database (may be left out in a project with one), and the keys
    #[arg(value_name = "ARGS")]
    args: Vec<String>,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, command: Command) -> Result<()> {
    match command {
        Command::List(args) => {
            let query = "SELECT key, value FROM st_env";
            let statements = read(context, &args, After::None, |_| query.to_owned()).await?;
            for mut statement in statements {
                statement.replace_cells(|cell| {
                    is_sealed(cell.trim_matches('"')).then(|| SECRET.to_owned())
                });
                result_text!("{}", statement.table());
            }
            Ok(())
        }
        Command::Get(args) => get(context, &args).await,
        Command::Set(args) => set(context, args).await,
        Command::Unset(args) => {
            let (database, keys) = args.common.resolve(&args.args, After::Required("KEY"))?;
            let change = Change {
                removed: keys,
                ..Change::default()
            };
            let auth = Auth::new(false, args.common.yes);
            let (client, identity) = context.reach(&database, auth).await?;
            change.send(&client, &identity.to_hex()).await
        }
    }
}

async fn read(
    context: &mut Context,
    args: &ReadArgs,
    after: After,
    query: impl FnOnce(&[String]) -> String,
) -> Result<Vec<Statement>> {
    let (database, words) = args.common.resolve(&args.args, after)?;
    let auth = Auth::new(args.anonymous, args.common.yes);
    let reached = context.reach(&database, auth).await?;
    let session = sql::Session::new(reached, args.confirmed);
    let answer = session.query(&query(&words)).await;
    sql::parse_results(&answer.map_err(|error| database.explain(error))?)
}

async fn get(context: &mut Context, args: &ReadArgs) -> Result<()> {
    let mut key = String::new();
    let statements = read(context, args, After::Required("KEY"), |words| {
        key = words.join(" ");
        let quoted = key.replace('\'', "''");
        format!("SELECT value FROM st_env WHERE key = '{quoted}'")
    });
    let statements = statements.await?;
    match statements.first().and_then(Statement::only_text) {
        Some(value) if is_sealed(value) => Err(coded!(
            "LC0639",
            "{key} is set, and is a secret: its value is not shown"
        )),
        Some(value) => {
            result!("{value}");
            Ok(())
        }
        None => Err(coded!("LC0639", "the environment has no value for {key:?}")),
    }
}

async fn set(context: &mut Context, args: SetArgs) -> Result<()> {
    let after = match args.env_file {
        Some(_) => After::Optional,
        None => After::Required("KEY=VALUE"),
    };
    let (database, words) = args.common.resolve(&args.args, after)?;
    let mut change = Change {
        secret: args.secret,
        ..Change::default()
    };
    if let Some(file) = &args.env_file {
        change.set = env_file::read(file)?;
    }
    for word in &words {
        let (key, value) = env_file::assignment(word)?;
        change.set.insert(key, value);
    }
    let auth = Auth::new(false, args.common.yes);
    let (client, identity) = context.reach(&database, auth).await?;
    change.send(&client, &identity.to_hex()).await
}

/// What is changed of the running module's environment.
#[derive(Default)]
pub(super) struct Change {
    pub set: BTreeMap<String, String>,
    pub removed: Vec<String>,
    /// Which of those that are set are secrets.
    pub secret: Vec<String>,
    /// All other variables go.
    pub replaces: bool,
    /// The program that it was made for.
    pub expected: Option<String>,
}

impl Change {
    pub async fn send(self, client: &http::Client, database: &str) -> Result<()> {
        let expected = self.expected.as_deref().map(http::encode);
        let expected = expected.map(|hash| format!("?expected_module_hash={hash}"));
        let database = http::encode(database);
        let path = format!(
            "/v1/database/{database}/environment{}",
            expected.unwrap_or_default()
        );
        let request = match self.replaces {
            true => client.put(&path),
            false => client.patch(&path),
        };
        let request = with_keys(request, REMOVE, &self.removed);
        let request = with_keys(request, SECRET_KEYS, &self.secret).json(&self.set);
        let response = client.send(request).await?;
        let status = response.status();
        let answer = http::json_text(response).await?;
        if let Some(keys) = missing(&http::parse_json(&answer)?["Err"]) {
            return Err(missing_error(&keys));
        }
        if !status.is_success() {
            return Err(http::refusal(status, &answer));
        }
        let keys: Vec<&str> = self.set.keys().map(String::as_str).collect();
        if !keys.is_empty() {
            result!("Set: {}", keys.join(", "));
        }
        if !self.removed.is_empty() {
            result!("Removed: {}", self.removed.join(", "));
        }
        Ok(())
    }
}

/// Names variables in a header.
pub(super) fn with_keys(
    request: reqwest::RequestBuilder,
    header: &str,
    keys: &[String],
) -> reqwest::RequestBuilder {
    match keys.is_empty() {
        true => request,
        false => request.header(header, keys.join(", ")),
    }
}

/// The required variables without a value, if that is the error.
pub(super) fn missing(error: &Value) -> Option<Vec<String>> {
    let keys = error["MissingRequiredEnvironment"]["keys"].as_array()?;
    let keys = keys.iter().filter_map(Value::as_str);
    Some(keys.map(str::to_owned).collect())
}

pub(super) fn missing_error(keys: &[String]) -> crate::error::Error {
    coded!(
        "LC0639",
        "the module needs environment variables that have no value: {}. Set them in the shell, with --env-file, or in `env` of spacetime.json.",
        keys.join(", ")
    )
}
