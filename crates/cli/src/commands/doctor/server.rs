//! The server: is it there, is it one of ours, what does it think of the login.

use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::report::Report;
use crate::address::is_loopback;
use crate::claims::{end_of, identity_of, now_seconds};
use crate::config::Config;
use crate::credentials::{self, Found};
use crate::http::{self, Client};
use crate::project::{Database, Project};

/// A server that is well answers much sooner.
const TIME_MAX: Duration = Duration::from_secs(5);
/// What a server of ours takes between two clocks (`iat` of tokens).
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(60);
/// More than the answers that are asked for here have.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// A day's notice before a login ends.
const LOGIN_NOTICE_SECONDS: u64 = 24 * 60 * 60;

/// `must_be_there`: the user has named this server.
pub(super) async fn check(
    report: &mut Report,
    config: &Config,
    (server, must_be_there): (Option<&str>, bool),
    project: Option<&Project>,
) {
    const NAME: &str = "address";
    let url = match config.server_url(server) {
        Ok(url) => url,
        Err(error) => {
            let advice = "`spacetime server list` shows those that are saved.";
            return report.error(NAME, error.to_string(), advice);
        }
    };
    let client = match Client::new(url.clone(), None) {
        Ok(client) => client,
        Err(error) => {
            let advice = "`spacetime server edit` changes it.";
            return report.error(NAME, error.to_string(), advice);
        }
    };
    if !check_ping(report, &client, must_be_there).await {
        return;
    }
    check_version(report, &client).await;
    if check_login(report, config, &url).await {
        check_databases(report, &client, &url, config, project).await;
    }
}

async fn get(client: &Client, path: &str) -> Result<Response, String> {
    let answer = client.get(path).timeout(TIME_MAX).send().await;
    answer.map_err(|error| {
        let first: &dyn std::error::Error = &error;
        let causes = std::iter::successors(Some(first), |cause| (*cause).source());
        match error.is_timeout() {
            true => format!("no answer in {} s", TIME_MAX.as_secs()),
            false => causes.last().unwrap_or(first).to_string(),
        }
    })
}

/// True if a server answers.
async fn check_ping(report: &mut Report, client: &Client, must_be_there: bool) -> bool {
    const NAME: &str = "ping";
    let url = client.base();
    let (message, advice) = match get(client, "/v1/ping").await {
        Ok(response) if response.status().is_success() => {
            report.ok(NAME, url.to_owned());
            check_clock(report, &response);
            return true;
        }
        Ok(response) => (
            format!("{url} answers {}: that is no server of this kind", response.status()),
            "Something else listens there. Stop it, or name the server's address with --server.",
        ),
        Err(_) if is_loopback(url) && !must_be_there && is_port_free(url).await => {
            let message = format!("no server runs at {url}; the port is free");
            report.warning(NAME, message, "`spacetime start` starts one.");
            return false;
        }
        Err(why) if is_loopback(url) => (
            format!("{url}: {why}"),
            "Is it running? `spacetime start` starts one. If something else has the port, give it another with --listen-addr, and save that with `spacetime server add`.",
        ),
        Err(why) => (
            format!("{url}: {why}"),
            "Is the address right (`spacetime server list`), and does the network let you there? A proxy is taken from HTTPS_PROXY.",
        ),
    };
    report.error(NAME, message, advice);
    false
}

async fn is_port_free(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let Some(addresses) = url.and_then(|url| url.socket_addrs(|| None).ok()) else {
        return false;
    };
    let connecting = tokio::net::TcpStream::connect(&addresses[..]);
    matches!(tokio::time::timeout(TIME_MAX, connecting).await, Ok(Err(_)))
}

/// Tokens have times in them.
fn check_clock(report: &mut Report, response: &Response) {
    let date = response.headers().get(reqwest::header::DATE);
    let date = date.and_then(|date| date.to_str().ok());
    let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
        return;
    };
    let difference = SystemTime::now().duration_since(theirs);
    let difference = difference.unwrap_or_else(|behind| behind.duration());
    if difference > CLOCK_DIFFERENCE_MAX {
        let seconds = difference.as_secs();
        let message = format!("the server's clock and this one differ by {seconds} s");
        let advice =
            "Logins are valid for a time, and may be refused. Set both clocks (`timedatectl`).";
        report.warning("clock", message, advice);
    }
}

async fn check_version(report: &mut Report, client: &Client) {
    let Ok(response) = get(client, "/v1/health").await else {
        return;
    };
    let Some(health) = http::short_body(response, ANSWER_BYTES_MAX).await else {
        return;
    };
    let health: Value = serde_json::from_slice(&health).unwrap_or_default();
    if let Some(damaged) = health["damaged"].as_u64() {
        let message = format!("{damaged} damaged files that a start of the server would need");
        let advice = "The server's log names them with LC0529; docs/errors/LC0529.md says what to do. Do it before the server is stopped.";
        report.error("files", message, advice);
    }
    let (package, version) = (health["package_name"].as_str(), health["version"].as_str());
    let own = env!("CARGO_PKG_VERSION");
    let (Some(package), Some(version)) = (package, version) else {
        return;
    };
    if package != "lightcone-server" {
        let message = format!("{} {}", http::shown(package), http::shown(version));
        report.ok("version", message);
    } else if version == own {
        report.ok("version", version);
    } else {
        let message = format!("the server is {version}, this program {own}");
        report.warning("version", message, "Use the same version of both.");
    }
}

/// True unless the server refuses the login.
async fn check_login(report: &mut Report, config: &Config, url: &str) -> bool {
    const NAME: &str = "login";
    let kept = config.token(url).map(str::to_owned);
    let Ok(client) = Client::before_login(url.to_owned()) else {
        return false;
    };
    let token = match credentials::look(config, &client, kept).await {
        Ok(Found::Here(token) | Found::Moved { token, .. }) => token,
        Ok(Found::Nothing) => {
            let message = "none for this server; the first command that needs one gets one";
            report.ok(NAME, message);
            return true;
        }
        Err(error) => {
            let advice =
                "Name the server by the address that it has now, or `spacetime logout -s SERVER`.";
            report.error(NAME, error.to_string(), advice);
            return false;
        }
    };
    let identity = match identity_of(&token) {
        Ok(identity) => identity.to_hex(),
        Err(error) => {
            let advice = "`spacetime logout`, then `spacetime login`.";
            report.error(NAME, error.to_string(), advice);
            return false;
        }
    };
    if !config.may_send_login(url) {
        let message = format!("as {identity}; not tried, because the connection is not encrypted");
        let advice = "Use https, or agree with `spacetime server edit <server> --allow-insecure`.";
        report.warning(NAME, message, advice);
        return false;
    }
    let client = client.with_token(token.clone());
    match get(&client, &format!("/v1/identity/{identity}/verify")).await {
        Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
            let message = format!("the server does not accept the login as {identity}");
            let advice = "It ended, or the server has other keys than when it gave it. `spacetime logout -s SERVER`, then log in again; with a new identity, databases of the old one are another user's.";
            report.error(NAME, message, advice);
            false
        }
        Ok(_) => {
            let end_max = now_seconds() + LOGIN_NOTICE_SECONDS;
            let ends_soon = end_of(&token).is_some_and(|end| end < end_max);
            if ends_soon && config.renewal(url).is_none() {
                let message = format!("as {identity}, which ends within a day");
                report.warning(NAME, message, "spacetime login");
            } else {
                report.ok(NAME, format!("as {identity}"));
            }
            true
        }
        Err(why) => {
            report.warning(NAME, why, "Try again.");
            false
        }
    }
}

async fn check_databases(
    report: &mut Report,
    client: &Client,
    url: &str,
    config: &Config,
    project: Option<&Project>,
) {
    let databases = project.and_then(|p| p.databases().ok()).unwrap_or_default();
    for Database { name, server, .. } in databases {
        if config.server_url(server.as_deref()).ok().as_deref() != Some(url) {
            continue;
        }
        let path = format!("/v1/database/{}/identity", http::encode(&name));
        match get(client, &path).await {
            Ok(response) if response.status().is_success() => report.ok("database", name),
            Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                let message = format!("`{name}` is not there yet");
                report.note("database", message, "spacetime publish");
            }
            Ok(response) => {
                let message = format!("`{name}`: the server answers {}", response.status());
                report.warning("database", message, "Its log may say why.");
            }
            Err(why) => report.warning("database", why, "Try again."),
        }
    }
}
