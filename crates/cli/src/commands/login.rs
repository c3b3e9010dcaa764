//! `spacetime login` and `spacetime logout` (07 §5.9).

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value;

use super::Context;
use crate::config::Config;
use crate::credentials;
use crate::error::{Error, Result};
use crate::http::{self, Client};

pub const DEFAULT_AUTH_HOST: &str = "https://spacetimedb.com";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The web site to log in with
    #[arg(long, value_name = "URL", default_value = DEFAULT_AUTH_HOST, conflicts_with_all = ["token", "server_issued_login"])]
    auth_host: String,
    /// Store this token instead of asking for one
    #[arg(long, value_name = "TOKEN", conflicts_with = "server_issued_login")]
    token: Option<String>,
    /// Log in with this server directly; other servers will not know you
    #[arg(long, value_name = "SERVER")]
    server_issued_login: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show who you are
    Show {
        /// Show the token too
        #[arg(long)]
        token: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// The web site that the login came from
    #[arg(long, value_name = "URL", default_value = DEFAULT_AUTH_HOST)]
    auth_host: String,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let config = &mut context.config;
    if let Some(Command::Show { token }) = args.command {
        return show(config, token);
    }
    // A mistyped server must not cost the login that is there.
    let direct = match &args.server_issued_login {
        Some(server) => Some(config.server_url(Some(server))?),
        None => None,
    };
    forget(config, &args.auth_host).await?;
    if let Some(token) = args.token {
        config.set_token(Some(&token));
        config.save()?;
        match credentials::identity_of(&token) {
            Ok(identity) => println!("Logged in with identity {}", identity.to_hex()),
            Err(_) => println!("Token saved."),
        }
        return Ok(());
    }
    let token = match direct {
        Some(url) => credentials::direct_login(config, &url).await?,
        None => {
            return web_login(config, &args.auth_host, !args.no_browser)
                .await
                .map(drop)
        }
    };
    println!(
        "Logged in with identity {}",
        credentials::identity_of(&token)?.to_hex()
    );
    Ok(())
}

fn show(config: &Config, with_token: bool) -> Result<()> {
    match config.token() {
        None => println!("You are not logged in. Run `spacetime login` to log in."),
        Some(token) => {
            println!(
                "You are logged in as {}",
                credentials::identity_of(token)?.to_hex()
            );
            if with_token {
                println!("Your auth token (don't share this!) is {token}");
            }
        }
    }
    Ok(())
}

pub async fn logout(context: &mut Context, args: LogoutArgs) -> Result<()> {
    let config = &mut context.config;
    if config.token().is_none() && config.web_session_token().is_none() {
        println!("You are not logged in.");
        return Ok(());
    }
    let identity = config
        .token()
        .and_then(|t| credentials::identity_of(t).ok());
    forget(config, &args.auth_host).await?;
    match identity {
        Some(identity) => println!("Logged out (identity {}).", identity.to_hex()),
        None => println!("Logged out."),
    }
    Ok(())
}

/// Ends the web session, if there is one, and forgets both tokens.
async fn forget(config: &mut Config, auth_host: &str) -> Result<()> {
    if let Some(session) = config.web_session_token() {
        let client = Client::new(
            auth_host.trim_end_matches('/').to_owned(),
            Some(session.to_owned()),
        )?;
        let request = client
            .post("/auth/cli/logout")
            .timeout(Duration::from_secs(5));
        if let Err(error) = client.send(request).await {
            eprintln!("warning: could not end the web session: {error}");
        }
    }
    if config.token().is_some() || config.web_session_token().is_some() {
        config.set_token(None);
        config.set_web_session_token(None);
        config.save()?;
    }
    Ok(())
}

/// The login through a web browser: a request token, the user's approval, then a token for servers.
pub async fn web_login(config: &mut Config, auth_host: &str, open_browser: bool) -> Result<String> {
    let host = auth_host.trim_end_matches('/');
    let client = Client::new(host.to_owned(), None)?;
    let answer = answer(&client, client.post("/api/auth/cli/login/request-token")).await?;
    let request = text_of(&answer, &["data", "token"])?;
    let page = format!("{host}/login/cli?token={}", http::encode(&request));
    println!("Log in on this page: {page}");
    if open_browser {
        open(&page);
    }
    println!("Waiting for the login to be approved…");
    let session = loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let path = format!("/api/auth/cli/status?token={}", http::encode(&request));
        let status = self::answer(&client, client.get(&path)).await?;
        if status["data"]["approved"] == Value::Bool(true) {
            break text_of(&status, &["data", "sessionToken"])?;
        }
    };
    let session_client = Client::new(host.to_owned(), Some(session.clone()))?;
    let issued = self::answer(
        &session_client,
        session_client.post("/api/spacetimedb-token"),
    )
    .await?;
    let token = text_of(&issued, &["data", "token"])?;
    config.set_web_session_token(Some(&session));
    config.set_token(Some(&token));
    config.save()?;
    match credentials::identity_of(&token) {
        Ok(identity) => println!("Logged in with identity {}", identity.to_hex()),
        Err(_) => println!("Token saved."),
    }
    Ok(token)
}

/// A JSON answer of the web site, which tells success and failure inside.
async fn answer(client: &Client, request: reqwest::RequestBuilder) -> Result<Value> {
    let response = client.send(request).await?;
    let status = response.status();
    let text = http::body_text(response).await?;
    let value = match http::parse_json(&text) {
        Ok(value) => value,
        Err(_) if !status.is_success() => return Err(http::refusal(status, &text)),
        Err(error) => return Err(error),
    };
    if value["success"] == Value::Bool(true) {
        Ok(value)
    } else {
        let why = value["error"].as_str().unwrap_or("no reason given");
        Err(Error::coded(
            "LC0614",
            format!("the login was refused: {why}. Try `spacetime login` again."),
        ))
    }
}

fn text_of(value: &Value, path: &[&str]) -> Result<String> {
    let found = path
        .iter()
        .try_fold(value, |value, key| value.get(key))
        .and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| {
        Error::coded(
            "LC0616",
            format!("the web site's answer has no `{}`", path.join(".")),
        )
    })
}

/// Tries to show a page; the address is on the terminal in any case.
fn open(page: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let _ = std::process::Command::new(program)
        .arg(page)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
}
