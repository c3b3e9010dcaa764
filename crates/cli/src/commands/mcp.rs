//! `spacetime mcp` (07 §5.8, 06 §5.22): the Model Context Protocol on stdin and stdout, for assistants.
//!
//! Each line is a message of JSON-RPC. The command answers them itself, with the routes that every server has and the rights of
//! the saved login, so that it works with any server; and it only reads, unless it is started with `--allow-writes`: what an
//! assistant is talked into by the data that it reads must not change anything. `tools` has what can be asked for.

mod tools;

use std::io::{BufRead, Read};

use serde_json::{json, Value};

use super::Context;
use crate::error::Result;
use crate::http::Client;
use crate::output::result;
use crate::{credentials, prompt, targets};
use tools::Tools;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database; that of spacetime.json if it has one, and otherwise each tool takes one
    #[arg(env = "SPACETIMEDB_DB_NAME")]
    database: Option<String>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    /// Offer tools that change data: calls, and SQL that writes
    #[arg(long)]
    allow_writes: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    no_config: bool,
}

const PROTOCOL_VERSION: &str = "2025-06-18";
/// No message of an assistant is longer.
const LINE_BYTES_MAX: u64 = 1 << 20;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const UNKNOWN_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    // No user watches, and stdout is for messages.
    crate::progress::off();
    let mut databases = targets::known(args.no_config)?;
    let known = match &args.database {
        Some(name) => databases.into_iter().find(|known| known.name == *name),
        None if databases.len() == 1 => databases.pop(),
        None => None,
    };
    let place = known.as_ref().and_then(|known| known.server_place.clone());
    let place = place.filter(|_| args.server.is_none());
    let server = args.server.or_else(|| known.as_ref()?.server.clone());
    let database = args.database.or_else(|| Some(known?.name));
    let config = &context.config;
    let url = config.server_url_at(server.as_deref(), place.as_deref())?;
    let client = Client::before_login(url)?;
    let client = match args.anonymous {
        true => client,
        false => with_saved_login(context, client).await?,
    };
    let mut tools = Tools {
        client,
        database,
        allow_writes: args.allow_writes,
    };
    serve(context, &mut tools).await
}

/// Renews the login of a client that has one, if it is time to. An assistant may run for longer than a login.
async fn renew(context: &mut Context, client: &mut Client) -> Result<()> {
    let Some(old) = client.token() else {
        return Ok(());
    };
    let url = client.base().to_owned();
    let token = credentials::current(&mut context.config, &url).await?;
    if token.as_deref() != Some(old) {
        *client = Client::new(url, token)?;
    }
    Ok(())
}

/// A client with the login that is there; no question is asked.
async fn with_saved_login(context: &mut Context, client: Client) -> Result<Client> {
    let url = client.base();
    let is_safe = context.allow_insecure || context.config.may_send_login(url);
    if !is_safe && context.config.token(url).is_none() {
        return Ok(client);
    }
    if !is_safe {
        bail!(
            "LC0861",
            "your login is not sent to {url}, because the connection is not encrypted. Use https, agree with --allow-insecure, \
             or go without it: --anonymous.",
        );
    }
    let token = credentials::find(&mut context.config, &client).await?;
    Ok(match token {
        Some(token) => client.with_token(token),
        None => client,
    })
}

async fn serve(context: &mut Context, tools: &mut Tools) -> Result<()> {
    let cannot = caused!("LC0619", "cannot read from stdin");
    loop {
        let line = prompt::in_background(|| read_line(&mut std::io::stdin().lock())).await?;
        let reply = match line.map_err(cannot)? {
            Line::End => return Ok(()),
            Line::Message(line) => reply(context, tools, &line).await,
            Line::TooLong => {
                let message = format!("a message has more than {LINE_BYTES_MAX} bytes");
                Some(error(&Value::Null, INVALID_REQUEST, &message))
            }
        };
        if let Some(reply) = reply {
            result!("{reply}");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Message(Vec<u8>),
    /// It was read and forgotten.
    TooLong,
    End,
}

fn read_line(input: &mut impl BufRead) -> std::io::Result<Line> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < LINE_BYTES_MAX {
        return Ok(Line::Message(line));
    }
    input.skip_until(b'\n')?;
    Ok(Line::TooLong)
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message }, "id": id, "jsonrpc": "2.0" })
}

/// The answer to a line; none for notifications and empty lines.
async fn reply(context: &mut Context, tools: &mut Tools, line: &[u8]) -> Option<Value> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(e) => return Some(error(&Value::Null, PARSE_ERROR, &format!("no JSON: {e}"))),
    };
    let mut batch = message.as_array().into_iter().flatten();
    if batch.any(|one| one.get("id").is_some()) {
        let why = "invalid request: batches are not taken here; send each message by itself";
        return Some(error(&Value::Null, INVALID_REQUEST, why));
    }
    let id = message.get("id")?;
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        let why = "invalid request: missing method";
        return Some(error(id, INVALID_REQUEST, why));
    };
    let result = match method {
        "initialize" => initialize(tools),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools.list() }),
        "tools/call" => match call(context, tools, message.get("params")).await {
            Ok(result) => result,
            Err(message) => return Some(error(id, INVALID_PARAMS, &message)),
        },
        other => {
            let message = format!("method not found: {}", crate::http::shown(other));
            return Some(error(id, UNKNOWN_METHOD, &message));
        }
    };
    Some(json!({ "id": id, "jsonrpc": "2.0", "result": result }))
}

fn initialize(tools: &Tools) -> Value {
    let writes = match tools.allow_writes {
        true => "`call` and `sql` can change data.",
        // A query runs the module's reducers for clients that come and go, as every query over HTTP does.
        false => {
            "The tools change nothing; `spacetime mcp --allow-writes` would allow it. A query may run what the module does when a \
             client connects and disconnects."
        }
    };
    let server = tools.client.base();
    let instructions = match &tools.database {
        Some(name) => format!("Tools for the database `{name}` on {server}. {writes}"),
        None => format!("Tools for the databases on {server}; each takes one. {writes}"),
    };
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "spacetimedb", "version": env!("CARGO_PKG_VERSION") },
        "instructions": instructions,
    })
}

/// The result of a tool, also of one that failed; an error if the parameters are wrong.
async fn call(
    context: &mut Context,
    tools: &mut Tools,
    params: Option<&Value>,
) -> Result<Value, String> {
    let params = params.filter(|params| params.is_object());
    let params = params.ok_or("missing params")?;
    let name = params["name"].as_str().ok_or("missing tool name")?;
    let arguments = &params["arguments"];
    let outcome = match renew(context, &mut tools.client).await {
        Ok(()) => tools.call(name, arguments).await?,
        Err(error) => Err(error.text()),
    };
    let is_error = outcome.is_err();
    let (text, note) = tools::cut(outcome.unwrap_or_else(|why| why));
    let texts = [Some(text), note].into_iter().flatten();
    let content = texts.map(|text| json!({ "text": text, "type": "text" }));
    Ok(json!({ "content": content.collect::<Vec<_>>(), "isError": is_error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_bound() {
        let fits = "x".repeat(LINE_BYTES_MAX as usize - 1) + "\n";
        let input = format!("one\n{fits}{}\nlast", "y".repeat(3 << 20));
        let mut input = input.as_bytes();
        let mut next = || read_line(&mut input).expect("text");
        assert_eq!(next(), Line::Message(b"one\n".to_vec()));
        assert_eq!(next(), Line::Message(fits.clone().into_bytes()));
        assert_eq!(next(), Line::TooLong);
        assert_eq!(next(), Line::Message(b"last".to_vec()));
        assert_eq!(next(), Line::End);
    }
}
