//! From names to addresses, and the addresses of this machine.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};

/// Looks names up. It may block.
pub trait Lookup: Send + Sync {
    /// The addresses of a host.
    ///
    /// # Errors
    /// There are none, or no name server answers.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// The addresses of this machine's network interfaces.
    ///
    /// # Errors
    /// The system does not list them.
    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let interfaces = if_addrs::get_if_addrs()?;
        Ok(interfaces.iter().map(if_addrs::Interface::ip).collect())
    }
}

/// As the operating system looks names up.
#[derive(Clone, Copy, Debug)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = (host, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
