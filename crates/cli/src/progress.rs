//! A line that says what takes so long, on terminals only.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::output::is_dumb;
use indicatif::{ProgressBar, ProgressStyle};

/// What is done sooner needs no line.
const DELAY: Duration = Duration::from_millis(700);
const TICK: Duration = Duration::from_millis(120);

/// Other output comes at any time, and a line that moves would get in its way.
static OFF: AtomicBool = AtomicBool::new(false);

/// Shows no more progress: for commands that print while they work.
pub fn off() {
    OFF.store(true, Ordering::Relaxed);
}

/// The line, for as long as this lives. It goes to stderr, and leaves nothing there.
#[derive(Debug, Default)]
pub struct Progress {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub fn start(what: impl Into<String>) -> Self {
        let is_dumb = is_dumb(std::env::var_os("TERM").as_deref());
        if OFF.load(Ordering::Relaxed) || is_dumb || !std::io::stderr().is_terminal() {
            return Self::default();
        }
        let what = what.into();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(what);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} … {elapsed}") {
                bar.set_style(style);
            }
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self {
            thread: Some((end, thread)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            // The line is gone when this is over. A panic in there has been reported.
            let _ = thread.join();
        }
    }
}
