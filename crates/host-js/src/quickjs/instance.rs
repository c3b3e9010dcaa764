//! Instances: calls of reducers (spec 04 §5.2, §6.2).

use std::mem::ManuallyDrop;
use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_host::{
    HandlerResponse, HostEnv, HostError, HostTrap, LimitKind, ModuleInstance, ProcedureOutcome,
    ProcedureScope, ReducerCall, ReducerOutcome,
};
use rquickjs_sys as qjs;
use rquickjs_sys::{JSContext, JSValue};

use crate::call::{Ended, Frame, Target};
use crate::program::ProgramText;
use crate::texts;
use crate::trace::Exception;

use super::globals::CALL_BUFFER_BYTES;
use super::isolate::Isolate;
use super::numbers::Known;
use super::stack;
use super::state::{throw, Failure};
use super::value::{
    array_bytes, buffer_bytes, bytes, forget_exception, kind, number, pair, to_text, undefined,
    Owned, Thrown,
};

/// Level of the records that the host writes for exceptions.
const PANIC_LEVEL: u32 = 101;
/// Arguments up to this size share one buffer.
const ARGS_BUFFER_BYTES: usize = 4096;
/// Where the arguments of a direct call begin.
const ARGS_OFFSET: usize = 64;
/// Views of the arguments up to this length are kept.
const KEPT_VIEWS: usize = 256;

pub(crate) struct QuickJsInstance {
    // Values go with the isolate's heap, and are never released one by one.
    known: ManuallyDrop<Box<Known>>,
    views: ManuallyDrop<ArgumentViews>,
    isolate: Isolate,
    program: Arc<ProgramText>,
    poisoned: bool,
}

// SAFETY: the values belong to the isolate, which may move between threads as a whole.
unsafe impl Send for QuickJsInstance {}

impl Drop for QuickJsInstance {
    fn drop(&mut self) {
        // SAFETY: taken once. The isolate and its heap are still there, so the values can be released.
        unsafe {
            ManuallyDrop::drop(&mut self.known);
            ManuallyDrop::drop(&mut self.views);
        }
    }
}

impl QuickJsInstance {
    /// Evaluates the program in a new isolate. The description is asked for in the first one only (04 §7).
    pub(crate) fn start(
        program: &Arc<ProgramText>,
        env: HostEnv,
        stack_bytes_max: usize,
    ) -> Result<QuickJsInstance, HostError> {
        let mut isolate = Isolate::new(env, stack_bytes_max)?;
        isolate.start(program)?;
        Ok(QuickJsInstance {
            known: ManuallyDrop::new(Box::new(Known::new())),
            views: ManuallyDrop::new(ArgumentViews::default()),
            isolate,
            program: program.clone(),
            poisoned: false,
        })
    }

    pub(crate) fn describe(&mut self) -> Result<Vec<u8>, HostError> {
        self.isolate.describe(&self.program)
    }

    /// Gives the instance of the load its place in a running database.
    pub(crate) fn adopt(&mut self, env: HostEnv) {
        let state = self.isolate.state();
        state.heap.set_limit(env.limits().memory_bytes_max);
        state.env = env;
    }

    /// Calls the hook, in JavaScript's terms.
    fn call_hook(&mut self, call: &ReducerCall<'_>, target: Target<'_>) -> Result<Owned, Thrown> {
        if call.args.len() <= CALL_BUFFER_BYTES - ARGS_OFFSET {
            if let Some(direct) = self.direct_hook(target) {
                return self.call_direct(direct, call);
            }
        }
        let context = self.isolate.context;
        let hooks = &self.isolate.state().hooks;
        let hook = match target {
            Target::Reducer => &hooks.call_reducer,
            Target::Procedure => &hooks.call_procedure,
            Target::HttpHandler(_) => &hooks.call_http_handler,
        };
        let hook = hook.as_ref().map(Owned::raw);
        let this = hooks.object.as_ref().map(Owned::raw);
        let (hook, this) = (hook.unwrap_or(undefined()), this.unwrap_or(undefined()));
        if let Target::HttpHandler(body) = target {
            // SAFETY: the state is not borrowed; the values stay owned by this function during the call.
            return unsafe {
                if hook.tag == undefined().tag {
                    throw(
                        context,
                        Failure::Type(texts::NO_HTTP_HANDLER_HOOK.to_owned()),
                    );
                    return Err(Thrown);
                }
                let timestamp = Owned::new(context, qjs::JS_NewBigInt64(context, call.timestamp.0));
                let request = Owned::checked(context, bytes(context, call.args))?;
                let body = Owned::checked(context, bytes(context, body))?;
                let mut arguments = [number(call.id), timestamp.raw(), request.raw(), body.raw()];
                self.isolate.call(hook, this, &mut arguments)
            };
        }
        let connection = call.connection_id.0;
        let connection = [connection as u64, (connection >> 64) as u64, 0, 0];
        // SAFETY: the state is not borrowed; the values stay owned by `self` or by this function during the call.
        unsafe {
            let sender = self.known.get(context, call.sender.to_words())?;
            // Two entries of one table may share a slot, which would free the first.
            let sender = Owned::share(context, sender);
            let connection = self.known.get(context, connection)?;
            let connection = Owned::share(context, connection);
            let timestamp = Owned::new(context, qjs::JS_NewBigInt64(context, call.timestamp.0));
            let args = match target {
                Target::Reducer => self.views.view(&mut self.isolate, call.args)?,
                _ => Owned::checked(context, bytes(context, call.args))?,
            };
            let mut arguments = [
                number(call.id),
                sender.raw(),
                connection.raw(),
                timestamp.raw(),
                args.raw(),
            ];
            self.isolate.call(hook, this, &mut arguments)
        }
    }

    /// The hook that takes calls in the buffer, if the module has one and the buffer is still whole.
    #[inline]
    fn direct_hook(&mut self, target: Target<'_>) -> Option<JSValue> {
        let context = self.isolate.context;
        let state = self.isolate.state();
        let hook = match target {
            Target::Reducer => state.hooks.call_reducer_direct.as_ref()?.raw(),
            Target::Procedure => state.hooks.call_procedure_direct.as_ref()?.raw(),
            Target::HttpHandler(_) => return None,
        };
        let buffer = state.values.call_buffer.as_ref()?.raw();
        // SAFETY: the buffer is a live value.
        let is_whole = unsafe { is_whole(context, buffer, CALL_BUFFER_BYTES) };
        if !is_whole {
            state.hooks.call_reducer_direct = None;
            state.hooks.call_procedure_direct = None;
            return None;
        }
        Some(hook)
    }

    /// Calls the module with everything in one buffer (docs/js-abi.md).
    fn call_direct(&mut self, hook: JSValue, call: &ReducerCall<'_>) -> Result<Owned, Thrown> {
        let context = self.isolate.context;
        let state = self.isolate.state();
        let this = state.hooks.object.as_ref().map(Owned::raw);
        let buffer = state.values.call_buffer.as_ref().map(Owned::raw);
        // SAFETY: the values are live. The bytes are written before JavaScript runs.
        unsafe {
            let content = buffer_bytes(context, buffer.unwrap_or(undefined()));
            if let Some((head, args)) = content.split_at_mut_checked(ARGS_OFFSET) {
                head[..32].copy_from_slice(&call.sender.to_le_bytes());
                head[32..48].copy_from_slice(&call.connection_id.0.to_le_bytes());
                head[48..56].copy_from_slice(&call.timestamp.0.to_le_bytes());
                head[56..].fill(0);
                args[..call.args.len()].copy_from_slice(call.args);
            }
            let mut arguments = [number(call.id), number(call.args.len() as u32)];
            self.isolate
                .call(hook, this.unwrap_or(undefined()), &mut arguments)
        }
    }

    /// What the result of the hook means.
    fn ended(&mut self, result: Result<Owned, Thrown>, target: Target<'_>) -> Ended {
        let value = match result {
            Ok(value) => value,
            Err(Thrown) => return self.threw(),
        };
        match target {
            Target::Reducer if value.is_undefined() => Ended::Returned(Vec::new()),
            Target::Reducer => self.wrong_result(texts::REDUCER_RETURNED),
            Target::Procedure => {
                // SAFETY: the value is live; its bytes are copied before anything else runs.
                let bytes = unsafe { array_bytes(self.isolate.context, value.raw()) };
                match bytes {
                    Some(bytes) => Ended::Returned(bytes.to_vec()),
                    None => self.wrong_result(texts::PROCEDURE_RETURNED),
                }
            }
            Target::HttpHandler(_) => self.answered(&value),
        }
    }

    /// The head and the body of a response, from an array of the two.
    fn answered(&mut self, value: &Owned) -> Ended {
        let context = self.isolate.context;
        // SAFETY: the values are live.
        let parts = match unsafe { pair(context, value.raw()) } {
            Ok(parts) => parts,
            Err(Thrown) => return self.threw(),
        };
        // SAFETY: the value is live; its bytes are copied before anything else runs.
        let copied = |part: Owned| unsafe { array_bytes(context, part.raw()).map(|b| b.to_vec()) };
        let response = parts.and_then(|(head, body)| {
            Some(HandlerResponse {
                head: copied(head)?,
                body: copied(body)?,
            })
        });
        match response {
            Some(response) => Ended::Answered(response),
            None => {
                // SAFETY: the value is live and the state is not borrowed.
                let got = unsafe { kind(context, value.raw()) };
                self.wrong_result(&texts::handler_returned(&got))
            }
        }
    }

    #[cold]
    fn wrong_result(&mut self, text: &str) -> Ended {
        let message = format!("Uncaught TypeError: {text}");
        let frames = Vec::new();
        self.panicked(Exception { message, frames })
    }

    #[cold]
    fn threw(&mut self) -> Ended {
        let exception = self.isolate.take_exception();
        if self.isolate.is_doomed() {
            return self.doomed();
        }
        if let Some(text) = self.user_error(&exception) {
            return Ended::Refused(text);
        }
        let context = self.isolate.context;
        // SAFETY: the state is not borrowed.
        let exception =
            unsafe { stack::uncaught(context, &exception, self.program.source_map.as_ref()) };
        match self.isolate.is_doomed() {
            true => self.doomed(),
            false => self.panicked(exception),
        }
    }

    /// The text of an exception that was meant for the caller.
    fn user_error(&mut self, exception: &Owned) -> Option<String> {
        let context = self.isolate.context;
        let class = self
            .isolate
            .state()
            .hooks
            .sender_error_class
            .as_ref()?
            .raw();
        if !exception.is_object() {
            return None;
        }
        // SAFETY: both values are live and the state is not borrowed.
        unsafe {
            let text = match qjs::JS_IsInstanceOf(context, exception.raw(), class) {
                0 => return None,
                1 => exception
                    .get(c"message")
                    .and_then(|message| to_text(context, message.raw())),
                _ => Err(Thrown),
            };
            if text.is_err() {
                forget_exception(context);
            }
            text.ok()
        }
    }

    /// Writes the record of an exception that nobody caught.
    fn panicked(&mut self, exception: Exception) -> Ended {
        let heap = &self.isolate.state().heap;
        if let Some(bytes) = heap.refused_bytes() {
            // The limit explains it better than the engine's words; as with other terminations there is no record.
            let limit = super::state::memory_limit(heap);
            let text = exception.text();
            let message = format!("{limit} (it asked for {bytes}); then: {text}");
            return Ended::Fatal(message);
        }
        let (filename, line) = match exception.location() {
            Some((script, line)) => (Some(script.as_bytes()), line),
            None => (None, u32::MAX),
        };
        self.isolate.state().env.console_log(
            PANIC_LEVEL,
            None,
            filename,
            line,
            exception.message.as_bytes(),
            || exception.console_frames(),
        );
        Ended::Fatal(exception.text())
    }

    #[cold]
    fn doomed(&mut self) -> Ended {
        match self.isolate.state().doomed.clone() {
            Some(
                trap @ HostTrap::Limit {
                    kind: LimitKind::CallTime,
                    ..
                },
            ) => Ended::TimedOut(trap.to_string()),
            trap => Ended::Fatal(trap.map(|trap| trap.to_string()).unwrap_or_default()),
        }
    }

    /// After a termination, or when memory was short, the isolate is used again, unless it would carry something over.
    #[cold]
    fn recover(&mut self) {
        self.isolate.collect_garbage();
        let state = self.isolate.state();
        let is_full = state.heap.used_bytes() >= state.heap.limit() / 4 * 3;
        self.poisoned = is_full || self.isolate.has_jobs();
    }

    fn run(&mut self, mut frame: Frame<'_>, call: &ReducerCall<'_>) -> Ended {
        if self.poisoned {
            return Ended::Fatal("the instance was terminated before and was not replaced".into());
        }
        let target = frame.target();
        let state = self.isolate.state();
        frame.begin(&mut state.env, call.name);
        let call_ms_max = state.env.limits().call_ms_max;
        state.start_clock(LimitKind::CallTime, call_ms_max);
        self.isolate.enter();
        let result = self.call_hook(call, target);
        let ended = self.ended(result, target);
        self.isolate.run_jobs();
        let is_doomed = self.isolate.is_doomed();
        let ended = match is_doomed {
            false => ended,
            true => self.doomed(),
        };
        if is_doomed || self.isolate.state().heap.refused_bytes().is_some() {
            self.recover();
        }
        frame.end(&mut self.isolate.state().env);
        ended
    }
}

impl ModuleInstance for QuickJsInstance {
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

    fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

/// The buffer for arguments, and views of its beginning, by length.
#[derive(Default)]
struct ArgumentViews {
    buffer: Option<Owned>,
    views: Vec<Option<Owned>>,
}

impl ArgumentViews {
    /// A `DataView` of these bytes.
    ///
    /// # Safety
    /// The isolate is always the same; its state is not borrowed.
    unsafe fn view(&mut self, isolate: &mut Isolate, args: &[u8]) -> Result<Owned, Thrown> {
        unsafe {
            if args.len() >= KEPT_VIEWS {
                let content = args.as_ptr();
                let buffer =
                    qjs::JS_NewArrayBufferCopy(isolate.context, content, args.len() as u64);
                let buffer = Owned::checked(isolate.context, buffer)?;
                return new_view(isolate, buffer.raw(), args.len());
            }
            let buffer = self.buffer(isolate)?;
            buffer_bytes(isolate.context, buffer)[..args.len()].copy_from_slice(args);
            if let Some(Some(view)) = self.views.get(args.len()) {
                return Ok(Owned::share(isolate.context, view.raw()));
            }
            let view = new_view(isolate, buffer, args.len())?;
            if self.views.len() <= args.len() {
                self.views.resize_with(args.len() + 1, || None);
            }
            self.views[args.len()] = Some(Owned::share(isolate.context, view.raw()));
            Ok(view)
        }
    }

    /// The shared buffer; a new one if the module took the old one apart.
    unsafe fn buffer(&mut self, isolate: &mut Isolate) -> Result<JSValue, Thrown> {
        unsafe {
            if let Some(buffer) = &self.buffer {
                if is_whole(isolate.context, buffer.raw(), ARGS_BUFFER_BYTES) {
                    return Ok(buffer.raw());
                }
            }
            self.views.clear();
            let content = [0; ARGS_BUFFER_BYTES];
            let size = ARGS_BUFFER_BYTES as qjs::size_t;
            let buffer = qjs::JS_NewArrayBufferCopy(isolate.context, content.as_ptr(), size);
            let buffer = Owned::checked(isolate.context, buffer)?;
            Ok(self.buffer.insert(buffer).raw())
        }
    }
}

/// Whether a buffer was neither detached nor made immutable.
unsafe fn is_whole(context: *mut JSContext, buffer: JSValue, size: usize) -> bool {
    unsafe {
        buffer_bytes(context, buffer).len() == size && qjs::JS_IsImmutableArrayBuffer(buffer) == 0
    }
}

unsafe fn new_view(isolate: &mut Isolate, buffer: JSValue, length: usize) -> Result<Owned, Thrown> {
    let class = isolate.state().values.data_view.as_ref().map(Owned::raw);
    let mut arguments = [buffer, number(0), number(length as u32)];
    // SAFETY: the values are live and the state is not borrowed.
    unsafe {
        let view = qjs::JS_CallConstructor(
            isolate.context,
            class.unwrap_or(undefined()),
            3,
            arguments.as_mut_ptr(),
        );
        Owned::checked(isolate.context, view)
    }
}
