//! Messages of outbox tables, and those of other databases.

use lightcone_engine::Counter;

/// Counted by the writer alone.
#[derive(Default)]
pub(crate) struct MessageCounters {
    pub waiting: Counter,
    pub under_way: Counter,
    pub delivered: Counter,
    pub failed: Counter,
    pub retried: Counter,
    pub received: Counter,
}

impl MessageCounters {
    pub fn read(&self) -> MessageMetrics {
        MessageMetrics {
            waiting: self.waiting.get(),
            under_way: self.under_way.get(),
            delivered: self.delivered.get(),
            failed: self.failed.get(),
            retried: self.retried.get(),
            received: self.received.get(),
        }
    }
}

/// What became of the messages of a database, and of those to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageMetrics {
    /// Without a result, those under way among them.
    pub waiting: u64,
    pub under_way: u64,
    /// The reducer of the target succeeded.
    pub delivered: u64,
    /// It failed, or can never be called.
    pub failed: u64,
    /// Attempts that are repeated.
    pub retried: u64,
    /// Messages of other databases that were applied, or never can be.
    pub received: u64,
}

impl MessageMetrics {
    pub fn add(&mut self, other: &MessageMetrics) {
        self.waiting += other.waiting;
        self.under_way += other.under_way;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.retried += other.retried;
        self.received += other.received;
    }
}
