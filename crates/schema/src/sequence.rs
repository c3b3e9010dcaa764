//! Sequences: effective parameters, and which of them a module may choose (02 §8.6, §12).

use crate::def::SequenceDef;
use crate::error::{clip, ValidationError};

impl SequenceDef {
    /// Effective start, minimum and maximum.
    pub fn effective(&self) -> (i128, i128, i128) {
        (
            self.start.unwrap_or(1),
            self.min_value.unwrap_or(1),
            self.max_value.unwrap_or(i128::MAX),
        )
    }
}

/// Since 2.12 modules choose no parameters: all sequences count from 1 by 1.
pub(crate) fn check_options(sequence: &SequenceDef) -> Result<(), ValidationError> {
    let increment = Some(sequence.increment).filter(|increment| *increment != 1);
    let options = [
        ("start", sequence.start, "none"),
        ("min_value", sequence.min_value, "none"),
        ("max_value", sequence.max_value, "none"),
        ("increment", increment, "1"),
    ];
    for (option, value, supported) in options {
        if let Some(value) = value {
            return Err(ValidationError::UnsupportedSequenceOption {
                sequence: clip(&sequence.name),
                option,
                value,
                supported,
            });
        }
    }
    Ok(())
}
