//! What maps find things by.

use smallvec::SmallVec;

/// A key in bytes. An identity, with something beside it, needs no memory elsewhere.
pub(crate) type Key = SmallVec<[u8; 40]>;
