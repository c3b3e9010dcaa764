//! How the kernel schedules the server's threads.

use lightcone_node::config::Scheduling;
#[cfg(target_os = "linux")]
use preempt_rt::sched::{get_scheduler, set_scheduler, Pid, Scheduler, SchedulerParams};

/// Sets the policy of the calling thread, which the threads that it starts inherit. Another policy, which
/// the program was started with, stays.
///
/// A request wakes up to five threads one after the other. With the usual policy each takes the processor from the one that
/// woke it; with that of batches it begins when the other has done all there is to do, and finds more than one request
/// (docs/architecture.md).
#[cfg(target_os = "linux")]
pub(super) fn apply(wanted: Scheduling) {
    if wanted == Scheduling::Normal {
        return;
    }
    let this = Pid::current_thread();
    let changed = match get_scheduler(this) {
        Ok(Scheduler::SCHED_NORMAL) => {
            let parameters = SchedulerParams { priority: 0 };
            set_scheduler(this, Scheduler::SCHED_BATCH, parameters)
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = changed {
        tracing::warn!(%error, "threads.scheduling has no effect: the system refuses it");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn apply(_wanted: Scheduling) {}
