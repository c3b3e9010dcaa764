//! The text of a program (spec 04 §1, §9).

use lightcone_host::HostError;

use crate::trace::SourceMap;

/// A program's text and what maps its positions back to its sources.
pub struct ProgramText {
    /// One ES module.
    pub text: String,
    /// From an inline data URL at the end of the text, if there is one.
    pub source_map: Option<SourceMap>,
}

impl ProgramText {
    /// Reads a program. A broken source map is none.
    pub fn read(program: &[u8]) -> Result<ProgramText, HostError> {
        let text = std::str::from_utf8(program).map_err(|error| {
            HostError::Compile(format!(
                "a JavaScript module must be UTF-8 text, and the byte at {} is not",
                error.valid_up_to()
            ))
        })?;
        Ok(ProgramText {
            text: text.to_owned(),
            source_map: SourceMap::of_program(text),
        })
    }
}
