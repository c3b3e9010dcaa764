//! The host functions (spec 04 §4.2) and the virtual modules that export them (§3).

use ::v8::{
    Context, FixedArray, Function, FunctionCallback, FunctionCallbackArguments, FunctionTemplate,
    Global, Local, MapFnTo, Module, Object, PinScope, PropertyAttribute, ReturnValue, StackTrace,
    Symbol,
};
use lightcone_host::{ConsoleLevel, HttpOutcome, HttpRequest};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Encode as _, TableId};

use super::call_buffers::CallBuffer;
use super::exception::{frames, FRAMES_MAX};
use super::failures::fail;
use super::host_calls::{
    advance, close, delete_all_by_eq, delete_by_point, delete_by_range, index_scan_point,
    index_scan_range, insert, point_read, table_scan, update,
};
use super::state::{with_state, Failure, State};
use super::values::{
    buffer_of, bytes_of, string_of, u128_of, u16_of, u32_of, uint8_array, utf8_array, RangeLens,
    Value,
};
use super::{fast, strings};
use crate::frame::console_frames;
use crate::messages;
use crate::specifier;
use crate::sys::{self, Exports, Function as Sys};

// ---- General calls ------------------------------------------------------------------------------------------------

/// What a host function gives to the program.
trait Answer<'s> {
    fn set(self, scope: &mut PinScope<'s, '_>, place: &mut ReturnValue<'s>);
}

macro_rules! answers {
    ($($answer:ty: |$value:ident, $scope:ident, $place:ident| $set:expr;)+) => {$(
        impl<'s> Answer<'s> for $answer {
            #[inline]
            fn set(self, $scope: &mut PinScope<'s, '_>, $place: &mut ReturnValue<'s>) {
                let $value = self;
                $set
            }
        }
    )+};
}

answers! {
    (): |_value, _scope, _place| ();
    u32: |value, _scope, place| place.set_uint32(value);
    i32: |value, _scope, place| place.set_int32(value);
    u64: |value, scope, place| place.set(::v8::BigInt::new_from_u64(scope, value).into());
    i64: |value, scope, place| place.set(::v8::BigInt::new_from_i64(scope, value).into());
    Value<'s>: |value, _scope, place| place.set(value);
}

/// Functions in their general form, by what they are called here. Their bodies give an [`Answer`], or fail.
macro_rules! callbacks {
    ($choose:ident($Kind:ident) $($function:ident |$scope:ident, $args:ident| $body:block)*) => {
        fn $choose(function: $Kind) -> FunctionCallback {
            match function {
                $($Kind::$function => {
                    // The closure is there for its `?`.
                    #[allow(clippy::redundant_closure_call)]
                    fn callback<'s>(
                        scope: &mut PinScope<'s, '_>,
                        args: FunctionCallbackArguments<'s>,
                        mut place: ReturnValue<'s>,
                    ) {
                        let $args = &args;
                        let result: Result<_, Failure> = {
                            let $scope = &mut *scope;
                            (|| $body)()
                        };
                        match result {
                            Ok(answer) => answer.set(scope, &mut place),
                            Err(failure) => fail(scope, failure),
                        }
                    }
                    callback.map_fn_to()
                })*
            }
        }
    };
}

fn lens(args: &FunctionCallbackArguments<'_>) -> Result<RangeLens, Failure> {
    Ok(RangeLens {
        prefix_len: u32_of(args.get(2))?,
        prefix_elems: u16_of(args.get(3))?,
        rstart_len: u32_of(args.get(4))?,
        rend_len: u32_of(args.get(5))?,
    })
}

callbacks! { general(Sys)
    TableIdFromName |scope, args| {
        let name = string_of(scope, args.get(0))?;
        Ok(with_state(|state| Ok(state.env.table_id_from_name(&name)?))?.0)
    }
    IndexIdFromName |scope, args| {
        let name = string_of(scope, args.get(0))?;
        Ok(with_state(|state| Ok(state.env.index_id_from_name(&name)?))?.0)
    }
    TableRowCount |_scope, args| {
        let table = TableId(u32_of(args.get(0))?);
        with_state(|state| Ok(state.env.table_row_count(table)?))
    }
    Clear |_scope, args| {
        let table = TableId(u32_of(args.get(0))?);
        with_state(|state| Ok(state.env.clear(table)?))
    }
    TableScan |_scope, args| { table_scan(u32_of(args.get(0))?) }
    IndexScanPoint |_scope, args| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::ARRAY_BUFFER)?;
        index_scan_point(index, args.get(1), u32_of(args.get(2))?)
    }
    IndexScanRange |_scope, args| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::ARRAY_BUFFER)?;
        index_scan_range(index, args.get(1), lens(args)?)
    }
    DeleteByIndexScanPoint |_scope, args| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::ARRAY_BUFFER)?;
        delete_by_point(index, args.get(1), u32_of(args.get(2))?)
    }
    DeleteByIndexScanRange |_scope, args| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::ARRAY_BUFFER)?;
        delete_by_range(index, args.get(1), lens(args)?)
    }
    DeleteAllByEq |_scope, args| {
        let table = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::BUFFER)?;
        delete_all_by_eq(table, args.get(1), u32_of(args.get(2))?)
    }
    Insert |_scope, args| {
        let table = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::BUFFER)?;
        insert(table, args.get(1), u32_of(args.get(2))?)
    }
    Update |_scope, args| {
        let (table, index) = (u32_of(args.get(0))?, u32_of(args.get(1))?);
        check_buffer(args.get(2), messages::BUFFER)?;
        update(table, index, args.get(2), u32_of(args.get(3))?)
    }
    RowIterAdvance |_scope, args| { advance(u32_of(args.get(0))?, args.get(1)) }
    RowIterClose |_scope, args| { close(u32_of(args.get(0))?) }
    ConsoleLog |scope, args| {
        let level = u32_of(args.get(0))?;
        let message = string_of(scope, args.get(1))?;
        // The first frame is the console method, the second one its caller.
        let depth = if level as u8 == ConsoleLevel::PANIC_NUMBER { FRAMES_MAX } else { 2 };
        let stack = StackTrace::current_stack_trace(scope, depth);
        let stack = stack.map_or_else(Vec::new, |stack| frames(scope, stack));
        with_state(|state| {
            let caller = stack.get(1);
            let file = caller.and_then(|frame| frame.script.as_deref());
            state.env.console_log(
                level,
                None,
                file.map(str::as_bytes),
                caller.map_or(u32::MAX, |frame| frame.line),
                message.as_bytes(),
                || console_frames(&stack),
            );
            Ok(())
        })
    }
    ConsoleTimerStart |scope, args| {
        let name = string_of(scope, args.get(0))?;
        with_state(|state| Ok(state.env.console_timer_start(name.as_bytes())?))
    }
    ConsoleTimerEnd |_scope, args| {
        let timer = u32_of(args.get(0))?;
        with_state(|state| Ok(state.env.console_timer_end(timer)?))
    }
    Identity |scope, _args| {
        let identity = with_state(|state| Ok(state.env.identity()))?;
        let value = ::v8::BigInt::new_from_words(scope, false, &identity.to_words());
        Ok(Value::from(value.ok_or(Failure::Thrown)?))
    }
    GetJwtPayload |scope, args| {
        let connection = ConnectionId(u128_of(args.get(0))?);
        let payload = with_state(|state| Ok(state.env.jwt_payload(connection)?.to_owned()))?;
        Ok(Value::from(uint8_array(scope, payload.as_bytes())?))
    }
    VolatileScheduleImmediate |scope, args| {
        let name = string_of(scope, args.get(0))?;
        let arguments = bytes_of(args.get(1))?;
        with_state(|state| {
            Ok(state.env.volatile_nonatomic_schedule_immediate(&name, &arguments)?)
        })
    }
    ProcedureStartMutTx |_scope, _args| {
        with_state(|state| {
            let waiting = state.env.ask_transaction()?;
            state.wait(waiting)?;
            Ok(state.env.open_transaction()?)
        })
    }
    ProcedureCommitMutTx |_scope, _args| {
        with_state(|state| Ok(state.env.procedure_commit_mut_tx()?))
    }
    ProcedureAbortMutTx |_scope, _args| {
        with_state(|state| Ok(state.env.procedure_abort_mut_tx()?))
    }
    ProcedureHttpRequest |scope, args| {
        let request = bytes_of(args.get(0))?;
        with_state(|state| Ok(state.env.may_request()?))?;
        let request = HttpRequest::decode(&mut Reader::new(&request))
            .map_err(|error| Failure::Type(messages::bad_http_request(error)))?;
        let body = match args.get(1).is_string() {
            true => string_of(scope, args.get(1))?.into_bytes(),
            false => bytes_of(args.get(1))?,
        };
        let outcome = with_state(|state| {
            let waiting = state.env.ask_http(request, &body)?;
            state.wait(waiting)?;
            Ok(state.env.http_answer()?)
        })?;
        let (head, body) = match outcome {
            HttpOutcome::Response(head, body) => (head.to_vec(), body),
            HttpOutcome::Failed(text) => return Err(Failure::Http(text)),
        };
        let head = uint8_array(scope, &head)?.into();
        let body = uint8_array(scope, &body)?.into();
        Ok(Value::from(::v8::Array::new_with_elements(scope, &[head, body])))
    }
}

/// Functions of this host that no version of the virtual modules has.
enum Own {
    Noop,
    Encode,
    Decode,
    PointRead,
    TextRead,
    TextWrite,
}

callbacks! { own(Own)
    Noop |_scope, _args| { Ok(()) }
    Encode |scope, args| { Ok(Value::from(utf8_array(scope, args.get(0))?)) }
    Decode |scope, args| { strings::decode(scope, args.get(0), args.get(1).is_true()) }
    PointRead |_scope, args| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), messages::ARRAY_BUFFER)?;
        point_read(index, args.get(1), u32_of(args.get(2))?)
    }
    TextRead |scope, args| {
        let (start, end) = (u32_of(args.get(1))?, u32_of(args.get(2))?);
        strings::read(scope, args.get(0), start, end)
    }
    TextWrite |scope, args| {
        strings::write(scope, args.get(0), args.get(1), u32_of(args.get(2))?)
    }
}

/// Wrong buffers are reported before wrong lengths.
fn check_buffer(value: Value<'_>, expected: &str) -> Result<(), Failure> {
    // SAFETY: the slice is dropped at once.
    unsafe { buffer_of(value, expected) }.map(drop)
}

// ---- Functions as objects ---------------------------------------------------------------------------------------------

fn object<'s>(
    scope: &mut PinScope<'s, '_>,
    callback: FunctionCallback,
    fast: Option<&'static [::v8::fast_api::CFunction]>,
    name: &str,
) -> Option<Local<'s, Function>> {
    let template = FunctionTemplate::builder_raw(callback)
        .constructor_behavior(::v8::ConstructorBehavior::Throw);
    let template = match fast {
        Some(fast) => template.build_fast(scope, fast),
        None => template.build(scope),
    };
    let function = template.get_function(scope)?;
    let name = ::v8::String::new(scope, name)?;
    function.set_name(name);
    Some(function)
}

/// A host function under a name.
fn host_function<'s>(
    scope: &mut PinScope<'s, '_>,
    function: Sys,
    name: &str,
) -> Option<Local<'s, Function>> {
    object(scope, general(function), fast::fast(function), name)
}

/// A function that does nothing.
pub(super) fn noop<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, own(Own::Noop), None, "")
}

/// The native part of `TextEncoder`.
pub(super) fn encode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, own(Own::Encode), None, "encode")
}

/// The native part of `TextDecoder`.
pub(super) fn decode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, own(Own::Decode), None, "decode")
}

/// The symbol under which the hooks function is found; not in the symbol registry of the language (§3).
pub(super) fn module_hooks<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Symbol>> {
    let name = ::v8::String::new(scope, sys::MODULE_HOOKS)?;
    Some(Symbol::for_api(scope, name))
}

/// The optional functions (docs/js-abi.md).
pub(super) fn define_extras(scope: &mut PinScope<'_, '_>, direct: &CallBuffer) -> Option<()> {
    let extras = Object::new(scope);
    let point_read = fast::POINT_READ;
    let members: [(&str, Value<'_>); 6] = [
        ("version", ::v8::Integer::new(scope, 1).into()),
        (
            "point_read",
            object(scope, own(Own::PointRead), Some(point_read), "point_read")?.into(),
        ),
        (
            "row_update",
            host_function(scope, Sys::Update, "row_update")?.into(),
        ),
        (
            "text_read",
            object(scope, own(Own::TextRead), None, "text_read")?.into(),
        ),
        (
            "text_write",
            object(scope, own(Own::TextWrite), None, "text_write")?.into(),
        ),
        ("callBuffer", Local::new(scope, &direct.object).into()),
    ];
    for (name, value) in members {
        let name = ::v8::String::new(scope, name)?;
        extras.create_data_property(scope, name.into(), value)?;
    }
    extras.set_integrity_level(scope, ::v8::IntegrityLevel::Frozen)?;
    let key = ::v8::String::new(scope, sys::EXTRAS)?;
    let key = Symbol::for_key(scope, key);
    let global = scope.get_current_context().global(scope);
    let attributes = PropertyAttribute::READ_ONLY
        | PropertyAttribute::DONT_ENUM
        | PropertyAttribute::DONT_DELETE;
    global.define_own_property(scope, key.into(), extras.into(), attributes)?;
    Some(())
}

// ---- Virtual modules --------------------------------------------------------------------------------------------------

/// Resolves an import of the program.
pub(super) fn resolve<'s>(
    context: Local<'s, Context>,
    specifier: Local<'s, ::v8::String>,
    _attributes: Local<'s, FixedArray>,
    _referrer: Local<'s, Module>,
) -> Option<Local<'s, Module>> {
    // SAFETY: V8 calls this while it links a module in this context.
    ::v8::callback_scope!(unsafe scope, context);
    let specifier = specifier.to_rust_string_lossy(scope);
    let version = match specifier::resolve(&specifier) {
        Ok(version) => version,
        Err(error) => {
            fail(scope, Failure::Type(error.to_string()));
            return None;
        }
    };
    // SAFETY: see `with_state`; no module code runs here.
    let modules = unsafe { &mut (*State::current()).modules };
    if let Some((_, module)) = modules.iter().find(|(known, _)| *known == version) {
        return Some(Local::new(scope, module));
    }
    let mut names = Vec::new();
    for name in Exports::of(version)?.names() {
        names.push(::v8::String::new(scope, name)?);
    }
    let name = ::v8::String::new(scope, &specifier)?;
    let module = Module::create_synthetic_module(scope, name, &names, fill);
    modules.push((version, Global::new(scope, module)));
    Some(module)
}

/// Gives a virtual module its exports.
fn fill<'s>(
    context: Local<'s, Context>,
    module: Local<'s, Module>,
) -> Option<Local<'s, ::v8::Value>> {
    // SAFETY: V8 calls this while it evaluates a module in this context.
    ::v8::callback_scope!(unsafe scope, context);
    // SAFETY: see `with_state`; no module code runs here.
    let modules = unsafe { &(*State::current()).modules };
    let version = modules
        .iter()
        .find(|(_, known)| *known == module)
        .map(|(version, _)| *version)?;
    let exports = Exports::of(version)?;
    for name in exports.names() {
        let value = match exports {
            Exports::Legacy { version, .. } => legacy_export(scope, version, name)?,
            Exports::Host { functions, .. } => host_export(scope, functions, name)?,
        };
        let name = ::v8::String::new(scope, name)?;
        module.set_synthetic_module_export(scope, name, value)?;
    }
    let resolver = ::v8::PromiseResolver::new(scope)?;
    let undefined = ::v8::undefined(scope).into();
    resolver.resolve(scope, undefined)?;
    Some(resolver.get_promise(scope).into())
}

/// A function of the host, or the symbol of the hooks.
fn host_export<'s>(
    scope: &mut PinScope<'s, '_>,
    functions: &[(&str, Sys)],
    name: &str,
) -> Option<Value<'s>> {
    match functions.iter().find(|(known, _)| *known == name) {
        Some((_, function)) => Some(host_function(scope, *function, name)?.into()),
        None => Some(module_hooks(scope)?.into()),
    }
}

fn legacy_export<'s>(scope: &mut PinScope<'s, '_>, version: &str, name: &str) -> Option<Value<'s>> {
    let legacy = legacy(scope)?;
    let version = ::v8::String::new(scope, version)?;
    let exports = legacy.get(scope, version.into())?;
    let exports: Local<'_, Object> = exports.try_cast().ok()?;
    let name = ::v8::String::new(scope, name)?;
    exports.get(scope, name.into())
}

/// What the versions 1.x share, made when the first of them is imported (§10).
fn legacy<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Object>> {
    // SAFETY: see `with_state`; the reference is gone before any code runs.
    if let Some(legacy) = unsafe { (*State::current()).legacy.clone() } {
        return Some(Local::new(scope, legacy));
    }
    let functions = Object::new(scope);
    for (name, function) in sys::functions() {
        let value = host_function(scope, function, name)?;
        let name = ::v8::String::new(scope, name)?;
        functions.create_data_property(scope, name.into(), value.into())?;
    }
    let source = ::v8::String::new(scope, sys::LEGACY)?;
    let make = ::v8::Script::compile(scope, source, None)?.run(scope)?;
    let make: Local<'_, Function> = make.try_cast().ok()?;
    let undefined = ::v8::undefined(scope).into();
    let symbol = module_hooks(scope)?.into();
    let made = make.call(scope, undefined, &[functions.into(), symbol])?;
    let made: Local<'_, Object> = made.try_cast().ok()?;
    // SAFETY: as above.
    unsafe { (*State::current()).legacy = Some(Global::new(scope, made)) };
    Some(made)
}
