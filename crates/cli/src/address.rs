//! Addresses of servers: which mean the same one, and which stay on this machine.

use reqwest::Url;

/// The account web site, and the server that its tokens are for.
pub const ACCOUNT_HOST: &str = "https://spacetimedb.com";
pub const ACCOUNT_SERVER: &str = "https://maincloud.spacetimedb.com";

/// The scheme, host and port of a URL. A text that has none stands for itself.
pub fn origin(url: &str) -> String {
    match Url::parse(url).map(|url| url.origin()) {
        Ok(origin) if origin.is_tuple() => origin.ascii_serialization(),
        _ => url.trim_end_matches('/').to_owned(),
    }
}

/// True if no other machine can listen to a conversation with this URL.
pub fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let Some(host) = url.as_ref().and_then(Url::host_str) else {
        return false;
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback() {
        for (url, want) in [
            ("http://127.0.0.1:3000", true),
            ("http://127.8.9.1", true),
            ("http://[::1]:3000", true),
            ("http://localhost", true),
            ("http://a.localhost:1", true),
            ("http://localhost.evil.org", false),
            ("http://127.0.0.1.evil.org", false),
            ("http://127.0.0.1@evil.org", false),
            ("http://10.0.0.1", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_loopback(url), want, "{url}");
        }
    }
}
