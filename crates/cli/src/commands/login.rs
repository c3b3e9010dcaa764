//! `spacetime login` and `spacetime logout` (07 §5.9).

use clap::Subcommand;

use super::Context;
use crate::address::{origin, ACCOUNT_HOST};
use crate::claims::identity_of;
use crate::config::Config;
use crate::credentials::logins::{end_renewal, end_web_session, logged_out, replace, revoke};
use crate::credentials::{direct_login, web_login};
use crate::error::Result;
use crate::http::{self, Client};
use crate::oidc::{self, Login};
use crate::output::{remark, result, Stream};

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
    let url_of = |server: &String| context.config.server_url(Some(server));
    let server = args.server.as_ref().map(url_of).transpose()?;
    let open_browser = !args.no_browser;
    let (url, token) = if let Some(token) = args.token {
        let url = server.or_else(|| context.config.server_of_token(&token));
        let url = url.map_or_else(|| context.config.server_url(None), Ok)?;
        (url, token)
    } else if let Some(server) = &args.server_issued_login {
        let url = url_of(server)?;
        context.consent_to_http(&url, false)?;
        let token = direct_login(&url).await?;
        (url, token)
    } else if let Some(client_id) = &args.client_id {
        let options = oidc::Options {
            issuer: &args.auth_host,
            client_id,
            scope: &args.scope,
            callback_port: args.callback_port,
            device: args.device,
            open_browser,
        };
        return oidc_login(context, server, options).await;
    } else {
        let (config, host) = (&mut context.config, &args.auth_host);
        let login = web_login(
            config,
            server.as_deref(),
            host,
            open_browser,
            Stream::Result,
        );
        return login.await.map(drop);
    };
    replace(&mut context.config, &url, &token, None, Stream::Result).await
}

/// A login with an OpenID Connect provider, whose token is stored for a server.
async fn oidc_login(
    context: &mut Context,
    server: Option<String>,
    options: oidc::Options<'_>,
) -> Result<()> {
    let url = server.map_or_else(|| context.config.server_url(None), Ok)?;
    let client_id = options.client_id;
    let end_old =
        async |issuer: &str| end_renewal(&mut context.config, &url, (issuer, client_id)).await;
    let Login { token, renewal } = oidc::login(options, end_old).await?;
    let (config, new) = (&mut context.config, renewal.as_ref());
    replace(config, &url, &token, new, Stream::Result).await?;
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
            let why = http::shown(&http::body_text(response).await?);
            remark!("warning: the server does not accept this login: {why}");
        }
    }
    Ok(())
}

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
        match identity_of(token) {
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
