//! Building the indexes of a database that is opened, on all processors.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use lightcone_table::{Error, PartBuild};

/// The indexes of so few pages are built by the thread that opens the database: other threads would cost as much.
const PAGES_MIN: usize = 32;

/// Builds them, each on one thread.
///
/// # Errors
/// One of those that there were.
pub(crate) fn build_all(builds: Vec<PartBuild<'_>>, page_count: usize) -> Result<(), Error> {
    let threads = match page_count < PAGES_MIN {
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
