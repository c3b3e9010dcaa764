//! Sums of floats without error: the same whatever the order of the values, and as if those that were taken out had never been
//! in.

/// Words of the fixed-point number: from 2^-1074, the least bit of any float, to beyond 2^64 times the greatest.
const WORDS: usize = 34;
/// Bits of a float's mantissa behind the leading one.
const MANTISSA_BITS: u32 = 52;
/// What stands in the place of an exponent for infinities and NaNs.
const EXPONENT_MAX: u64 = 0x7ff;

/// The exact sum of floats, in two's complement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExactSum {
    words: [u64; WORDS],
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum {
            words: [0; WORDS],
            nans: 0,
            infinities: 0,
            negative_infinities: 0,
        }
    }
}

impl ExactSum {
    pub fn add(&mut self, value: f64) {
        self.count(value, 1);
    }

    /// Takes a value out that was added.
    pub fn remove(&mut self, value: f64) {
        self.count(value, -1);
    }

    fn count(&mut self, value: f64, times: i64) {
        let bits = value.to_bits();
        let exponent = bits >> MANTISSA_BITS & EXPONENT_MAX;
        let fraction = bits & ((1 << MANTISSA_BITS) - 1);
        let is_negative = value.is_sign_negative();
        if exponent == EXPONENT_MAX {
            match (fraction == 0, is_negative) {
                (false, _) => self.nans += times,
                (true, false) => self.infinities += times,
                (true, true) => self.negative_infinities += times,
            }
            return;
        }
        // Without a leading one, the exponent is that of the least number with one.
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << MANTISSA_BITS, exponent - 1),
        };
        let place = (shift / 64) as usize;
        let wide = u128::from(mantissa) << (shift % 64);
        self.shift_by(place, wide, is_negative != (times < 0));
    }

    fn shift_by(&mut self, place: usize, wide: u128, is_negative: bool) {
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        let step = match is_negative {
            false => u64::overflowing_add,
            true => u64::overflowing_sub,
        };
        let (word, carry) = step(self.words[place], low);
        self.words[place] = word;
        let (word, first) = step(self.words[place + 1], high);
        let (word, second) = step(word, u64::from(carry));
        self.words[place + 1] = word;
        let mut carry = first || second;
        for word in &mut self.words[place + 2..] {
            if !carry {
                return;
            }
            (*word, carry) = step(*word, 1);
        }
    }

    /// The nearest float; of two equally near, the even one.
    pub fn value(&self) -> f64 {
        if self.nans > 0 || (self.infinities > 0 && self.negative_infinities > 0) {
            return f64::NAN;
        }
        if self.infinities > 0 {
            return f64::INFINITY;
        }
        if self.negative_infinities > 0 {
            return f64::NEG_INFINITY;
        }
        let mut words = self.words;
        let is_negative = words[WORDS - 1] >> 63 == 1;
        if is_negative {
            negate(&mut words);
        }
        let size = rounded(&words);
        match is_negative {
            true => -size,
            false => size,
        }
    }
}

fn negate(words: &mut [u64; WORDS]) {
    let mut carry = true;
    for word in words {
        (*word, carry) = (!*word).overflowing_add(u64::from(carry));
    }
}

fn rounded(words: &[u64; WORDS]) -> f64 {
    let Some(top) = words.iter().rposition(|word| *word != 0) else {
        return 0.0;
    };
    let highest = top as u32 * 64 + (63 - words[top].leading_zeros());
    let Some(shift) = highest
        .checked_sub(MANTISSA_BITS)
        .filter(|shift| *shift > 0)
    else {
        // As many bits as there are make a float, which may be one without a leading one.
        return f64::from_bits(words[0]);
    };
    let bits_from = |bit: u32| {
        let (place, offset) = ((bit / 64) as usize, bit % 64);
        let above = words.get(place + 1).copied().unwrap_or(0);
        ((u128::from(above) << 64 | u128::from(words[place])) >> offset) as u64
    };
    let mantissa = bits_from(shift) & ((2 << MANTISSA_BITS) - 1);
    let half = shift - 1;
    let is_half = bits_from(half) & 1 == 1;
    let is_more = (words[half as usize / 64] & ((1 << (half % 64)) - 1)) != 0
        || words[..half as usize / 64].iter().any(|word| *word != 0);
    let is_up = is_half && (is_more || mantissa & 1 == 1);
    // The leading one adds one to the exponent, and so does what is carried out of the mantissa.
    let bits = (u64::from(shift) << MANTISSA_BITS) + mantissa + u64::from(is_up);
    match bits >> MANTISSA_BITS >= EXPONENT_MAX {
        true => f64::INFINITY,
        false => f64::from_bits(bits),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    #[test]
    fn sums_are_rounded_once() {
        let tiny = f64::from_bits(1);
        for (values, expected) in [
            (&[][..], 0.0),
            (&[-0.0], 0.0),
            (&[0.1, 0.2, 0.3], 0.6),
            (&[0.1; 10], 1.0),
            (&[1e308, 1e308, -1e308], 1e308),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
            (&[1e100, 1.0, -1e100], 1.0),
            (&[tiny, tiny], 2.0 * tiny),
            (&[f64::MIN_POSITIVE, -tiny], f64::MIN_POSITIVE - tiny),
            (&[9007199254740992.0, 1.0], 9007199254740992.0),
            (&[9007199254740992.0, 1.0, tiny], 9007199254740994.0),
            (&[9007199254740994.0, 1.0], 9007199254740996.0),
            (&[f64::INFINITY, 1.0], f64::INFINITY),
        ] {
            assert_eq!(sum(values).value(), expected, "{values:?}");
            let negated: Vec<f64> = values.iter().map(|value| -value).collect();
            assert_eq!(sum(&negated).value(), -expected, "{negated:?}");
        }
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).value().is_nan());
        assert!(sum(&[f64::NAN, 1.0]).value().is_nan());
    }

    fn any_float() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            (-1000..1000_i32).prop_map(|n| f64::from(n) / 8.0),
            (-60..60_i32, -2.0..2.0_f64).prop_map(|(n, x)| x * 2_f64.powi(n)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_goes_was_never_there(
            stay in prop::collection::vec(any_float(), 0..20),
            go in prop::collection::vec(any_float(), 0..20),
        ) {
            let expected = sum(&stay);
            let mut both = sum(&go);
            stay.iter().rev().for_each(|value| both.add(*value));
            go.iter().for_each(|value| both.remove(*value));
            prop_assert_eq!(&both, &expected);
        }

        #[test]
        fn one_value_is_its_sum(value in any_float()) {
            let found = sum(&[value]).value();
            prop_assert!(found == value || (found.is_nan() && value.is_nan()));
        }

        #[test]
        fn two_values_add_as_the_processor_does(a in any_float(), b in any_float()) {
            let found = sum(&[a, b]).value();
            prop_assert!(found == a + b || (found.is_nan() && (a + b).is_nan()), "{a} {b} {found}");
        }

        #[test]
        fn small_fractions_add_as_integers_do(values in prop::collection::vec(-(1_i64 << 40)..1_i64 << 40, 0..50)) {
            let floats: Vec<f64> = values.iter().map(|value| *value as f64 / 1024.0).collect();
            let total: i64 = values.iter().sum();
            prop_assert_eq!(sum(&floats).value(), total as f64 / 1024.0);
        }
    }
}
