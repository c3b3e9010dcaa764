//! The isolate of an instance.

use std::any::Any;
use std::sync::Arc;

use ::v8::Local;
use lightcone_host::{HoldsEnv, HostConfig, HostEnv, HostTrap, Interrupt, ReducerCall};

use super::isolate::Isolate;
use super::scope::CallScope;
use crate::instance::Realm;
use crate::invoke::{invoke, HookOutcome, Target};
use crate::program::ProgramText;

/// The isolate of the thread that calls.
pub(crate) struct V8Realm {
    program: Arc<ProgramText>,
    config: HostConfig,
    /// For all isolates of the instance.
    interrupt: Arc<Interrupt>,
    /// Until there is an isolate.
    env: Option<HostEnv>,
    isolate: Option<Isolate>,
}

// SAFETY: the isolate is used by the thread that made it only: any other thread that calls makes its own (`make_ready`). It
// may be dropped by another thread, as V8 allows if no thread has entered it, which holds between calls.
unsafe impl Send for V8Realm {}

impl V8Realm {
    pub(crate) fn new(program: Arc<ProgramText>, env: HostEnv) -> V8Realm {
        V8Realm {
            program,
            config: env.config().clone(),
            interrupt: env.interrupt().clone(),
            env: Some(env),
            isolate: None,
        }
    }

    #[cold]
    fn make_isolate(&mut self) -> Result<(), String> {
        self.isolate = None;
        let env = match self.env.take() {
            Some(env) => env,
            None => HostEnv::with_interrupt(self.config.clone(), self.interrupt.clone()),
        };
        let isolate = Isolate::new(&self.program, env)
            .map_err(|error| format!("the module cannot be instantiated again: {error}"))?;
        self.isolate = Some(isolate);
        Ok(())
    }

    #[inline]
    fn isolate(&mut self) -> &mut Isolate {
        self.isolate.as_mut().expect("it is made before a call")
    }
}

impl HoldsEnv for V8Realm {
    #[inline]
    fn env(&mut self) -> &mut HostEnv {
        &mut self.isolate().state.env
    }
}

impl Realm for V8Realm {
    #[inline]
    fn make_ready(&mut self) -> Result<(), String> {
        match &self.isolate {
            Some(isolate) if isolate.is_here() => Ok(()),
            _ => self.make_isolate(),
        }
    }

    fn stay(&mut self) {
        self.isolate().stay();
    }

    fn limit_calls(&mut self, call_ms_max: u64) {
        self.isolate().limit_calls(call_ms_max);
    }

    fn rests(&self) -> bool {
        true
    }

    fn rest(&mut self) {
        if let Some(isolate) = self.isolate.as_mut().filter(|isolate| isolate.is_here()) {
            isolate.rest();
        }
    }

    #[inline]
    fn call(
        &mut self,
        call: &ReducerCall<'_>,
        target: Target<'_>,
    ) -> (HookOutcome, Option<HostTrap>) {
        let isolate = self.isolate();
        let (end, stopped) = isolate.call(|isolate, roots, jobs, program| {
            ::v8::scope!(let scope, isolate);
            let context = Local::new(scope, &roots.context);
            let scope = &mut ::v8::ContextScope::new(scope, context);
            ::v8::tc_scope!(let scope, scope);
            let mut call_scope = CallScope::new(scope, &roots.buffers, program);
            let end = invoke(&mut call_scope, &mut roots.kept, call, target);
            // Reads of a stopped call are dropped.
            if !matches!(end, HookOutcome::Failed(_)) {
                jobs.perform_checkpoint(scope);
            }
            end
        });
        let trap = stopped.map(|stopped| isolate.call_trap(stopped));
        (end, trap)
    }

    fn interrupt(&mut self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    #[inline]
    fn is_tainted(&self) -> bool {
        self.isolate.as_ref().is_some_and(Isolate::is_tainted)
    }

    #[inline]
    fn take_panic(&mut self) -> Option<Box<dyn Any + Send>> {
        self.isolate().state.panic.take()
    }
}
