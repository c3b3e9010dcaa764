//! Statements that their clients do not want any more. The request comes on a connection of its own, without a login; the key
//! that a session got at its start proves whose it is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::messages::SessionKey;

/// All sessions, by their numbers. As many as there are connections.
#[derive(Default)]
pub(super) struct Cancels {
    sessions: Mutex<HashMap<u32, (u32, Arc<Cancellation>)>>,
}

#[derive(Default)]
struct Cancellation {
    is_asked: AtomicBool,
    notify: Notify,
}

/// A session that can be cancelled, until it is dropped.
pub(super) struct Cancellable {
    all: Arc<Cancels>,
    key: SessionKey,
    asked: Arc<Cancellation>,
}

impl Cancels {
    fn sessions(&self) -> MutexGuard<'_, HashMap<u32, (u32, Arc<Cancellation>)>> {
        self.sessions
            .lock()
            .expect("no code panics while it holds the sessions")
    }

    /// A new session.
    pub fn enter(self: &Arc<Cancels>) -> Cancellable {
        let asked = Arc::new(Cancellation::default());
        let secret = rand::random();
        let mut sessions = self.sessions();
        // Drivers take it for the number of a process, which is positive.
        let number = loop {
            let number = rand::random::<u32>() >> 1;
            if number != 0 && !sessions.contains_key(&number) {
                break number;
            }
        };
        sessions.insert(number, (secret, asked.clone()));
        Cancellable {
            all: self.clone(),
            key: SessionKey { number, secret },
            asked,
        }
    }

    /// Ends what a session is doing, if the key is right. No client is told whether it was.
    pub fn cancel(&self, key: SessionKey) {
        let sessions = self.sessions();
        let Some((secret, asked)) = sessions.get(&key.number) else {
            return;
        };
        if *secret == key.secret {
            asked.is_asked.store(true, Ordering::Relaxed);
            asked.notify.notify_one();
        }
    }
}

impl Cancellable {
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// A statement begins: what was asked before did not mean it.
    pub fn begin(&self) {
        self.asked.is_asked.store(false, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.asked.is_asked.load(Ordering::Relaxed)
    }

    /// Completes when the client does not want the statement any more.
    ///
    /// Cancel safe.
    pub async fn asked(&self) {
        while !self.is_asked() {
            self.asked.notify.notified().await;
        }
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.all.sessions().remove(&self.key.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_key_of_a_session_cancels_it() {
        let cancels = Arc::new(Cancels::default());
        let (one, other) = (cancels.enter(), cancels.enter());
        let wrong = SessionKey {
            secret: one.key().secret ^ 1,
            ..one.key()
        };
        cancels.cancel(wrong);
        assert!(!one.is_asked());
        cancels.cancel(one.key());
        one.asked().await;
        assert!(one.is_asked() && !other.is_asked());
        one.begin();
        assert!(!one.is_asked());
        let key = other.key();
        drop(other);
        cancels.cancel(key);
        assert_eq!(cancels.sessions().len(), 1);
    }
}
