//! Auto-increment (02 §12).

use std::ops::RangeInclusive;

use lightcone_schema::SequenceSchema;
use lightcone_types::{AlgebraicType, IntegerType, I256};

/// The integers of a column, as far as a sequence knows such values.
pub(crate) fn column_range(ty: &AlgebraicType) -> (i128, i128) {
    let range = ty.integer().map(IntegerType::range_i128);
    range.unwrap_or((i128::MIN, i128::MAX))
}

/// So many values are reserved at a time; after a restart at most this many are skipped.
const ALLOCATION_STEPS: i128 = 4096;

/// The running state of one sequence.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    pub schema: SequenceSchema,
    /// Size of the column's integers in bytes.
    pub column_bytes: usize,
    /// The lowest and the highest value that the column can hold and this may issue.
    column_range: (i128, i128),
    /// Next value to issue.
    value: i128,
    /// Where a restart resumes; stored in `st_sequence.allocated`.
    pub allocated: i128,
    /// `allocated` moved and its row was not yet rewritten in a committed transaction.
    pub unsaved: bool,
}

impl Sequence {
    pub fn new(schema: SequenceSchema, column: &AlgebraicType, allocated: i128) -> Sequence {
        let in_range = (schema.min_value..=schema.max_value).contains(&allocated);
        let resume = if allocated == 0 && !in_range {
            schema.start
        } else {
            allocated
        };
        Sequence {
            column_bytes: lightcone_types::bsatn::fixed_size(column).unwrap_or(8),
            column_range: column_range(column),
            value: resume,
            allocated: resume,
            unsaved: false,
            schema,
        }
    }

    /// This one, going on where another is.
    pub fn going_on(&self, other: &Sequence) -> Sequence {
        Sequence {
            schema: self.schema.clone(),
            column_bytes: self.column_bytes,
            column_range: self.column_range,
            ..*other
        }
    }

    /// The next value that it issues.
    pub fn position(&self) -> i128 {
        self.value
    }

    /// The values that it issues as they are: those of its own range that the column can hold.
    pub fn range(&self) -> RangeInclusive<i128> {
        let (lowest, highest) = self.column_range;
        self.schema.min_value.max(lowest)..=self.schema.max_value.min(highest)
    }

    /// Whether it goes on where another is without coming to values that its column cannot hold. One that has passed the end of
    /// a column like this one begins again, as it would have there.
    pub fn can_follow(&self, other: &Sequence) -> bool {
        let (lowest, highest) = self.column_range;
        self.column_range == other.column_range || (lowest..=highest).contains(&other.value)
    }

    /// Whether it has issued more than another one in the same direction.
    pub fn is_ahead_of(&self, other: &Sequence) -> bool {
        match self.schema.increment < 0 {
            true => self.value < other.value,
            false => self.value > other.value,
        }
    }

    /// This one, going on from a value; none if it never issues that.
    pub fn from(&self, value: i128) -> Option<Sequence> {
        self.range().contains(&value).then(|| Sequence {
            value,
            allocated: value,
            unsaved: true,
            ..self.clone()
        })
    }

    /// This one, going on behind a value that a row has; none if it is there already, or counts downwards.
    pub fn past(&self, highest: i128) -> Option<Sequence> {
        let is_ahead = self.schema.increment < 0 || highest < self.value;
        if is_ahead {
            return None;
        }
        self.from(highest.checked_add(1)?)
    }

    /// Issues the next value.
    pub fn next(&mut self) -> i128 {
        if self.value == self.allocated {
            self.allocated = self.advanced(self.allocated, ALLOCATION_STEPS);
            self.unsaved = true;
        }
        let issued = self.value;
        self.value = self.advanced(issued, 1);
        issued
    }

    /// Moves `steps` on, stopping early rather than coming back to the starting point.
    fn advanced(&self, from: i128, steps: i128) -> i128 {
        let mut value = from;
        for _ in 0..steps {
            let next = self.step(value);
            if next == from && steps > 1 {
                break;
            }
            value = next;
        }
        value
    }

    fn step(&self, value: i128) -> i128 {
        let SequenceSchema {
            min_value: min,
            max_value: max,
            increment,
            ..
        } = self.schema;
        if let Some(next) = value.checked_add(increment) {
            let is_past = (increment > 0 && next > max) || (increment < 0 && next < min);
            if !is_past {
                return next;
            }
        }
        // Numbers of 256 bits hold every distance past an end.
        let [min, max, value, by] = [min, max, value, increment].map(I256::from);
        let (next, span) = (value + by, (max - min + 1).max(I256::ONE));
        let wrapped = match increment > 0 {
            true => min + (next - max - 1) % span,
            false => max - (min - next - 1) % span,
        };
        wrapped.as_i128()
    }

    /// The bytes of `value` in the column, truncated to its width.
    pub fn column_value(&self, value: i128) -> ([u8; 32], usize) {
        let fill = if value < 0 { 0xff } else { 0 };
        let mut bytes = [fill; 32];
        bytes[..16].copy_from_slice(&value.to_le_bytes());
        (bytes, self.column_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::{ColId, SequenceId};

    fn sequence(start: i128, min_value: i128, max_value: i128, increment: i128) -> Sequence {
        let schema = SequenceSchema {
            id: SequenceId(1),
            name: "s".into(),
            column: ColId(0),
            start,
            min_value,
            max_value,
            increment,
        };
        Sequence::new(schema, &AlgebraicType::U8, start)
    }

    #[test]
    fn wraps_as_observed() {
        let mut down = sequence(1, 1, 10, -3);
        let issued: Vec<_> = (0..8).map(|_| down.next()).collect();
        assert_eq!(issued, [1, 8, 5, 2, 9, 6, 3, 10]);
        assert_eq!(down.allocated, 4, "stops before it comes back to the start");
        assert_eq!(sequence(1, 1, 10, 3).step(9), 2);
        assert_eq!(sequence(1, 1, 10, -3).step(1), 8);
    }

    #[test]
    fn a_counter_follows_only_what_its_column_can_hold() {
        let counts_to = |column: AlgebraicType, at: i128| {
            let schema = sequence(1, 1, i128::MAX, 1).schema;
            Sequence::new(schema, &column, at)
        };
        let wide = counts_to(AlgebraicType::U64, 5_000_000_000);
        assert!(!counts_to(AlgebraicType::U32, 1).can_follow(&wide));
        assert!(counts_to(AlgebraicType::I64, 1).can_follow(&wide));
        let full = counts_to(AlgebraicType::U8, 256);
        assert!(
            counts_to(AlgebraicType::U8, 1).can_follow(&full),
            "it had begun again there"
        );
        let last = i128::from(u32::MAX);
        assert!(counts_to(AlgebraicType::U32, 1).past(last).is_none());
        assert!(counts_to(AlgebraicType::U32, 1).past(last - 1).is_some());
    }

    #[test]
    fn defaults_reserve_4096() {
        let mut sequence = sequence(1, 1, i128::MAX, 1);
        assert_eq!((sequence.next(), sequence.allocated), (1, 4097));
        assert_eq!(sequence.step(i128::MAX), 1);
    }
}
