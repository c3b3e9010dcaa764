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
    index_scan_range, insert, point_read, table_scan, update, RangeLens,
};
use super::state::{with_state, Failure, State};
use super::values::{
    buffer_of, bytes_of, string_of, u128_of, u16_of, u32_of, uint8_array, utf8_array, BufferKind,
    Value,
};
use super::{fast, strings};
use crate::frame::console_frames;
use crate::messages;
use crate::specifier;
use crate::sys::{self, Exports, Function as Sys};

// ---- General calls ------------------------------------------------------------------------------------------------

macro_rules! callbacks {
    ($($name:ident |$scope:ident, $args:ident, $rv:ident| $body:block)*) => {
        $(
            // The closure is there for its `?`.
            #[allow(clippy::redundant_closure_call)]
            fn $name<'s>(
                scope: &mut PinScope<'s, '_>,
                args: FunctionCallbackArguments<'s>,
                mut rv: ReturnValue<'s>,
            ) {
                let $args = &args;
                let $rv = &mut rv;
                let result: Result<(), Failure> = {
                    let $scope = &mut *scope;
                    (|| $body)()
                };
                if let Err(failure) = result {
                    fail(scope, failure);
                }
            }
        )*
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

callbacks! {
    call_table_id_from_name |scope, args, rv| {
        let name = string_of(scope, args.get(0))?;
        rv.set_uint32(with_state(|state| Ok(state.env.table_id_from_name(&name)?))?.0);
        Ok(())
    }
    call_index_id_from_name |scope, args, rv| {
        let name = string_of(scope, args.get(0))?;
        rv.set_uint32(with_state(|state| Ok(state.env.index_id_from_name(&name)?))?.0);
        Ok(())
    }
    call_table_row_count |scope, args, rv| {
        let table = TableId(u32_of(args.get(0))?);
        let count = with_state(|state| Ok(state.env.table_row_count(table)?))?;
        rv.set(::v8::BigInt::new_from_u64(scope, count).into());
        Ok(())
    }
    call_clear |scope, args, rv| {
        let table = TableId(u32_of(args.get(0))?);
        let count = with_state(|state| Ok(state.env.clear(table)?))?;
        rv.set(::v8::BigInt::new_from_u64(scope, count).into());
        Ok(())
    }
    call_table_scan |_scope, args, rv| {
        rv.set_uint32(table_scan(u32_of(args.get(0))?)?);
        Ok(())
    }
    call_index_scan_point |_scope, args, rv| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Scan)?;
        rv.set_uint32(index_scan_point(index, args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
    call_index_scan_range |_scope, args, rv| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Scan)?;
        rv.set_uint32(index_scan_range(index, args.get(1), lens(args)?)?);
        Ok(())
    }
    call_delete_by_point |_scope, args, rv| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Scan)?;
        rv.set_uint32(delete_by_point(index, args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
    call_delete_by_range |_scope, args, rv| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Scan)?;
        rv.set_uint32(delete_by_range(index, args.get(1), lens(args)?)?);
        Ok(())
    }
    call_delete_all_by_eq |_scope, args, rv| {
        let table = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Row)?;
        rv.set_uint32(delete_all_by_eq(table, args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
    call_insert |_scope, args, rv| {
        let table = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Row)?;
        rv.set_uint32(insert(table, args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
    call_update |_scope, args, rv| {
        let table = u32_of(args.get(0))?;
        let index = u32_of(args.get(1))?;
        check_buffer(args.get(2), BufferKind::Row)?;
        rv.set_uint32(update(table, index, args.get(2), u32_of(args.get(3))?)?);
        Ok(())
    }
    call_advance |_scope, args, rv| {
        rv.set_int32(advance(u32_of(args.get(0))?, args.get(1))?);
        Ok(())
    }
    call_close |_scope, args, _rv| {
        close(u32_of(args.get(0))?)
    }
    call_point_read |_scope, args, rv| {
        let index = u32_of(args.get(0))?;
        check_buffer(args.get(1), BufferKind::Scan)?;
        rv.set_int32(point_read(index, args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
    call_console_log |scope, args, _rv| {
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
    call_console_timer_start |scope, args, rv| {
        let name = string_of(scope, args.get(0))?;
        rv.set_uint32(with_state(|state| Ok(state.env.console_timer_start(name.as_bytes())?))?);
        Ok(())
    }
    call_console_timer_end |_scope, args, _rv| {
        let timer = u32_of(args.get(0))?;
        with_state(|state| Ok(state.env.console_timer_end(timer)?))
    }
    call_identity |scope, _args, rv| {
        let identity = with_state(|state| Ok(state.env.identity()))?;
        let value = ::v8::BigInt::new_from_words(scope, false, &identity.to_words());
        rv.set(value.ok_or(Failure::Thrown)?.into());
        Ok(())
    }
    call_get_jwt_payload |scope, args, rv| {
        let connection = ConnectionId(u128_of(args.get(0))?);
        let payload = with_state(|state| Ok(state.env.jwt_payload(connection)?.to_owned()))?;
        let array = uint8_array(scope, payload.as_bytes())?;
        rv.set(array.into());
        Ok(())
    }
    call_volatile_schedule |scope, args, _rv| {
        let name = string_of(scope, args.get(0))?;
        let arguments = bytes_of(args.get(1))?;
        with_state(|state| {
            Ok(state.env.volatile_nonatomic_schedule_immediate(&name, &arguments)?)
        })
    }
    call_procedure_start |scope, _args, rv| {
        let now = with_state(|state| {
            let waiting = state.env.ask_transaction()?;
            state.wait(waiting)?;
            Ok(state.env.open_transaction()?)
        })?;
        rv.set(::v8::BigInt::new_from_i64(scope, now).into());
        Ok(())
    }
    call_procedure_commit |_scope, _args, _rv| {
        with_state(|state| Ok(state.env.procedure_commit_mut_tx()?))
    }
    call_procedure_abort |_scope, _args, _rv| {
        with_state(|state| Ok(state.env.procedure_abort_mut_tx()?))
    }
    call_procedure_http |scope, args, rv| {
        let request = bytes_of(args.get(0))?;
        with_state(|state| Ok(state.env.may_request()?))?;
        let request = {
            let bytes = request;
            HttpRequest::decode(&mut Reader::new(&bytes))
                .map_err(|error| Failure::Type(messages::bad_http_request(error)))?
        };
        let waiting = {
            let body = match args.get(1).is_string() {
                true => string_of(scope, args.get(1))?.into_bytes(),
                false => bytes_of(args.get(1))?,
            };
            with_state(|state| Ok(state.env.ask_http(request, &body)?))?
        };
        let outcome = with_state(|state| {
            state.wait(waiting)?;
            Ok(state.env.http_answer()?)
        })?;
        let (head, body) = match outcome {
            HttpOutcome::Response(head, body) => (head.to_vec(), body),
            HttpOutcome::Failed(text) => return Err(Failure::Http(text)),
        };
        let head = uint8_array(scope, &head)?.into();
        let body = uint8_array(scope, &body)?.into();
        rv.set(::v8::Array::new_with_elements(scope, &[head, body]).into());
        Ok(())
    }
    call_noop |_scope, _args, _rv| { Ok(()) }
    call_encode |scope, args, rv| {
        let array = utf8_array(scope, args.get(0))?;
        rv.set(array.into());
        Ok(())
    }
    call_decode |scope, args, rv| {
        let fatal = args.get(1).is_true();
        rv.set(strings::decode(scope, args.get(0), fatal)?);
        Ok(())
    }
    call_text_read |scope, args, rv| {
        let (start, end) = (u32_of(args.get(1))?, u32_of(args.get(2))?);
        rv.set(strings::read(scope, args.get(0), start, end)?);
        Ok(())
    }
    call_text_write |scope, args, rv| {
        rv.set_int32(strings::write(scope, args.get(0), args.get(1), u32_of(args.get(2))?)?);
        Ok(())
    }
}

/// Wrong buffers are reported before wrong lengths.
fn check_buffer(value: Value<'_>, kind: BufferKind) -> Result<(), Failure> {
    // SAFETY: the slice is dropped at once.
    unsafe { buffer_of(value, kind) }.map(drop)
}

// ---- Functions as objects ---------------------------------------------------------------------------------------------

fn general(function: Sys) -> FunctionCallback {
    match function {
        Sys::TableIdFromName => call_table_id_from_name.map_fn_to(),
        Sys::IndexIdFromName => call_index_id_from_name.map_fn_to(),
        Sys::TableRowCount => call_table_row_count.map_fn_to(),
        Sys::TableScan => call_table_scan.map_fn_to(),
        Sys::IndexScanPoint => call_index_scan_point.map_fn_to(),
        Sys::IndexScanRange => call_index_scan_range.map_fn_to(),
        Sys::DeleteByIndexScanPoint => call_delete_by_point.map_fn_to(),
        Sys::DeleteByIndexScanRange => call_delete_by_range.map_fn_to(),
        Sys::DeleteAllByEq => call_delete_all_by_eq.map_fn_to(),
        Sys::Insert => call_insert.map_fn_to(),
        Sys::Update => call_update.map_fn_to(),
        Sys::Clear => call_clear.map_fn_to(),
        Sys::RowIterAdvance => call_advance.map_fn_to(),
        Sys::RowIterClose => call_close.map_fn_to(),
        Sys::ConsoleLog => call_console_log.map_fn_to(),
        Sys::ConsoleTimerStart => call_console_timer_start.map_fn_to(),
        Sys::ConsoleTimerEnd => call_console_timer_end.map_fn_to(),
        Sys::Identity => call_identity.map_fn_to(),
        Sys::GetJwtPayload => call_get_jwt_payload.map_fn_to(),
        Sys::VolatileScheduleImmediate => call_volatile_schedule.map_fn_to(),
        Sys::ProcedureStartMutTx => call_procedure_start.map_fn_to(),
        Sys::ProcedureCommitMutTx => call_procedure_commit.map_fn_to(),
        Sys::ProcedureAbortMutTx => call_procedure_abort.map_fn_to(),
        Sys::ProcedureHttpRequest => call_procedure_http.map_fn_to(),
    }
}

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

/// A function that does nothing.
pub(super) fn noop<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, call_noop.map_fn_to(), None, "")
}

/// The native part of `TextEncoder`.
pub(super) fn encode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, call_encode.map_fn_to(), None, "encode")
}

/// The native part of `TextDecoder`.
pub(super) fn decode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, call_decode.map_fn_to(), None, "decode")
}

/// The symbol under which the hooks function is found; not in the symbol registry of the language (§3).
pub(super) fn module_hooks<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Symbol>> {
    let name = ::v8::String::new(scope, sys::MODULE_HOOKS)?;
    Some(Symbol::for_api(scope, name))
}

/// The optional functions (docs/js-abi.md).
pub(super) fn define_extras(scope: &mut PinScope<'_, '_>, direct: &CallBuffer) -> Option<()> {
    let extras = Object::new(scope);
    let version = ::v8::Integer::new(scope, 1);
    let point_read = object(
        scope,
        call_point_read.map_fn_to(),
        Some(fast::POINT_READ),
        "point_read",
    )?;
    let row_update = object(
        scope,
        call_update.map_fn_to(),
        fast::fast(Sys::Update),
        "row_update",
    )?;
    let text_read = object(scope, call_text_read.map_fn_to(), None, "text_read")?;
    let text_write = object(scope, call_text_write.map_fn_to(), None, "text_write")?;
    let buffer = Local::new(scope, &direct.object);
    let members: [(&str, Value<'_>); 6] = [
        ("version", version.into()),
        ("point_read", point_read.into()),
        ("row_update", row_update.into()),
        ("text_read", text_read.into()),
        ("text_write", text_write.into()),
        ("callBuffer", buffer.into()),
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
        Some((_, function)) => {
            let function = object(scope, general(*function), fast::fast(*function), name)?;
            Some(function.into())
        }
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
        let value = object(scope, general(function), fast::fast(function), name)?;
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
