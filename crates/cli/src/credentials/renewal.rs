//! Logins that their providers renew: before they end, by one command at a time.

use crate::address::origin;
use crate::claims::{beginning_of, end_of, now_seconds};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::oidc::{self, Renewal};
use crate::output::remark;

/// A login is renewed so long before its end, or at the half of its life.
const RENEW_BEFORE_SECONDS: u64 = 300;

/// The token for the server at `url`, renewed if it ends soon and its provider does that.
///
/// # Errors
/// It has ended, and cannot be renewed (LC0876, or what kept the provider from being asked).
pub async fn current(config: &mut Config, url: &str) -> Result<Option<String>> {
    let Some(token) = config.token(url).map(str::to_owned) else {
        return Ok(None);
    };
    if !is_due(&token, now_seconds()) || config.renewal(url).is_none() {
        return Ok(Some(token));
    }
    match renewed(config, url).await {
        Ok(token) => Ok(token),
        // It is good for a while still.
        Err(error) if end_of(&token).is_some_and(|end| end > now_seconds()) => {
            remark!("warning: {error}");
            Ok(Some(token))
        }
        Err(error) => Err(error),
    }
}

/// Renews a login, unless another command has done that in the meantime.
async fn renewed(config: &mut Config, url: &str) -> Result<Option<String>> {
    let lock = config.lock().await?;
    config.read_again(&lock)?;
    let token = config.token(url).map(str::to_owned);
    let (Some(token), Some(renewal)) = (token.clone(), config.renewal(url)) else {
        // Logged out, or in again in another way.
        return Ok(token);
    };
    if !is_due(&token, now_seconds()) {
        return Ok(Some(token));
    }
    // A provider gives a refresh token once: what cannot be stored is not asked for.
    let place = config.make_place(&lock)?;
    let new = oidc::renew(&renewal, &token).await;
    let new = new.map_err(|error| not_renewed(url, &renewal, &error))?;
    match new.token {
        Ok(token) => {
            config.update_in(place, |now| now.renew_token(url, &token, &new.renewal))?;
            Ok(Some(token))
        }
        Err(error) => {
            if new.renewal != renewal {
                config.update_in(place, |now| now.set_renewal(url, &new.renewal))?;
            }
            Err(not_renewed(url, &renewal, &error))
        }
    }
}

fn not_renewed(url: &str, renewal: &Renewal, why: &Error) -> Error {
    let scope = match &*renewal.scope {
        "openid" => String::new(),
        scope => format!(" --scope '{scope}'"),
    };
    let (issuer, client_id, server) = (&renewal.issuer, &renewal.client_id, origin(url));
    coded!(
        "LC0876",
        "the login for {server} could not be renewed: {why}. Log in again: spacetime login --auth-host {issuer} --client-id \
         {client_id}{scope} --server {server}",
    )
}

/// Is it time to renew a token? One that does not say when it ends is never renewed.
fn is_due(token: &str, now: u64) -> bool {
    let Some(end) = end_of(token) else {
        return false;
    };
    let life = end.saturating_sub(beginning_of(token).unwrap_or(0));
    end <= now.saturating_add(RENEW_BEFORE_SECONDS.min(life / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;

    #[test]
    fn tokens_are_renewed_before_they_end() {
        let token = |claims: &str| {
            let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
            format!("e30.{claims}.c2ln")
        };
        let hour = token(r#"{"iat":10000,"exp":13600}"#);
        for (now, due) in [
            (10_000, false),
            (13_299, false),
            (13_300, true),
            (20_000, true),
        ] {
            assert_eq!(is_due(&hour, now), due, "{now}");
        }
        let short = token(r#"{"iat":10000,"exp":10020}"#);
        for (now, due) in [(10_000, false), (10_009, false), (10_010, true)] {
            assert_eq!(is_due(&short, now), due, "{now}");
        }
        assert!(
            !is_due(&token(r#"{"iat":10000}"#), u64::MAX),
            "it has no end"
        );
        assert!(!is_due("nonsense", u64::MAX));
    }
}
