//! Logins with any OpenID Connect provider: the flows of OAuth 2.0 for programs on a user's own machine.
//!
//! [`browser`] is the authorization code with PKCE and a redirect to this machine (RFC 7636, RFC 8252), [`device`] is a code that
//! the user types elsewhere (RFC 8628). Both end with an ID token, which is what servers take, and perhaps with a refresh token, which
//! gets the next ID token ([`renew`]). What a provider says is looked at before it is followed, shown or stored.

mod browser;
mod device;
mod provider;

use crate::claims::identity_of;
use crate::error::Result;
use provider::{refused, Provider};

pub use provider::Options;

/// What a provider has given.
#[derive(Clone, Debug)]
pub struct Login {
    /// The ID token, for a server.
    pub token: String,
    /// How to get the next one, if the provider says so.
    pub renewal: Option<Renewal>,
}

/// How a login is renewed. Only the provider gets the refresh token.
#[derive(Clone, PartialEq, Eq)]
pub struct Renewal {
    pub issuer: String,
    pub client_id: String,
    pub scope: String,
    pub refresh_token: String,
}

/// Without the secret.
impl std::fmt::Debug for Renewal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Renewal({}, {})", self.issuer, self.client_id)
    }
}

/// Logs in with the provider at `options.issuer`. `before` runs when the provider was found and before the user is asked for anything;
/// it gets the name of the issuer.
///
/// # Errors
/// The provider cannot be used, or has refused; or `before` has failed.
pub async fn login(
    options: Options<'_>,
    before: impl AsyncFnOnce(&str) -> Result<()>,
) -> Result<Login> {
    let provider = Provider::discover(options.issuer).await?;
    before(&provider.issuer).await?;
    let (answer, nonce) = match options.device {
        true => (device::login(&provider, &options).await?, None),
        false => browser::login(&provider, &options).await?,
    };
    let token = provider.id_token(&answer)?;
    provider.check_token(&token, options.client_id, nonce.as_deref())?;
    let renewal = provider.refresh_token(&answer)?;
    let renewal = renewal.map(|refresh_token| Renewal {
        issuer: provider.issuer.clone(),
        client_id: options.client_id.to_owned(),
        scope: options.scope.to_owned(),
        refresh_token,
    });
    Ok(Login { token, renewal })
}

/// What a provider has given for a refresh token.
#[derive(Debug)]
pub struct Renewed {
    /// The next ID token, or why there is none that can be used.
    pub token: Result<String>,
    /// With the next refresh token, whatever is with the ID token.
    pub renewal: Renewal,
}

/// Gets the next token of a login (RFC 6749 §6, OpenID Connect Core 1.0 §12). The refresh token may be a new one then, and the old
/// one of no use any more: the caller stores it before anything else happens.
///
/// # Errors
/// The provider cannot be asked, has refused, or has answered with another user's tokens.
pub async fn renew(renewal: &Renewal, token: &str) -> Result<Renewed> {
    let provider = Provider::discover(&renewal.issuer).await?;
    let pairs = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &renewal.refresh_token),
        ("client_id", &renewal.client_id),
    ];
    let answer = provider.post("token_endpoint", &pairs).await?.accepted()?;
    let new = provider.id_token(&answer);
    if let Some(identity) = new.as_ref().ok().and_then(|new| identity_of(new).ok()) {
        if identity != identity_of(token)? {
            return Err(refused("its ID token is another user's"));
        }
    }
    let refresh_token = provider.refresh_token(&answer)?;
    let renewal = Renewal {
        refresh_token: refresh_token.unwrap_or_else(|| renewal.refresh_token.clone()),
        ..renewal.clone()
    };
    let checked = |new: String| {
        provider.check_token(&new, &renewal.client_id, None)?;
        identity_of(&new)?;
        Ok(new)
    };
    Ok(Renewed {
        token: new.and_then(checked),
        renewal,
    })
}

/// Tells the provider that a login is over (RFC 7009), if it wants to know.
///
/// # Errors
/// The provider cannot be asked, or has refused.
pub async fn revoke(renewal: &Renewal) -> Result<()> {
    const ENDPOINT: &str = "revocation_endpoint";
    let provider = Provider::discover(&renewal.issuer).await?;
    if !provider.has(ENDPOINT) {
        return Ok(());
    }
    let pairs = [
        ("token", &*renewal.refresh_token),
        ("token_type_hint", "refresh_token"),
        ("client_id", &renewal.client_id),
    ];
    provider.tell(ENDPOINT, &pairs).await
}

/// Is there an OpenID Connect provider at this address?
pub async fn is_provider(address: &str) -> bool {
    Provider::discover(address).await.is_ok()
}
