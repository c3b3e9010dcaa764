//! What pages in a browser may ask this server for, and by which names it is asked.
//!
//! A browser sends requests for whatever page is open, also to servers on the user's own machine that no other machine reaches.
//! So each route has a [`Class`]: what web clients need is open to the pages of every origin, management is not. And a server
//! on loopback answers only to names that cannot be pointed at it from outside (DNS rebinding).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use lightcone_node::hosts::{host_of, is_localhost, is_this_machine};

use crate::client_address::{Client, ConnectionAddresses};
use crate::gateway::Gateway;
use crate::reply::Failure;

/// Who may ask for a route out of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Pages of every origin: what web clients need.
    Client,
    /// Pages of this server and of `network.management-origins`: what changes or tells about databases and the server.
    Management,
}

/// Longest part of a foreign name that an answer repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// Every request: finds out who the client is, and refuses foreign host names on loopback.
pub(super) async fn every_request(
    State(state): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(addresses) = request.extensions().get::<ConnectionAddresses>().copied() else {
        return Failure::internal("the connection has no address").into_response();
    };
    let network = &state.node.config.network;
    let headers = request.headers();
    let is_foreign = |host: &&str| !is_known_host(host, &network.hosts);
    let foreign = hosts(headers, request.uri()).find(is_foreign);
    if let Some(host) = foreign.filter(|_| addresses.on_loopback).map(shown) {
        let text = format!(
            "this server listens on this machine only and does not know the host name {host}; \
             if it is meant to be asked by this name, add it to network.hosts in config.toml, and a proxy that passes it on \
             to network.trusted-proxies [LC0130]"
        );
        return Failure::text(StatusCode::FORBIDDEN, text).into_response();
    }
    let client = Client {
        address: addresses.client(headers, &network.trusted_proxies),
        is_local: addresses.is_local(headers, &network.trusted_proxies)
            && hosts(headers, request.uri()).all(is_local_name),
    };
    request.extensions_mut().insert(client);
    next.run(request).await
}

/// Routes of [`Class::Management`].
pub(super) async fn management(
    State(state): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let network = &state.node.config.network;
    let (headers, uri) = (request.headers(), request.uri());
    // A browser that is told to leave out the origin still says that a request is another site's. Links are harmless.
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_foreign = matches!(site, Some(b"cross-site" | b"same-site"));
    if is_foreign && !headers.contains_key(header::ORIGIN) && !request.method().is_safe() {
        let text = "pages of other sites may not manage this server [LC0131]";
        return Failure::text(StatusCode::FORBIDDEN, text).into_response();
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or("?");
        let is_listed = |listed: &String| listed.eq_ignore_ascii_case(origin);
        if !network.management_origins.iter().any(is_listed)
            && !is_own_origin(origin, headers, uri, &network.hosts)
        {
            let text = format!(
                "pages of {} may not manage this server; its operator can allow it with network.management-origins \
                 in config.toml [LC0131]",
                shown(origin)
            );
            return Failure::text(StatusCode::FORBIDDEN, text).into_response();
        }
    }
    next.run(request).await
}

/// Was the page loaded from this server, and under a name that is no stranger's?
fn is_own_origin(origin: &str, headers: &HeaderMap, uri: &Uri, known: &[String]) -> bool {
    let Some((_, authority)) = origin.split_once("://") else {
        return false;
    };
    let mut hosts = hosts(headers, uri).peekable();
    hosts.peek().is_some()
        && hosts.all(|host| host.eq_ignore_ascii_case(authority) && is_known_host(host, known))
}

/// What the request calls the server: none (HTTP/1.0), one, or by mistake more.
fn hosts<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::HOST).iter();
    lines
        .map(|value| value.to_str().unwrap_or("?"))
        .chain(uri.authority().map(|authority| authority.as_str()))
}

/// Names that cannot be pointed at another machine: addresses, `localhost`, and what the operator has listed.
fn is_known_host(host: &str, known: &[String]) -> bool {
    let name = name_of(host);
    let is_listed = |listed: &String| listed.eq_ignore_ascii_case(&name);
    name.parse::<IpAddr>().is_ok() || is_localhost(&name) || known.iter().any(is_listed)
}

/// Names by which only programs on this machine ask. A name that the operator has listed may be that of a proxy, which asks
/// for all clients.
fn is_local_name(host: &str) -> bool {
    is_this_machine(&name_of(host))
}

/// The name in a `Host` header, without the port and in lower case.
fn name_of(host: &str) -> String {
    let name = host_of(host);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hosts() {
        let known = ["app.example.com".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "localhost.:3000",
            "app.localhost",
            "127.0.0.1",
            "127.0.0.1:3000",
            "192.168.1.2:80",
            "[::1]",
            "[::1]:3000",
            "App.Example.com:8080",
        ] {
            assert!(is_known_host(host, &known), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:3000",
            "notlocalhost",
            "app.example.com.evil.example",
            "[evil.example]",
            "?",
        ] {
            assert!(!is_known_host(host, &known), "{host}");
        }
    }

    #[test]
    fn names_of_this_machine() {
        for host in [
            "localhost:3000",
            "app.localhost",
            "127.0.0.2:1",
            "[::1]",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in [
            "",
            "app.example.com",
            "10.0.0.1",
            "203.0.113.1:3000",
            "[2001:db8::1]",
        ] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_host_is_read_without_panic(text in "\\PC{0,40}") {
            let _ = is_known_host(&text, &[]);
        }
    }
}
