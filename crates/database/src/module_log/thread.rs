//! The thread that writes the module logs of all databases, and removes what is too old.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::buffer::LogBuffer;
use super::clock::EvenClock;

/// How often a line says what was left out.
const TELL_INTERVAL: Duration = Duration::from_secs(1);
/// How often all open logs are looked through for files of long ago.
const VISIT_INTERVAL: Duration = Duration::from_secs(20 * 60);

enum Work {
    /// There are lines. The queue holds each log at most once so: [`LogBuffer::take`].
    Write(Arc<LogBuffer>),
    Opened(Weak<LogBuffer>),
}

static QUEUE: OnceLock<Option<Sender<Work>>> = OnceLock::new();

/// Has the log written soon.
pub(super) fn wake(log: &Arc<LogBuffer>) {
    if !send(Work::Write(log.clone())) {
        log.flush(true);
    }
}

/// Has old files of the log removed for as long as it is open.
pub(super) fn opened(log: &Arc<LogBuffer>) {
    send(Work::Opened(Arc::downgrade(log)));
}

/// False if there is no thread.
fn send(work: Work) -> bool {
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("module-log".to_owned());
        match thread.spawn(move || run(&receiver)) {
            Ok(_) => Some(sender),
            Err(error) => {
                tracing::error!(%error, "no thread for module logs; each thread that logs writes itself");
                None
            }
        }
    });
    queue.as_ref().is_some_and(|queue| queue.send(work).is_ok())
}

fn run(queue: &Receiver<Work>) {
    let mut open = OpenLogs::new();
    // Logs from which something was left out.
    let mut to_tell: Vec<Weak<LogBuffer>> = Vec::new();
    let mut told = Instant::now();
    loop {
        let wait = match to_tell.is_empty() {
            true => VISIT_INTERVAL,
            false => TELL_INTERVAL,
        };
        match queue.recv_timeout(wait) {
            Ok(Work::Write(log)) => {
                let known =
                    |other: &Weak<LogBuffer>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(&log));
                if log.flush(false) && !to_tell.iter().any(known) {
                    to_tell.push(Arc::downgrade(&log));
                }
            }
            Ok(Work::Opened(log)) => open.add(log),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if told.elapsed() >= TELL_INTERVAL {
            to_tell.retain(|log| log.upgrade().is_some_and(|log| log.flush(true)));
            told = Instant::now();
        }
        open.visit_when_due();
    }
}

/// The logs of open databases, which are looked through from time to time, once the clock is believed.
pub(super) struct OpenLogs {
    logs: Vec<Weak<LogBuffer>>,
    clock: EvenClock,
    visited: Instant,
}

impl OpenLogs {
    fn new() -> OpenLogs {
        let now = Instant::now();
        OpenLogs {
            logs: Vec::new(),
            clock: EvenClock::new(SystemTime::now(), now),
            visited: now,
        }
    }

    fn clock_is_even(&mut self) -> bool {
        self.clock.is_even(SystemTime::now(), Instant::now())
    }

    fn add(&mut self, log: Weak<LogBuffer>) {
        let is_believed = self.clock_is_even();
        OpenLogs::visit(std::slice::from_ref(&log), is_believed);
        // Those that were closed need not stay until the next visit.
        if self.logs.len() == self.logs.capacity() {
            self.logs.retain(|log| log.strong_count() > 0);
        }
        self.logs.push(log);
    }

    fn visit_when_due(&mut self) {
        if self.visited.elapsed() < VISIT_INTERVAL {
            return;
        }
        self.visited = Instant::now();
        self.logs.retain(|log| log.strong_count() > 0);
        let is_believed = self.clock_is_even();
        OpenLogs::visit(&self.logs, is_believed);
    }

    /// Removes what is too old, if the clock is believed.
    pub(super) fn visit(logs: &[Weak<LogBuffer>], is_believed: bool) {
        let logs = logs.iter().filter(|_| is_believed);
        for log in logs.filter_map(Weak::upgrade) {
            log.files.lock().remove_days();
        }
    }
}
