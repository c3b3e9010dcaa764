//! What all sessions share.

use std::sync::Arc;

use super::cancel::Cancels;
use super::tls::Tls;
use crate::config;
use crate::error::Error;

/// What all sessions share.
pub(crate) struct PostgresShared {
    pub(super) tls: Option<Tls>,
    pub(super) cancels: Arc<Cancels>,
}

impl PostgresShared {
    /// Reads the certificate, if there is one.
    pub fn new(config: &config::Postgres) -> Result<PostgresShared, Error> {
        Ok(PostgresShared {
            tls: Tls::load(config)?,
            cancels: Arc::new(Cancels::default()),
        })
    }
}
