//! Which addresses a request may go to.

use std::net::IpAddr;
use std::sync::Arc;

use crate::address::is_public;
use crate::this_machine::{OwnAddresses, OwnPorts};
use crate::{AllowList, OutboundError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Addresses of the public internet that are not this machine's.
    Public,
    /// Also what the operator has listed for modules.
    Listed,
    /// Also this machine and its networks: the operator has named the target.
    Any,
}

#[derive(Clone)]
pub(crate) struct Filter {
    pub reach: Reach,
    pub allow: Arc<AllowList>,
    pub own: Arc<OwnAddresses>,
    pub own_ports: OwnPorts,
}

impl Filter {
    /// Checks an address that `host` leads to, or is. Without a port, only the operator's own requests reach this machine.
    pub fn check(
        &self,
        host: &str,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), OutboundError> {
        if self.reach == Reach::Any {
            return Ok(());
        }
        let is_listed = self.reach == Reach::Listed && self.allow.has(host, address);
        if !is_listed && (!is_public(address) || self.own.has(address)) {
            let host = host.to_owned();
            return Err(OutboundError::Refused { host });
        }
        // A server in this process may trust requests from this machine.
        let is_own_port = port.is_none_or(|port| self.own_ports.has(port));
        match is_own_port && self.own.is_here(address) {
            true => Err(OutboundError::OwnPort {
                host: host.to_owned(),
            }),
            false => Ok(()),
        }
    }
}
