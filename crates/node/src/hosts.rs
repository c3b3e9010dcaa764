//! Names and addresses of hosts, as requests and configurations write them.

use std::net::IpAddr;

/// The host of `host`, `host:port`, `[address]`, `[address]:port` or an address.
pub fn host_of(text: &str) -> &str {
    match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None if text.matches(':').count() == 1 => text.split(':').next().unwrap_or_default(),
        None => text,
    }
}

/// Names that lead to the machine that looks them up.
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// The same, or an address that does so.
pub fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    address.is_ok_and(|address| address.to_canonical().is_loopback()) || is_localhost(host)
}
