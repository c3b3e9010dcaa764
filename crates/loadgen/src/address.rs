//! The address of a server, and the TCP connection to it.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::Error;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A server and the path before its routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `host:port`
    pub host: String,
    /// Without a slash at its end.
    pub prefix: String,
}

impl Address {
    /// Of a URL `http://host[:port][/prefix]`; `ws://` means the same.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let text = format!("--url {url} {why}; write ws://host:port or http://host:port");
            Err(Error::Options(text))
        };
        let rest = match url.split_once("://") {
            Some(("ws" | "http", rest)) => rest,
            Some(("wss" | "https", _)) => return refuse("asks for TLS, which is not supported"),
            _ => return refuse("is not a WebSocket or HTTP URL"),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || !is_plain || path.contains(['?', '#']) {
            return refuse("has an unusable host or path");
        }
        Ok(Self {
            host: with_port(authority, 80),
            prefix: match path.trim_end_matches('/') {
                "" => String::new(),
                path => format!("/{path}"),
            },
        })
    }
}

/// A host with the default port, if it has none.
pub(crate) fn with_port(host: &str, usual: u16) -> String {
    match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:{usual}"),
    }
}

/// A TCP connection with timeouts, so that no run hangs before it begins.
pub(crate) fn connect(address: &str) -> Result<TcpStream, Error> {
    let unreachable = |source| Error::Unreachable {
        address: address.to_owned(),
        source,
    };
    let mut connected = Err(std::io::Error::other("the host name has no address"));
    for socket_address in address.to_socket_addrs().map_err(unreachable)? {
        connected = TcpStream::connect_timeout(&socket_address, CONNECT_TIME_MAX);
        if connected.is_ok() {
            break;
        }
    }
    let stream = connected.map_err(unreachable)?;
    let set_up = || {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        stream.set_write_timeout(Some(ANSWER_TIME_MAX))
    };
    set_up().map_err(Error::io("setting up a socket"))?;
    Ok(stream)
}

/// A socket that does not block, for an event loop.
pub(crate) fn for_event_loop(stream: TcpStream) -> Result<TcpStream, Error> {
    let set_up = stream.set_nonblocking(true);
    set_up.map_err(Error::io("setting up a socket"))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parts = |url| {
            let address = Address::parse(url).unwrap();
            (address.host, address.prefix)
        };
        assert_eq!(parts("ws://h:3000"), ("h:3000".into(), "".into()));
        assert_eq!(parts("http://h/"), ("h:80".into(), "".into()));
        assert_eq!(
            parts("ws://[::1]:8/a/b/"),
            ("[::1]:8".into(), "/a/b".into())
        );
        for (url, text) in [
            ("wss://h", "TLS"),
            ("h:3000", "not a WebSocket or HTTP URL"),
            ("ws://", "unusable host"),
            ("ws://h/a?b", "unusable host or path"),
            ("ws://h h", "unusable host"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn an_unused_port_is_named() {
        let error = connect("127.0.0.1:1").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot reach the server at 127.0.0.1:1: "),
            "{error}"
        );
    }
}
