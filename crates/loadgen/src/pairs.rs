//! Which accounts take part in a transfer (spec 09 §4.3 – 4.5). The sequence is the same as that of
//! the TypeScript benchmark, so that runs of both can be compared.

use crate::Error;

/// Seed of the sequence.
const SEED: u32 = 0x1234_5678;

/// Redraws of the second account while it equals the first.
const REDRAWS_MAX: usize = 32;

/// The generator mulberry32. The reference keeps its state in a 64-bit float and never wraps it;
/// from draw 4 917 759 on the sum rounds, and so does this one.
#[derive(Clone, Debug)]
pub struct Mulberry32 {
    state: f64,
}

impl Mulberry32 {
    /// A generator with this seed.
    pub fn new(seed: u32) -> Self {
        Self {
            state: f64::from(seed),
        }
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.state += f64::from(0x6D2B_79F5u32);
        // The state stays below 2^63 for 10^9 draws, so it is an exact integer of 64 bits.
        let t = self.state as u64 as u32;
        let mut r = (t ^ (t >> 15)).wrapping_mul(t | 1);
        r ^= r.wrapping_add((r ^ (r >> 7)).wrapping_mul(r | 61));
        r ^ (r >> 14)
    }

    /// A number of 0 ≤ u < 1.
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        f64::from(self.next_u32()) / 4_294_967_296.0
    }
}

/// Draws account ids: uniformly, or by a Zipf distribution with id 0 the most frequent.
#[derive(Clone, Debug)]
pub struct Sampler {
    random: Mulberry32,
    accounts: u32,
    /// Empty for the uniform distribution.
    cumulative: Vec<f64>,
}

impl Sampler {
    /// A sampler of ids below `accounts`.
    pub fn new(accounts: u32, alpha: f64) -> Self {
        let mut sampler = Self {
            random: Mulberry32::new(SEED),
            accounts,
            cumulative: Vec::new(),
        };
        if alpha > 0.0 {
            sampler.cumulative = cumulative(accounts, alpha);
        }
        sampler
    }

    /// The next id.
    #[inline]
    pub fn pick(&mut self) -> u32 {
        let u = self.random.next_unit();
        if self.cumulative.is_empty() {
            return (u * f64::from(self.accounts)).floor() as u32;
        }
        // The last entry is 1.0 and u is below it, so there is one that is not below u.
        self.cumulative.partition_point(|&entry| entry < u) as u32
    }

    /// Two ids, different if drawing again for a while makes them so.
    pub fn pair(&mut self) -> (u32, u32) {
        let from = self.pick();
        let mut to = self.pick();
        for _ in 0..REDRAWS_MAX {
            if to != from {
                break;
            }
            to = self.pick();
        }
        (from, to)
    }
}

/// Running sum that carries its rounding error along.
#[derive(Default)]
struct KahanSum {
    sum: f64,
    lost: f64,
}

impl KahanSum {
    fn add(&mut self, value: f64) -> f64 {
        let corrected = value - self.lost;
        let sum = self.sum + corrected;
        self.lost = (sum - self.sum) - corrected;
        self.sum = sum;
        sum
    }
}

fn cumulative(accounts: u32, alpha: f64) -> Vec<f64> {
    let weight = |rank: u32| 1.0 / f64::from(rank + 1).powf(alpha);
    let mut harmonic = KahanSum::default();
    for rank in 0..accounts {
        harmonic.add(weight(rank));
    }
    let mut running = KahanSum::default();
    let mut cumulative: Vec<f64> = (0..accounts)
        .map(|rank| running.add(weight(rank) / harmonic.sum))
        .collect();
    if let Some(last) = cumulative.last_mut() {
        *last = 1.0;
    }
    cumulative
}

/// Draws the pairs of a run. Fails if so many of them would be a transfer from an account to itself
/// that the run would mostly skip.
pub fn draw(accounts: u32, alpha: f64, count: usize) -> Result<Vec<(u32, u32)>, Error> {
    let mut sampler = Sampler::new(accounts, alpha);
    let pairs: Vec<(u32, u32)> = (0..count).map(|_| sampler.pair()).collect();
    let equal = pairs.iter().filter(|(from, to)| from == to).count();
    if equal * 2 > count {
        return Err(Error::Options(format!(
            "--alpha {alpha} is too skewed: {equal} of {count} pairs are an account and itself"
        )));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn generator() {
        let draws = |seed, count| {
            let mut random = Mulberry32::new(seed);
            (0..count).map(|_| random.next_u32()).collect::<Vec<_>>()
        };
        assert_eq!(
            draws(SEED, 8),
            [
                455_919_406,
                4_042_750_857,
                4_036_713_555,
                1_004_527_575,
                3_885_174_651,
                3_342_903_291,
                1_200_158_424,
                1_464_636_653
            ]
        );
        assert_eq!(
            draws(1, 4),
            [2_693_262_067, 11_749_833, 2_265_367_787, 4_213_581_821]
        );
    }

    fn first_pairs(alpha: f64) -> String {
        let pairs = draw(100_000, alpha, 10).unwrap();
        let texts: Vec<_> = pairs.iter().map(|(a, b)| format!("{a}>{b}")).collect();
        texts.join(" ")
    }

    #[test]
    fn first_ten_pairs() {
        for (alpha, expected) in [
            (0.0, "10615>94127 93987>23388 90458>77833 27943>34101 19990>35710 36982>65305 61231>84748 26289>30683 43257>18641 27501>36868"),
            (0.5, "1170>88625 88361>5552 81867>60659 7901>11732 4070>12858 13784>42752 37601>71882 7000>9512 18825>3544 7654>13699"),
            (1.0, "1>49165 48336>8 31551>6855 15>34 5>41 48>1507 920>15818 12>22 104>4 15>47"),
            (1.5, "0>157 150>0 61>11 0>4 3>24 0>1 0>2 3>35 73>10 0>1"),
            (2.0, "0>9 9>0 5>2 0>1 1>3 0>4 6>2 0>1 0>1 0>1"),
        ] {
            assert_eq!(first_pairs(alpha), expected, "alpha {alpha}");
        }
    }

    #[test]
    fn million_pairs() {
        for (alpha, expected) in [
            (
                0.0,
                "a8bbc9a7030d852810fbfafeb98b561855bf80dd329d81309726d6df3056b203",
            ),
            (
                0.5,
                "d902cf41dc210f944729fce2b7b8283d6245ce93e7d008237df3d8fc3befd343",
            ),
            (
                1.0,
                "94e2adf759bd437e62c8aa1c807b1e10f4cbd7d6ac84e6da949968961aaed059",
            ),
            (
                1.5,
                "1911e612d5976ad9bcf0545021bea21ac0228829af85de6e73d0a6618fa01499",
            ),
        ] {
            let mut hash = Sha256::new();
            for (from, to) in draw(100_000, alpha, 1_000_000).unwrap() {
                hash.update(from.to_le_bytes());
                hash.update(to.to_le_bytes());
            }
            let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hex, expected, "alpha {alpha}");
        }
    }

    #[test]
    #[ignore = "draws 20 million numbers; run it when the generator changes"]
    fn state_rounds_as_in_the_reference() {
        let pairs = draw(100_000, 0.0, 10_000_000).unwrap();
        assert_eq!(pairs[156_250], (35_907, 48_131));
        assert_eq!(pairs.last(), Some(&(47_253, 15_353)));
    }

    #[test]
    fn cumulative_sums() {
        let sums = cumulative(100_000, 1.5);
        assert!((sums[0] - 0.383_722_372_748_363_74).abs() < 1e-15);
        assert!((sums[99] - 0.925_873_774_297_657_9).abs() < 1e-14);
        assert_eq!(sums[99_999], 1.0);
    }

    #[test]
    fn too_much_skew_is_refused() {
        let error = draw(100, 100.0, 1000).unwrap_err();
        assert!(error.to_string().contains("--alpha 100 is too skewed"));
    }
}
