//! One call of a hook: arguments, result, exception (spec 04 §5.2, §6.2).

use lightcone_host::ReducerCall;

use crate::hooks::{type_error, unexpected, Hooks, Refused};
use crate::messages;
use crate::scope::{CallBuffer, Scope, Thrown, CALL_BUFFER_BYTES};
use crate::trace::Exception;

#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Reducer,
    Procedure,
    /// With the body of the request, and the payload of the sender's token.
    HttpHandler(&'a [u8], &'a str),
    View {
        is_anonymous: bool,
    },
}

pub(crate) enum HookOutcome {
    /// Empty for reducers; for an HTTP handler, head and body of the response.
    Returned(Vec<u8>, Vec<u8>),
    /// With the text of a `SenderError`.
    Refused(String),
    /// An uncaught exception, or a result of the wrong type.
    Uncaught(Exception),
    /// Without a record in the module's log.
    Failed(String),
}

impl HookOutcome {
    fn of(value: Vec<u8>) -> HookOutcome {
        HookOutcome::Returned(value, Vec::new())
    }
}

/// Values that an isolate keeps between calls.
pub(crate) struct Roots<K, H> {
    pub(crate) hooks: Hooks<K, H>,
    /// Views of the arguments by length, made on demand.
    views: Vec<Option<K>>,
    senders: BigInts<K, 4>,
    connections: BigInts<K, 2>,
}

impl<K, H> Roots<K, H> {
    pub(crate) fn new(hooks: Hooks<K, H>) -> Roots<K, H> {
        Roots {
            hooks,
            views: Vec::new(),
            senders: BigInts(Vec::new()),
            connections: BigInts(Vec::new()),
        }
    }
}

/// The head of a direct call's buffer, before its arguments.
const DIRECT_HEAD_BYTES: usize = 64;
/// Longer views are not kept.
const KEPT_VIEW_BYTES_MAX: usize = 512;
/// Cached big integers of each kind; a power of two.
const BIG_INTS_KEPT: usize = 256;

#[inline]
pub(crate) fn invoke<S: Scope>(
    scope: &mut S,
    roots: &mut Roots<S::Kept, S::Hook>,
    call: &ReducerCall<'_>,
    target: Target<'_>,
) -> HookOutcome {
    let result = call_hook(scope, roots, call, target);
    match result.and_then(|value| returned(scope, &value, target)) {
        Ok(end) => end,
        Err(Refused::Thrown) => threw(scope, roots),
        Err(Refused::Text(message)) => HookOutcome::Uncaught(Exception {
            message,
            frames: Vec::new(),
        }),
    }
}

#[inline]
fn call_hook<S: Scope>(
    scope: &mut S,
    roots: &mut Roots<S::Kept, S::Hook>,
    call: &ReducerCall<'_>,
    target: Target<'_>,
) -> Result<S::Value, Refused> {
    let this = scope.kept(&roots.hooks.receiver);
    let (direct, standard) = match target {
        Target::Reducer => (&roots.hooks.call_reducer_direct, &roots.hooks.call_reducer),
        Target::Procedure => (
            &roots.hooks.call_procedure_direct,
            &roots.hooks.call_procedure,
        ),
        Target::View { is_anonymous: true } => {
            let arguments = [scope.number(call.id), scope.uint8_array(call.args)?];
            return Ok(scope.call(&roots.hooks.call_view_anon, &this, &arguments)?);
        }
        Target::View {
            is_anonymous: false,
        } => {
            let arguments = [
                scope.number(call.id),
                roots.senders.get(scope, call.sender.to_words())?,
                scope.uint8_array(call.args)?,
            ];
            return Ok(scope.call(&roots.hooks.call_view, &this, &arguments)?);
        }
        Target::HttpHandler(body, sender_jwt) => {
            let Some(hook) = &roots.hooks.call_http_handler else {
                return Err(type_error(messages::NO_HTTP_HANDLER_HOOK.to_owned()));
            };
            let arguments = [
                scope.number(call.id),
                scope.int64(call.timestamp.0),
                scope.uint8_array(call.args)?,
                scope.uint8_array(body)?,
                // Each request has a sender of its own, so it is not kept.
                scope.big_int(&call.sender.to_words())?,
                scope.uint8_array(sender_jwt.as_bytes())?,
            ];
            return Ok(scope.call(hook, &this, &arguments)?);
        }
    };
    if let Some(hook) = direct {
        if write_direct(scope, call) {
            let arguments = [scope.number(call.id), scope.number(call.args.len() as u32)];
            return Ok(scope.call(hook, &this, &arguments)?);
        }
    }
    let arguments = [
        scope.number(call.id),
        roots.senders.get(scope, call.sender.to_words())?,
        roots.connections.get(scope, words(call.connection_id.0))?,
        scope.int64(call.timestamp.0),
        match target {
            Target::Reducer => arguments_view(scope, &mut roots.views, call.args)?,
            _ => scope.uint8_array(call.args)?,
        },
    ];
    Ok(scope.call(standard, &this, &arguments)?)
}

fn words(number: u128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

/// Writes a call to its buffer (docs/js-abi.md), if it fits and the buffer is intact.
#[inline]
fn write_direct<S: Scope>(scope: &mut S, call: &ReducerCall<'_>) -> bool {
    if call.args.len() > CALL_BUFFER_BYTES - DIRECT_HEAD_BYTES {
        return false;
    }
    let mut head = [0_u8; DIRECT_HEAD_BYTES];
    head[..32].copy_from_slice(&call.sender.to_le_bytes());
    head[32..48].copy_from_slice(&call.connection_id.0.to_le_bytes());
    head[48..56].copy_from_slice(&call.timestamp.0.to_le_bytes());
    scope.write(CallBuffer::Direct, [&head, call.args])
}

/// The arguments in their shared buffer, or in one of their own.
#[inline]
fn arguments_view<S: Scope>(
    scope: &mut S,
    views: &mut Vec<Option<S::Kept>>,
    args: &[u8],
) -> Result<S::Value, Thrown> {
    let length = args.len();
    if length > CALL_BUFFER_BYTES || !scope.write(CallBuffer::Arguments, [args, &[]]) {
        return scope.data_view(args);
    }
    if length > KEPT_VIEW_BYTES_MAX {
        return scope.arguments_view(length);
    }
    if let Some(Some(view)) = views.get(length) {
        return Ok(scope.kept(view));
    }
    let view = scope.arguments_view(length)?;
    if views.len() <= length {
        views.resize_with(length + 1, || None);
    }
    views[length] = Some(scope.keep(&view));
    Ok(view)
}

#[inline]
fn returned<S: Scope>(
    scope: &mut S,
    value: &S::Value,
    target: Target<'_>,
) -> Result<HookOutcome, Refused> {
    match target {
        Target::Reducer if scope.is_undefined(value) => Ok(HookOutcome::of(Vec::new())),
        Target::Reducer => Err(type_error(messages::REDUCER_RETURNED.to_owned())),
        Target::Procedure => match scope.array_bytes(value) {
            Some(bytes) => Ok(HookOutcome::of(bytes)),
            None => Err(type_error(messages::PROCEDURE_RETURNED.to_owned())),
        },
        Target::View { .. } => {
            if scope.is_object(value) {
                let data = scope.property(value, "data")?;
                if let Some(bytes) = scope.array_bytes(&data) {
                    return Ok(HookOutcome::of(bytes));
                }
            }
            Err(type_error(messages::VIEW_RETURNED.to_owned()))
        }
        Target::HttpHandler(..) => match answered(scope, value)? {
            Some((head, body)) => Ok(HookOutcome::Returned(head, body)),
            None => Err(unexpected(scope, messages::HANDLER_RETURNED, value)),
        },
    }
}

type HeadAndBody = (Vec<u8>, Vec<u8>);

/// Head and body of a response, from an array of the two.
fn answered<S: Scope>(scope: &mut S, value: &S::Value) -> Result<Option<HeadAndBody>, Thrown> {
    let Some([head, body]) = scope.pair(value)? else {
        return Ok(None);
    };
    Ok(scope.array_bytes(&head).zip(scope.array_bytes(&body)))
}

#[cold]
fn threw<S: Scope>(scope: &mut S, roots: &Roots<S::Kept, S::Hook>) -> HookOutcome {
    let Some(exception) = scope.take_exception() else {
        return HookOutcome::Failed("the call was stopped".to_owned());
    };
    let value = scope.thrown_value(&exception);
    match user_error(scope, &value, &roots.hooks.sender_error) {
        Some(text) => HookOutcome::Refused(text),
        None => HookOutcome::Uncaught(scope.uncaught(exception)),
    }
}

/// The text of a user error, if that was thrown (§5.2). Runs module code; its exceptions count as a no.
fn user_error<S: Scope>(scope: &mut S, value: &S::Value, class: &S::Kept) -> Option<String> {
    if !scope.is_object(value) || !scope.is_instance(value, class) {
        return None;
    }
    scope.text_of(value, "message")
}

/// The big integers of the last callers: a look-up is cheaper than making one.
struct BigInts<K, const WORDS: usize>(Vec<Option<([u64; WORDS], K)>>);

impl<K, const WORDS: usize> BigInts<K, WORDS> {
    #[inline]
    fn get<S: Scope<Kept = K>>(
        &mut self,
        scope: &mut S,
        words: [u64; WORDS],
    ) -> Result<S::Value, Thrown> {
        // Any bits will do: identities and connection ids are random.
        let hash = words[0] ^ words[1];
        let slot = (hash ^ (hash >> 32)) as usize & (BIG_INTS_KEPT - 1);
        if let Some(Some((known, value))) = self.0.get(slot) {
            if *known == words {
                return Ok(scope.kept(value));
            }
        }
        let value = scope.big_int(&words)?;
        if self.0.is_empty() {
            self.0.resize_with(BIG_INTS_KEPT, || None);
        }
        self.0[slot] = Some((words, scope.keep(&value)));
        Ok(value)
    }
}
