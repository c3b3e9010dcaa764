//! How long tasks keep a network thread from the others on it.
//!
//! A thread serves thousands of connections, one after the other: what one of them computes, all others wait for. So whatever takes
//! longer is done elsewhere, and what slips through shows here.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// Others notice what takes longer.
const SLOW: Duration = Duration::from_millis(5);

/// What the tasks of a server's connections have taken.
#[derive(Debug, Default)]
pub struct Polls {
    longest_ns: AtomicU64,
    slow: AtomicU64,
}

impl Polls {
    /// The longest time that one has kept its thread since the start.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.load(Relaxed))
    }

    /// How often one has kept it for too long.
    pub fn slow(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if nanos > self.longest_ns.load(Relaxed) {
            self.longest_ns.fetch_max(nanos, Relaxed);
        }
        if time > SLOW {
            self.slow.fetch_add(1, Relaxed);
            tracing::debug!(?time, "a task kept a network thread");
        }
    }
}

/// Runs a task, and notes how long it keeps its thread.
pub async fn timed<F: Future>(polls: Arc<Polls>, task: F) -> F::Output {
    let mut task = pin!(task);
    poll_fn(move |context| {
        let since = clock::now();
        let polled = task.as_mut().poll(context);
        polls.took(clock::now().saturating_sub(since));
        polled
    })
    .await
}

/// What others wait for is time by the clock, which costs 30 ns to read.
#[cfg(not(debug_assertions))]
mod clock {
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    pub fn now() -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// The time of the thread itself, a system call: a busy machine makes no task slow, so that tests may insist.
#[cfg(debug_assertions)]
mod clock {
    use std::time::Duration;

    use rustix::time::{clock_gettime, ClockId};

    pub fn now() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_computes_is_noticed_and_one_that_waits_is_not() {
        let polls = Arc::new(Polls::default());
        timed(polls.clone(), tokio::time::sleep(4 * SLOW)).await;
        assert_eq!(polls.slow(), 0, "{:?}", polls.longest());
        let computing = async {
            let since = clock::now();
            while clock::now() - since < 2 * SLOW {}
        };
        timed(polls.clone(), computing).await;
        assert_eq!(polls.slow(), 1);
        assert!(polls.longest() >= 2 * SLOW);
    }
}
