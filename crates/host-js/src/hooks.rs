//! The hooks of a program: how they are found, and the description of the module (spec 04 §6.1).

use crate::messages;
use crate::scope::{Scope, Thrown};

/// The functions of a program that the host calls.
pub(crate) struct Hooks<K, H> {
    /// `this` for all of them.
    pub(crate) receiver: K,
    pub(crate) describe: H,
    /// The class of errors for the caller of a reducer.
    pub(crate) sender_error: K,
    pub(crate) call_reducer: H,
    pub(crate) call_procedure: H,
    /// None in older packages.
    pub(crate) call_http_handler: Option<H>,
    pub(crate) call_view: H,
    pub(crate) call_view_anon: H,
    /// Replaces `call_reducer` and `call_procedure` if there is one (docs/js-abi.md).
    pub(crate) call_reducer_direct: Option<H>,
    pub(crate) call_procedure_direct: Option<H>,
}

/// The hooks of an isolate, and the function that makes exceptions of errnos.
pub(crate) struct Found<K, H> {
    pub(crate) hooks: Hooks<K, H>,
    pub(crate) error_constructor: H,
}

/// Why a program is no module, or a call of a hook has no result.
pub(crate) enum Refused {
    Text(String),
    Thrown,
}

impl From<Thrown> for Refused {
    #[inline]
    fn from(_: Thrown) -> Refused {
        Refused::Thrown
    }
}

#[cold]
pub(crate) fn type_error(text: String) -> Refused {
    Refused::Text(format!("Uncaught TypeError: {text}"))
}

#[cold]
pub(crate) fn unexpected<S: Scope>(scope: &mut S, expected: &str, value: &S::Value) -> Refused {
    let got = scope.type_name(value);
    type_error(messages::expected(expected, &got))
}

/// The hooks of an evaluated program: those that it registered with a version 1.x (§10), if `legacy` has any, or those of its
/// default export.
pub(crate) fn find<S: Scope>(
    scope: &mut S,
    namespace: &S::Value,
    legacy: Option<&S::Value>,
) -> Result<Found<S::Kept, S::Hook>, Refused> {
    let Some(legacy) = legacy else {
        return ask(scope, namespace);
    };
    let registered = scope.property(legacy, "default")?;
    if scope.is_nullish(&registered) {
        return ask(scope, namespace);
    }
    let schema = scope.property(namespace, "default")?;
    if scope.is_object(&schema) {
        let function = scope.module_hooks(&schema)?;
        if scope.hook(&function).is_some() {
            return Err(type_error(messages::TWO_VERSIONS_OF_HOOKS.to_owned()));
        }
    }
    ask(scope, legacy)
}

/// Calls the hook function of the default export.
fn ask<S: Scope>(scope: &mut S, namespace: &S::Value) -> Result<Found<S::Kept, S::Hook>, Refused> {
    let schema = scope.property(namespace, "default")?;
    if scope.is_nullish(&schema) {
        return Err(Refused::Text(messages::NO_DEFAULT_EXPORT.to_owned()));
    }
    if !scope.is_object(&schema) {
        return Err(Refused::Text(messages::DEFAULT_EXPORT_NO_OBJECT.to_owned()));
    }
    let function = scope.module_hooks(&schema)?;
    let Some(function_hook) = scope.hook(&function) else {
        return Err(unexpected(scope, "hooks function", &function));
    };
    let object = scope.call(&function_hook, &schema, std::slice::from_ref(namespace))?;
    if !scope.is_object(&object) {
        return Err(unexpected(scope, "hooks object", &object));
    }
    read(scope, &object)
}

/// In the order of the chapter.
fn read<S: Scope>(scope: &mut S, object: &S::Value) -> Result<Found<S::Kept, S::Hook>, Refused> {
    let describe = required(scope, object, "__describe_module__")?.1;
    let error_constructor = required(scope, object, "__get_error_constructor__")?.1;
    let sender_error = required(scope, object, "__sender_error_class__")?.0;
    let call_reducer = required(scope, object, "__call_reducer__")?.1;
    let call_view = required(scope, object, "__call_view__")?.1;
    let call_view_anon = required(scope, object, "__call_view_anon__")?.1;
    let call_procedure = required(scope, object, "__call_procedure__")?.1;
    let call_http_handler = optional(scope, object, "__call_http_handler__")?;
    let hooks = Hooks {
        receiver: scope.keep(object),
        describe,
        sender_error: scope.keep(&sender_error),
        call_reducer,
        call_procedure,
        call_http_handler,
        call_view,
        call_view_anon,
        call_reducer_direct: extra(scope, object, "__lightcone_call_reducer__")?,
        call_procedure_direct: extra(scope, object, "__lightcone_call_procedure__")?,
    };
    Ok(Found {
        hooks,
        error_constructor,
    })
}

fn required<S: Scope>(
    scope: &mut S,
    object: &S::Value,
    name: &str,
) -> Result<(S::Value, S::Hook), Refused> {
    let value = scope.property(object, name)?;
    match scope.hook(&value) {
        Some(hook) => Ok((value, hook)),
        None => Err(no_function(scope, &value, name)),
    }
}

fn optional<S: Scope>(
    scope: &mut S,
    object: &S::Value,
    name: &str,
) -> Result<Option<S::Hook>, Refused> {
    let value = scope.property(object, name)?;
    match scope.hook(&value) {
        None if !scope.is_nullish(&value) => Err(no_function(scope, &value, name)),
        hook => Ok(hook),
    }
}

/// A hook of this host alone: anything but a function is ignored (docs/js-abi.md).
fn extra<S: Scope>(
    scope: &mut S,
    object: &S::Value,
    name: &str,
) -> Result<Option<S::Hook>, Refused> {
    let value = scope.property(object, name)?;
    Ok(scope.hook(&value))
}

fn no_function<S: Scope>(scope: &mut S, value: &S::Value, name: &str) -> Refused {
    unexpected(scope, &format!("module function hook `{name}`"), value)
}

/// The BSATN of the module definition.
pub(crate) fn describe<S: Scope>(
    scope: &mut S,
    hooks: &Hooks<S::Kept, S::Hook>,
) -> Result<Vec<u8>, Refused> {
    let receiver = scope.kept(&hooks.receiver);
    let description = scope.call(&hooks.describe, &receiver, &[])?;
    let expected = "`Uint8Array` return from `__describe_module__`";
    let bytes = scope.array_bytes(&description);
    bytes.ok_or_else(|| unexpected(scope, expected, &description))
}
