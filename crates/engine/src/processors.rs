//! The work of loading a database, on all processors or on one.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let threads = match processors == Processors::One || page_count < PAGES_MIN {
        true => 1,
        false => available_parallelism().map_or(1, usize::from),
    };
    let helpers = threads.min(works.len()).saturating_sub(1);
    let works = Mutex::new(works.into_iter().enumerate());
    let next = || {
        let mut works = works.lock().unwrap_or_else(PoisonError::into_inner);
        works.next()
    };
    let is_over = AtomicBool::new(false);
    let run = |may_go_on: &dyn Fn() -> bool| {
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
    let mut done = thread::scope(|scope| {
        // Where the system has no more threads, there are fewer.
        let help = || run(&|| true);
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, help).ok();
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
}
