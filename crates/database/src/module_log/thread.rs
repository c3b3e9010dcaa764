//! The thread that writes the module logs of all databases.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::Inner;

/// How often a line says what was left out.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// The queue holds each log at most once: [`super::Pending::is_queued`].
static QUEUE: OnceLock<Option<Sender<Arc<Inner>>>> = OnceLock::new();

/// Has the log written soon.
pub(super) fn wake(log: &Arc<Inner>) {
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("module-log".to_owned());
        match thread.spawn(move || run(&receiver)) {
            Ok(_) => Some(sender),
            Err(error) => {
                tracing::error!(%error, "no thread for module logs; whoever logs writes");
                None
            }
        }
    });
    if queue
        .as_ref()
        .is_none_or(|queue| queue.send(log.clone()).is_err())
    {
        log.flush(true);
    }
}

fn run(queue: &Receiver<Arc<Inner>>) {
    // Logs from which something was left out.
    let mut to_tell: Vec<Weak<Inner>> = Vec::new();
    let mut told = Instant::now();
    loop {
        let log = match to_tell.is_empty() {
            true => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => queue.recv_timeout(TELL_INTERVAL),
        };
        match log {
            Ok(log) => {
                let known = |other: &Weak<Inner>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(&log));
                if log.flush(false) && !to_tell.iter().any(known) {
                    to_tell.push(Arc::downgrade(&log));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if told.elapsed() >= TELL_INTERVAL {
            to_tell.retain(|log| log.upgrade().is_some_and(|log| log.flush(true)));
            told = Instant::now();
        }
    }
}
