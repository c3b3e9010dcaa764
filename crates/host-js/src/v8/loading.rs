//! From a new isolate to the hooks of its program: context, globals, evaluation (spec 04 §2, §6.1).

use ::v8::{Context, Function, Global, Local, MicrotaskQueue, Object, OwnedIsolate, PinScope};

use super::call_buffers::{CallBuffer, CallBuffers};
use super::exception::uncaught;
use super::imports;
use super::scope::CallScope;
use super::state::State;
use crate::hooks::{self, Hooks, Refused};
use crate::program::ProgramText;
use crate::trace::Exception;
use crate::{invoke, messages};

/// Lives in the heap of the isolate, and is dropped before it.
pub(crate) struct Roots {
    pub(crate) context: Global<Context>,
    pub(crate) buffers: CallBuffers,
    pub(crate) kept: invoke::Roots<Global<::v8::Value>, Global<Function>>,
}

/// Continues with the result of a step, or returns its exception.
macro_rules! step {
    ($scope:ident, $program:expr, $step:expr) => {
        match $step {
            Some(value) => value,
            None => return Err(caught!($scope, $program)),
        }
    };
}

/// The pending exception.
macro_rules! caught {
    ($scope:ident, $program:expr) => {{
        match ($scope.exception(), $scope.message()) {
            (Some(value), message) if !$scope.has_terminated() => {
                $scope.reset();
                uncaught($scope, value, message, $program)
            }
            _ => text("the module was stopped"),
        }
    }};
}

fn text(message: impl Into<String>) -> Exception {
    Exception {
        message: message.into(),
        frames: Vec::new(),
    }
}

fn type_error(message: String) -> Exception {
    text(format!("Uncaught TypeError: {message}"))
}

/// Makes the context, evaluates the program and finds its hooks.
pub(super) fn build(
    isolate: &mut OwnedIsolate,
    jobs: &mut MicrotaskQueue,
    program: &ProgramText,
) -> Result<Roots, Exception> {
    ::v8::scope!(let scope, isolate);
    let options = ::v8::ContextOptions {
        microtask_queue: Some(&raw mut *jobs),
        ..::v8::ContextOptions::default()
    };
    let context = Context::new(scope, options);
    let scope = &mut ::v8::ContextScope::new(scope, context);
    let buffers = CallBuffers {
        arguments: CallBuffer::new(scope),
        direct: CallBuffer::new(scope),
    };
    globals(scope, &buffers.direct, program)?;
    let namespace = evaluate(scope, jobs, program)?;
    let hooks = find_hooks(scope, namespace, &buffers, program)?;
    // What is left must not run in the first call.
    jobs.perform_checkpoint(scope);
    Ok(Roots {
        context: Global::new(scope, context),
        buffers,
        kept: invoke::Roots::new(hooks),
    })
}

/// The globals that are not of the language: a script that returns a function of the natives `encode(string) -> Uint8Array` and
/// `decode(bytes, fatal) -> string` (spec 04 §2).
const PRELUDE: &str = include_str!("../prelude.js");

/// Removes memory that no limit would see.
const RESTRICT: &str = include_str!("restrict.js");

/// Adds the globals that are not of the language (§2), and removes those that modules may not use.
fn globals(
    scope: &mut PinScope<'_, '_>,
    direct: &CallBuffer,
    program: &ProgramText,
) -> Result<(), Exception> {
    ::v8::tc_scope!(let scope, scope);
    step!(scope, program, change_globals(scope, direct));
    Ok(())
}

/// As above. `None`: an exception is pending.
fn change_globals(scope: &mut PinScope<'_, '_>, direct: &CallBuffer) -> Option<()> {
    let noop = imports::noop(scope)?;
    let noop = Global::new(scope, noop);
    // SAFETY: the state of the isolate that is being built; see `with_state`.
    unsafe { (*State::current()).noop = Some(noop) };
    let prelude: Local<'_, Function> = imports::run(scope, PRELUDE)?.try_cast().ok()?;
    let encode = imports::encode(scope)?.into();
    let decode = imports::decode(scope)?.into();
    let undefined = ::v8::undefined(scope).into();
    prelude.call(scope, undefined, &[encode, decode])?;
    imports::run(scope, RESTRICT)?;
    imports::define_extras(scope, direct)
}

/// Compiles, links and runs the program. Returns its namespace (§1).
fn evaluate<'s>(
    scope: &mut PinScope<'s, '_>,
    jobs: &MicrotaskQueue,
    program: &ProgramText,
) -> Result<Local<'s, Object>, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let name = step!(
        scope,
        program,
        ::v8::String::new(scope, messages::RESOURCE_NAME)
    );
    let text_local = step!(scope, program, ::v8::String::new(scope, &program.text));
    let origin = ::v8::ScriptOrigin::new(
        scope,
        name.into(),
        0,
        0,
        false,
        0,
        None,
        false,
        false,
        true,
        None,
    );
    let mut source = ::v8::script_compiler::Source::new(text_local, Some(&origin));
    let module = ::v8::script_compiler::compile_module(scope, &mut source);
    let module = step!(scope, program, module);
    step!(
        scope,
        program,
        module.instantiate_module(scope, imports::resolve)
    );
    let result = step!(scope, program, module.evaluate(scope));
    jobs.perform_checkpoint(scope);
    if scope.is_execution_terminating() {
        return Err(text("the module was stopped"));
    }
    if module.get_status() == ::v8::ModuleStatus::Errored {
        let exception = module.get_exception();
        return Err(uncaught(scope, exception, None, program));
    }
    if let Ok(promise) = result.try_cast::<::v8::Promise>() {
        match promise.state() {
            ::v8::PromiseState::Fulfilled => {}
            ::v8::PromiseState::Pending => return Err(type_error(messages::PENDING.to_owned())),
            ::v8::PromiseState::Rejected => {
                let reason = promise.result(scope);
                return Err(uncaught(scope, reason, None, program));
            }
        }
    }
    let namespace = module.get_module_namespace();
    step!(scope, program, namespace.try_cast().ok().map(Some)).ok_or_else(|| text("no namespace"))
}

/// Calls the hook function of the default export (§6.1).
fn find_hooks(
    scope: &mut PinScope<'_, '_>,
    namespace: Local<'_, Object>,
    buffers: &CallBuffers,
    program: &ProgramText,
) -> Result<Hooks<Global<::v8::Value>, Global<Function>>, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let namespace = Local::new(scope, namespace).into();
    // SAFETY: as below.
    let legacy = unsafe { (*State::current()).legacy.clone() };
    let legacy = legacy.map(|legacy| Local::new(scope, legacy).into());
    let call = &mut CallScope::new(scope, buffers, program);
    let found = hooks::find(call, &namespace, legacy.as_ref());
    match found {
        Ok(found) => {
            // SAFETY: the state of the isolate that is being built; see `with_state`.
            unsafe { (*State::current()).error_constructor = Some(found.error_constructor) };
            Ok(found.hooks)
        }
        Err(Refused::Text(message)) => Err(text(message)),
        Err(Refused::Thrown) => Err(caught!(scope, program)),
    }
}

pub(super) fn describe(
    isolate: &mut OwnedIsolate,
    roots: &Roots,
    jobs: &MicrotaskQueue,
    program: &ProgramText,
) -> Result<Vec<u8>, Exception> {
    ::v8::scope!(let scope, isolate);
    let context = Local::new(scope, &roots.context);
    let scope = &mut ::v8::ContextScope::new(scope, context);
    ::v8::tc_scope!(let scope, scope);
    let mut call = CallScope::new(scope, &roots.buffers, program);
    let described = hooks::describe(&mut call, &roots.kept.hooks);
    match described {
        Ok(description) => {
            jobs.perform_checkpoint(scope);
            Ok(description)
        }
        Err(Refused::Text(message)) => Err(text(message)),
        Err(Refused::Thrown) => Err(caught!(scope, program)),
    }
}
