//! How much work the joins of a transaction may be.

/// Steps of a condition that count as much as looking a row up.
pub const STEPS_PER_ROW: usize = 32;
/// The matches of a row are counted up to so many.
pub const MATCHES_COUNTED_MAX: u64 = 64;

/// What finding the changes of joins in one transaction may still take, or has taken.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowance {
    pub steps: usize,
    pub bytes: usize,
}

impl Allowance {
    pub fn at_most(self, other: Allowance) -> Allowance {
        Allowance {
            steps: self.steps.min(other.steps),
            bytes: self.bytes.min(other.bytes),
        }
    }

    pub fn with_bytes(self, bytes_max: usize) -> Allowance {
        Allowance {
            bytes: self.bytes.min(bytes_max),
            ..self
        }
    }

    pub fn at_least(self, other: Allowance) -> Allowance {
        Allowance {
            steps: self.steps.max(other.steps),
            bytes: self.bytes.max(other.bytes),
        }
    }

    pub fn divided_by(self, count: usize) -> Allowance {
        Allowance {
            steps: self.steps.div_ceil(count),
            bytes: self.bytes.div_ceil(count),
        }
    }

    pub fn plus(self, other: Allowance) -> Allowance {
        Allowance {
            steps: self.steps.saturating_add(other.steps),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub fn minus(self, other: Allowance) -> Allowance {
        Allowance {
            steps: self.steps.saturating_sub(other.steps),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}
