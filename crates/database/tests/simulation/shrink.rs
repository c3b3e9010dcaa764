//! A simulation that fails, with less and less in it, until it does not fail any more.

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use super::clients::Kind;
use super::guest::PANICS;
use super::life::{simulate, Case, Lasted};
use super::setting;

/// So long is looked for a smaller one, if SIMULATE_SHRINK does not say for how many seconds.
const SECONDS_MAX: u64 = 60;
/// With less in it a seed draws something else, so others are tried, too.
const SEEDS_TRIED: u64 = 4;
/// The end of a history that is told.
const LINES_MAX: usize = 120;

thread_local! {
    static SIMULATES: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    static HISTORY: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub struct Failure {
    pub text: String,
    pub history: Vec<String>,
}

/// Panics of simulations are kept in place of printed: guests panic as they are told to, and failures are told at the end.
pub fn keep_quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.to_string();
        if !SIMULATES.get() {
            return before(info);
        }
        if !text.contains(PANICS) {
            PANIC.with_borrow_mut(|kept| {
                if kept.is_empty() {
                    *kept = text;
                }
            });
        }
    }));
}

/// A simulation ends, however it ends, with its history.
pub fn keep_history(history: Vec<String>) {
    HISTORY.set(history);
}

pub fn outcome(case: &Case, is_told: bool) -> Result<Lasted, Failure> {
    PANIC.set(String::new());
    SIMULATES.set(true);
    let lasted = catch_unwind(AssertUnwindSafe(|| simulate(case, is_told)));
    SIMULATES.set(false);
    let text = PANIC.take();
    match lasted {
        // A database catches the panics of its threads.
        Ok(lasted) if text.is_empty() => Ok(lasted),
        _ => Err(Failure {
            text,
            history: HISTORY.take(),
        }),
    }
}

/// Cases with less in them.
fn smaller(case: &Case) -> Vec<Case> {
    let mut smaller = Vec::new();
    let kinds = (0..Kind::COUNT).map(|bit| case.kinds & !(1 << bit));
    for kinds in kinds.filter(|kinds| *kinds != case.kinds) {
        smaller.push(Case { kinds, ..*case });
    }
    for lives in 1..case.lives {
        smaller.push(Case { lives, ..*case });
    }
    for steps in [case.steps / 2, case.steps * 3 / 4, case.steps * 9 / 10] {
        smaller.push(Case { steps, ..*case });
    }
    smaller.retain(|less| less != case);
    smaller
}

/// The smallest case that is found to fail at the same place, and its history.
pub fn told(case: &Case, failure: &str) -> String {
    let place = |text: &str| text.lines().next().map(str::to_owned);
    let seconds = setting("SIMULATE_SHRINK").and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS_MAX));
    let mut smallest = *case;
    'smaller: loop {
        for less in smaller(&smallest) {
            for seed in 0..SEEDS_TRIED {
                if Instant::now() >= end {
                    break 'smaller;
                }
                let seed = smallest.seed + (seed << 32);
                let less = Case { seed, ..less };
                let fails =
                    outcome(&less, false).is_err_and(|of| place(&of.text) == place(failure));
                if fails {
                    smallest = less;
                    continue 'smaller;
                }
            }
        }
        break;
    }
    match outcome(&smallest, true) {
        Ok(_) => format!("it does not fail again: {smallest}"),
        Err(Failure { text, history }) => {
            let from = history.len().saturating_sub(LINES_MAX);
            let lines = history[from..].join("\n");
            format!("make simulate SEED={smallest} fails, too: {text}\n{lines}")
        }
    }
}
