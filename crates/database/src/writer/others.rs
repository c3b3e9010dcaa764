//! The writer's work while a call on the writer waits, which was brief so far and waits for the first time. Later calls of the
//! function run beside the writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use lightcone_host::{InterruptReason, Waiting};

use super::procedures::Absent;
use super::Writer;
use crate::inbox::Notice;
use crate::options::WRITER_STACK_EXTRA_BYTES;
use crate::procedures::Control;

impl Writer {
    /// Serves everybody else until the wait is over: on another thread, as the call keeps this one's stack, and with another
    /// instance.
    pub(super) fn serve_others(&mut self, waiting: Waiting, control: &Arc<Control>) {
        self.end_round();
        self.note_round();
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, inbox) = (is_over.clone(), self.shared.inbox.clone());
        self.shared.environment().spawn_task(Box::pin(async move {
            // Sent or dropped, it is over.
            let _ = waiting.await;
            over.store(true, Ordering::Release);
            // If the database has stopped, the writer is on its way already.
            let _ = inbox.notice(Notice::WaitOver);
        }));
        self.state.serves_others = true;
        let stack_bytes =
            2 * self.shared.options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES;
        let served = thread::scope(|scope| {
            let builder = thread::Builder::new()
                .name("writer".to_owned())
                .stack_size(stack_bytes);
            let work = builder.spawn_scoped(scope, || {
                self.replace_instance();
                self.serve(&is_over);
                // Instances are dropped by the thread that they stay on.
                self.instance = Box::new(Absent);
            });
            work.map(thread::ScopedJoinHandle::join)
        });
        self.state.serves_others = false;
        self.begin_round();
        match served {
            Ok(Ok(())) => {}
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "there is no thread to serve others while a procedure waits");
                control.end(InterruptReason::Stopping);
            }
        }
        if self.state.stop.is_some() || self.state.failed {
            control.end(InterruptReason::Stopping);
        }
    }
}
