//! `[databases]`: how long a database stays open that is not used.

use std::time::Duration;

use lightcone_limits::duration;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Databases {
    /// Zero: it is not closed.
    #[serde(deserialize_with = "duration::read")]
    pub idle_close_after: Duration,
}

impl Default for Databases {
    fn default() -> Self {
        Self {
            idle_close_after: Duration::from_secs(15 * 60),
        }
    }
}
