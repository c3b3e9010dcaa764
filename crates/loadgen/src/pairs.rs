//! The accounts of a transfer (spec 09 §4.3 – 4.5). The sequence is that of the TypeScript benchmark, so that runs are comparable.

use crate::Error;

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
    pub fn new(seed: u32) -> Self {
        Self {
            state: f64::from(seed),
        }
    }

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
        Self {
            random: Mulberry32::new(SEED),
            accounts,
            cumulative: match alpha > 0.0 {
                true => cumulative(accounts, alpha),
                false => Vec::new(),
            },
        }
    }

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
        let (from, mut to) = (self.pick(), self.pick());
        let mut redraws = 0;
        while to == from && redraws < REDRAWS_MAX {
            to = self.pick();
            redraws += 1;
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
    let sums = (0..accounts).map(|rank| running.add(weight(rank) / harmonic.sum));
    let mut cumulative: Vec<f64> = sums.collect();
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
    use lightcone_vectors::{each, entries, Entry};
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    fn alpha(entry: &Entry) -> f64 {
        entry.0["alpha"].as_f64().expect("alpha")
    }

    fn pair(pair: &Value) -> (u32, u32) {
        let account = |at: usize| pair[at].as_u64().expect("an account") as u32;
        (account(0), account(1))
    }

    #[test]
    fn generator() {
        each("09-random.json", "mulberry32", |entry| {
            let mut random = Mulberry32::new(entry.number("seed") as u32);
            for draw in entry.list("draws") {
                assert_eq!(Some(u64::from(random.next_u32())), draw.as_u64());
            }
        });
        assert_eq!(entries("09-random.json", "mulberry32")[0].0["seed"], SEED);
    }

    #[test]
    fn first_ten_pairs() {
        each("09-pairs.json", "first_ten", |entry| {
            let expected: Vec<_> = entry.list("pairs").iter().map(pair).collect();
            let drawn = draw(100_000, alpha(entry), expected.len()).unwrap();
            assert_eq!(drawn, expected);
        });
    }

    #[test]
    fn million_pairs() {
        each("09-pairs.json", "first_million", |entry| {
            let mut hash = Sha256::new();
            for (from, to) in draw(100_000, alpha(entry), 1_000_000).unwrap() {
                hash.update(from.to_le_bytes());
                hash.update(to.to_le_bytes());
            }
            let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hex, entry.text("sha256"));
        });
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
