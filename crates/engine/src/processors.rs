//! The work of loading a database, on all processors or on one.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use crate::error::RecoveryError;

/// What there is to do for so few pages is done by the thread that loads the database: other threads would cost as much.
const PAGES_MIN: usize = 32;

/// How much of the machine loading may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    /// Others run meanwhile.
    One,
    All,
}

/// As many threads as there are processors, less these, help all together, however many databases are loaded at a time: each of those
/// has a thread of its own.
const PROCESSORS_LEFT: usize = 1;

/// Those of the process.
static HELPERS: Helpers = Helpers(AtomicUsize::new(0));

struct Helpers(AtomicUsize);

/// The right to be one of them.
struct Helper<'h>(&'h Helpers);

impl Helpers {
    fn take(&self, helpers_max: usize) -> Option<Helper<'_>> {
        let one_more = |taken| (taken < helpers_max).then_some(taken + 1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Helper(self))
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        self.0 .0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that panics ends the work of all.
struct EndsAtPanic<'a>(&'a AtomicBool);

impl Drop for EndsAtPanic<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(thread::panicking(), Ordering::Relaxed);
    }
}

/// A piece of it.
pub(crate) type Work<'w, T> = Box<dyn FnOnce() -> Result<T, RecoveryError> + Send + 'w>;

/// Does it all, each piece on one thread, and gives what comes of each. The calling thread asks `may_go_on` before each piece that
/// it takes itself.
///
/// # Errors
/// Of those that there were, that of the first piece. No other is begun then.
pub(crate) fn do_all<T: Send>(
    works: Vec<Work<'_, T>>,
    page_count: usize,
    processors: Processors,
    may_go_on: &dyn Fn() -> bool,
) -> Result<Vec<T>, RecoveryError> {
    let helpers_max = match processors == Processors::One || page_count < PAGES_MIN {
        true => 0,
        false => available_parallelism().map_or(0, |processors| processors.get() - PROCESSORS_LEFT),
    };
    let helpers = helpers_max.min(works.len().saturating_sub(1));
    let works = Mutex::new(works.into_iter().enumerate());
    let next = || {
        let mut works = works.lock().unwrap_or_else(PoisonError::into_inner);
        works.next()
    };
    let is_over = AtomicBool::new(false);
    let run = |may_go_on: &dyn Fn() -> bool| {
        let _ends = EndsAtPanic(&is_over);
        let mut done = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let result = match may_go_on() {
                true => next().map(|(index, work)| (index, work())),
                false => Some((usize::MAX, Err(RecoveryError::GivenUp))),
            };
            let Some((index, result)) = result else {
                break;
            };
            is_over.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((index, result));
        }
        done
    };
    let run = &run;
    let mut done = thread::scope(|scope| {
        // Where the system has no more threads, there are fewer, as where others load databases.
        let spawn = |_| {
            let helper = HELPERS.take(helpers_max)?;
            let help = move || {
                let _helper = helper;
                run(&|| true)
            };
            thread::Builder::new().spawn_scoped(scope, help).ok()
        };
        let helpers: Vec<_> = (0..helpers).filter_map(spawn).collect();
        let mut done = run(may_go_on);
        for helper in helpers {
            let joined = helper.join();
            done.extend(joined.unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    // They were begun in this order, so what is missing comes after an error.
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::{current, ThreadId};

    use super::*;

    #[test]
    fn one_processor_is_the_thread_that_asks() {
        let seen = Mutex::new(HashSet::<ThreadId>::new());
        let note = || -> Result<(), RecoveryError> {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(current().id());
            Ok(())
        };
        let works = (0..100).map(|_| Box::new(note) as Work<'_, ()>);
        do_all(works.collect(), 1_000, Processors::One, &|| true).expect("it is done");
        let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen, HashSet::from([current().id()]));
    }

    #[test]
    fn helpers_have_a_bound_and_are_given_back() {
        let helpers = Helpers(AtomicUsize::new(0));
        assert!(helpers.take(0).is_none());
        for _ in 0..3 {
            let taken = [helpers.take(2), helpers.take(2)];
            assert!(taken.iter().all(Option::is_some) && helpers.take(2).is_none());
        }
    }

    #[test]
    fn a_panic_ends_the_work() {
        let is_over = AtomicBool::new(false);
        let works = (0..100).map(|nth| -> Work<'_, ()> {
            Box::new(move || {
                assert_ne!(nth, 50, "a bug");
                Ok(())
            })
        });
        let all = || do_all(works.collect(), 1_000, Processors::All, &|| true).map(drop);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(all));
        assert!(ended.is_err());
        let ends = |is_wrong: bool| {
            let _ends = EndsAtPanic(&is_over);
            assert!(!is_wrong, "a bug");
        };
        assert!(std::panic::catch_unwind(|| ends(true)).is_err());
        assert!(is_over.into_inner());
    }
}
