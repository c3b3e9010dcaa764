//! Stack frames (spec 04 §9).

use lightcone_host::ConsoleFrame;

/// Innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// None for anonymous functions.
    pub function: Option<String>,
    /// None for code of `eval`.
    pub script: Option<String>,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    pub kind: FrameKind,
}

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
    pub(crate) fn position(&self) -> String {
        match &self.script {
            Some(script) => format!("{script}:{}:{}", self.line, self.column),
            None => format!("<unknown location>:{}:{}", self.line, self.column),
        }
    }
}

/// Frames in the form of the module log.
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
