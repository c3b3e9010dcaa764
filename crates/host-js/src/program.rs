//! The text of a program (spec 04 §1, §9).

use lightcone_host::HostError;

use crate::source_map::SourceMap;

pub struct ProgramText {
    /// One ES module, without its source map.
    pub text: String,
    /// From an inline data URL at the end of the text.
    pub source_map: Option<SourceMap>,
}

impl ProgramText {
    /// Reads a program. Its source map is parsed on demand; a broken one is ignored.
    pub fn read(program: &[u8]) -> Result<ProgramText, HostError> {
        let text = std::str::from_utf8(program).map_err(|error| {
            HostError::Compile(format!(
                "a JavaScript module must be UTF-8 text, and the byte at {} is not",
                error.valid_up_to()
            ))
        })?;
        let (text, source_map) = SourceMap::split(text);
        Ok(ProgramText {
            text: text.to_owned(),
            source_map,
        })
    }
}
