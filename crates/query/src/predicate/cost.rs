//! What evaluating a predicate takes at most.

use lightcone_table::RowLayout;
use lightcone_types::AlgebraicType;

use super::step::{Operand, Step};
use crate::scalar::Scalar;

/// Bytes that are compared, or walked over, in the time of one step.
pub(super) const BYTES_PER_STEP: usize = 8;

/// What evaluating a predicate takes at most, in steps: comparisons of a number, a few nanoseconds each. Every step is gone
/// through once at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cost {
    /// On any row.
    pub steps: usize,
    /// Tests that may have to look at all bytes of a row.
    pub whole_rows: usize,
}

impl Cost {
    pub fn of(steps: &[Step], layouts: &[&RowLayout]) -> Cost {
        let mut cost = Cost {
            steps: steps.len(),
            whole_rows: 0,
        };
        for step in steps {
            let Step::Test { place, operand, .. } = step else {
                continue;
            };
            let other = match operand {
                Operand::Column(other, _) => Some(*other),
                _ => None,
            };
            for place in [Some(*place), other].into_iter().flatten() {
                let first_walked = first_walked(layouts[usize::from(place.relation())]);
                cost.steps += place.columns_before();
                cost.whole_rows += usize::from(place.columns_before() > first_walked);
            }
            match operand {
                Operand::Bytes(constant) => cost.steps += constant.len() / BYTES_PER_STEP,
                Operand::Column(_, Scalar::Bytes) => cost.whole_rows += 1,
                // A part of the pattern may be tried at each byte.
                Operand::Like(pattern) => cost.whole_rows += 1 + pattern.len(),
                _ => {}
            }
        }
        cost
    }
}

/// The first column whose size is found only by walking over its elements.
fn first_walked(layout: &RowLayout) -> usize {
    let is_walked = |column: &usize| {
        let skipped = match layout.column_type(*column) {
            AlgebraicType::String => true,
            ty => ty.is_bytes() || layout.column_size(*column).is_some(),
        };
        !skipped
    };
    let columns = layout.column_count();
    (0..columns).find(is_walked).unwrap_or(columns)
}
