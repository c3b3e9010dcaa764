//! Logins that are stored, take each other's place, and end where they are from.

use std::time::Duration;

use crate::address::origin;
use crate::claims::identity_of;
use crate::config::Config;
use crate::error::Result;
use crate::http::Client;
use crate::oidc::{self, Renewal};
use crate::output::{remark, Stream};

/// For a provider, or the account web site, that is told of a logout.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Stores a login in the place of the one that was there. The old one goes when the new one is there, and not before: a
/// server that cannot be reached must not cost an identity that no server can issue again.
pub async fn replace(
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
    match identity_of(token) {
        Ok(identity) => to.line(format_args!(
            "Logged in with identity {}",
            identity.to_hex()
        )),
        Err(_) => to.line(format_args!("Token saved.")),
    }
    remark!("The login is for {}; no other server gets it.", origin(url));
    Ok(())
}

/// Ends the renewal of the login that is there, if the same provider renews it for the same program. Providers that revoke a refresh
/// token may end all that this person has agreed to for the program, so this comes before he agrees once more, and not after it. The
/// token stays for as long as it lasts.
pub async fn end_renewal(
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
    // Before anything that takes time: a user who gives up then has heard of it.
    let server = origin(url);
    remark!("warning: the login for {server} that is there is not renewed any more, also if this one is given up");
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

/// Tells the provider of a login that it is over, as far as it can be asked. The login is the one that was taken out of the file:
/// another command may have renewed it since this one began.
pub async fn revoke(renewal: &Renewal) {
    let revoked = tokio::time::timeout(REVOKE_TIMEOUT, oidc::revoke(renewal));
    let why = match revoked.await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it does not answer".to_owned(),
    };
    let issuer = &renewal.issuer;
    remark!("warning: {issuer} could not be told that the login is over: {why}");
}

/// Are two logins renewed by the same provider, for the same program?
fn is_of(old: &Renewal, new: Option<&Renewal>) -> bool {
    new.is_some_and(|new| old.issuer == new.issuer && old.client_id == new.client_id)
}

/// Is the login that is there the same person's? Then another command has logged in meanwhile, and to revoke that might end both
/// ([`end_renewal`]).
fn same_person(config: &Config, url: &str, token: &str) -> bool {
    let identity = |token: &str| identity_of(token).ok();
    let old = config.token(url).and_then(identity);
    old.is_some() && old == identity(token)
}

pub fn logged_out(token: &str) -> String {
    match identity_of(token) {
        Ok(identity) => format!("Logged out (identity {}).", identity.to_hex()),
        Err(_) => "Logged out.".to_owned(),
    }
}

/// Ends the session at the account web site, if there is one. Its token goes to the site that issued it, and nowhere else.
pub async fn end_web_session(config: &mut Config, auth_host: &str) -> Result<()> {
    let Some((session, host)) = config.web_session() else {
        return Ok(());
    };
    if origin(host) == origin(auth_host) {
        let base = auth_host.trim_end_matches('/').to_owned();
        let client = Client::new(base, Some(session.to_owned()))?;
        let request = client.post("/auth/cli/logout").timeout(REVOKE_TIMEOUT);
        if let Err(error) = client.send(request).await {
            remark!("warning: could not end the web session: {error}");
        }
    } else {
        remark!("warning: the web session is one of {host}, and is forgotten here only: give --auth-host {host} to end it");
    }
    config.set_web_session(None);
    Ok(())
}
