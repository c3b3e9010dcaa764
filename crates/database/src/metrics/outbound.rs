//! Requests of modules to the outside.

use parking_lot::Mutex;

/// Counted by many tasks at a time.
#[derive(Default)]
pub(crate) struct OutboundCounters(Mutex<OutboundMetrics>);

impl OutboundCounters {
    /// A request with a body of so many bytes begins.
    pub fn begin(&self, body_bytes: usize) {
        let mut counted = self.0.lock();
        counted.begun += 1;
        counted.request_bytes += body_bytes as u64;
    }

    /// It was answered with a body of so many bytes, or not.
    pub fn end(&self, body_bytes: Option<usize>) {
        let mut counted = self.0.lock();
        match body_bytes {
            Some(bytes) => {
                counted.answered += 1;
                counted.response_bytes += bytes as u64;
            }
            None => counted.failed += 1,
        }
    }

    pub fn read(&self) -> OutboundMetrics {
        *self.0.lock()
    }
}

/// What the module's functions have asked the outside for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutboundMetrics {
    pub begun: u64,
    /// With any status.
    pub answered: u64,
    /// Without an answer: refused, timed out, given up because their call ended.
    pub failed: u64,
    /// Of bodies.
    pub request_bytes: u64,
    pub response_bytes: u64,
}

impl OutboundMetrics {
    pub fn under_way(&self) -> u64 {
        self.begun.saturating_sub(self.answered + self.failed)
    }

    /// The calls that wait for what is under way end with their database.
    pub(super) fn leave(&mut self) {
        self.failed += self.under_way();
    }

    pub fn add(&mut self, other: &OutboundMetrics) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.failed += other.failed;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
    }
}
