//! The host functions (spec 04 §4.2) and the virtual modules that export them (§3).

use std::borrow::Cow;

use ::v8::{
    BigInt, Context, FixedArray, Function, FunctionCallback, FunctionCallbackArguments,
    FunctionTemplate, Global, Local, MapFnTo, Module, Object, PinScope, PropertyAttribute,
    ReturnValue, StackTrace, Symbol,
};
use lightcone_host::{AbiError, HostEnv, Waiting};

use super::call_buffers::CallBuffer;
use super::exception::{frames, FRAMES_MAX};
use super::failures::fail;
use super::state::{with_state, State};
use super::values::{
    buffer_of, bytes_of, string_of, u128_of, u16_of, u32_of, uint8_array, utf8_array, wrong_type,
    Value,
};
use super::{fast, strings};
use crate::frame::Frame;
use crate::host_calls::{self, Answer, AnyCall, Call, Failure};
use crate::specifier;
use crate::sys::{self, Export, Function as Sys, Natives};

// ---- General calls ------------------------------------------------------------------------------------------------

/// A call in the general form.
struct General<'a, 's, 'i> {
    scope: &'a mut PinScope<'s, 'i>,
    args: &'a FunctionCallbackArguments<'s>,
}

impl<'s> General<'_, 's, '_> {
    #[inline]
    fn value(&self, at: usize) -> Value<'s> {
        self.args.get(at as i32)
    }
}

impl Call for General<'_, '_, '_> {
    #[inline]
    fn host<R>(&self, body: impl FnOnce(&mut HostEnv) -> Result<R, Failure>) -> Result<R, Failure> {
        with_state(|state| body(&mut state.env))
    }

    #[inline]
    fn u32(&self, at: usize) -> Result<u32, Failure> {
        u32_of(self.value(at))
    }

    fn u16(&self, at: usize) -> Result<u16, Failure> {
        u16_of(self.value(at))
    }

    #[inline]
    fn buffer(&self, at: usize, expected: &str) -> Result<&mut [u8], Failure> {
        // SAFETY: while a host function has it, it checks numbers and uses the datastore, and runs no code of the module.
        unsafe { buffer_of(self.value(at), expected) }
    }
}

impl AnyCall for General<'_, '_, '_> {
    fn u128(&self, at: usize) -> Result<u128, Failure> {
        u128_of(self.value(at))
    }

    fn bytes(&self, at: usize) -> Result<Cow<'_, [u8]>, Failure> {
        bytes_of(self.value(at)).map(Cow::Owned)
    }

    fn is_text(&self, at: usize) -> bool {
        self.value(at).is_string()
    }

    fn text<R>(
        &mut self,
        at: usize,
        body: impl FnOnce(&str, &mut HostEnv) -> Result<R, AbiError>,
    ) -> Result<R, Failure> {
        let value = self.value(at);
        let text = string_of(self.scope, value)?;
        self.host(|env| Ok(body(&text, env)?))
    }

    fn wrong_type(&self, at: usize, expected: &str) -> Failure {
        wrong_type(self.value(at), expected)
    }

    fn frames(&mut self, all: bool) -> Vec<Frame> {
        let depth = if all { FRAMES_MAX } else { 2 };
        let stack = StackTrace::current_stack_trace(self.scope, depth);
        stack.map_or_else(Vec::new, |stack| frames(self.scope, stack))
    }

    fn wait(&self, waiting: Option<Waiting>) -> Result<(), Failure> {
        with_state(|state| state.wait(waiting))
    }
}

/// Gives an answer to the program.
#[inline]
fn give<'s>(
    scope: &mut PinScope<'s, '_>,
    answer: Answer,
    place: &mut ReturnValue<'s>,
) -> Result<(), Failure> {
    match answer {
        Answer::Nothing => {}
        Answer::Unsigned(number) => place.set_uint32(number),
        Answer::Signed(number) => place.set_int32(number),
        Answer::Count(count) => place.set(BigInt::new_from_u64(scope, count).into()),
        Answer::Time(time) => place.set(BigInt::new_from_i64(scope, time).into()),
        Answer::Words(words) => {
            let number = BigInt::new_from_words(scope, false, &words);
            place.set(number.ok_or(Failure::Thrown)?.into());
        }
        Answer::Bytes(bytes) => place.set(uint8_array(scope, &bytes)?.into()),
        Answer::Text(None) => place.set_null(),
        Answer::Text(Some(text)) => {
            let text = ::v8::String::new(scope, &text).ok_or(Failure::Thrown)?;
            place.set(text.into());
        }
        Answer::HeadAndBody(head, body) => {
            let head = uint8_array(scope, &head)?.into();
            let body = uint8_array(scope, &body)?.into();
            place.set(::v8::Array::new_with_elements(scope, &[head, body]).into());
        }
    }
    Ok(())
}

struct Callbacks;

impl Natives for Callbacks {
    type Native = FunctionCallback;

    fn native<const FUNCTION: u8>() -> FunctionCallback {
        fn callback<'s, const FUNCTION: u8>(
            scope: &mut PinScope<'s, '_>,
            args: FunctionCallbackArguments<'s>,
            mut place: ReturnValue<'s>,
        ) {
            let function = Sys::ALL[usize::from(FUNCTION)];
            let mut call = General { scope, args: &args };
            let answer = host_calls::any(function, &mut call);
            let scope = call.scope;
            if let Err(failure) = answer.and_then(|answer| give(scope, answer, &mut place)) {
                fail(scope, failure);
            }
        }
        callback::<FUNCTION>.map_fn_to()
    }
}

/// Functions of this engine alone, which set their result themselves.
macro_rules! own_functions {
    ($($function:ident |$scope:ident, $args:ident, $place:ident| { $($body:tt)* })*) => {$(
        fn $function<'s>(
            scope: &mut PinScope<'s, '_>,
            args: FunctionCallbackArguments<'s>,
            mut place: ReturnValue<'s>,
        ) {
            fn body<'s>(
                $scope: &mut PinScope<'s, '_>,
                $args: &FunctionCallbackArguments<'s>,
                $place: &mut ReturnValue<'s>,
            ) -> Result<(), Failure> {
                $($body)*
                Ok(())
            }
            if let Err(failure) = body(scope, &args, &mut place) {
                fail(scope, failure);
            }
        }
    )*};
}

own_functions! {
    text_encode |scope, args, place| {
        place.set(utf8_array(scope, args.get(0))?.into());
    }
    text_decode |scope, args, place| {
        place.set(strings::decode(scope, args.get(0), args.get(1).is_true())?);
    }
    text_read |scope, args, place| {
        let (start, end) = (u32_of(args.get(1))?, u32_of(args.get(2))?);
        place.set(strings::read(scope, args.get(0), start, end)?);
    }
    text_write |scope, args, place| {
        let start = u32_of(args.get(2))?;
        place.set_int32(strings::write(scope, args.get(0), args.get(1), start)?);
    }
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
    let callback = function.native::<Callbacks>();
    object(scope, callback, fast::fast(function), name)
}

/// A function that does nothing.
pub(super) fn noop<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    fn callback(_: &mut PinScope<'_, '_>, _: FunctionCallbackArguments<'_>, _: ReturnValue<'_>) {}
    object(scope, callback.map_fn_to(), None, "")
}

/// The native part of `TextEncoder`.
pub(super) fn encode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, text_encode.map_fn_to(), None, "encode")
}

/// The native part of `TextDecoder`.
pub(super) fn decode<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Function>> {
    object(scope, text_decode.map_fn_to(), None, "decode")
}

/// The symbol under which the hooks function is found; not in the symbol registry of the language (§3).
pub(super) fn module_hooks<'s>(scope: &mut PinScope<'s, '_>) -> Option<Local<'s, Symbol>> {
    let name = ::v8::String::new(scope, sys::MODULE_HOOKS)?;
    Some(Symbol::for_api(scope, name))
}

/// The optional functions (docs/js-abi.md).
pub(super) fn define_extras(scope: &mut PinScope<'_, '_>, direct: &CallBuffer) -> Option<()> {
    let extras = Object::new(scope);
    let mut members: Vec<(&str, Value<'_>)> =
        vec![("version", ::v8::Integer::new(scope, 1).into())];
    for (name, function) in sys::extra_functions() {
        members.push((name, host_function(scope, function, name)?.into()));
    }
    let own: [(&str, FunctionCallback); 2] = [
        ("text_read", text_read.map_fn_to()),
        ("text_write", text_write.map_fn_to()),
    ];
    for (name, callback) in own {
        members.push((name, object(scope, callback, None, name)?.into()));
    }
    members.push(("callBuffer", Local::new(scope, &direct.object).into()));
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
    for (name, _) in sys::exports(version)? {
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
    for (name, export) in sys::exports(version)? {
        let value = match export {
            Export::Legacy(key) => legacy_export(scope, key, name)?,
            Export::Function(function) => host_function(scope, function, name)?.into(),
            Export::ModuleHooks => module_hooks(scope)?.into(),
        };
        let name = ::v8::String::new(scope, name)?;
        module.set_synthetic_module_export(scope, name, value)?;
    }
    let resolver = ::v8::PromiseResolver::new(scope)?;
    let undefined = ::v8::undefined(scope).into();
    resolver.resolve(scope, undefined)?;
    Some(resolver.get_promise(scope).into())
}

fn legacy_export<'s>(scope: &mut PinScope<'s, '_>, version: &str, name: &str) -> Option<Value<'s>> {
    let legacy = legacy(scope)?;
    let version = ::v8::String::new(scope, version)?;
    let exports = legacy.get(scope, version.into())?;
    let exports: Local<'_, Object> = exports.try_cast().ok()?;
    let name = ::v8::String::new(scope, name)?;
    exports.get(scope, name.into())
}

/// Runs a script of ours.
pub(super) fn run<'s>(scope: &mut PinScope<'s, '_>, text: &str) -> Option<Value<'s>> {
    let source = ::v8::String::new(scope, text)?;
    ::v8::Script::compile(scope, source, None)?.run(scope)
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
    let make: Local<'_, Function> = run(scope, sys::LEGACY)?.try_cast().ok()?;
    let undefined = ::v8::undefined(scope).into();
    let symbol = module_hooks(scope)?.into();
    let made = make.call(scope, undefined, &[functions.into(), symbol])?;
    let made: Local<'_, Object> = made.try_cast().ok()?;
    // SAFETY: as above.
    unsafe { (*State::current()).legacy = Some(Global::new(scope, made)) };
    Some(made)
}
