//! What all sessions share.

use std::sync::Arc;

use super::cancel::Cancels;
use super::tls::Tls;
use crate::config;
use crate::error::Error;

/// What all sessions share.
pub(crate) struct Shared {
    pub(super) tls: Option<Tls>,
    pub(super) cancels: Arc<Cancels>,
}

impl Shared {
    /// Reads the certificate, if there is one.
    pub fn new(config: &config::Postgres) -> Result<Shared, Error> {
        Ok(Shared {
            tls: Tls::load(config)?,
            cancels: Arc::new(Cancels::default()),
        })
    }
}
