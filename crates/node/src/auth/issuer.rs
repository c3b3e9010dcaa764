//! Issuers of tokens: the server's own name, and the addresses of others.

use lightcone_outbound::{literal_address, Url};

/// The issuer of the tokens that this server mints (06 §3.3).
pub const LOCAL_ISSUER: &str = "localhost";

/// Reads an issuer strictly: its text becomes the beginning of an address that the server asks. There is one spelling of each,
/// so that no two readers of it can differ; only the `/` at its end is free.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("it is not a URL: {error}"))?;
    let is_allowed_http = url.scheme() == "http" && is_loopback(&url);
    if url.scheme() != "https" && !is_allowed_http {
        return Err("it must begin with https:// (http:// only for one on this machine)".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must have no ? and no #".into());
    }
    // Identities are made of issuer, `|` and subject: a part of the one must not pass for a part of the other.
    if text.contains('|') {
        return Err("it must have no |".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must have no user name and no password".into());
    }
    if url.as_str().trim_end_matches('/') != text.trim_end_matches('/') || text.ends_with("//") {
        return Err(format!("it must be written as {url}"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match literal_address(url) {
        Ok(Some(address)) => address.is_loopback(),
        _ => url.host_str() == Some("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers() {
        for text in [
            "https://auth.example.com",
            "https://auth.example.com/",
            "https://auth.example.com/realms/a",
            "https://auth.example.com:8443/realms/a/",
            "https://xn--bcher-kva.example",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in [
            "http://localhost:8080/a",
            "http://127.0.0.1",
            "http://[::1]:1",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "localhost",
            "auth.example.com",
            "http://auth.example.com",
            "http://10.0.0.1",
            "http://localhost.evil.example",
            "file:///etc/passwd",
            "https://",
            "https:auth.example.com",
            "https://a.example/?",
            "https://a.example/?b",
            "https://a.example/#",
            "https://a.example/x#y",
            "https://user@a.example",
            "https://:p@a.example",
            "https://@a.example",
            "https://a.example\\@b.example",
            "https://a.example/..",
            "https://a.example/x/../y",
            "https://a.example/%2e%2e/y",
            "https://a.example//",
            "https://a.example:443",
            "https://A.example",
            "HTTPS://a.example",
            "https://a.example/ ",
            " https://a.example",
            "https://a.exa\tmple",
            "https://a.example/\r\nx: y",
            "https://2130706433",
            "https://bücher.example",
            "https://a.example/|auth0",
            "https://a.example/%7C|b",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_asked_lies_below_the_issuer(text in "https?://[a-z@:0-9.%?#/\\\\ ]{0,30}") {
            if let Ok(url) = parse(&text) {
                let base = text.trim_end_matches('/');
                let asked = Url::parse(&format!("{base}/.well-known/x")).expect("a URL");
                proptest::prop_assert_eq!(asked.host_str(), url.host_str());
                proptest::prop_assert_eq!(asked.port(), url.port());
                proptest::prop_assert!(asked.path().ends_with("/.well-known/x"));
            }
        }
    }
}
