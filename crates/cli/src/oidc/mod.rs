//! Logins with any OpenID Connect provider: the flows of OAuth 2.0 for programs on a user's own machine.
//!
//! [`browser`] is the authorization code with PKCE and a redirect to this machine (RFC 7636, RFC 8252), [`device`] is a code that
//! the user types elsewhere (RFC 8628). Both end with an ID token, which is what servers take. What a provider says is looked at
//! before it is followed, shown or stored.

mod browser;
mod device;
mod provider;

use crate::error::{Error, Result};
use provider::Provider;

/// What the user said about a login.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The issuer's address.
    pub issuer: &'a str,
    /// The name under which the provider knows this program.
    pub client_id: &'a str,
    pub scope: &'a str,
    /// Where the browser comes back to; any port if there is none.
    pub callback_port: Option<u16>,
    /// The user has no browser here.
    pub device: bool,
    pub open_browser: bool,
}

/// Logs in and gives the ID token.
///
/// # Errors
/// The provider cannot be used, or has refused.
pub async fn login(options: Options<'_>) -> Result<String> {
    let provider = Provider::discover(options.issuer).await?;
    let (token, nonce) = match options.device {
        true => (device::login(&provider, &options).await?, None),
        false => {
            let (token, nonce) = browser::login(&provider, &options).await?;
            (token, Some(nonce))
        }
    };
    provider.check_token(&token, options.client_id, nonce.as_deref())?;
    Ok(token)
}

/// Is there an OpenID Connect provider at this address?
pub async fn is_provider(address: &str) -> bool {
    Provider::discover(address).await.is_ok()
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::coded("LC0872", format!("the provider did not log you in: {why}"))
}

fn unusable(issuer: &str, why: impl std::fmt::Display) -> Error {
    Error::coded(
        "LC0871",
        format!("{issuer} cannot be used to log in: {why}"),
    )
}

/// The form of a request: names and values.
fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", crate::http::encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A provider's words for a terminal: none of them moves the cursor or takes the screen.
fn printable(text: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    let characters = text.chars().take(CHARACTERS_MAX);
    characters
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Unguessable, in letters that need no encoding.
fn secret() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_words() {
        assert_eq!(
            form(&[("a", "b c"), ("d", "é&=")]),
            "a=b%20c&d=%C3%A9%26%3D"
        );
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_ne!(secret(), secret());
        assert!(secret().len() >= 43);
    }
}
