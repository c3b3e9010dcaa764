//! The threads that serve sockets, and the bounds on connections.

mod address_counts;
mod descriptors;
mod polls;
mod slot;
mod threads;

pub use address_counts::{counted_as, AddressCounts};
pub use descriptors::Descriptors;
pub use polls::{timed, Polls};
pub use slot::{ConnectionSlot, Counted};
pub use threads::{Network, Place, Stage};
