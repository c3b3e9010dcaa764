//! What the database calls: an instance and its reducer calls (spec 04 §5.2, §6.2).

use std::panic::resume_unwind;
use std::sync::Arc;

use ::v8::{BigInt, DataView, Global, Local, MicrotaskQueue, OwnedIsolate, PinScope};
use lightcone_engine::Datastore;
use lightcone_host::{
    HandlerResponse, HostConfig, HostEnv, ModuleInstance, ProcedureOutcome, ProcedureScope,
    ReducerCall, ReducerOutcome,
};
use lightcone_types::Identity;

use super::exception::uncaught;
use super::isolate::{Realm, Roots, Stopped, CALL_BUFFER_BYTES};
use super::values::{array_bytes, Value};
use crate::call::{Ended, Frame, Target};
use crate::program::ProgramText;
use crate::texts;
use crate::trace::Exception;

/// A running module.
pub(crate) struct V8Instance {
    program: Arc<ProgramText>,
    config: HostConfig,
    /// The environment until there is an isolate.
    env: Option<HostEnv>,
    realm: Option<Realm>,
    poisoned: bool,
}

// SAFETY: the isolate is used by the thread that made it only: any other thread that calls the instance makes its own
// (`realm`). It may be dropped by another thread, as V8 allows if no thread has entered it, which holds between calls.
unsafe impl Send for V8Instance {}

impl V8Instance {
    pub(crate) fn new(program: Arc<ProgramText>, env: HostEnv) -> V8Instance {
        V8Instance {
            program,
            config: env.config().clone(),
            env: Some(env),
            realm: None,
            poisoned: false,
        }
    }

    /// The isolate of this thread; made if there is none.
    #[inline]
    fn realm(&mut self) -> Result<&mut Realm, String> {
        if !self.realm.as_ref().is_some_and(Realm::is_here) {
            self.make_realm()?;
        }
        self.realm
            .as_mut()
            .ok_or_else(|| "there is no isolate".to_owned())
    }

    #[cold]
    fn make_realm(&mut self) -> Result<(), String> {
        self.realm = None;
        let env = match self.env.take() {
            Some(env) => env,
            None => HostEnv::new(self.config.clone()),
        };
        let realm = Realm::new(&self.program, env)
            .map_err(|error| format!("the module cannot be instantiated again: {error}"))?;
        self.realm = Some(realm);
        Ok(())
    }

    #[inline]
    fn run(&mut self, mut frame: Frame<'_>, call: &ReducerCall<'_>) -> Ended {
        if self.is_poisoned() {
            return Ended::Fatal("the instance was stopped before and not replaced".to_owned());
        }
        let realm = match self.realm() {
            Ok(realm) => realm,
            Err(message) => return Ended::Fatal(message),
        };
        frame.begin(&mut realm.state.env, call.name);
        let target = frame.target();
        let (end, stopped) = realm.call(|isolate, roots, jobs, program| {
            invoke(isolate, roots, jobs, program, call, target)
        });
        let mut poisoned = false;
        let ended = match (end, stopped) {
            (End::Returned(value), None) => Ended::Returned(value),
            (End::Answered(response), None) => Ended::Answered(response),
            (End::UserError(text), None) => Ended::Refused(text),
            (End::Uncaught(exception), None) => fatal(realm, &exception),
            (_, Some(Stopped::Time)) => Ended::TimedOut(realm.time_limit().to_string()),
            (_, Some(Stopped::Trap(trap))) => Ended::Fatal(trap.to_string()),
            (End::Stopped, None) => Ended::Fatal("the call was stopped".to_owned()),
            (_, Some(Stopped::Memory)) => {
                // The heap is beyond its limit and may be full of garbage that the module holds.
                poisoned = true;
                Ended::Fatal(realm.memory_limit().to_string())
            }
        };
        frame.end(&mut realm.state.env);
        let panic = realm.state.panic.take();
        self.poisoned = poisoned;
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        ended
    }
}

impl ModuleInstance for V8Instance {
    #[inline]
    fn call_reducer(
        &mut self,
        datastore: &mut Option<Box<Datastore>>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        self.run(Frame::Reducer(datastore), call).into()
    }

    fn call_procedure(
        &mut self,
        scope: &mut Option<ProcedureScope>,
        call: &ReducerCall<'_>,
    ) -> ProcedureOutcome {
        self.run(Frame::Procedure(scope), call).into()
    }

    fn call_http_handler(
        &mut self,
        scope: &mut Option<ProcedureScope>,
        call: &ReducerCall<'_>,
        body: &[u8],
    ) -> ProcedureOutcome<HandlerResponse> {
        self.run(Frame::HttpHandler(scope, body), call).into()
    }

    fn prepare(&mut self) {
        match self.realm() {
            Ok(realm) => realm.stay(),
            // It shows again, and is reported, at the first call.
            Err(message) => tracing::warn!(%message, "a JavaScript module was not ready"),
        }
    }

    #[inline]
    fn is_poisoned(&self) -> bool {
        self.poisoned || self.realm.as_ref().is_some_and(Realm::is_tainted)
    }
}

/// An uncaught exception goes to the module's log (§9).
#[cold]
fn fatal(realm: &mut Realm, exception: &Exception) -> Ended {
    let location = exception.location();
    realm.state.env.console_log(
        PANIC_LEVEL,
        None,
        location.map(|(script, _)| script.as_bytes()),
        location.map_or(u32::MAX, |(_, line)| line),
        exception.message.as_bytes(),
        || exception.console_frames(),
    );
    Ended::Fatal(exception.text())
}

const PANIC_LEVEL: u32 = 101;

/// How a hook ended.
enum End {
    Returned(Vec<u8>),
    Answered(HandlerResponse),
    UserError(String),
    Uncaught(Exception),
    /// Not by itself.
    Stopped,
}

fn invoke(
    isolate: &mut OwnedIsolate,
    roots: &mut Roots,
    jobs: &MicrotaskQueue,
    program: &ProgramText,
    call: &ReducerCall<'_>,
    target: Target<'_>,
) -> End {
    ::v8::scope!(let scope, isolate);
    let context = Local::new(scope, &roots.context);
    let scope = &mut ::v8::ContextScope::new(scope, context);
    ::v8::tc_scope!(let scope, scope);
    let receiver: Value<'_> = Local::new(scope, &roots.hooks.receiver).into();
    let direct = match target {
        Target::Reducer => roots.hooks.call_reducer_direct.as_ref(),
        Target::Procedure => roots.hooks.call_procedure_direct.as_ref(),
        Target::HttpHandler(_) => None,
    };
    let direct = direct.and_then(|hook| call_direct(scope, roots, hook, receiver, call));
    let result = match (direct, target) {
        (Some(result), _) => result,
        (None, Target::Reducer) => call_hook(scope, roots, receiver, call),
        (None, Target::Procedure) => call_procedure(scope, roots, receiver, call),
        (None, Target::HttpHandler(body)) => call_http_handler(scope, roots, receiver, call, body),
    };
    let end = match result {
        Some(value) => match target {
            Target::Reducer if value.is_undefined() => End::Returned(Vec::new()),
            Target::Reducer => wrong_result(texts::REDUCER_RETURNED),
            Target::Procedure => match array_bytes(value) {
                Some(value) => End::Returned(value),
                None => wrong_result(texts::PROCEDURE_RETURNED),
            },
            Target::HttpHandler(_) => match answered(scope, value) {
                Some(response) => End::Answered(response),
                None => wrong_result(&texts::handler_returned(value.type_repr())),
            },
        },
        None => {
            let (value, message) = (scope.exception(), scope.message());
            match value {
                Some(value) if !scope.has_terminated() => {
                    scope.reset();
                    match user_error(scope, roots, value) {
                        Some(text) => End::UserError(text),
                        None => End::Uncaught(uncaught(scope, value, message, program)),
                    }
                }
                _ => return End::Stopped,
            }
        }
    };
    jobs.perform_checkpoint(scope);
    end
}

/// The call in one buffer (docs/js-abi.md), if it fits.
#[inline]
fn call_direct<'s>(
    scope: &mut PinScope<'s, '_>,
    roots: &Roots,
    hook: &Global<::v8::Function>,
    receiver: Value<'s>,
    call: &ReducerCall<'_>,
) -> Option<Option<Value<'s>>> {
    if call.args.len() > CALL_BUFFER_BYTES - DIRECT_ARGS {
        return None;
    }
    if Local::new(scope, &roots.direct.object).was_detached() {
        return None;
    }
    let mut head = [0_u8; DIRECT_ARGS];
    head[..32].copy_from_slice(&call.sender.to_le_bytes());
    head[32..48].copy_from_slice(&call.connection_id.0.to_le_bytes());
    head[48..56].copy_from_slice(&call.timestamp.0.to_le_bytes());
    roots.direct.write(0, &head);
    roots.direct.write(DIRECT_ARGS, call.args);
    let hook = Local::new(scope, hook);
    let id = ::v8::Integer::new_from_unsigned(scope, call.id).into();
    let length = ::v8::Integer::new(scope, call.args.len() as i32).into();
    Some(hook.call(scope, receiver, &[id, length]))
}

/// Where the arguments start in the buffer of a direct call.
const DIRECT_ARGS: usize = 64;

#[inline]
fn call_hook<'s>(
    scope: &mut PinScope<'s, '_>,
    roots: &mut Roots,
    receiver: Value<'s>,
    call: &ReducerCall<'_>,
) -> Option<Value<'s>> {
    let id = ::v8::Integer::new_from_unsigned(scope, call.id).into();
    let sender = roots.identities.sender(scope, &call.sender)?.into();
    let connection = roots
        .identities
        .connection(scope, call.connection_id.0)?
        .into();
    let timestamp = BigInt::new_from_i64(scope, call.timestamp.0).into();
    let args = args_view(scope, roots, call.args)?.into();
    let hook = Local::new(scope, &roots.hooks.call_reducer);
    hook.call(scope, receiver, &[id, sender, connection, timestamp, args])
}

#[cold]
fn wrong_result(text: &str) -> End {
    End::Uncaught(Exception {
        message: format!("Uncaught TypeError: {text}"),
        frames: Vec::new(),
    })
}

fn call_procedure<'s>(
    scope: &mut PinScope<'s, '_>,
    roots: &mut Roots,
    receiver: Value<'s>,
    call: &ReducerCall<'_>,
) -> Option<Value<'s>> {
    let id = ::v8::Integer::new_from_unsigned(scope, call.id).into();
    let sender = roots.identities.sender(scope, &call.sender)?.into();
    let connection = roots
        .identities
        .connection(scope, call.connection_id.0)?
        .into();
    let timestamp = BigInt::new_from_i64(scope, call.timestamp.0).into();
    let args = super::values::uint8_array(scope, call.args)?.into();
    let hook = Local::new(scope, &roots.hooks.call_procedure);
    hook.call(scope, receiver, &[id, sender, connection, timestamp, args])
}

fn call_http_handler<'s>(
    scope: &mut PinScope<'s, '_>,
    roots: &Roots,
    receiver: Value<'s>,
    call: &ReducerCall<'_>,
    body: &[u8],
) -> Option<Value<'s>> {
    let id = ::v8::Integer::new_from_unsigned(scope, call.id).into();
    let timestamp = BigInt::new_from_i64(scope, call.timestamp.0).into();
    let request = super::values::uint8_array(scope, call.args)?.into();
    let body = super::values::uint8_array(scope, body)?.into();
    let hook = match &roots.hooks.call_http_handler {
        Some(hook) => Local::new(scope, hook),
        None => {
            let text = ::v8::String::new(scope, texts::NO_HTTP_HANDLER_HOOK)?;
            let error = ::v8::Exception::type_error(scope, text);
            scope.throw_exception(error);
            return None;
        }
    };
    hook.call(scope, receiver, &[id, timestamp, request, body])
}

/// The head and the body of a response, from an array of the two.
fn answered(scope: &mut PinScope<'_, '_>, value: Value<'_>) -> Option<HandlerResponse> {
    let parts = value.try_cast::<::v8::Array>().ok()?;
    if parts.length() != 2 {
        return None;
    }
    let (head, body) = (parts.get_index(scope, 0)?, parts.get_index(scope, 1)?);
    Some(HandlerResponse {
        head: array_bytes(head)?,
        body: array_bytes(body)?,
    })
}

/// Views up to this length are kept.
const KEPT_VIEW_BYTES_MAX: usize = 512;

/// The arguments in the one buffer for them, or in a buffer of their own.
#[inline]
fn args_view<'s>(
    scope: &mut PinScope<'s, '_>,
    roots: &mut Roots,
    args: &[u8],
) -> Option<Local<'s, DataView>> {
    let buffer = Local::new(scope, &roots.args.object);
    if args.len() > CALL_BUFFER_BYTES || buffer.was_detached() {
        let array = super::values::uint8_array(scope, args)?;
        let buffer = array.buffer(scope)?;
        return Some(DataView::new(scope, buffer, 0, args.len()));
    }
    roots.args.write(0, args);
    if args.len() > KEPT_VIEW_BYTES_MAX {
        return Some(DataView::new(scope, buffer, 0, args.len()));
    }
    if let Some(Some(view)) = roots.views.get(args.len()) {
        return Some(Local::new(scope, view));
    }
    let view = DataView::new(scope, buffer, 0, args.len());
    if roots.views.len() <= args.len() {
        roots.views.resize_with(args.len() + 1, || None);
    }
    roots.views[args.len()] = Some(Global::new(scope, view));
    Some(view)
}

/// The text of a user error, if that is what was thrown (§5.2). Runs module code, whose own failures count as a no.
#[cold]
fn user_error(scope: &mut PinScope<'_, '_>, roots: &Roots, value: Value<'_>) -> Option<String> {
    if !value.is_object() {
        return None;
    }
    ::v8::tc_scope!(let scope, scope);
    let class = Local::new(scope, &roots.hooks.sender_error);
    if !value.instance_of(scope, class)? {
        return None;
    }
    let error = value.try_cast::<::v8::Object>().ok()?;
    let key = ::v8::String::new(scope, "message")?;
    let message = error.get(scope, key.into())?;
    let text = message.to_string(scope)?;
    Some(text.to_rust_string_lossy(scope))
}

/// The big integers of the last callers: making one costs more than finding it.
#[derive(Default)]
pub(crate) struct BigIntCache {
    senders: Vec<(Identity, Global<BigInt>)>,
    connections: Vec<(u128, Global<BigInt>)>,
}

/// Slots of each kind; a power of two.
const CACHE_SLOTS: usize = 64;

impl BigIntCache {
    #[inline]
    fn sender<'s>(
        &mut self,
        scope: &mut PinScope<'s, '_>,
        sender: &Identity,
    ) -> Option<Local<'s, BigInt>> {
        let words = sender.to_words();
        cached(
            &mut self.senders,
            scope,
            *sender,
            words[0] ^ words[1],
            &words,
        )
    }

    #[inline]
    fn connection<'s>(
        &mut self,
        scope: &mut PinScope<'s, '_>,
        connection: u128,
    ) -> Option<Local<'s, BigInt>> {
        let words = [connection as u64, (connection >> 64) as u64];
        cached(
            &mut self.connections,
            scope,
            connection,
            words[0] ^ words[1],
            &words,
        )
    }
}

#[inline]
fn cached<'s, K: PartialEq + Copy>(
    slots: &mut Vec<(K, Global<BigInt>)>,
    scope: &mut PinScope<'s, '_>,
    key: K,
    hash: u64,
    words: &[u64],
) -> Option<Local<'s, BigInt>> {
    // Any bits will do: identities and connection ids are random.
    let slot = (hash as usize ^ (hash >> 32) as usize) & (CACHE_SLOTS - 1);
    if let Some((found, value)) = slots.get(slot) {
        if *found == key {
            return Some(Local::new(scope, value));
        }
    }
    let value = BigInt::new_from_words(scope, false, words)?;
    let entry = (key, Global::new(scope, value));
    if slots.is_empty() {
        // Any filling will do for the slots that were not used yet.
        slots.resize_with(CACHE_SLOTS, || (key, Global::new(scope, value)));
    }
    slots[slot] = entry;
    Some(value)
}
