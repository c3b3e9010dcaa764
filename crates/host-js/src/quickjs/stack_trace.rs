//! Stack frames, as QuickJS writes them, and uncaught exceptions.

use rquickjs_sys as qjs;
use rquickjs_sys::JSContext;

use crate::frame::{Frame, FrameKind};
use crate::source_map::SourceMap;
use crate::trace::Exception;

use super::state::state;
use super::value::{forget_exception, to_text, Owned, Thrown};

/// The running JavaScript functions, innermost first, without the host's.
pub(crate) fn current(context: *mut JSContext) -> Vec<Frame> {
    // SAFETY: the context is alive; the state is borrowed only to copy a value out of it.
    unsafe {
        let class = state(context).values.error.as_ref().map(Owned::raw);
        let Some(class) = class else {
            return Vec::new();
        };
        let error = qjs::JS_CallConstructor(context, class, 0, std::ptr::null_mut());
        let frames = Owned::checked(context, error).map(|error| frames_of(context, &error));
        let frames = or_forget(context, frames).unwrap_or_default().into_iter();
        let is_own = |frame: &Frame| frame.kind == FrameKind::Native;
        frames.skip_while(is_own).collect()
    }
}

/// The frames of an error object; none for other values.
///
/// # Safety
/// The context is alive.
unsafe fn frames_of(context: *mut JSContext, error: &Owned) -> Vec<Frame> {
    if !error.is_object() {
        return Vec::new();
    }
    unsafe {
        let stack = or_forget(context, error.get(c"stack"));
        // A program may have replaced the property.
        let stack = stack.filter(|stack| qjs::JS_IsString(stack.raw()));
        let text = stack.and_then(|stack| or_forget(context, to_text(context, stack.raw())));
        text.map_or(Vec::new(), |text| parse(&text))
    }
}

/// Drops the exception if one was thrown.
///
/// # Safety
/// The context is alive.
unsafe fn or_forget<T>(context: *mut JSContext, result: Result<T, Thrown>) -> Option<T> {
    if result.is_err() {
        unsafe { forget_exception(context) };
    }
    result.ok()
}

/// Reads lines of the form `    at function (script:line:column)`. Others are left out.
fn parse(stack: &str) -> Vec<Frame> {
    stack.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Frame> {
    let line = line.trim_start().strip_prefix("at ")?;
    let (function, place) = match line
        .strip_suffix(')')
        .and_then(|line| line.rsplit_once(" ("))
    {
        Some((function, place)) => (function, place),
        None => ("", line),
    };
    let function = (!matches!(function, "" | "<anonymous>")).then(|| function.to_owned());
    if matches!(place, "native" | "missing") {
        return Some(Frame {
            function,
            kind: FrameKind::Native,
            ..Frame::default()
        });
    }
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let script = parts.next()?;
    let is_eval =
        function.as_deref() == Some("<eval>") || script == "<input>" || script == "<evalScript>";
    Some(Frame {
        function: function.map(|name| match name.as_str() {
            "<eval>" => "eval".to_owned(),
            _ => name,
        }),
        script: (!is_eval).then(|| script.to_owned()),
        line,
        column,
        kind: match is_eval {
            true => FrameKind::Eval,
            false => FrameKind::Function,
        },
    })
}

/// Text and frames of an uncaught exception. Runs getters of the program.
///
/// # Safety
/// The context is alive and its state is not borrowed.
pub(crate) unsafe fn uncaught(
    context: *mut JSContext,
    exception: &Owned,
    source_map: Option<&SourceMap>,
) -> Exception {
    unsafe {
        let text = or_forget(context, describe(context, exception));
        let text = text.unwrap_or_else(|| "an exception without text".to_owned());
        let classes = classes_of(context, exception);
        let frames = frames_of(context, exception)
            .into_iter()
            .filter(|frame| frame.kind != FrameKind::Native)
            .skip_while(|frame| classes.contains(&frame.function))
            .collect();
        Exception::new(format!("Uncaught {text}"), frames, source_map)
    }
}

/// Names of the classes of an error, from its own to the last before `Error`. Their constructors are the innermost frames
/// of its stack, as the stack is taken by `Error` itself; where the error was made begins behind them.
unsafe fn classes_of(context: *mut JSContext, error: &Owned) -> Vec<Option<String>> {
    /// Real classes are not that deep, but a proxy can be.
    const CLASSES_MAX: usize = 16;
    let mut names = Vec::new();
    unsafe {
        if !error.is_object() || !qjs::JS_IsError(error.raw()) {
            return names;
        }
        let mut prototype = Owned::new(context, qjs::JS_GetPrototype(context, error.raw()));
        while prototype.is_object() && names.len() < CLASSES_MAX {
            let name = prototype
                .get(c"constructor")
                .and_then(|class| class.get(c"name"))
                .and_then(|name| to_text(context, name.raw()));
            match or_forget(context, name) {
                Some(name) if name != "Error" => {
                    names.push(Some(name).filter(|name| !name.is_empty()));
                }
                _ => break,
            }
            prototype = Owned::new(context, qjs::JS_GetPrototype(context, prototype.raw()));
        }
    }
    names
}

unsafe fn describe(context: *mut JSContext, exception: &Owned) -> Result<String, Thrown> {
    unsafe {
        let raw = exception.raw();
        match qjs::JS_VALUE_GET_TAG(raw) {
            qjs::JS_TAG_SYMBOL => symbol_text(context, exception),
            qjs::JS_TAG_OBJECT if qjs::JS_IsError(raw) => error_text(context, exception),
            qjs::JS_TAG_OBJECT if qjs::JS_IsFunction(context, raw) => to_text(context, raw),
            qjs::JS_TAG_OBJECT => object_text(context, exception),
            _ => to_text(context, raw),
        }
    }
}

unsafe fn error_text(context: *mut JSContext, error: &Owned) -> Result<String, Thrown> {
    let (name, message) = (error.get(c"name")?, error.get(c"message")?);
    let text = |value: &Owned, absent: &str| match value.is_undefined() {
        true => Ok(absent.to_owned()),
        false => unsafe { to_text(context, value.raw()) },
    };
    let (name, message) = (text(&name, "Error")?, text(&message, "")?);
    Ok(match (name.is_empty(), message.is_empty()) {
        (true, _) => message,
        (false, true) => name,
        (false, false) => format!("{name}: {message}"),
    })
}

unsafe fn symbol_text(context: *mut JSContext, symbol: &Owned) -> Result<String, Thrown> {
    let description = symbol.get(c"description")?;
    match description.is_undefined() {
        true => Ok("Symbol()".to_owned()),
        false => {
            let text = unsafe { to_text(context, description.raw()) }?;
            Ok(format!("Symbol({text})"))
        }
    }
}

unsafe fn object_text(context: *mut JSContext, object: &Owned) -> Result<String, Thrown> {
    let constructor = object.get(c"constructor")?;
    let mut name = String::new();
    if constructor.is_function() {
        let value = constructor.get(c"name")?;
        if unsafe { qjs::JS_IsString(value.raw()) } {
            name = unsafe { to_text(context, value.raw()) }?;
        }
    }
    if name.is_empty() {
        name = "Object".to_owned();
    }
    Ok(format!("#<{name}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_frames() {
        let frames = parse(
            "    at insert (native)\n    at get value (spacetimedb_module:12:7)\n    at <anonymous> (spacetimedb_module:1:2)\n    at odd (name (spacetimedb_module:3:4)\n    at spacetimedb_module:5:6\nnonsense\n",
        );
        let short = |frame: &Frame| {
            let function = frame.function.as_deref().unwrap_or("-").to_owned();
            (function, frame.line, frame.column, frame.kind)
        };
        let frames: Vec<_> = frames.iter().map(short).collect();
        assert_eq!(
            frames,
            [
                ("insert".to_owned(), 0, 0, FrameKind::Native),
                ("get value".to_owned(), 12, 7, FrameKind::Function),
                ("-".to_owned(), 1, 2, FrameKind::Function),
                ("odd (name".to_owned(), 3, 4, FrameKind::Function),
                ("-".to_owned(), 5, 6, FrameKind::Function),
            ]
        );
    }
}
