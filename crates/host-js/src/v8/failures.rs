//! Throws the failure of a host function, or ends the call.

use ::v8::{Function, Local, Object, PinScope};
use lightcone_host::{AbiError, Errno, HostTrap};

use super::state::State;
use super::values::Value;
use crate::host_calls::Failure;
use crate::messages;

/// Throws the failure of a host function, or ends the call.
#[cold]
pub(super) fn fail(scope: &mut PinScope<'_, '_>, failure: Failure) {
    let exception = match failure {
        Failure::Abi(AbiError::Errno(errno)) => errno_exception(scope, errno, errno.text()),
        Failure::Http(text) => errno_exception(scope, Errno::HTTP_ERROR, &text),
        Failure::Abi(AbiError::Trap(trap)) => return doom(scope, Some(trap)),
        Failure::Thrown => return doom(scope, None),
        Failure::Type(text) => {
            ::v8::String::new(scope, &text).map(|text| ::v8::Exception::type_error(scope, text))
        }
        Failure::Range(text) => {
            ::v8::String::new(scope, text).map(|text| ::v8::Exception::range_error(scope, text))
        }
        Failure::TooSmall(bytes) => too_small(scope, bytes),
    };
    // Without an exception, one is pending already.
    if let Some(exception) = exception {
        scope.throw_exception(exception);
    }
}

/// The module itself makes the exception (§5.1).
fn errno_exception<'s>(
    scope: &mut PinScope<'s, '_>,
    errno: Errno,
    text: &str,
) -> Option<Value<'s>> {
    let message = ::v8::String::new(scope, text)?;
    // SAFETY: see `with_state`; the reference is gone before module code runs.
    let constructor = unsafe { (*State::current()).error_constructor.clone() };
    let Some(constructor) = constructor else {
        return Some(::v8::Exception::error(scope, message));
    };
    let constructor = Local::new(scope, constructor);
    let undefined = ::v8::undefined(scope).into();
    let code = ::v8::Integer::new(scope, errno.number().into()).into();
    let class = constructor.call(scope, undefined, &[code])?;
    match class.try_cast::<Function>() {
        Ok(class) => class.new_instance(scope, &[message.into()]).map(Into::into),
        Err(_) => Some(::v8::Exception::error(scope, message)),
    }
}

fn too_small<'s>(scope: &mut PinScope<'s, '_>, bytes: usize) -> Option<Value<'s>> {
    let object = Object::new(scope);
    let key = ::v8::String::new(scope, messages::BUFFER_TOO_SMALL)?;
    let value = ::v8::Number::new(scope, bytes as f64);
    object.create_data_property(scope, key.into(), value.into())?;
    Some(object.into())
}

/// Ends the call so that the module can't catch it (§5.3).
fn doom(scope: &mut PinScope<'_, '_>, trap: Option<HostTrap>) {
    // SAFETY: see `with_state`; the reference is gone before anything else happens.
    let state = unsafe { &mut *State::current() };
    match trap {
        Some(trap) if state.doomed.is_none() => state.doomed = Some(trap),
        _ if state.doomed.is_none() => return,
        _ => {}
    }
    let noop = state.noop.clone();
    scope.terminate_execution();
    // A termination takes effect when code begins to run, so some code is run.
    if let Some(noop) = noop {
        let noop = Local::new(scope, noop);
        let undefined = ::v8::undefined(scope).into();
        noop.call(scope, undefined, &[]);
    }
}
