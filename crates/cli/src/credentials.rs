//! Who the user is: the stored token, and how to get one (07 §4.2).

pub mod logins;
mod proof;
mod renewal;
mod web;

pub use proof::{find, look, Found};
pub use renewal::current;
pub use web::web_login;

use crate::address::{is_loopback, origin, ACCOUNT_HOST};
use crate::claims::identity_of;
use crate::config::Config;
use crate::error::Result;
use crate::http::Client;
use crate::output::{remark, Stream};
use crate::prompt;

const LOGIN_QUESTION: &str =
    "You are not logged in. Would you like to log in with spacetimedb.com?";

/// Asks whether the user wants to log in with the account web site.
pub fn wants_web_login() -> bool {
    prompt::confirm(LOGIN_QUESTION, false)
}

/// Does so, for this server.
pub async fn account_login(config: &mut Config, url: &str) -> Result<String> {
    web_login(config, Some(url), ACCOUNT_HOST, true, Stream::Remark).await
}

/// The token for the server of this client, or a new one from it. Unless it is to be had `direct`, the web login is offered first.
pub async fn require(config: &mut Config, client: &Client, direct: bool) -> Result<String> {
    if let Some(token) = find(config, client).await? {
        return Ok(token);
    }
    let url = client.base();
    // A server on this machine knows no user of that site, and asks nothing for an identity of its own.
    if !direct && !is_loopback(url) && wants_web_login() {
        return account_login(config, url).await;
    }
    let token = direct_login(url).await?;
    let identity = identity_of(&token)?;
    config.update(|now| now.set_token(url, &token)).await?;
    remark!("We have logged in directly to your target server.");
    remark!("WARNING: This login will NOT work for any other servers.");
    remark!("Logged in with identity {}", identity.to_hex());
    hint_at_other_names(config, url);
    Ok(token)
}

/// `localhost` and `127.0.0.1` are two servers here; a user who mixes them up should hear why the server does not know them.
fn hint_at_other_names(config: &Config, url: &str) {
    let port = |url: &str| reqwest::Url::parse(url).ok()?.port_or_known_default();
    let mut logins = config.logins().into_iter().map(|(origin, _)| origin);
    let other = logins.find(|other| {
        is_loopback(url) && is_loopback(other) && *other != origin(url) && port(other) == port(url)
    });
    if let Some(other) = other {
        remark!("note: you have a login for {other} too, which is not sent to {url}. Name the server the same way each time.");
    }
}

/// Asks the server for a new identity, and gives its token.
pub async fn direct_login(url: &str) -> Result<String> {
    let client = Client::new(url.to_owned(), None)?;
    let answer = client.value(client.post("/v1/identity")).await?;
    let token = answer["token"].as_str().map(str::to_owned);
    token.ok_or_else(|| coded!("LC0616", "the server's new identity has no token"))
}
