//! What the writer is woken for when nothing comes.

use std::time::Instant;

use crate::environment::Alarm;

/// What may be due.
#[derive(Clone, Copy)]
pub(super) enum Timer {
    Schedules,
    FailingViews,
    Backfill,
    Procedures,
    Drain,
    Outboxes,
    Away,
    Rest,
}

const TIMERS: usize = Timer::Rest as usize + 1;

#[derive(Default)]
pub(super) struct Timers {
    /// By [`Timer`].
    due: [Option<Instant>; TIMERS],
    /// When it rings.
    pub alarm: Option<(Instant, Alarm)>,
}

impl Timers {
    /// None: it waits for nothing.
    pub fn set(&mut self, timer: Timer, due: Option<Instant>) {
        self.due[timer as usize] = due;
    }

    pub fn due(&self, timer: Timer) -> Option<Instant> {
        self.due[timer as usize]
    }

    /// What is due first.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.iter().flatten().min().copied()
    }
}
