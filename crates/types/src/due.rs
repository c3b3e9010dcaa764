//! When something that rests is to be woken.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// When a database that is closed is to be opened without a request. The sooner is the lesser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Due {
    /// At once: it may have something to do.
    Open,
    /// It has planned a call for then, and nothing before.
    At(Timestamp),
    /// It has nothing to do.
    Never,
}
