//! Stack traces: frames, source maps, and the text of an exception (spec 04 §9).

use std::fmt::Write;

use lightcone_host::ConsoleFrame;

use crate::texts::END_SHORT_BACKTRACE;

/// One stack frame, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Nameless functions have none.
    pub function: Option<String>,
    /// Code of `eval` has none.
    pub script: Option<String>,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// What kind of code it is.
    pub kind: FrameKind,
}

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameKind {
    #[default]
    Function,
    Constructor,
    Eval,
    Wasm,
    Native,
}

impl Frame {
    fn position(&self) -> String {
        match &self.script {
            Some(script) => format!("{script}:{}:{}", self.line, self.column),
            None => format!("<unknown location>:{}:{}", self.line, self.column),
        }
    }
}

/// An exception that no code of the program caught.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// `Uncaught <Name>: <message>`, or what else was thrown.
    pub message: String,
    /// Where it was thrown, mapped to the sources and cut to the author's own functions.
    pub frames: Vec<Frame>,
}

impl Exception {
    /// Maps the positions and leaves out the frames of the library below the author's functions.
    pub fn new(message: String, frames: Vec<Frame>, source_map: Option<&SourceMap>) -> Exception {
        let mut frames = cut(frames);
        if let Some(map) = source_map {
            frames.iter_mut().for_each(|frame| map.apply(frame));
        }
        Exception { message, frames }
    }

    /// The message and one line for each frame.
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

    /// File and line of the innermost frame, for the record in the module's log.
    pub fn location(&self) -> Option<(&str, u32)> {
        let frame = self.frames.first()?;
        let script = frame.script.as_deref().unwrap_or("<unknown location>");
        Some((script, frame.line))
    }

    /// The frames in the form of the module's log.
    pub fn console_frames(&self) -> Vec<ConsoleFrame> {
        console_frames(&self.frames)
    }
}

/// Frames in the form of the module's log.
pub fn console_frames(frames: &[Frame]) -> Vec<ConsoleFrame> {
    frames
        .iter()
        .map(|frame| ConsoleFrame {
            module_name: Some(frame.position()),
            func_name: Some(
                frame
                    .function
                    .clone()
                    .unwrap_or_else(|| "<anonymous>".to_owned()),
            ),
        })
        .collect()
}

/// Leaves out the library's frames: those from the function on that wraps every function of the author.
pub fn cut(mut frames: Vec<Frame>) -> Vec<Frame> {
    if let Some(end) = frames
        .iter()
        .position(|frame| frame.function.as_deref() == Some(END_SHORT_BACKTRACE))
    {
        frames.truncate(end);
    }
    frames
}

/// Maps positions in a program to positions in the sources that it was built from.
pub struct SourceMap(sourcemap::SourceMap);

impl SourceMap {
    /// The map in the `sourceMappingURL` comment of a program, if it is an inline data URL.
    pub fn of_program(text: &str) -> Option<SourceMap> {
        const COMMENT: &str = "//# sourceMappingURL=";
        let at = text.rfind(COMMENT)?;
        let url = text[at + COMMENT.len()..].lines().next()?.trim();
        match sourcemap::decode_data_url(url).ok()? {
            sourcemap::DecodedMap::Regular(map) => Some(SourceMap(map)),
            _ => None,
        }
    }

    /// Replaces script and position by those of the source. Positions that the map does not know stay.
    pub fn apply(&self, frame: &mut Frame) {
        if frame.script.as_deref() != Some(crate::texts::RESOURCE_NAME) || frame.line == 0 {
            return;
        }
        let token = self
            .0
            .lookup_token(frame.line - 1, frame.column.saturating_sub(1));
        if let Some((token, source)) = token.and_then(|token| Some((token, token.get_source()?))) {
            frame.script = Some(source.to_owned());
            frame.line = token.get_src_line() + 1;
            frame.column = token.get_src_col() + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32, column: u32) -> Frame {
        Frame {
            function: Some(function.to_owned()),
            script: Some(crate::texts::RESOURCE_NAME.to_owned()),
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

    #[test]
    fn positions_are_mapped_to_the_sources() {
        // Line 2, column 1 of the program is line 10, column 5 of src/index.ts.
        let mut builder = sourcemap::SourceMapBuilder::new(None);
        builder.add(1, 0, 9, 4, Some("src/index.ts"), None, false);
        let mut json = Vec::new();
        builder.into_sourcemap().to_writer(&mut json).unwrap();
        let url = sourcemap_url(&json);
        let map = SourceMap::of_program(&format!("a;\nb;\n//# sourceMappingURL={url}\n")).unwrap();
        let mut mapped = frame("f", 2, 1);
        map.apply(&mut mapped);
        assert_eq!(mapped.script.as_deref(), Some("src/index.ts"));
        assert_eq!((mapped.line, mapped.column), (10, 5));
        assert!(SourceMap::of_program("a;\n//# sourceMappingURL=x.map").is_none());
    }

    fn sourcemap_url(json: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::from("data:application/json;charset=utf-8;base64,");
        for chunk in json.chunks(3) {
            let bits = chunk
                .iter()
                .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - chunk.len()));
            for digit in 0..4 {
                text.push(match digit <= chunk.len() {
                    true => DIGITS[(bits >> (18 - 6 * digit)) as usize & 63] as char,
                    false => '=',
                });
            }
        }
        text
    }
}
