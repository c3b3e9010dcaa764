//! Which addresses a request may go to.

use std::net::IpAddr;
use std::sync::Arc;

use crate::address::is_public;
use crate::own::{OwnAddresses, OwnPorts};
use crate::{AllowList, OutboundError};

/// Where a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To addresses of the public internet that are not this machine's.
    Public,
    /// Also to what the operator has listed for modules.
    Listed,
    /// Also to this machine and its networks: the operator has named the very target.
    Any,
}

/// Decides which addresses a request may go to.
#[derive(Clone)]
pub(crate) struct Filter {
    pub reach: Reach,
    pub allow: Arc<AllowList>,
    pub own: Arc<OwnAddresses>,
    pub own_ports: OwnPorts,
}

impl Filter {
    /// Checks whether the address may be reached, to which `host` leads or which it is.
    ///
    /// # Errors
    /// It may not. Without a port, none of this machine's addresses is reached but by the operator's own requests.
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
        // What this process serves may trust requests from this machine, and this would be one.
        let is_own_port = port.is_none_or(|port| self.own_ports.has(port));
        match is_own_port && self.own.is_here(address) {
            true => Err(OutboundError::OwnPort {
                host: host.to_owned(),
            }),
            false => Ok(()),
        }
    }
}
