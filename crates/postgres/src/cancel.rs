//! Statements that their clients do not want any more. The request comes on a connection of its own, without a login; the key
//! that a session got at its start proves whose it is.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::messages::SessionKey;

/// All sessions, by their numbers. As many as there are connections.
#[derive(Default)]
pub(super) struct Cancels {
    sessions: Mutex<HashMap<u32, (u32, Asked)>>,
}

/// Whether the end of the statement is asked for.
type Asked = Arc<watch::Sender<bool>>;

/// A session that can be cancelled, until it is dropped.
pub(super) struct Cancellable {
    all: Arc<Cancels>,
    key: SessionKey,
    asked: Asked,
}

impl Cancels {
    /// A new session.
    pub fn enter(self: &Arc<Cancels>) -> Cancellable {
        let asked = Asked::default();
        let secret = rand::random();
        let mut sessions = self.sessions.lock();
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
        let sessions = self.sessions.lock();
        let Some((secret, asked)) = sessions.get(&key.number) else {
            return;
        };
        if *secret == key.secret {
            asked.send_replace(true);
        }
    }
}

impl Cancellable {
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// A statement begins: what was asked before did not mean it.
    pub fn begin(&self) {
        self.asked.send_replace(false);
    }

    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Completes when the client does not want the statement any more.
    ///
    /// Cancel safe.
    pub async fn asked(&self) {
        // Its sender is here.
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.all.sessions.lock().remove(&self.key.number);
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
        assert_eq!(cancels.sessions.lock().len(), 1);
    }
}
