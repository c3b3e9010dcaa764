//! Threads for compilation, started once for the process.

use lightcone_host::HostError;
use parking_lot::{Condvar, Mutex};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Compiled at a time; others wait. A slow program holds up no other as long as there are fewer.
const PROGRAMS_MAX: usize = 4;
/// The stack of a compiling thread.
const STACK_BYTES: usize = 8 << 20;

/// Groups of threads, each with one thread per CPU. A group compiles one program, and is kept for the next one.
struct Compilers {
    groups: Mutex<Groups>,
    /// Signalled when a group is free, or may be started.
    freed: Condvar,
}

#[derive(Default)]
struct Groups {
    free: Vec<ThreadPool>,
    started: usize,
}

static COMPILERS: Compilers = Compilers {
    groups: Mutex::new(Groups {
        free: Vec::new(),
        started: 0,
    }),
    freed: Condvar::new(),
};

/// Threads for one program.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on the threads of a group. Fails if the system has none.
pub(crate) fn run<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, HostError> {
    let group = Group::take()?;
    Ok(group.pool().install(work))
}

/// A group in use. On drop it is free, also after a panic.
struct Group(Option<ThreadPool>);

impl Group {
    fn take() -> Result<Group, HostError> {
        let mut groups = COMPILERS.groups.lock();
        loop {
            if let Some(pool) = groups.free.pop() {
                return Ok(Group(Some(pool)));
            }
            if groups.started < PROGRAMS_MAX {
                groups.started += 1;
                break;
            }
            COMPILERS.freed.wait(&mut groups);
        }
        drop(groups);
        // Counts as started until that fails.
        let mut group = Group(None);
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads())
            .stack_size(STACK_BYTES)
            .thread_name(|number| format!("lc-compile-{number}"))
            .build();
        let pool =
            pool.map_err(|error| HostError::Engine(format!("can't start threads: {error}")))?;
        group.0 = Some(pool);
        Ok(group)
    }

    fn pool(&self) -> &ThreadPool {
        self.0.as_ref().expect("it was started")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut groups = COMPILERS.groups.lock();
        match self.0.take() {
            Some(pool) => groups.free.push(pool),
            None => groups.started -= 1,
        }
        drop(groups);
        COMPILERS.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn threads_are_started_once() {
        let names = Mutex::new(HashSet::new());
        let note = || {
            names.lock().insert(std::thread::current().id());
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        run(note).expect("there are threads");
                    }
                });
            }
        });
        let names = names.into_inner();
        assert!(names.len() <= PROGRAMS_MAX * threads(), "{}", names.len());
        let panicked = std::panic::catch_unwind(|| run(|| panic!("a bug of the compiler")));
        assert!(panicked.is_err());
        for _ in 0..PROGRAMS_MAX {
            run(|| ()).expect("the group is free again");
        }
    }
}
