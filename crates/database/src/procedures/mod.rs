//! Procedures and HTTP handlers beside the writer: where they run, what they wait for, what ends them.
//!
//! A call that computes or waits has an instance of its own and holds up nobody. For each of its transactions it asks the writer
//! for the tables: it gets them as they are, by value, and the writer waits until it has them back, for no longer than a limit.
//! What commits is the writer, so that log and subscribers see transactions of procedures as they see all others.
//!
//! A function that was brief again and again, and never waited, runs on the writer itself, which costs no change of threads
//! ([`Placement`]).

mod call;
mod control;
mod immediate;
mod lease;
mod leased_transactions;
mod placement;
mod tasks;
mod thread_queue;
mod threads;
mod under_way;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use lightcone_host::InterruptReason;
use lightcone_log::LogOffset;

use crate::shared::Shared;

pub(crate) use call::{Asker, Call, Ended, Job, Origin};
pub(crate) use control::Control;
pub(crate) use immediate::ImmediateQueue;
pub(crate) use lease::{Granted, Lease, LeaseRequest, LeaseSlot, Returned, TABLES_CHANGED_TEXT};
pub(crate) use placement::Placement;
pub(crate) use under_way::{Full, Procedures};
pub(crate) use waits::Waits;

/// Starts a call beside the writer. What it is called with may rest on all transactions before `next_offset`.
///
/// # Errors
/// There are too many.
pub(crate) fn start(
    shared: &Arc<Shared>,
    job: Job,
    next_offset: LogOffset,
) -> Result<(), (Full, Box<Job>)> {
    let control = Arc::new(Control::default());
    control.saw(next_offset);
    let suspends = job.module.program.loaded.suspends();
    let under_way = shared.procedures.begin(job, control, &shared.inbox)?;
    end_in_time(shared, &under_way.control);
    match suspends {
        true => {
            let task = tasks::run(shared.clone(), under_way);
            shared.environment().spawn_task(Box::pin(task));
        }
        false => threads::push(shared, under_way),
    }
    Ok(())
}

/// A call ends when it has had the time of a procedure.
pub(crate) fn end_in_time(shared: &Shared, control: &Arc<Control>) {
    let seconds_max = shared.options.limits.host.procedure_seconds_max;
    let late = Arc::downgrade(control);
    control.set_alarm(shared.environment().alarm(
        Duration::from_secs(seconds_max),
        Box::new(move || {
            if let Some(control) = late.upgrade() {
                control.end(InterruptReason::ProcedureTime);
            }
        }),
    ));
}
