//! Procedures and HTTP handlers beside the writer: where they run, what they wait for, what ends them.
//!
//! A call has an instance of its own. For each of its transactions it asks the writer for the tables, and gets them as they are, by
//! value. Calls in WebAssembly are fibers ([`Fiber`]): the writer runs each transaction itself, from where it begins to where it
//! ends, and no call waits for another. A call in JavaScript stays on its thread, so the writer waits there for the tables, for no
//! longer than a limit. What commits is the writer, so that log and subscribers see transactions of procedures as they see all others.
//!
//! A call in WebAssembly also begins on the writer if nothing has to be made for it, and stays there until it waits or has computed
//! for a tick or two: a brief one costs no change of threads ([`Pace`](crate::pace::Pace)).

mod call;
mod control;
mod fiber;
mod immediate;
mod lease;
mod leased_transactions;
mod tasks;
mod thread_queue;
mod threads;
mod under_way;
mod waits;

use std::sync::Arc;

use lightcone_log::LogOffset;

use crate::shared::Shared;
use waits::Waits;

pub(crate) use call::{Ended, Job, Origin, ReplyTo};
pub(crate) use control::Control;
pub(crate) use fiber::{Body, Fiber, FiberRequest};
pub(crate) use immediate::ImmediateQueue;
pub(crate) use lease::{LeaseRequest, Loans, Returned, TABLES_CHANGED_TEXT};
pub(crate) use tasks::go_on_beside;
pub(crate) use under_way::{Full, Procedures};

/// Starts a call. What it is called with may rest on all transactions before `next_offset`. What is returned is for the writer to
/// run; otherwise the call is beside it already.
///
/// # Errors
/// There are too many.
pub(crate) fn start(
    shared: &Arc<Shared>,
    job: Job,
    next_offset: LogOffset,
) -> Result<Option<Fiber>, (Full, Box<Job>)> {
    let control = Arc::new(Control::default());
    control.saw(next_offset);
    let suspends = job.module.program.loaded.suspends();
    let control = (shared.environment().instant(), control);
    let under_way = shared.procedures.begin(job, control, &shared.inbox)?;
    if suspends {
        return Ok(tasks::start(shared, under_way));
    }
    threads::push(shared, under_way);
    Ok(None)
}
