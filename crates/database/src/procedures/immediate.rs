//! Calls that a module asks for outside of any transaction (spec 03 §8.9). They wait here until the writer comes to them.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use lightcone_host::{HostTrap, ImmediateCalls, LimitKind};
use parking_lot::Mutex;

use crate::inbox::{Inbox, Input};
use crate::options::Limits;

/// The calls of one database that wait.
pub(crate) struct ImmediateQueue {
    waiting: Mutex<Waiting>,
    /// Who is told of the first one; not known while the database is opened.
    inbox: OnceLock<Weak<Inbox>>,
    calls_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<(String, Vec<u8>)>,
    bytes: usize,
}

impl ImmediateQueue {
    pub fn new(limits: &Limits) -> Arc<ImmediateQueue> {
        Arc::new(ImmediateQueue {
            waiting: Mutex::default(),
            inbox: OnceLock::new(),
            calls_max: limits.immediate_calls_max,
            bytes_max: limits.immediate_bytes_max,
        })
    }

    /// From now on the writer is told.
    pub fn connect(&self, inbox: &Arc<Inbox>) {
        // There is one inbox.
        let _ = self.inbox.set(Arc::downgrade(inbox));
        if !self.waiting.lock().calls.is_empty() {
            self.tell();
        }
    }

    /// What has waited for longest, with its arguments.
    pub fn take(&self) -> Option<(String, Vec<u8>)> {
        let mut waiting = self.waiting.lock();
        let (name, args) = waiting.calls.pop_front()?;
        waiting.bytes -= name.len() + args.len();
        Some((name, args))
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().calls.is_empty()
    }

    /// The writer comes back to what still waits when it has looked at its inbox.
    pub fn go_on_later(&self) {
        if !self.is_empty() {
            self.tell();
        }
    }

    fn tell(&self) {
        if let Some(inbox) = self.inbox.get().and_then(Weak::upgrade) {
            // A database that has stopped calls nothing.
            let _ = inbox.send(Input::ImmediateCalls);
        }
    }
}

impl ImmediateCalls for ImmediateQueue {
    fn schedule(&self, name: &str, args: &[u8]) -> Result<(), HostTrap> {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + name.len() + args.len();
        if waiting.calls.len() >= self.calls_max || bytes > self.bytes_max {
            return Err(HostTrap::Limit {
                kind: LimitKind::ImmediateCalls,
                limit: self.calls_max as u64,
            });
        }
        waiting.bytes = bytes;
        waiting.calls.push_back((name.to_owned(), args.to_vec()));
        let is_first = waiting.calls.len() == 1;
        drop(waiting);
        if is_first {
            self.tell();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_their_bytes_are_bounded() {
        let limits = Limits {
            immediate_calls_max: 2,
            immediate_bytes_max: 10,
            ..Limits::default()
        };
        let queue = ImmediateQueue::new(&limits);
        assert!(queue.schedule("a", &[0; 9]).is_ok());
        assert!(queue.schedule("b", &[]).is_err(), "11 bytes");
        assert_eq!(queue.take(), Some(("a".to_owned(), vec![0; 9])));
        assert_eq!(queue.take(), None);
        for _ in 0..2 {
            assert!(queue.schedule("c", &[]).is_ok());
        }
        let error = queue.schedule("c", &[]).expect_err("three calls");
        assert!(error
            .to_string()
            .contains("immediate-calls-max = 2 [LC0724]"));
    }
}
