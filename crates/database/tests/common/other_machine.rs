//! The machine, with what a test wants otherwise.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_database::{Alarm, Environment, Machine, Task, Work};
use lightcone_types::Timestamp;

/// A machine with another clock, or with too few threads. [`OtherMachine::current`] differs in nothing.
#[derive(Debug)]
pub struct OtherMachine {
    pub machine: Arc<Machine>,
    pub begun: Instant,
    /// Time passes so many times as fast, and tests need not wait as long as users.
    pub times: u32,
    /// The time of day when it began. None: that of the machine, which no hurry concerns.
    pub time_of_day: Option<Timestamp>,
    /// There are no more threads of this name.
    pub without: &'static str,
}

impl OtherMachine {
    pub fn current() -> OtherMachine {
        OtherMachine {
            machine: Machine::current(),
            begun: Instant::now(),
            times: 1,
            time_of_day: None,
            without: "",
        }
    }

    pub fn hurried(times: u32) -> Arc<OtherMachine> {
        Arc::new(OtherMachine {
            times,
            ..OtherMachine::current()
        })
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed() * self.times
    }
}

impl Environment for OtherMachine {
    fn now(&self) -> Timestamp {
        match self.time_of_day {
            None => self.machine.now(),
            Some(begun) => Timestamp(begun.0 + self.elapsed().as_micros() as i64),
        }
    }

    fn instant(&self) -> Instant {
        self.begun + self.elapsed()
    }

    fn random(&self) -> u128 {
        self.machine.random()
    }

    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()> {
        match name == self.without {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.machine.spawn_thread(name, stack_bytes, work),
        }
    }

    fn spawn_blocking(&self, work: Work) {
        self.machine.spawn_blocking(work);
    }

    fn spawn_task(&self, task: Task) {
        self.machine.spawn_task(task);
    }

    fn alarm(&self, delay: Duration, work: Work) -> Alarm {
        self.machine.alarm(delay / self.times, work)
    }
}
