//! Databases in a world of one thread, in which a seed says what comes next: a step of the writer, of fan-out or of the log, a call of a
//! client, an alarm, a program that is published, a sync that fails, a guest that panics, a power failure. Nothing sleeps, and a seed that
//! has failed fails again. `docs/simulation.md` says what is simulated.
//!
//! `make simulate` goes on with other seeds for so many seconds. One that fails is made smaller, and its history told.

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod guest;
mod history;
mod ledger;
mod life;
mod outboxes;
mod real;
mod shrink;
mod watchers;
mod world;

use std::time::{Duration, Instant};

use life::{simulate, Case, Lasted};

/// Seeds that have found something once, and what that was.
const FOUND: [Case; 2] = [
    // A procedure was answered after the log had failed, and what it had committed been taken back.
    Case {
        seed: 14,
        kinds: 0x2f7f,
        lives: 4,
        steps: 6_000,
    },
    // Who waited for rows that are migrated one by one was never answered when the log failed.
    Case {
        seed: 30_497,
        kinds: 0xd7f5,
        lives: 3,
        steps: 3_000,
    },
];
/// So many others are tried if nothing else is said, with all of them before.
const SEEDS: u64 = 6;
/// When seeds are tried for a time, one of so many is tried twice.
const TWICE_IN: u64 = 8;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// A simulation that was told to be made smaller fails with its history.
fn holds(case: &Case, twice: bool) -> Lasted {
    let first = shrink::outcome(case, false);
    let failure = match (first, twice.then(|| shrink::outcome(case, false))) {
        (Ok(first), None) => return first,
        (Ok(first), Some(Ok(second))) if first.trace == second.trace => return first,
        (Ok(_), Some(Ok(_))) => "the same seed does something else".to_owned(),
        (Err(failure), _) | (_, Some(Err(failure))) => failure.text,
    };
    panic!(
        "make simulate SEED={case} fails: {failure}\n{}",
        shrink::told(case, &failure)
    );
}

fn hours(time: Duration) -> f64 {
    time.as_secs_f64() / 3600.0
}

#[test]
fn what_was_acknowledged_is_there_and_a_seed_always_does_the_same() {
    shrink::keep_quiet();
    let only = setting("SIMULATE_SEED").unwrap_or_default();
    let seconds = setting("SIMULATE_SECONDS").map(|text| text.parse().expect("seconds"));
    let begun = Instant::now();
    let (mut steps, mut time) = (0, Duration::ZERO);
    if only.contains('/') {
        let case = only.parse().expect("a case");
        let Lasted { steps, time, .. } = holds(&case, true);
        println!("{case} holds: {steps} steps, {:.1} h", hours(time));
        return;
    }
    let first: u64 = only.parse().unwrap_or(0);
    if seconds.is_none() {
        for case in &FOUND {
            holds(case, false);
        }
    }
    for seed in first.. {
        let case = Case::of_seed(seed);
        let lasted = holds(&case, seconds.is_none() || seed.is_multiple_of(TWICE_IN));
        steps += lasted.steps;
        time += lasted.time;
        let is_over = match seconds {
            Some(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            None => seed - first + 1 >= SEEDS,
        };
        if is_over {
            println!(
                "seeds {first} to {seed} hold: {steps} steps, {:.1} h",
                hours(time)
            );
            return;
        }
    }
}

#[test]
fn a_case_is_written_as_it_is_read() {
    for seed in 0..100 {
        let case = Case::of_seed(seed);
        assert_eq!(case.to_string().parse(), Ok(case));
    }
    let case = Case {
        steps: 300,
        lives: 1,
        ..Case::of_seed(1)
    };
    // Who tells changes nothing.
    assert_eq!(simulate(&case, false).trace, simulate(&case, true).trace);
}
