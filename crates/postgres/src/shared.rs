//! What all sessions share.

use std::sync::Arc;

use lightcone_node::Node;

use super::cancel::Cancels;
use super::tls::Tls;
use crate::error::Error;

/// A node, and what its clients share who speak PostgreSQL's protocol.
pub struct Postgres {
    pub(super) node: Arc<Node>,
    pub(super) tls: Option<Tls>,
    pub(super) cancels: Arc<Cancels>,
}

impl Postgres {
    /// Reads the certificate, if there is one. Blocks.
    pub fn new(node: Arc<Node>) -> Result<Postgres, Error> {
        Ok(Postgres {
            tls: Tls::load(&node.config.postgres)?,
            cancels: Arc::default(),
            node,
        })
    }
}
