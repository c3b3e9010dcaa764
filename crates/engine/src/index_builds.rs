//! Building the indexes of a database that is loaded, on all processors or on one.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use lightcone_table::{Error, PartBuild};

/// The indexes of so few pages are built by the thread that opens the database: other threads would cost as much.
const PAGES_MIN: usize = 32;

/// How much of the machine loading may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    /// Others run meanwhile.
    One,
    All,
}

/// Builds them, each on one thread.
///
/// # Errors
/// One of those that there were.
pub(crate) fn build_all(
    builds: Vec<PartBuild<'_>>,
    page_count: usize,
    processors: Processors,
) -> Result<(), Error> {
    let threads = match processors == Processors::One || page_count < PAGES_MIN {
        true => 1,
        false => available_parallelism().map_or(1, usize::from),
    };
    let helpers = threads.min(builds.len()).saturating_sub(1);
    let builds = Mutex::new(builds.into_iter());
    let next = || {
        let mut builds = builds.lock().unwrap_or_else(PoisonError::into_inner);
        builds.next()
    };
    let work = || std::iter::from_fn(next).try_for_each(|build| build());
    thread::scope(|scope| {
        // Where the system has no more threads, there are fewer.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (0..helpers).filter_map(spawn).collect();
        let built = work();
        let joined = helpers.into_iter().map(|helper| {
            let joined = helper.join();
            joined.unwrap_or_else(|panic| resume_unwind(panic))
        });
        built.and(joined.fold(Ok(()), Result::and))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::{current, ThreadId};

    use super::*;

    #[test]
    fn one_processor_is_the_thread_that_asks() {
        let seen = Mutex::new(HashSet::<ThreadId>::new());
        let note = || -> Result<(), Error> {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(current().id());
            Ok(())
        };
        let builds = (0..100).map(|_| Box::new(note) as PartBuild<'_>);
        build_all(builds.collect(), 1_000, Processors::One).expect("they are built");
        let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen, HashSet::from([current().id()]));
    }
}
