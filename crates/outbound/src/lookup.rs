//! Looking up names, and the addresses of this machine.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};

/// It may block.
pub trait Lookup: Send + Sync {
    /// The addresses of a host, or an error if there are none or no name server answers.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// The addresses of this machine's network interfaces, if the system lists them.
    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let interfaces = if_addrs::get_if_addrs()?;
        Ok(interfaces.iter().map(if_addrs::Interface::ip).collect())
    }
}

/// The operating system's look-up.
#[derive(Clone, Copy, Debug)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = (host, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
