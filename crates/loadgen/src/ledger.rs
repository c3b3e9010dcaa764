//! The acknowledged transfers of each account: the strict check of a run (spec 09 §5.8).
//!
//! An acknowledged transfer must be in the balances, a refused one must not; one without answer may
//! be either. So after a run, also one in which the server was killed and started again, every
//! balance is known up to the transfers whose answer never came.

use crate::Error;

/// Net effect of acknowledged transfers, and transfers of unknown outcome, per account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    amount: i64,
    /// Number of transfers in, minus those out.
    acknowledged: Vec<i64>,
    unknown: Vec<u32>,
}

impl Ledger {
    /// A ledger of transfers of `amount` each.
    pub fn new(accounts: u32, amount: i64) -> Self {
        Self {
            amount,
            acknowledged: vec![0; accounts as usize],
            unknown: vec![0; accounts as usize],
        }
    }

    #[inline]
    pub fn acknowledge(&mut self, (from, to): (u32, u32)) {
        self.acknowledged[from as usize] -= 1;
        self.acknowledged[to as usize] += 1;
    }

    pub fn lose(&mut self, (from, to): (u32, u32)) {
        self.unknown[from as usize] += 1;
        self.unknown[to as usize] += 1;
    }

    /// Adds the notes of another worker, or of a later run over the same accounts.
    pub fn add(&mut self, other: &Self) {
        let acknowledged = self.acknowledged.iter_mut().zip(&other.acknowledged);
        acknowledged.for_each(|(sum, part)| *sum += part);
        let unknown = self.unknown.iter_mut().zip(&other.unknown);
        unknown.for_each(|(sum, part)| *sum += part);
    }

    /// Compares balances before and after. The error names the first account that is wrong and the
    /// number of them.
    pub fn check(&self, before: &[i64], after: &[i64]) -> Result<(), Error> {
        let failed = |detail: String| Err(Error::request("the strict check", detail));
        let accounts = self.acknowledged.len();
        let counts = (before.len(), after.len());
        if counts != (accounts, accounts) {
            let (before, after) = counts;
            return failed(format!(
                "{accounts} accounts are in the ledger, {before} were there before and {after} \
                 after"
            ));
        }
        let sum = |balances: &[i64]| balances.iter().map(|&b| i128::from(b)).sum::<i128>();
        let (was, is) = (sum(before), sum(after));
        if was != is {
            return failed(format!("the sum of the balances was {was} and is {is}"));
        }
        let amount = i128::from(self.amount);
        let change = |id: usize| i128::from(self.acknowledged[id]) * amount;
        let is_wrong = |id: &usize| {
            let expected = i128::from(before[*id]) + change(*id);
            let off = (i128::from(after[*id]) - expected).abs();
            off > i128::from(self.unknown[*id]) * amount
        };
        let wrong: Vec<usize> = (0..accounts).filter(is_wrong).collect();
        match wrong.first() {
            None => Ok(()),
            Some(&id) => failed(format!(
                "{} accounts are wrong; account {id} had {}, acknowledged transfers change it by \
                 {}, {} transfers are unknown, and it has {}",
                wrong.len(),
                before[id],
                change(id),
                self.unknown[id],
                after[id]
            )),
        }
    }

    /// Transfers of unknown outcome.
    pub fn unknown_transfers(&self) -> u64 {
        let places: u64 = self.unknown.iter().map(|&count| u64::from(count)).sum();
        places / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_must_be_there_and_unknown_may() {
        let mut ledger = Ledger::new(3, 5);
        ledger.acknowledge((0, 1));
        let mut other = Ledger::new(3, 5);
        other.lose((1, 2));
        ledger.add(&other);
        assert_eq!(ledger.unknown_transfers(), 1);
        let before = [100, 100, 100];
        ledger.check(&before, &[95, 105, 100]).unwrap();
        ledger.check(&before, &[95, 100, 105]).unwrap();
        for wrong in [
            [100, 100, 100], // the acknowledged transfer is missing
            [90, 105, 105],  // a transfer that was never made
            [95, 105, 105],  // money from nowhere
            [95, 95, 110],   // the unknown transfer twice
        ] {
            assert!(ledger.check(&before, &wrong).is_err(), "{wrong:?}");
        }
        assert!(ledger.check(&before, &[100, 100]).is_err());
        let text = ledger.check(&before, &before).unwrap_err().to_string();
        assert!(
            text.contains(
                "1 accounts are wrong; account 0 had 100, acknowledged transfers change it by -5"
            ),
            "{text}"
        );
    }
}
