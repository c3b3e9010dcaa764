//! The login with the account web site.

use std::time::Duration;

use serde_json::Value;

use super::logins::{end_web_session, replace};
use crate::address::ACCOUNT_HOST;
use crate::config::Config;
use crate::error::Result;
use crate::http::{self, Client};
use crate::output::{remark, Stream};
use crate::{oidc, page};

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
    let begun = match answer(&client, request).await {
        Err(_) if host != ACCOUNT_HOST && oidc::is_provider(host).await => {
            bail!("LC0874", "{host} is an OpenID Connect provider: name this program as it knows it, with --client-id <id>");
        }
        begun => begun?,
    };
    let request = text_of(&begun, ["data", "token"])?;
    let address = format!("{host}/login/cli?token={}", http::encode(&request));
    remark!("Log in on this page: {address}");
    if open_browser {
        page::open(&address);
    }
    remark!("Waiting for the login to be approved…");
    let session = loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let path = format!("/api/auth/cli/status?token={}", http::encode(&request));
        let status = answer(&client, client.get(&path)).await?;
        if status["data"]["approved"] == true {
            break text_of(&status, ["data", "sessionToken"])?;
        }
    };
    let client = Client::new(host.to_owned(), Some(session.clone()))?;
    let issued = answer(&client, client.post("/api/spacetimedb-token")).await?;
    let token = text_of(&issued, ["data", "token"])?;
    let url = server.map(str::to_owned);
    let url = url.or_else(|| config.server_of_token(&token));
    let url = url.map_or_else(|| config.server_url(None), Ok)?;
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
    if value["success"] == true {
        return Ok(value);
    }
    let why = value["error"].as_str().unwrap_or("no reason given");
    bail!(
        "LC0614",
        "the login was refused: {why}. Try `spacetime login` again."
    )
}

fn text_of(value: &Value, path: [&str; 2]) -> Result<String> {
    let [outer, inner] = path;
    let found = value[outer][inner].as_str().map(str::to_owned);
    found.ok_or_else(|| coded!("LC0616", "the web site's answer has no `{outer}.{inner}`"))
}
