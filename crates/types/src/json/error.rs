//! Errors of SATS-JSON.

/// JSON that is malformed or not of the expected type. The text starts with the path to the
/// offending value and ends with its place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    path: String,
    message: String,
    line: u32,
    column: u32,
}

impl JsonError {
    pub(super) fn new(message: impl Into<String>, line: u32, column: u32) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
            line,
            column,
        }
    }

    /// The error as seen from the object around it.
    pub fn in_field(self, name: &str) -> Self {
        self.within(name)
    }

    /// The error as seen from the array around it.
    pub fn in_element(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    fn within(mut self, step: &str) -> Self {
        let dot = match self.path.is_empty() || self.path.starts_with('[') {
            true => "",
            false => ".",
        };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }

    /// The path to the offending value, `pos.x[2]`; empty for the outermost value.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Without path and place (01 §1.7.8).
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(
            f,
            "{} at line {} column {}",
            self.message, self.line, self.column
        )
    }
}

impl std::error::Error for JsonError {}
