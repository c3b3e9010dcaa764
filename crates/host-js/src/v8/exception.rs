//! Exceptions, in words and frames (spec 04 §9).

use ::v8::{Local, Message, PinScope, StackTrace, Value};

use crate::frame::{Frame, FrameKind};
use crate::program::ProgramText;
use crate::trace::Exception;

/// More frames of a trace are dropped.
pub(crate) const FRAMES_MAX: usize = 1024;

/// The text and frames of an uncaught exception.
pub(crate) fn uncaught(
    scope: &mut PinScope<'_, '_>,
    value: Local<'_, Value>,
    message: Option<Local<'_, Message>>,
    program: &ProgramText,
) -> Exception {
    let message = match message {
        Some(message) => message,
        None => ::v8::Exception::create_message(scope, value),
    };
    let text = message.get(scope).to_rust_string_lossy(scope);
    let frames = match message.get_stack_trace(scope) {
        Some(trace) => frames(scope, trace),
        None => Vec::new(),
    };
    Exception::new(text, frames, program.source_map.as_ref())
}

/// Innermost first.
pub(crate) fn frames(scope: &mut PinScope<'_, '_>, trace: Local<'_, StackTrace>) -> Vec<Frame> {
    (0..trace.get_frame_count())
        .filter_map(|index| {
            let frame = trace.get_frame(scope, index)?;
            let function = frame
                .get_function_name(scope)
                .map(|name| name.to_rust_string_lossy(scope))
                .filter(|name| !name.is_empty());
            let script = frame
                .get_script_name(scope)
                .map(|name| name.to_rust_string_lossy(scope))
                .filter(|name| !name.is_empty());
            Some(Frame {
                function,
                script,
                line: frame.get_line_number() as u32,
                column: frame.get_column() as u32,
                kind: if frame.is_constructor() {
                    FrameKind::Constructor
                } else if frame.is_eval() {
                    FrameKind::Eval
                } else if frame.is_wasm() {
                    FrameKind::Wasm
                } else {
                    FrameKind::Function
                },
            })
        })
        .collect()
}
