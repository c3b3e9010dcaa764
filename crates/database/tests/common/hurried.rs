//! A machine whose time passes faster, so that tests need not wait as long as users.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_database::{Alarm, Environment, Machine, Task, Work};
use lightcone_types::Timestamp;

/// The machine, for whose databases time passes so many times as fast. The time of day is that of the machine.
#[derive(Debug)]
pub struct Hurried {
    machine: Arc<Machine>,
    begun: Instant,
    times: u32,
}

impl Hurried {
    pub fn machine(times: u32) -> Arc<Hurried> {
        Arc::new(Hurried {
            machine: Machine::current(),
            begun: Instant::now(),
            times,
        })
    }
}

impl Environment for Hurried {
    fn now(&self) -> Timestamp {
        self.machine.now()
    }

    fn instant(&self) -> Instant {
        self.begun + self.begun.elapsed() * self.times
    }

    fn random(&self) -> u128 {
        self.machine.random()
    }

    fn spawn_thread(&self, name: &str, stack_bytes: usize, work: Work) -> io::Result<()> {
        self.machine.spawn_thread(name, stack_bytes, work)
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
