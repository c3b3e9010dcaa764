//! Locks by identity, made when they are wanted and gone when they are unused.

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_types::Identity;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

#[derive(Clone, Default)]
pub struct NameLocks(Arc<Mutex<HashMap<Identity, Lock>>>);

/// Holds a lock, or waits for it.
pub struct NameLock {
    locks: NameLocks,
    identity: Identity,
    guard: Option<OwnedMutexGuard<()>>,
}

impl NameLocks {
    pub async fn lock(&self, identity: &Identity) -> NameLock {
        let lock = self.0.lock().entry(*identity).or_default().clone();
        // First, so that a wait that is given up leaves nothing behind.
        let mut held = NameLock {
            locks: self.clone(),
            identity: *identity,
            guard: None,
        };
        held.guard = Some(lock.lock_owned().await);
        held
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        self.guard = None;
        let mut map = self.locks.0.lock();
        let is_last = |lock: &Lock| Arc::strong_count(lock) == 1;
        if map.get(&self.identity).is_some_and(is_last) {
            map.remove(&self.identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn locks_exclude_by_identity_and_go() {
        let locks = NameLocks::default();
        let (a, b) = (
            Identity::from_le_bytes([1; 32]),
            Identity::from_le_bytes([2; 32]),
        );
        let first = locks.lock(&a).await;
        let other = locks.lock(&b).await;
        let blocked = tokio::time::timeout(Duration::from_millis(1), locks.lock(&a)).await;
        assert!(blocked.is_err());
        drop((first, other));
        assert!(
            locks.0.lock().is_empty(),
            "also after a wait that was given up"
        );
        drop(locks.lock(&a).await);
        assert!(locks.0.lock().is_empty());
    }
}
