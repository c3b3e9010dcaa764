//! An isolate with its program, ready for calls.

use std::any::Any;
use std::sync::Arc;

use lightcone_host::{HoldsEnv, HostEnv, HostError, HostTrap, LimitKind, ReducerCall};

use crate::instance::Realm;
use crate::invoke::{invoke, HookOutcome, Roots, Target};
use crate::program::ProgramText;

use super::isolate::Isolate;
use super::scope::CallScope;
use super::value::{Hook, Owned};

/// An isolate that evaluated its program.
pub(crate) struct QuickJsRealm {
    // Dropped before the isolate, whose heap has its values.
    roots: Roots<Owned, Hook>,
    isolate: Isolate,
    program: Arc<ProgramText>,
    tainted: bool,
}

// SAFETY: the values belong to the isolate, which may move between threads as a whole.
unsafe impl Send for QuickJsRealm {}

impl QuickJsRealm {
    /// Evaluates the program in a new isolate. Only the first one is asked for the description (04 §7).
    pub(crate) fn start(
        program: &Arc<ProgramText>,
        env: HostEnv,
        stack_bytes_max: usize,
    ) -> Result<QuickJsRealm, HostError> {
        let mut isolate = Isolate::new(env, stack_bytes_max)?;
        let hooks = isolate.start(program)?;
        Ok(QuickJsRealm {
            roots: Roots::new(hooks),
            isolate,
            program: program.clone(),
            tainted: false,
        })
    }

    pub(crate) fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        self.isolate.describe(&self.roots.hooks, &self.program)
    }

    /// Moves the isolate of the load phase into a running database.
    pub(crate) fn adopt(&mut self, env: HostEnv) {
        let state = self.isolate.state();
        state.heap.set_limit(env.limits().memory_bytes_max);
        state.env = env;
    }

    /// After a termination, or when memory was short: the isolate is used again unless a job or exception would carry over.
    #[cold]
    fn recover(&mut self) {
        self.isolate.collect_garbage();
        let state = self.isolate.state();
        let is_full = state.heap.used_bytes() >= state.heap.limit() / 4 * 3;
        self.tainted = is_full || self.isolate.has_jobs();
    }
}

impl HoldsEnv for QuickJsRealm {
    #[inline]
    fn env(&mut self) -> &mut HostEnv {
        &mut self.isolate.state().env
    }
}

impl Realm for QuickJsRealm {
    fn make_ready(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn call(
        &mut self,
        call: &ReducerCall<'_>,
        target: Target<'_>,
    ) -> (HookOutcome, Option<HostTrap>) {
        let state = self.isolate.state();
        let call_ms_max = state.env.limits().call_ms_max;
        state.start_clock(LimitKind::CallTime, call_ms_max);
        self.isolate.enter();
        let mut scope = CallScope::new(&mut self.isolate, &self.program);
        let end = invoke(&mut scope, &mut self.roots, call, target);
        self.isolate.run_jobs();
        let is_doomed = self.isolate.is_doomed();
        let state = self.isolate.state();
        let trap = state.doomed.clone();
        let refused_bytes = state.heap.refused_bytes();
        let end = match (end, refused_bytes) {
            (HookOutcome::Uncaught(exception), Some(bytes)) => {
                // The limit explains it better than the engine's text. As with terminations there is no record.
                let (limit, text) = (state.heap.trap(), exception.text());
                HookOutcome::Failed(format!("{limit} (it asked for {bytes}); then: {text}"))
            }
            (end, _) => end,
        };
        if is_doomed || refused_bytes.is_some() {
            self.recover();
        }
        self.isolate.state().heap.settle();
        (end, trap)
    }

    fn is_tainted(&self) -> bool {
        self.tainted
    }

    fn take_panic(&mut self) -> Option<Box<dyn Any + Send>> {
        self.isolate.state().panic.take()
    }
}
