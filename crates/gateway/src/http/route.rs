//! What the table of routes (`routes.rs`) says of a route, and what is asked of every request before its handler runs.

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;
use axum::Extension;
use lightcone_node::config::Limits;
use lightcone_node::permissions::Action;

use super::access::{self, Class};
use crate::gateway::Gateway;

/// Limit for bodies that are read on the network thread.
const LIST_BYTES_MAX: usize = 64 * 1024;
/// Limit for all other bodies but those of `limits`.
const TEXT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Hashes of 32 bytes each: those of the pages of 128 GiB.
const HASHES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// 256 keys and values, each at its bound, with room for escapes.
const ENVIRONMENT_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A row of the table.
pub struct Route {
    /// `*` for any.
    pub method: &'static str,
    pub path: &'static str,
    /// What the caller must be allowed to do with the database of the path. None: the route is about no single database, or has
    /// rules of its own that no role changes.
    pub action: Option<Action>,
    pub(super) class: Class,
    pub(super) token: Token,
    pub(super) body: BodyMax,
    pub(super) handler: fn() -> MethodRouter<Arc<Gateway>>,
}

/// What a route does about the token of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A caller without one gets a new identity, and every answer says who the caller was.
    Minted,
    Required,
    /// It must be right if there is one.
    Checked,
    /// The handler looks at it, or none does.
    Unread,
    /// The same, and pages of other origins are told nothing.
    Internal,
}

/// The largest body that a route reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyMax {
    Nothing,
    List,
    Text,
    /// All variables that there can be, with room for escapes.
    Environment,
    /// Hashes of the objects that a client has of a backup.
    Hashes,
    /// A backup: what bounds it is the disk, and not the memory.
    Backup,
    /// `limits.message-bytes-max`.
    Message,
    /// `limits.program-bytes-max`.
    Program,
}

impl BodyMax {
    pub fn bytes(self, limits: &Limits) -> usize {
        match self {
            BodyMax::Nothing => 0,
            BodyMax::List => LIST_BYTES_MAX,
            BodyMax::Text => TEXT_BYTES_MAX,
            BodyMax::Environment => ENVIRONMENT_BODY_BYTES_MAX,
            BodyMax::Hashes => HASHES_BYTES_MAX,
            BodyMax::Backup => usize::MAX,
            BodyMax::Message => limits.message_bytes_max,
            BodyMax::Program => limits.program_bytes_max,
        }
    }
}

impl Route {
    /// Whether it is kept from pages of other origins.
    pub fn is_management(&self) -> bool {
        self.class == Class::Management
    }

    /// The handler, which finds its row in the extensions of the request.
    pub(super) fn method_router(&'static self, state: &Arc<Gateway>) -> MethodRouter<Arc<Gateway>> {
        let router = (self.handler)().layer(Extension(self));
        match self.class {
            Class::Client => router,
            Class::Management => {
                router.route_layer(from_fn_with_state(state.clone(), access::management))
            }
        }
    }
}
