//! The one key of `[websocket]` that is no limit.

use serde::{Deserialize, Deserializer};

/// Uncompressed messages are legal whatever a client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionChoice {
    /// Never: the least work and latency.
    #[default]
    Off,
    /// As the client asked, except gzip: a client of the reference loses the order of gzip messages (05 §3.2).
    KeepOrder,
    /// As the client asked.
    AsAsked,
}

impl CompressionChoice {
    pub(crate) const WORDS: [(&'static str, CompressionChoice); 3] = [
        ("off", CompressionChoice::Off),
        ("keep-order", CompressionChoice::KeepOrder),
        ("as-asked", CompressionChoice::AsAsked),
    ];
}

impl<'de> Deserialize<'de> for CompressionChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::word::one_of(deserializer, &CompressionChoice::WORDS)
    }
}
