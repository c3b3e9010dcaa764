//! Ends the work on a question whose answer the client does not want any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Set when the work on an answer should end.
pub(super) type Cancelled = AtomicBool;

/// Cancels the work on an answer when it is dropped.
pub(super) struct CancelOnDrop(Arc<Cancelled>);

impl CancelOnDrop {
    pub fn new() -> (CancelOnDrop, Arc<Cancelled>) {
        let cancelled = Arc::new(Cancelled::new(false));
        (CancelOnDrop(cancelled.clone()), cancelled)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
