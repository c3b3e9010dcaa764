//! From a new isolate to the hooks of its program: context, globals, evaluation (spec 04 §2, §6.1).

use ::v8::{Context, Function, Global, Local, MicrotaskQueue, Object, OwnedIsolate, PinScope};

use super::exception::uncaught;
use super::imports;
use super::instance::BigIntCache;
use super::isolate::{CallBuffer, Hooks, Roots, State};
use crate::program::ProgramText;
use crate::trace::Exception;
use crate::{sys, texts, PRELUDE};

/// Continues with what a step gave, or ends with what it threw.
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
    let direct = CallBuffer::new(scope);
    globals(scope, &direct, program)?;
    let namespace = evaluate(scope, jobs, program)?;
    let hooks = find_hooks(scope, namespace, program)?;
    // What it left must not run in the first call.
    jobs.perform_checkpoint(scope);
    let args = CallBuffer::new(scope);
    Ok(Roots {
        context: Global::new(scope, context),
        hooks,
        args,
        direct,
        views: Vec::new(),
        identities: BigIntCache::default(),
    })
}

/// What is taken away: memory that no limit would see.
const RESTRICT: &str = include_str!("restrict.js");

/// The globals that the language does not have (§2), and without those that modules may not use.
fn globals(
    scope: &mut PinScope<'_, '_>,
    direct: &CallBuffer,
    program: &ProgramText,
) -> Result<(), Exception> {
    ::v8::tc_scope!(let scope, scope);
    let noop = step!(scope, program, imports::noop(scope));
    let noop = Global::new(scope, noop);
    // SAFETY: the state of the isolate that is being built; see `with_state`.
    unsafe { (*State::current()).noop = Some(noop) };
    let source = step!(scope, program, ::v8::String::new(scope, PRELUDE));
    let script = step!(scope, program, ::v8::Script::compile(scope, source, None));
    let prelude = step!(scope, program, script.run(scope));
    let prelude: Local<'_, Function> = step!(scope, program, prelude.try_cast().ok());
    let encode = step!(scope, program, imports::encode(scope)).into();
    let decode = step!(scope, program, imports::decode(scope)).into();
    let undefined = ::v8::undefined(scope).into();
    step!(
        scope,
        program,
        prelude.call(scope, undefined, &[encode, decode])
    );
    let source = step!(scope, program, ::v8::String::new(scope, RESTRICT));
    let script = step!(scope, program, ::v8::Script::compile(scope, source, None));
    step!(scope, program, script.run(scope));
    step!(scope, program, imports::define_extras(scope, direct));
    Ok(())
}

/// Compiles, links and runs the program. Gives its namespace (§1).
fn evaluate<'s>(
    scope: &mut PinScope<'s, '_>,
    jobs: &MicrotaskQueue,
    program: &ProgramText,
) -> Result<Local<'s, Object>, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let name = step!(
        scope,
        program,
        ::v8::String::new(scope, texts::RESOURCE_NAME)
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
            ::v8::PromiseState::Pending => return Err(type_error(texts::PENDING.to_owned())),
            ::v8::PromiseState::Rejected => {
                let reason = promise.result(scope);
                return Err(uncaught(scope, reason, None, program));
            }
        }
    }
    let namespace = module.get_module_namespace();
    step!(scope, program, namespace.try_cast().ok().map(Some)).ok_or_else(|| text("no namespace"))
}

/// Asks the program's default export for the hooks (§6.1).
fn find_hooks(
    scope: &mut PinScope<'_, '_>,
    namespace: Local<'_, Object>,
    program: &ProgramText,
) -> Result<Hooks, Exception> {
    ::v8::tc_scope!(let scope, scope);
    let name = step!(scope, program, ::v8::String::new(scope, "default"));
    let schema = step!(scope, program, namespace.get(scope, name.into()));
    if schema.is_null_or_undefined() {
        return Err(text(texts::NO_DEFAULT_EXPORT));
    }
    let Ok(schema) = schema.try_cast::<Object>() else {
        return Err(text(texts::DEFAULT_EXPORT_NO_OBJECT));
    };
    let symbol = step!(scope, program, imports::module_hooks(scope));
    let function = step!(scope, program, schema.get(scope, symbol.into()));
    let Ok(function) = function.try_cast::<Function>() else {
        return Err(type_error(texts::expected_hooks_function(
            function.type_repr(),
        )));
    };
    let hooks = step!(
        scope,
        program,
        function.call(scope, schema.into(), &[namespace.into()])
    );
    let Ok(receiver) = hooks.try_cast::<Object>() else {
        return Err(type_error(texts::expected_hooks_object(hooks.type_repr())));
    };
    let mut found = Vec::with_capacity(sys::HOOKS_REQUIRED.len());
    for hook in sys::HOOKS_REQUIRED.iter().copied().chain([
        sys::HOOK_HTTP_HANDLER,
        sys::HOOK_CALL_REDUCER_DIRECT,
        sys::HOOK_CALL_PROCEDURE_DIRECT,
    ]) {
        let key = step!(scope, program, ::v8::String::new(scope, hook));
        let value = step!(scope, program, receiver.get(scope, key.into()));
        let is_optional = !sys::HOOKS_REQUIRED.contains(&hook);
        match value.try_cast::<Function>() {
            Ok(function) => found.push(Some(Global::new(scope, function))),
            Err(_) if is_optional && value.is_null_or_undefined() => found.push(None),
            Err(_) => return Err(type_error(texts::expected_hook(hook, value.type_repr()))),
        }
    }
    let mut found = found.into_iter();
    let mut required = || found.next().flatten().ok_or_else(|| text("no hook"));
    let describe = required()?;
    let error_constructor = required()?;
    let sender_error = required()?;
    let call_reducer = required()?;
    let _views = (required()?, required()?);
    let call_procedure = required()?;
    // SAFETY: the state of the isolate that is being built; see `with_state`.
    unsafe { (*State::current()).error_constructor = Some(error_constructor) };
    let sender_error = Local::new(scope, sender_error);
    Ok(Hooks {
        receiver: Global::new(scope, receiver),
        describe,
        sender_error: Global::new(scope, Local::<Object>::from(sender_error)),
        call_reducer,
        call_procedure,
        call_http_handler: found.next().flatten(),
        call_reducer_direct: found.next().flatten(),
        call_procedure_direct: found.next().flatten(),
    })
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
    let receiver = Local::new(scope, &roots.hooks.receiver);
    let function = Local::new(scope, &roots.hooks.describe);
    let description = step!(scope, program, function.call(scope, receiver.into(), &[]));
    jobs.perform_checkpoint(scope);
    super::values::array_bytes(description).ok_or_else(|| {
        type_error(format!(
            "Expected `Uint8Array` return from `__describe_module__`, got {}",
            description.type_repr()
        ))
    })
}
