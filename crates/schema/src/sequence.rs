//! Sequences: effective parameters, and which of them can issue values (02 §8.6, §12).

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

/// Refuses a range that is wrong as declared, or one in which no value can be issued.
pub(crate) fn check_usable(sequence: &SequenceDef) -> Result<(), ValidationError> {
    let ordered = |low: Option<i128>, high: Option<i128>| match (low, high) {
        (Some(low), Some(high)) => low <= high,
        _ => true,
    };
    let (start, min, max) = (sequence.start, sequence.min_value, sequence.max_value);
    if !(ordered(min, start) && ordered(start, max) && ordered(min, max)) {
        return Err(ValidationError::InvalidSequenceRange {
            sequence: clip(&sequence.name),
            start,
            min_value: min,
            max_value: max,
        });
    }
    let (start, min, max) = sequence.effective();
    let reason = if sequence.increment == 0 {
        "its increment is 0; use another increment"
    } else if max <= min {
        "its maximum is not above its minimum (minimum 1 where none is given); widen the range"
    } else if start < min || start > max {
        "its start is outside its range (start 1, minimum 1 where none is given); give a start and a minimum"
    } else if sequence.increment.unsigned_abs() >= max.abs_diff(min) {
        "its increment is as large as its range; use a smaller increment or a wider range"
    } else {
        return Ok(());
    };
    Err(ValidationError::UnusableSequence {
        sequence: clip(&sequence.name),
        reason,
    })
}
