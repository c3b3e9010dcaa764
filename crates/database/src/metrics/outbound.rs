//! Requests of modules to the outside.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counted by many tasks at a time.
#[derive(Default)]
pub(crate) struct OutboundCounters {
    begun: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
}

impl OutboundCounters {
    /// A request with a body of so many bytes begins.
    pub fn begin(&self, body_bytes: usize) {
        self.begun.fetch_add(1, Relaxed);
        self.request_bytes.fetch_add(body_bytes as u64, Relaxed);
    }

    /// It was answered with a body of so many bytes, or not.
    pub fn end(&self, body_bytes: Option<usize>) {
        match body_bytes {
            Some(bytes) => {
                self.answered.fetch_add(1, Relaxed);
                self.response_bytes.fetch_add(bytes as u64, Relaxed);
            }
            None => {
                self.failed.fetch_add(1, Relaxed);
            }
        }
    }

    pub fn read(&self) -> OutboundMetrics {
        OutboundMetrics {
            answered: self.answered.load(Relaxed),
            failed: self.failed.load(Relaxed),
            begun: self.begun.load(Relaxed),
            request_bytes: self.request_bytes.load(Relaxed),
            response_bytes: self.response_bytes.load(Relaxed),
        }
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
