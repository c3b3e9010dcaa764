//! Sequences: which parameters a module may choose (02 §8.6, §12).

use crate::error::{clip, ValidationError};
use crate::raw::RawSequenceDefV10;

/// Since 2.12 modules choose no parameters: all sequences count from 1 by 1.
pub(crate) fn check_options(name: &str, raw: &RawSequenceDefV10) -> Result<(), ValidationError> {
    let increment = Some(raw.increment).filter(|increment| *increment != 1);
    let options = [
        ("start", raw.start, "none"),
        ("min_value", raw.min_value, "none"),
        ("max_value", raw.max_value, "none"),
        ("increment", increment, "1"),
    ];
    for (option, value, supported) in options {
        if let Some(value) = value {
            return Err(ValidationError::UnsupportedSequenceOption {
                sequence: clip(name),
                option,
                value,
                supported,
            });
        }
    }
    Ok(())
}
