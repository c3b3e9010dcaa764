//! What can go wrong while a server starts.

use std::net::SocketAddr;

/// A reason why the server could not start. Every text names what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Node(#[from] lightcone_node::Error),

    #[error(transparent)]
    Postgres(#[from] lightcone_postgres::Error),

    #[error("cannot listen on {address}: {source} [LC0107]")]
    Bind {
        address: SocketAddr,
        source: std::io::Error,
    },

    #[error("cannot start the network threads: {0}; raise the limits of threads and descriptors [LC0109]")]
    NetworkThreads(std::io::Error),
}
