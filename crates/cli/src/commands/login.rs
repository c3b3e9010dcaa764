//! `spacetime login` and `spacetime logout` (07 §5.9).

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value;

use super::Context;
use crate::config::{origin, Config, ACCOUNT_HOST};
use crate::credentials;
use crate::error::{Error, Result};
use crate::http::{self, Client};
use crate::oidc::{self, Login, Renewal};
use crate::output::{remark, result, Stream};

/// For a provider that is told of a logout.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The web site to log in with, or with --client-id the issuer of an OpenID Connect provider
    #[arg(long, value_name = "URL", default_value = ACCOUNT_HOST, conflicts_with_all = ["token", "server_issued_login"])]
    auth_host: String,
    /// Store this token instead of asking for one
    #[arg(long, value_name = "TOKEN", conflicts_with = "server_issued_login")]
    token: Option<String>,
    /// Log in with this server directly; other servers will not know you
    #[arg(long, value_name = "SERVER")]
    server_issued_login: Option<String>,
    /// The server that the login is for, if its token does not say; the default server if neither does
    #[arg(
        short,
        long,
        value_name = "SERVER",
        conflicts_with = "server_issued_login"
    )]
    server: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
    /// Log in with the OpenID Connect provider at --auth-host, which knows this program by this name
    #[arg(long, value_name = "ID", conflicts_with_all = ["token", "server_issued_login"])]
    client_id: Option<String>,
    /// What the provider is asked for
    #[arg(
        long,
        value_name = "SCOPE",
        default_value = "openid",
        requires = "client_id"
    )]
    scope: String,
    /// Enter a code on another device, instead of coming back from a browser on this one
    #[arg(long, requires = "client_id")]
    device: bool,
    /// The port that the browser comes back to, where the provider has to know it; any free one by default
    #[arg(
        long,
        value_name = "PORT",
        requires = "client_id",
        conflicts_with = "device"
    )]
    callback_port: Option<u16>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show who you are
    Show {
        /// Show the token too
        #[arg(long)]
        token: bool,
        /// Only the login for this server
        #[arg(short, long, value_name = "SERVER")]
        server: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// The web site that the login came from
    #[arg(long, value_name = "URL", default_value = ACCOUNT_HOST)]
    auth_host: String,
    /// Forget the login for this server only
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    if let Some(Command::Show { token, server }) = args.command {
        return show(&context.config, server.as_deref(), token);
    }
    let server = match args.server.as_deref() {
        Some(server) => Some(context.config.server_url(Some(server))?),
        None => None,
    };
    let (url, token) = match (args.token, &args.server_issued_login) {
        (Some(token), _) => {
            let url = server.or_else(|| context.config.server_of_token(&token));
            (
                url.map_or_else(|| context.config.server_url(None), Ok)?,
                token,
            )
        }
        (None, Some(server)) => {
            let url = context.config.server_url(Some(server))?;
            context.consent_to_http(&url, false)?;
            let token = credentials::direct_login(&url).await?;
            (url, token)
        }
        (None, None) if args.client_id.is_some() => {
            let client_id = args.client_id.as_deref().unwrap_or_default();
            let options = oidc::Options {
                issuer: &args.auth_host,
                client_id,
                scope: &args.scope,
                callback_port: args.callback_port,
                device: args.device,
                open_browser: !args.no_browser,
            };
            return oidc_login(context, server, options).await;
        }
        (None, None) => {
            let open_browser = !args.no_browser;
            let config = &mut context.config;
            let server = server.as_deref();
            let logged_in = web_login(
                config,
                server,
                &args.auth_host,
                open_browser,
                Stream::Result,
            )
            .await;
            return logged_in.map(drop);
        }
    };
    replace(&mut context.config, &url, &token, None, Stream::Result).await
}

/// A login with an OpenID Connect provider, whose token is stored for a server.
async fn oidc_login(
    context: &mut Context,
    server: Option<String>,
    options: oidc::Options<'_>,
) -> Result<()> {
    let url = match server {
        Some(url) => url,
        None => context.config.server_url(None)?,
    };
    let client_id = options.client_id;
    let end_old =
        async |issuer: &str| end_renewal(&mut context.config, &url, (issuer, client_id)).await;
    let Login { token, renewal } = oidc::login(options, end_old).await?;
    replace(
        &mut context.config,
        &url,
        &token,
        renewal.as_ref(),
        Stream::Result,
    )
    .await?;
    if renewal.is_some() {
        remark!("It is renewed by itself, as long as the provider does that.");
    }
    // Its server may know nothing of this provider, which is better heard now.
    if context.consent_to_http(&url, false).is_err() {
        return Ok(());
    }
    let client = Client::new(url, Some(token))?;
    if let Ok(response) = client.send(client.get("/v1/ping")).await {
        if response.status() == reqwest::StatusCode::UNAUTHORIZED {
            let text = http::body_text(response).await?;
            remark!(
                "warning: the server does not accept this login: {}",
                http::shown(&text)
            );
        }
    }
    Ok(())
}

/// Ends the renewal of the login that is there, if the same provider renews it for the same program. Providers that revoke a refresh
/// token may end all that this person has agreed to for the program, so this comes before he agrees once more, and not after it. The
/// token stays for as long as it lasts.
async fn end_renewal(
    config: &mut Config,
    url: &str,
    (issuer, client_id): (&str, &str),
) -> Result<()> {
    let (mut old, mut other) = (None, None);
    let forget = |now: &mut Config| {
        let renewal = now.renewal(url);
        old = renewal.filter(|old| old.issuer == issuer && old.client_id == client_id);
        if let Some(old) = &old {
            other = renewed_with(now, url, old);
            now.remove_renewal(url);
        }
    };
    config.update(forget).await?;
    let Some(old) = old else {
        return Ok(());
    };
    // Before anything that takes time: whoever gives up then has heard of it.
    remark!(
        "warning: the login for {} that is there is not renewed any more, also if this one is given up",
        origin(url)
    );
    end(&old, other).await;
    Ok(())
}

/// Another server whose login the same provider renews for the same program.
fn renewed_with(config: &Config, url: &str, renewal: &Renewal) -> Option<String> {
    let here = origin(url);
    let others = config.logins().into_iter().map(|(origin, _)| origin);
    let is_with = |other: &String| is_of(renewal, config.renewal(other).as_ref());
    others.filter(|other| *other != here).find(is_with)
}

/// Ends an old login where it is renewed, unless that might end the one for another server too ([`end_renewal`]).
async fn end(old: &Renewal, other: Option<String>) {
    let Some(other) = other else {
        return revoke(old).await;
    };
    let issuer = &old.issuer;
    remark!("warning: the old login is forgotten here and not ended at {issuer}, which might end the one for {other} too");
}

/// Stores a login in the place of the one that was there. The old one goes when the new one is there, and not before: a
/// server that cannot be reached must not cost an identity that nobody can issue again.
async fn replace(
    config: &mut Config,
    url: &str,
    token: &str,
    renewal: Option<&Renewal>,
    to: Stream,
) -> Result<()> {
    if let Some(old) = config.token(url) {
        remark!("{}", logged_out(old));
    }
    let (mut old, mut other) = (None, None);
    let set = |now: &mut Config| {
        old = now
            .renewal(url)
            .filter(|old| !is_of(old, renewal) || !same_person(now, url, token));
        other = old.as_ref().and_then(|old| renewed_with(now, url, old));
        now.set_token(url, token);
        if let Some(renewal) = renewal {
            now.set_renewal(url, renewal);
        }
    };
    config.update(set).await?;
    if let Some(old) = old {
        end(&old, other).await;
    }
    match credentials::identity_of(token) {
        Ok(identity) => to.line(format_args!(
            "Logged in with identity {}",
            identity.to_hex()
        )),
        Err(_) => to.line(format_args!("Token saved.")),
    }
    remark!("The login is for {}; no other server gets it.", origin(url));
    Ok(())
}

/// Are two logins renewed by the same provider, for the same program?
fn is_of(old: &Renewal, new: Option<&Renewal>) -> bool {
    new.is_some_and(|new| old.issuer == new.issuer && old.client_id == new.client_id)
}

/// Is the login that is there the same person's? Then another command has logged in meanwhile, and to revoke that might end both
/// ([`end_renewal`]).
fn same_person(config: &Config, url: &str, token: &str) -> bool {
    let identity = |token: &str| credentials::identity_of(token).ok();
    let old = config.token(url).and_then(identity);
    old.is_some() && old == identity(token)
}

fn logged_out(token: &str) -> String {
    match credentials::identity_of(token) {
        Ok(identity) => format!("Logged out (identity {}).", identity.to_hex()),
        Err(_) => "Logged out.".to_owned(),
    }
}

/// Shows the logins, the newest first.
fn show(config: &Config, server: Option<&str>, with_token: bool) -> Result<()> {
    let mut logins = config.logins();
    if let Some(server) = server {
        let wanted = origin(&config.server_url(Some(server))?);
        logins.retain(|(origin, _)| *origin == wanted);
    }
    if logins.is_empty() {
        result!("You are not logged in. Run `spacetime login` to log in.");
    }
    for (origin, token) in logins.iter().rev() {
        match credentials::identity_of(token) {
            Ok(identity) => result!("You are logged in as {}", identity.to_hex()),
            Err(_) => result!("You are logged in with a token that does not say who you are."),
        }
        if with_token {
            result!("Your auth token (don't share this!) is {token}");
        }
        result!("This login is for {origin}.");
        if let Some(renewal) = config.renewal(origin) {
            result!("{} renews it.", renewal.issuer);
        }
    }
    Ok(())
}

pub async fn logout(context: &mut Context, args: LogoutArgs) -> Result<()> {
    let config = &mut context.config;
    if let Some(server) = &args.server {
        let url = config.server_url(Some(server))?;
        let Some(token) = config.token(&url) else {
            result!("You are not logged in.");
            return Ok(());
        };
        result!("{}", logged_out(token));
        let mut renewal = None;
        let forget = |now: &mut Config| {
            renewal = now.renewal(&url);
            now.remove_token(&url);
        };
        config.update(forget).await?;
        if let Some(renewal) = renewal {
            revoke(&renewal).await;
        }
        return Ok(());
    }
    let logins = config.logins();
    if logins.is_empty() && config.web_session().is_none() {
        result!("You are not logged in.");
        return Ok(());
    }
    end_web_session(config, &args.auth_host).await?;
    let mut renewals = Vec::new();
    let forget = |now: &mut Config| {
        now.set_web_session(None);
        for (origin, _) in &logins {
            renewals.extend(now.renewal(origin));
            now.remove_token(origin);
        }
    };
    config.update(forget).await?;
    for renewal in &renewals {
        revoke(renewal).await;
    }
    // One login may be kept for several addresses of its server.
    let mut said: Vec<String> = logins.iter().map(|(_, token)| logged_out(token)).collect();
    said.dedup();
    for line in said {
        result!("{line}");
    }
    if logins.is_empty() {
        result!("Logged out.");
    }
    Ok(())
}

/// Tells the provider of a login that it is over, as far as it can be asked. The login is the one that was taken out of the file:
/// another command may have renewed it since this one began.
async fn revoke(renewal: &Renewal) {
    let revoked = tokio::time::timeout(REVOKE_TIMEOUT, oidc::revoke(renewal));
    let why = match revoked.await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it does not answer".to_owned(),
    };
    let issuer = &renewal.issuer;
    remark!("warning: {issuer} could not be told that the login is over: {why}");
}

/// Ends the session at the account web site, if there is one. Its token goes to the site that issued it, and nowhere else.
async fn end_web_session(config: &mut Config, auth_host: &str) -> Result<()> {
    let Some((session, host)) = config.web_session() else {
        return Ok(());
    };
    if origin(host) == origin(auth_host) {
        let client = Client::new(
            auth_host.trim_end_matches('/').to_owned(),
            Some(session.to_owned()),
        )?;
        let request = client
            .post("/auth/cli/logout")
            .timeout(Duration::from_secs(5));
        if let Err(error) = client.send(request).await {
            remark!("warning: could not end the web session: {error}");
        }
    } else {
        remark!("warning: the web session is one of {host}, and is forgotten here only: give --auth-host {host} to end it");
    }
    config.set_web_session(None);
    Ok(())
}

/// The login through a web browser: a request token, the user's approval, then a token for `server`, or for the one that
/// the token itself is for.
pub async fn web_login(
    config: &mut Config,
    server: Option<&str>,
    auth_host: &str,
    open_browser: bool,
    to: Stream,
) -> Result<String> {
    let host = auth_host.trim_end_matches('/');
    let client = Client::new(host.to_owned(), None)?;
    let request = client.post("/api/auth/cli/login/request-token");
    let answer = match answer(&client, request).await {
        Err(_) if host != ACCOUNT_HOST && oidc::is_provider(host).await => {
            let text = format!(
                "{host} is an OpenID Connect provider: name this program as it knows it, with --client-id <id>"
            );
            return Err(Error::coded("LC0874", text));
        }
        answer => answer?,
    };
    let request = text_of(&answer, &["data", "token"])?;
    let page = format!("{host}/login/cli?token={}", http::encode(&request));
    remark!("Log in on this page: {page}");
    if open_browser {
        open(&page);
    }
    remark!("Waiting for the login to be approved…");
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
    let url = match server {
        Some(url) => url.to_owned(),
        None => match config.server_of_token(&token) {
            Some(url) => url,
            None => config.server_url(None)?,
        },
    };
    end_web_session(config, host).await?;
    let session = Some((&*session, host));
    config.update(|now| now.set_web_session(session)).await?;
    replace(config, &url, &token, None, to).await?;
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
pub fn open(page: &str) {
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
