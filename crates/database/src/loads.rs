//! Module code that runs before a database has a thread of its own: compiling, the load phase, `init` of a new database.
//!
//! Most of it stops at its limits. What cannot be stopped (endless work inside of the engine) runs on a thread that is given
//! up after a deadline: no caller waits for it, it gets what others leave of the processors, and it is counted. While too many
//! of them run, no more begin.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use lightcone_types::{Hash, Identity};
use parking_lot::Mutex;

use crate::environment::Environment;

/// How soon a waiting thread sees that the server stops.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// One owner may have this share of the threads that may be given up, so that his modules do not refuse those of all others.
const OWNER_SHARE: usize = 2;
/// So many times more threads may be given up before stored databases do not open: hostile publishes alone must not close them.
const OPEN_FACTOR: usize = 4;

/// What module code is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Publish,
    Open,
}

/// Why module code did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "the module did not finish loading within {} s and cannot be stopped: it does endless work inside of the engine; \
         mend its top-level code [LC0121]", .0.as_secs()
    )]
    GivenUp(Duration),
    #[error(
        "this program was tried before and still runs: it does endless work inside of the engine; mend its top-level code [LC0121]"
    )]
    StillRuns,
    #[error(
        "{0} modules that cannot be stopped run in this server, so it loads no more of them; try again later, or restart the server [LC0122]"
    )]
    TooMany(usize),
    #[error(
        "{0} modules of this owner that cannot be stopped run in this server, so it loads no more of his; mend their top-level \
         code, and try again when the server was restarted [LC0122]"
    )]
    TooManyOfOwner(usize),
    #[error("the server is stopping")]
    Stopping,
    #[error("the operating system has no thread for the module: {0}")]
    NoThread(std::io::Error),
}

impl LoadError {
    /// Whether the module is not at fault, so that another attempt may succeed.
    pub fn is_busy(&self) -> bool {
        match self {
            LoadError::GivenUp(_) | LoadError::StillRuns => false,
            LoadError::TooMany(_)
            | LoadError::TooManyOfOwner(_)
            | LoadError::Stopping
            | LoadError::NoThread(_) => true,
        }
    }
}

/// The threads that load modules; one for all databases of a server.
#[derive(Debug)]
pub struct Loads {
    given_up_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stopping: bool,
    next: u64,
    given_up: Vec<GivenUp>,
    given_up_total: u64,
}

/// A thread that no caller waits for any more.
#[derive(Debug)]
struct GivenUp {
    id: u64,
    program: Hash,
    owner: Identity,
}

impl Default for Loads {
    fn default() -> Self {
        Loads::new(lightcone_limits::Limits::default().loads_given_up_max)
    }
}

impl Loads {
    /// Publishes are refused while `given_up_max` threads that were given up still run, and an owner's while half as many of
    /// his do.
    pub fn new(given_up_max: usize) -> Loads {
        Loads {
            given_up_max,
            state: Mutex::default(),
        }
    }

    /// Those who wait for a thread stop waiting, and no more begin.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
    }

    /// Threads that were given up and still run.
    pub fn given_up(&self) -> usize {
        self.state.lock().given_up.len()
    }

    /// Threads that were ever given up.
    pub fn given_up_total(&self) -> u64 {
        self.state.lock().given_up_total
    }

    /// Would a publish of this owner be refused now?
    ///
    /// # Errors
    /// Why.
    pub fn check(&self, owner: &Identity) -> Result<(), LoadError> {
        self.state
            .lock()
            .check(self.given_up_max, Purpose::Publish, owner)
    }

    fn admit(&self, task: &Task) -> Result<u64, LoadError> {
        let mut state = self.state.lock();
        let mut given_up = state.given_up.iter();
        if !state.stopping && given_up.any(|thread| thread.program == task.program) {
            return Err(LoadError::StillRuns);
        }
        state.check(self.given_up_max, task.purpose, &task.owner)?;
        state.next += 1;
        Ok(state.next)
    }

    /// Runs module code on a thread of its own, and waits for it until the deadline.
    pub(crate) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        environment: &dyn Environment,
        task: Task,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LoadError> {
        let id = self.admit(&task)?;
        let (sender, receiver) = sync_channel(1);
        let thread = Arc::new(AtomicI32::new(0));
        let (loads, number) = (self.clone(), thread.clone());
        let body = move || {
            number.store(thread_number(), Relaxed);
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
            // After the result is there: see `give_up`.
            loads.state.lock().given_up.retain(|other| other.id != id);
        };
        environment
            .spawn_thread("load", task.stack_bytes, Box::new(body))
            .map_err(LoadError::NoThread)?;
        let started = environment.instant();
        loop {
            match receiver.recv_timeout(STOP_INTERVAL) {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the thread sends before it ends")
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let mut state = self.state.lock();
            if !state.stopping && environment.instant() - started < task.deadline {
                continue;
            }
            // Under the lock: a thread that sends after this look finds itself in the list.
            match receiver.try_recv() {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => {}
            }
            state.given_up.push(GivenUp {
                id,
                program: task.program,
                owner: task.owner,
            });
            if state.stopping {
                return Err(LoadError::Stopping);
            }
            state.given_up_total += 1;
            drop(state);
            yield_to_others(thread.load(Relaxed));
            tracing::error!(program = %task.program.to_hex(), "a module that loads cannot be stopped; its thread was given up [LC0121]");
            return Err(LoadError::GivenUp(task.deadline));
        }
    }
}

impl State {
    fn check(
        &self,
        given_up_max: usize,
        purpose: Purpose,
        owner: &Identity,
    ) -> Result<(), LoadError> {
        if self.stopping {
            return Err(LoadError::Stopping);
        }
        let all = self.given_up.len();
        if purpose == Purpose::Open {
            return match all >= given_up_max * OPEN_FACTOR {
                true => Err(LoadError::TooMany(all)),
                false => Ok(()),
            };
        }
        if all >= given_up_max {
            return Err(LoadError::TooMany(all));
        }
        let of_owner = self.given_up.iter().filter(|thread| thread.owner == *owner);
        let of_owner = of_owner.count();
        match of_owner >= (given_up_max / OWNER_SHARE).max(1) {
            true => Err(LoadError::TooManyOfOwner(of_owner)),
            false => Ok(()),
        }
    }
}

/// What is run, for whom, and within which bounds.
pub(crate) struct Task {
    pub purpose: Purpose,
    pub program: Hash,
    pub owner: Identity,
    pub stack_bytes: usize,
    pub deadline: Duration,
}

#[cfg(target_os = "linux")]
fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(not(target_os = "linux"))]
fn thread_number() -> i32 {
    0
}

/// The thread gets the least share of the processors.
#[cfg(target_os = "linux")]
fn yield_to_others(thread: i32) {
    let Some(thread) = rustix::thread::Pid::from_raw(thread) else {
        return;
    };
    // Linux has a priority for each thread.
    if let Err(error) = rustix::process::setpriority_process(Some(thread), 19) {
        tracing::warn!(%error, "the thread of a module that cannot be stopped keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn yield_to_others(_: i32) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;
    use std::sync::mpsc::channel;

    /// Each program has an owner of its own, unless it says otherwise.
    fn task(purpose: Purpose, program: u8, deadline: Duration) -> Task {
        Task {
            purpose,
            program: Hash([program; 32]),
            owner: Identity::from_le_bytes([program; 32]),
            stack_bytes: 1 << 20,
            deadline,
        }
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn results_and_panics_come_back() {
        let loads = Arc::new(Loads::default());
        let seven = loads.run(&*machine(), task(Purpose::Publish, 1, LONG), || 7);
        assert_eq!(seven.expect("it ends"), 7);
        let panic = std::panic::catch_unwind(AssertUnwindSafe(|| {
            loads.run(&*machine(), task(Purpose::Publish, 1, LONG), || {
                panic!("as it is")
            })
        }));
        assert!(panic.is_err());
        assert_eq!(loads.given_up(), 0);
    }

    #[test]
    fn threads_that_do_not_end_are_given_up_counted_and_bounded() {
        let loads = Arc::new(Loads::new(2));
        let mut held = Vec::new();
        let mut hang = |purpose, program| {
            let (release, wait) = channel::<()>();
            held.push(release);
            loads.run(
                &*machine(),
                task(purpose, program, Duration::ZERO),
                move || {
                    let _ = wait.recv();
                },
            )
        };
        for program in 0..2 {
            assert!(matches!(
                hang(Purpose::Publish, program),
                Err(LoadError::GivenUp(_))
            ));
        }
        assert!(matches!(
            hang(Purpose::Publish, 0),
            Err(LoadError::StillRuns)
        ));
        assert!(matches!(
            hang(Purpose::Publish, 2),
            Err(LoadError::TooMany(2))
        ));
        assert!(loads.check(&Identity::ZERO).is_err());
        // Stored databases open all the same, up to a bound of their own.
        let opened = loads.run(&*machine(), task(Purpose::Open, 3, LONG), || "open");
        assert_eq!(opened.expect("opens"), "open");
        for program in 10..16 {
            assert!(matches!(
                hang(Purpose::Open, program),
                Err(LoadError::GivenUp(_))
            ));
        }
        assert!(matches!(
            hang(Purpose::Open, 20),
            Err(LoadError::TooMany(8))
        ));
        assert_eq!((loads.given_up(), loads.given_up_total()), (8, 8));
        // A thread that ends after all makes room.
        held.clear();
        while loads.given_up() > 0 {
            std::thread::yield_now();
        }
        loads.check(&Identity::ZERO).expect("room again");
    }

    #[test]
    fn the_threads_of_one_owner_do_not_refuse_all_owners() {
        let loads = Arc::new(Loads::new(4));
        let (alice, mallory) = (Identity::ZERO, Identity::from_le_bytes([9; 32]));
        let mut held = Vec::new();
        let mut hang = |program| {
            let (release, wait) = channel::<()>();
            held.push(release);
            let task = Task {
                owner: mallory,
                ..task(Purpose::Publish, program, Duration::ZERO)
            };
            loads.run(&*machine(), task, move || {
                let _ = wait.recv();
            })
        };
        assert!(matches!(hang(1), Err(LoadError::GivenUp(_))));
        assert!(matches!(hang(2), Err(LoadError::GivenUp(_))));
        assert!(matches!(hang(3), Err(LoadError::TooManyOfOwner(2))));
        assert!(loads.check(&mallory).is_err());
        loads.check(&alice).expect("others go on");
        let loaded = loads.run(&*machine(), task(Purpose::Publish, 4, LONG), || "loaded");
        assert_eq!(loaded.expect("others go on"), "loaded");
    }

    #[test]
    fn a_stop_does_not_wait() {
        let loads = Arc::new(Loads::default());
        let (release, wait) = channel::<()>();
        let (entered, inside) = channel();
        let stopper = loads.clone();
        let stopping = std::thread::spawn(move || {
            inside.recv().expect("the work begins");
            stopper.stop();
        });
        let stopped = loads.run(&*machine(), task(Purpose::Publish, 1, LONG), move || {
            let _ = entered.send(());
            let _ = wait.recv();
        });
        assert!(matches!(stopped, Err(LoadError::Stopping)));
        stopping.join().expect("no panic");
        drop(release);
        let refused = loads.run(&*machine(), task(Purpose::Open, 2, LONG), || ());
        assert!(matches!(refused, Err(LoadError::Stopping)));
    }
}
