//! The device flow (RFC 8628): a code that the user types on another device.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::provider::{printable, refused, unusable, Answer, Options, Provider};
use crate::error::Result;
use crate::output::remark;

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Between two questions, if the provider says nothing, and what it adds when it asks for patience (§3.5).
const INTERVAL_SECONDS: u64 = 5;
const SLOW_DOWN_SECONDS: u64 = 5;
/// Whatever the provider says.
const INTERVAL_SECONDS_MAX: u64 = 60;
const WAIT_SECONDS_MAX: u64 = 1800;

pub(super) async fn login(provider: &Provider, options: &Options<'_>) -> Result<Value> {
    let endpoint = "device_authorization_endpoint";
    if !provider.has(endpoint) {
        let why = "it has no device flow; log in without --device, where there is a browser";
        return Err(unusable(&provider.issuer, why));
    }
    let pairs = [("client_id", options.client_id), ("scope", options.scope)];
    let begun = provider.post(endpoint, &pairs).await?.accepted()?;
    let text = |name: &str| begun[name].as_str().filter(|text| !text.is_empty());
    let needed = |name: &str| text(name).ok_or_else(|| refused(format!("it gave no `{name}`")));
    let (device_code, user_code) = (needed("device_code")?, needed("user_code")?);
    let page = provider.checked(needed("verification_uri")?);
    let page = page.map_err(|why| refused(format!("its page: {why}")))?;
    remark!("Open this page, on any device: {page}");
    remark!("and enter the code: {}", printable(user_code));
    let complete = text("verification_uri_complete").and_then(|url| provider.checked(url).ok());
    if options.open_browser {
        crate::page::open(complete.unwrap_or(page).as_str());
    }
    remark!("Waiting for the login to be approved…");
    wait(provider, options, device_code, &begun).await
}

/// Asks until the user has decided, or his time is over.
async fn wait(
    provider: &Provider,
    options: &Options<'_>,
    device_code: &str,
    begun: &Value,
) -> Result<Value> {
    let seconds = begun["expires_in"].as_u64().unwrap_or(WAIT_SECONDS_MAX);
    let end = Instant::now() + Duration::from_secs(seconds.min(WAIT_SECONDS_MAX));
    let mut interval = begun["interval"].as_u64().unwrap_or(INTERVAL_SECONDS);
    let pairs = [
        ("grant_type", DEVICE_CODE),
        ("device_code", device_code),
        ("client_id", options.client_id),
    ];
    while Instant::now() < end {
        interval = interval.clamp(1, INTERVAL_SECONDS_MAX);
        tokio::time::sleep(Duration::from_secs(interval)).await;
        match provider.post("token_endpoint", &pairs).await? {
            Answer::Refused(error, _) if error == "authorization_pending" => {}
            Answer::Refused(error, _) if error == "slow_down" => interval += SLOW_DOWN_SECONDS,
            answer => return answer.accepted(),
        }
    }
    Err(refused("the code was not entered in time"))
}
