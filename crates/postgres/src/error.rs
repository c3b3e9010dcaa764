//! What can go wrong before the first session.

use std::path::PathBuf;

/// A reason why PostgreSQL's protocol cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the certificate of PostgreSQL's protocol cannot be used: {}: {reason} [LC0140]", .path.display())]
    Certificate { path: PathBuf, reason: String },

    /// Who else may read the key.
    #[error(transparent)]
    Key(#[from] lightcone_node::Error),
}
