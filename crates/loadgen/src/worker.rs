//! An event loop: one thread that drives many connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::ledger::Ledger;
use crate::load::LoadConnection;
use crate::measure::Interval;
use crate::pairs::Mulberry32;
use crate::Error;

/// How long answers are awaited after the end of the window.
const DRAIN_NS_MAX: u64 = 15_000_000_000;
/// Length of the intervals that are reported while the run goes on.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Open loop: calls that fall due within this time are sent together.
const PACE_NS: u64 = 100_000;
/// Scratch space for reading, shared by the connections of a thread.
const BUFFER_BYTES: usize = 256 * 1024;
/// Longest time before the n-th repetition of a call that gave way to others: the least of both, the
/// second one doubled n times. The time itself is random, so that rivals do not meet again.
const RETRY_NS_MAX: u64 = 200_000_000;
const RETRY_NS_BASE: u64 = 5_000_000;
const RETRY_SEED: u32 = 1;
/// The timer of the open loop; connections are numbered from 0.
const TIMER: Token = Token(usize::MAX);

/// When things happen, in nanoseconds after `base`. The same for all workers.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub base: Instant,
    /// Start of the measured window; load begins at `base`.
    pub window_start_ns: u64,
    pub window_end_ns: u64,
    /// Open loop: time between two calls of this worker.
    pub call_every_ns: Option<f64>,
    /// Open loop: time of this worker's first call.
    pub first_call_ns: f64,
}

impl Schedule {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn in_window(&self, now_ns: u64) -> bool {
        (self.window_start_ns..self.window_end_ns).contains(&now_ns)
    }
}

/// What a worker tells while it runs.
#[derive(Debug)]
pub enum Update {
    /// The window has begun.
    Started,
    /// The counts of the n-th second of the window, from 0.
    Second(usize, Box<Interval>),
    /// The worker has ended; the counts since the last full second.
    Done(Result<Box<Interval>, Error>, Option<Box<Ledger>>),
}

/// Drives the connections until the end of the window and the last answer.
pub fn run(
    connections: Vec<LoadConnection>,
    pairs: &[(u32, u32)],
    schedule: Schedule,
    ledger: Option<Ledger>,
    updates: &Sender<Update>,
) {
    let done = match Worker::new(connections, pairs, schedule, ledger) {
        Ok(mut worker) => {
            let result = worker.run(updates);
            worker.finish();
            let interval = Box::new(worker.interval);
            Update::Done(result.map(|()| interval), worker.ledger.map(Box::new))
        }
        Err(error) => Update::Done(Err(error), None),
    };
    // The receiver is gone when the run was given up.
    let _ = updates.send(done);
}

struct Worker<'a> {
    poll: Poll,
    /// Connections that ended leave their place empty.
    connections: Vec<Option<Box<LoadConnection>>>,
    /// Callers that have not ended.
    callers: usize,
    pairs: &'a [(u32, u32)],
    schedule: Schedule,
    interval: Interval,
    /// The window has ended, and what was under way then is counted.
    is_window_closed: bool,
    ledger: Option<Ledger>,
    buffer: Vec<u8>,
    pacer: Option<Pacer>,
    /// Calls that gave way to others: when they are tried again, number of the connection, request.
    retries: BinaryHeap<Reverse<(u64, usize, u32)>>,
    random: Mulberry32,
}

impl<'a> Worker<'a> {
    fn new(
        connections: Vec<LoadConnection>,
        pairs: &'a [(u32, u32)],
        schedule: Schedule,
        ledger: Option<Ledger>,
    ) -> Result<Self, Error> {
        let poll = Poll::new().map_err(Error::io("creating an event loop"))?;
        let callers = connections.iter().filter(|one| one.is_caller()).count();
        let mut connections: Vec<_> = connections
            .into_iter()
            .map(|connection| Some(Box::new(connection)))
            .collect();
        for (number, connection) in connections.iter_mut().flatten().enumerate() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry()
                .register(connection.stream(), Token(number), interest)
                .map_err(Error::io("watching a socket"))?;
        }
        let pacer = |every_ns| Pacer::new(&poll, every_ns, schedule.first_call_ns);
        let pacer = schedule.call_every_ns.map(pacer).transpose()?;
        Ok(Self {
            poll,
            connections,
            callers,
            pairs,
            schedule,
            interval: Interval::default(),
            is_window_closed: false,
            ledger,
            buffer: vec![0; BUFFER_BYTES],
            pacer,
            retries: BinaryHeap::new(),
            random: Mulberry32::new(RETRY_SEED),
        })
    }

    fn run(&mut self, updates: &Sender<Update>) -> Result<(), Error> {
        let mut events = Events::with_capacity(1024);
        let mut seconds = 0;
        let (mut has_started, mut has_paced_last) = (false, false);
        let (start_ns, end_ns) = (self.schedule.window_start_ns, self.schedule.window_end_ns);
        if self.pacer.is_none() {
            let now_ns = self.schedule.now_ns();
            self.each(|worker, connection| worker.send_all(connection, now_ns));
        }
        loop {
            let now_ns = self.schedule.now_ns();
            if now_ns >= start_ns && !has_started {
                has_started = true;
                if updates.send(Update::Started).is_err() {
                    break;
                }
            }
            let second_end_ns = start_ns + (seconds + 1) * INTERVAL_NS;
            if now_ns >= second_end_ns && second_end_ns <= end_ns {
                let interval = Box::new(std::mem::take(&mut self.interval));
                if updates
                    .send(Update::Second(seconds as usize, interval))
                    .is_err()
                {
                    break;
                }
                seconds += 1;
                continue;
            }
            // Also once after the end: what fell due just before it is sent all the same.
            if !has_paced_last {
                self.pace(now_ns)?;
                has_paced_last = now_ns >= end_ns;
            }
            if self.callers == 0 || (now_ns >= end_ns && self.is_drained(now_ns)) {
                break;
            }
            let wake_ns = match now_ns < end_ns {
                true if !has_started => start_ns,
                true => second_end_ns.min(end_ns),
                false => end_ns + DRAIN_NS_MAX,
            };
            let wake_ns = self.try_again(now_ns).unwrap_or(wake_ns).min(wake_ns);
            let timeout = Duration::from_nanos(wake_ns.saturating_sub(now_ns));
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("waiting for sockets")(error)),
            }
            // Before the answers that have come meanwhile are taken.
            self.close_window();
            for event in &events {
                if event.token() == TIMER {
                    continue;
                }
                let (readable, writable) = (event.is_readable(), event.is_writable());
                let number = event.token().0;
                self.one(number, |worker, connection| {
                    worker.serve(number, connection, readable, writable)
                });
            }
        }
        Ok(())
    }

    /// Once, when the window is over: counts what has no answer.
    fn close_window(&mut self) {
        let end_ns = self.schedule.window_end_ns;
        if self.is_window_closed || self.schedule.now_ns() < end_ns {
            return;
        }
        self.is_window_closed = true;
        for connection in self.connections.iter().flatten() {
            connection.count_unfinished(end_ns, &mut self.interval);
        }
    }

    /// After the window: all answers are there, or have been awaited long enough.
    fn is_drained(&self, now_ns: u64) -> bool {
        let mut open = self.connections.iter().flatten();
        now_ns >= self.schedule.window_end_ns + DRAIN_NS_MAX
            || open.all(|connection| connection.under_way() == 0)
    }

    /// Counts what is left undone and closes.
    fn finish(&mut self) {
        if let Some(pacer) = &self.pacer {
            for age_ns in pacer.ages_of_unsent(self.schedule.window_end_ns) {
                self.interval.leave_unsent(age_ns);
            }
        }
        for connection in std::mem::take(&mut self.connections).into_iter().flatten() {
            self.give_up(&connection);
            connection.close();
        }
    }

    /// Counts the calls of a connection that will not be answered any more.
    fn give_up(&mut self, connection: &LoadConnection) {
        self.interval.unanswered += connection.under_way() as u64;
        if let Some(ledger) = &mut self.ledger {
            connection.note_unknown(ledger);
        }
    }

    fn each(&mut self, mut act: impl FnMut(&mut Self, &mut LoadConnection) -> Result<(), Error>) {
        for number in 0..self.connections.len() {
            self.one(number, &mut act);
        }
    }

    /// Lets a connection act; if that fails, the connection has ended.
    #[inline]
    fn one(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Self, &mut LoadConnection) -> Result<(), Error>,
    ) {
        let Some(mut connection) = self.connections.get_mut(number).and_then(Option::take) else {
            return;
        };
        match act(self, &mut connection) {
            Ok(()) => self.connections[number] = Some(connection),
            Err(error) => {
                self.interval.disconnects.add(&error.to_string(), 1);
                self.give_up(&connection);
                self.callers -= usize::from(connection.is_caller());
            }
        }
    }

    #[inline]
    fn serve(
        &mut self,
        number: usize,
        connection: &mut LoadConnection,
        readable: bool,
        writable: bool,
    ) -> Result<(), Error> {
        if writable {
            connection.on_writable()?;
        }
        if readable {
            let schedule = self.schedule;
            connection.on_readable(
                &mut self.buffer,
                || schedule.now_ns(),
                |now_ns| schedule.in_window(now_ns),
                &mut self.interval,
                self.ledger.as_mut(),
            )?;
            for retry in connection.take_retries() {
                let wait_ns = (RETRY_NS_BASE << retry.failures).min(RETRY_NS_MAX) as f64;
                let due_ns = schedule.now_ns() + (self.random.next_unit() * wait_ns) as u64;
                self.retries
                    .push(Reverse((due_ns, number, retry.request_id)));
            }
            if self.pacer.is_none() && connection.free() > 0 {
                let now_ns = self.schedule.now_ns();
                if now_ns < self.schedule.window_end_ns {
                    self.send_all(connection, now_ns)?;
                }
            }
        }
        Ok(())
    }

    /// Sends calls again whose time has come; returns when the next one's comes.
    fn try_again(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(&Reverse((due_ns, number, request_id))) = self.retries.peek() {
            if due_ns > now_ns {
                return Some(due_ns);
            }
            self.retries.pop();
            self.one(number, |_, connection| connection.send_again(request_id));
        }
        None
    }

    #[inline]
    fn send_all(&mut self, connection: &mut LoadConnection, now_ns: u64) -> Result<(), Error> {
        connection.queue_all(now_ns);
        connection.send_queued(self.pairs, &mut self.interval)
    }

    /// Open loop: sends what is due, and sets the timer for what comes next.
    fn pace(&mut self, now_ns: u64) -> Result<(), Error> {
        let Some(mut pacer) = self.pacer.take() else {
            return Ok(());
        };
        let until_ns = now_ns.min(self.schedule.window_end_ns.saturating_sub(1));
        while let Some(due_ns) = pacer.due(until_ns) {
            let Some((number, connection)) = self.next_free(&mut pacer.cursor) else {
                break;
            };
            connection.queue_call(due_ns);
            pacer.touched.push(number);
            pacer.advance();
        }
        for number in pacer.touched.drain(..) {
            self.one(number, |worker, connection| {
                connection.send_queued(worker.pairs, &mut worker.interval)
            });
        }
        if now_ns < self.schedule.window_end_ns {
            pacer.arm(self.schedule.now_ns())?;
        }
        self.pacer = Some(pacer);
        Ok(())
    }

    /// The next connection, in turn, that has a free place.
    fn next_free(&mut self, cursor: &mut usize) -> Option<(usize, &mut LoadConnection)> {
        let count = self.connections.len();
        let is_free = |number: &usize| {
            let connection = self.connections[*number].as_ref();
            connection.is_some_and(|connection| connection.free() > 0)
        };
        let mut in_turn = (0..count).map(|step| (*cursor + step) % count);
        let number = in_turn.find(is_free)?;
        *cursor = (number + 1) % count;
        Some((number, self.connections[number].as_mut()?))
    }
}

/// Keeps the schedule of an open loop.
struct Pacer {
    every_ns: f64,
    /// When the next call is due.
    next_ns: f64,
    /// The connection whose turn it is.
    cursor: usize,
    /// Connections with calls to send.
    touched: Vec<usize>,
    timer: Timer,
}

impl Pacer {
    fn new(poll: &Poll, every_ns: f64, first_ns: f64) -> Result<Self, Error> {
        Ok(Self {
            every_ns,
            next_ns: first_ns,
            cursor: 0,
            touched: Vec::new(),
            timer: Timer::new(poll).map_err(Error::io("creating a timer"))?,
        })
    }

    fn due(&self, now_ns: u64) -> Option<u64> {
        (self.next_ns <= now_ns as f64).then_some(self.next_ns as u64)
    }

    fn advance(&mut self) {
        self.next_ns += self.every_ns;
    }

    /// Ages of the calls that were due before the end and have not been sent.
    fn ages_of_unsent(&self, end_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let due_ns = (0..).map(|call| self.next_ns + call as f64 * self.every_ns);
        due_ns
            .take_while(move |due_ns| *due_ns < end_ns as f64)
            .map(move |due_ns| end_ns - due_ns as u64)
    }

    fn arm(&mut self, now_ns: u64) -> Result<(), Error> {
        let wait_ns = (self.next_ns - now_ns as f64).max(PACE_NS as f64) as u64;
        self.timer
            .set(Duration::from_nanos(wait_ns))
            .map_err(Error::io("setting a timer"))
    }
}

/// A timer finer than the milliseconds in which event loops count their timeouts.
#[cfg(target_os = "linux")]
struct Timer(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Timer {
    fn new(poll: &Poll) -> std::io::Result<Self> {
        use rustix::time::{timerfd_create, TimerfdClockId, TimerfdFlags};
        use std::os::fd::AsRawFd;

        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        poll.registry().register(
            &mut mio::unix::SourceFd(&timer.as_raw_fd()),
            TIMER,
            Interest::READABLE,
        )?;
        Ok(Self(timer))
    }

    fn set(&self, after: Duration) -> std::io::Result<()> {
        use rustix::time::{timerfd_settime, Itimerspec, TimerfdTimerFlags, Timespec};

        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: after.as_secs() as i64,
                tv_nsec: i64::from(after.subsec_nanos()),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

/// Elsewhere a thread rings. It is coarse, but so are the clocks there.
#[cfg(not(target_os = "linux"))]
struct Timer(std::sync::mpsc::Sender<Duration>);

#[cfg(not(target_os = "linux"))]
impl Timer {
    fn new(poll: &Poll) -> std::io::Result<Self> {
        let waker = mio::Waker::new(poll.registry(), TIMER)?;
        let (sender, receiver) = std::sync::mpsc::channel::<Duration>();
        std::thread::spawn(move || {
            while let Ok(after) = receiver.recv() {
                std::thread::sleep(after);
                if waker.wake().is_err() {
                    break;
                }
            }
        });
        Ok(Self(sender))
    }

    fn set(&self, after: Duration) -> std::io::Result<()> {
        self.0.send(after).map_err(std::io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacer_keeps_the_schedule() {
        let poll = Poll::new().unwrap();
        let mut pacer = Pacer::new(&poll, 250.0, 100.0).unwrap();
        assert_eq!(pacer.due(99), None);
        let mut due = vec![];
        while let Some(at) = pacer.due(900) {
            due.push(at);
            pacer.advance();
        }
        assert_eq!(due, [100, 350, 600, 850]);
        // 1100 and 1350 are due before 1600; a call at the end itself is not.
        let ages = |end_ns| pacer.ages_of_unsent(end_ns).collect::<Vec<_>>();
        assert_eq!(ages(1600), [500, 250]);
        assert_eq!(ages(1601), [501, 251, 1]);
        assert!(ages(0).is_empty());
    }
}
