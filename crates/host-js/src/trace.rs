//! Exceptions with their stack traces (spec 04 §9).

use std::fmt::Write;

use crate::frame::{Frame, FrameKind};
use crate::messages::END_SHORT_BACKTRACE;
use crate::source_map::SourceMap;

/// An uncaught exception.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// `Uncaught <Name>: <message>`, or the value that was thrown.
    pub message: String,
    /// Mapped to the sources, without the library's frames below the author's functions.
    pub frames: Vec<Frame>,
}

impl Exception {
    /// Maps the positions, and removes the frames of the library below the author's functions.
    pub fn new(message: String, frames: Vec<Frame>, source_map: Option<&SourceMap>) -> Exception {
        let mut frames = cut(frames);
        if let Some(map) = source_map {
            map.apply(&mut frames);
        }
        Exception { message, frames }
    }

    /// The message, and a line for each frame.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for frame in &self.frames {
            let function = frame.function.as_deref().unwrap_or("<anonymous>");
            let kind = match frame.kind {
                FrameKind::Function => "",
                FrameKind::Constructor => " (constructor)",
                FrameKind::Eval => " (eval)",
                FrameKind::Wasm => " (wasm)",
                FrameKind::Native => " (native)",
            };
            write!(text, "\n\tat {function} ({}){kind}", frame.position())
                .expect("writing to a string never fails");
        }
        text
    }

    /// File and line of the innermost frame, for the module log.
    pub fn location(&self) -> Option<(&str, u32)> {
        let frame = self.frames.first()?;
        let script = frame.script.as_deref().unwrap_or("<unknown location>");
        Some((script, frame.line))
    }
}

/// Removes the library's frames: those from the function on that wraps every function of the author.
pub fn cut(mut frames: Vec<Frame>) -> Vec<Frame> {
    if let Some(end) = frames
        .iter()
        .position(|frame| frame.function.as_deref() == Some(END_SHORT_BACKTRACE))
    {
        frames.truncate(end);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32, column: u32) -> Frame {
        Frame {
            function: Some(function.to_owned()),
            script: Some(crate::messages::RESOURCE_NAME.to_owned()),
            line,
            column,
            kind: FrameKind::Function,
        }
    }

    #[test]
    fn the_text_has_a_line_for_each_frame() {
        let exception = Exception::new(
            "Uncaught Error: foobar".to_owned(),
            vec![frame("__call_reducer__", 6, 27)],
            None,
        );
        assert_eq!(
            exception.text(),
            "Uncaught Error: foobar\n\tat __call_reducer__ (spacetimedb_module:6:27)"
        );
    }

    #[test]
    fn frames_of_the_library_are_left_out() {
        let frames = vec![
            frame("mine", 1, 1),
            frame(END_SHORT_BACKTRACE, 2, 2),
            frame("lib", 3, 3),
        ];
        assert_eq!(cut(frames), [frame("mine", 1, 1)]);
    }
}
