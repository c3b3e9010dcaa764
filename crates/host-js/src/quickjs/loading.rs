//! From a new isolate to the hooks of its program (spec 04 §1, §6.1).

use std::ffi::{c_int, CString};

use lightcone_host::{HostError, HostTrap};
use rquickjs_sys as qjs;
use rquickjs_sys::JSModuleDef;

use crate::hooks::{self, Hooks, Refused};
use crate::messages;
use crate::program::ProgramText;

use super::isolate::Isolate;
use super::scope::CallScope;
use super::stack_trace;
use super::value::{Hook, Owned, Thrown};

/// The name of a step of the load phase in errors.
const EVALUATION: &str = "the program";

impl Isolate {
    /// Evaluates the program and finds its hooks (04 §6.1).
    pub(crate) fn start(&mut self, program: &ProgramText) -> Result<Hooks<Owned, Hook>, HostError> {
        self.enter();
        let module = self.evaluate(program)?;
        let context = self.context;
        // SAFETY: the module was evaluated and lives as long as its context.
        let namespace = unsafe {
            let namespace = qjs::JS_GetModuleNamespace(self.context, module);
            Owned::checked(self.context, namespace)
        };
        let found = match namespace {
            Ok(namespace) => {
                let legacy = self.state().values.legacy.as_ref();
                // SAFETY: the value is live.
                let legacy = legacy.map(|legacy| unsafe { Owned::share(context, legacy.raw()) });
                let scope = &mut CallScope::new(self, program);
                hooks::find(scope, &namespace, legacy.as_ref())
            }
            Err(Thrown) => Err(Refused::Thrown),
        };
        let hooks = found.map(|found| {
            self.state().error_constructor = Some(found.error_constructor);
            found.hooks
        });
        self.run_jobs();
        self.loaded(hooks, EVALUATION, program)
    }

    /// The BSATN of the module's definition.
    pub(crate) fn describe(
        &mut self,
        hooks: &Hooks<Owned, Hook>,
        program: &ProgramText,
    ) -> Result<Vec<u8>, HostError> {
        self.enter();
        let described = hooks::describe(&mut CallScope::new(self, program), hooks);
        self.run_jobs();
        self.loaded(described, "__describe_module__", program)
    }

    fn loaded<T>(
        &mut self,
        result: Result<T, Refused>,
        export: &str,
        program: &ProgramText,
    ) -> Result<T, HostError> {
        match result {
            _ if self.is_doomed() => Err(self.load_error(export, program)),
            Ok(loaded) => Ok(loaded),
            Err(Refused::Text(text)) => Err(HostError::Script(text)),
            Err(Refused::Thrown) => Err(self.load_error(export, program)),
        }
    }

    fn evaluate(&mut self, program: &ProgramText) -> Result<*mut JSModuleDef, HostError> {
        let Ok(text) = CString::new(program.text.as_str()) else {
            let at = program.text.find('\0').unwrap_or_default();
            return Err(HostError::Compile(format!(
                "a JavaScript module has no zero bytes, and the one at {at} is"
            )));
        };
        let flags = (qjs::JS_EVAL_TYPE_MODULE | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as c_int;
        // SAFETY: the text ends with a zero byte; values are checked and owned.
        unsafe {
            let compiled = qjs::JS_Eval(
                self.context,
                text.as_ptr(),
                program.text.len() as qjs::size_t,
                c"spacetimedb_module".as_ptr(),
                flags,
            );
            self.state().linking = false;
            if qjs::JS_IsException(compiled) {
                return Err(self.load_error(EVALUATION, program));
            }
            let module: *mut JSModuleDef = compiled.u.ptr.cast();
            // The call takes the ownership of `compiled`.
            let promise = qjs::JS_EvalFunction(self.context, compiled);
            let promise = match Owned::checked(self.context, promise) {
                Ok(promise) => promise,
                Err(Thrown) => return Err(self.load_error(EVALUATION, program)),
            };
            self.run_jobs();
            if self.is_doomed() {
                return Err(self.load_error(EVALUATION, program));
            }
            match qjs::JS_PromiseState(self.context, promise.raw()) {
                qjs::JSPromiseStateEnum_JS_PROMISE_REJECTED => {
                    let reason = qjs::JS_PromiseResult(self.context, promise.raw());
                    qjs::JS_Throw(self.context, reason);
                    Err(self.load_error(EVALUATION, program))
                }
                qjs::JSPromiseStateEnum_JS_PROMISE_PENDING => Err(HostError::Script(format!(
                    "Uncaught TypeError: {}",
                    messages::PENDING
                ))),
                _ => Ok(module),
            }
        }
    }

    /// Why the load phase failed: a limit, or the pending exception.
    #[cold]
    fn load_error(&mut self, export: &str, program: &ProgramText) -> HostError {
        let export = export.to_owned();
        let exception = self.take_exception();
        if !self.is_doomed() {
            // SAFETY: the state is not borrowed.
            let exception = unsafe {
                stack_trace::uncaught(self.context, &exception, program.source_map.as_ref())
            };
            if !self.is_doomed() {
                let heap = &self.state().heap;
                if heap.refused_bytes().is_some() {
                    let trap = heap.trap();
                    return HostError::LoadLimit { export, trap };
                }
                return HostError::Script(exception.text());
            }
        }
        match self.state().doomed.take() {
            Some(trap @ HostTrap::Limit { .. }) => HostError::LoadLimit { export, trap },
            trap => HostError::LoadTrap {
                export,
                message: trap.map(|trap| trap.to_string()).unwrap_or_default(),
            },
        }
    }
}
