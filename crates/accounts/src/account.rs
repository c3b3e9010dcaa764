//! The accounts, and bytes that are reserved in them.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Whose bytes an account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everybody's.
    Process,
    /// What clients have asked for and not yet taken.
    Clients,
    /// One client's part of it.
    Client,
    /// Half-received requests and messages.
    Requests,
    /// Modules that are received, or wait to be published.
    Uploads,
    /// The instances of a database that its writer has.
    Instances,
    /// Calls beside the writers, of all databases.
    AllProcedures,
    /// The same of one owner.
    Owner,
    /// The same of one database.
    Procedures,
    /// One instance, with the call that it runs.
    Instance,
    /// The linear memory of several instances, or the array buffers of one.
    Memory,
    /// Not bytes: memory mappings of the process.
    Mappings,
}

/// What an account may have, and how it takes it from the one above.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The most that it may have.
    pub bytes_max: usize,
    /// It takes parts of this size from the account above.
    pub step_bytes: usize,
    /// So much it may have without taking it from the account above.
    pub floor_bytes: usize,
    /// It may take no more than is left above for all others: so a few that hold on to theirs cannot use up everything.
    pub leaves_as_much: bool,
}

impl Terms {
    /// Everything that it has is taken from the account above, byte by byte.
    pub const fn exact(bytes_max: usize) -> Terms {
        Terms::in_steps(bytes_max, 1)
    }

    /// The same in steps.
    pub const fn in_steps(bytes_max: usize, step_bytes: usize) -> Terms {
        Terms {
            bytes_max,
            step_bytes,
            floor_bytes: 0,
            leaves_as_much: false,
        }
    }
}

/// What is done when an account is used up, with what would have been the part of the one who asked.
type Relief = Box<dyn Fn(usize) + Send + Sync>;

/// Memory that somebody holds. Part of the account above it.
pub struct Account {
    kind: Kind,
    terms: Terms,
    above: Option<Arc<Account>>,
    used: AtomicUsize,
    /// What it has taken from the account above.
    share: AtomicUsize,
    relief: Option<Relief>,
}

/// An account has no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Whose account.
    pub kind: Kind,
    /// What it may have.
    pub bytes_max: usize,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the account {:?} has no more than {} bytes",
            self.kind, self.bytes_max
        )
    }
}

impl std::error::Error for Exceeded {}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}/{}", self.kind, self.used(), self.bytes_max())
    }
}

impl Account {
    /// An account above all others.
    pub fn root(kind: Kind, bytes_max: usize) -> Arc<Account> {
        Arc::new(Account::new(kind, Terms::exact(bytes_max), None, None))
    }

    /// An account below this one.
    pub fn open(self: &Arc<Self>, kind: Kind, terms: Terms) -> Arc<Account> {
        Arc::new(Account::new(kind, terms, Some(self.clone()), None))
    }

    /// The same, which does something about it when it is used up.
    pub fn open_with_relief(
        self: &Arc<Self>,
        kind: Kind,
        terms: Terms,
        relief: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<Account> {
        let relief: Relief = Box::new(relief);
        Arc::new(Account::new(kind, terms, Some(self.clone()), Some(relief)))
    }

    fn new(
        kind: Kind,
        terms: Terms,
        above: Option<Arc<Account>>,
        relief: Option<Relief>,
    ) -> Account {
        Account {
            kind,
            terms,
            above,
            used: AtomicUsize::new(0),
            share: AtomicUsize::new(0),
            relief,
        }
    }

    /// What is held in it now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// What it has taken from the account above.
    pub fn share(&self) -> usize {
        self.share.load(Relaxed)
    }

    /// The most that it may have.
    pub fn bytes_max(&self) -> usize {
        self.terms.bytes_max
    }

    /// Whether it has more than it may: something was taken that nobody could refuse.
    pub fn is_overdrawn(&self) -> bool {
        self.used() > self.bytes_max()
    }

    /// Whether any bytes would be refused, in it or in one above: it has a bound.
    pub fn is_bounded(&self) -> bool {
        let above = self.above.as_ref();
        self.bytes_max() < usize::MAX || above.is_some_and(|above| above.is_bounded())
    }

    /// About how many more bytes it may have now.
    pub fn free_bytes(&self) -> usize {
        let own = self.bytes_max().saturating_sub(self.used());
        let Some(above) = &self.above else {
            return own;
        };
        let mut left = above.free_bytes();
        if self.terms.leaves_as_much {
            // Half of it is what it may take and still leave as much.
            left = left.saturating_sub(self.share()) / 2;
        }
        own.min(left.max(self.terms.floor_bytes))
    }

    /// Reserves bytes.
    ///
    /// # Errors
    /// This account, or one above, would have too many; nothing is reserved then.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Exceeded> {
        let mut reservation = Reservation::none(self);
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Counts bytes if there is room for them, for memory that something else keeps: whoever takes them gives them back.
    ///
    /// # Errors
    /// As [`Account::reserve`].
    pub fn take(&self, bytes: usize) -> Result<(), Exceeded> {
        self.take_share(bytes, 0)
    }

    /// Counts bytes that nobody can refuse any more: they are held already.
    pub fn take_anyway(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let Some(above) = &self.above else {
            return;
        };
        self.raise_share(used, |more, _| {
            above.take_anyway(more);
            Ok(())
        })
        .expect("it is taken anyway");
    }

    /// Gives taken bytes back.
    pub fn give_back(&self, bytes: usize) {
        let used = self.used.fetch_sub(bytes, Relaxed) - bytes;
        let Some(above) = &self.above else {
            return;
        };
        let (share, wanted) = (self.share(), self.share_of(used));
        // One step is kept while there is something, so that what is about the size of a step does not go back and forth.
        let step_bytes = match self.terms.step_bytes {
            1 => 0,
            step_bytes => step_bytes,
        };
        if share > wanted.saturating_add(step_bytes) || (wanted == 0 && share > 0) {
            let set = self.share.compare_exchange(share, wanted, Relaxed, Relaxed);
            if set.is_ok() {
                above.give_back(share - wanted);
            }
        }
    }

    /// `share`: what the one who asks would have of this account then, if it is to leave as much for others.
    fn take_share(&self, bytes: usize, share: usize) -> Result<(), Exceeded> {
        // What is refused is never in the sum, not even for a moment: others would be refused with it.
        let more = |used: usize| {
            let used = used.checked_add(bytes)?;
            let left = self.terms.bytes_max.checked_sub(used)?;
            (share <= left).then_some(used)
        };
        let Ok(before) = self.used.fetch_update(Relaxed, Relaxed, more) else {
            if let Some(relief) = &self.relief {
                relief(share.max(bytes));
            }
            return Err(Exceeded {
                kind: self.kind,
                bytes_max: self.terms.bytes_max,
            });
        };
        let Some(above) = &self.above else {
            return Ok(());
        };
        let leaves_as_much = self.terms.leaves_as_much;
        let raised = self.raise_share(before + bytes, |more, wanted| {
            let share = if leaves_as_much { wanted } else { 0 };
            above.take_share(more, share)
        });
        raised.inspect_err(|_| self.give_back(bytes))
    }

    /// Takes what it lacks for so many used bytes from the account above: so much more, to have so much.
    #[inline]
    fn raise_share(
        &self,
        used: usize,
        take: impl Fn(usize, usize) -> Result<(), Exceeded>,
    ) -> Result<(), Exceeded> {
        let wanted = self.share_of(used);
        loop {
            let share = self.share();
            if wanted <= share {
                return Ok(());
            }
            take(wanted - share, wanted)?;
            let set = self.share.compare_exchange(share, wanted, Relaxed, Relaxed);
            match (set, &self.above) {
                (Err(_), Some(above)) => above.give_back(wanted - share),
                _ => return Ok(()),
            }
        }
    }

    /// What an account with so many bytes takes from the one above.
    fn share_of(&self, used: usize) -> usize {
        let beyond = used.saturating_sub(self.terms.floor_bytes);
        match self.terms.step_bytes {
            1 => beyond,
            step_bytes => beyond.div_ceil(step_bytes).saturating_mul(step_bytes),
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(above) = &self.above {
            above.give_back(*self.share.get_mut());
        }
    }
}

/// Reserved bytes of one holder; given back when dropped.
///
/// Without an account it holds what is nobody's: the default.
#[derive(Debug, Default)]
pub struct Reservation {
    account: Option<Arc<Account>>,
    bytes: usize,
}

impl Reservation {
    /// Nothing yet, of an account.
    pub fn none(account: &Arc<Account>) -> Reservation {
        Reservation {
            account: Some(account.clone()),
            bytes: 0,
        }
    }

    /// The account that it is of, if it is of one.
    pub fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }

    /// What is reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more.
    ///
    /// # Errors
    /// As [`Account::reserve`]; what was reserved stays so.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        if let Some(account) = &self.account {
            account.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Has just so many bytes reserved.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    #[inline]
    pub fn hold(&mut self, bytes: usize) -> Result<(), Exceeded> {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        if bytes < self.bytes {
            self.shrink(bytes);
        }
        Ok(())
    }

    /// The same for bytes that are held already, so that nobody can refuse them.
    pub fn hold_anyway(&mut self, bytes: usize) {
        match &self.account {
            Some(account) if bytes > self.bytes => {
                account.take_anyway(bytes - self.bytes);
                self.bytes = bytes;
            }
            _ => self.shrink(bytes),
        }
    }

    /// Gives all back but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let over = self.bytes.saturating_sub(bytes);
        if let Some(account) = self.account.as_ref().filter(|_| over > 0) {
            account.give_back(over);
            self.bytes -= over;
        }
    }

    /// Takes over what the other has; both are of the same account, or this one is of none.
    pub fn merge(&mut self, mut other: Reservation) {
        if self.account.is_none() {
            *self = other;
            return;
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: usize = 64 << 10;

    #[test]
    fn what_is_reserved_is_counted_up_to_the_root_and_given_back() {
        let process = Account::root(Kind::Process, usize::MAX);
        let database = process.open(Kind::Procedures, Terms::exact(10 * STEP));
        let call = database.open(Kind::Instance, Terms::in_steps(usize::MAX, STEP));
        let mut one = call.reserve(10).expect("room");
        let other = call.reserve(STEP).expect("room");
        assert_eq!(call.used(), STEP + 10);
        assert_eq!((database.used(), process.used()), (2 * STEP, 2 * STEP));
        one.hold(3 * STEP).expect("room");
        assert_eq!(process.used(), 4 * STEP);
        assert_eq!(
            one.hold(10 * STEP).unwrap_err(),
            Exceeded {
                kind: Kind::Procedures,
                bytes_max: 10 * STEP
            }
        );
        assert_eq!(one.bytes(), 3 * STEP, "what was reserved stays so");
        drop(other);
        one.hold(1).expect("less");
        assert!(database.used() <= 2 * STEP, "a step is kept");
        drop(one);
        assert_eq!((call.used(), database.used(), process.used()), (0, 0, 0));
    }

    #[test]
    fn what_cannot_be_refused_overdraws() {
        let process = Account::root(Kind::Process, usize::MAX);
        let database = process.open(Kind::Procedures, Terms::exact(100));
        let call = database.open(Kind::Instance, Terms::exact(usize::MAX));
        let mut held = Reservation::none(&call);
        held.hold_anyway(150);
        assert!(database.is_overdrawn() && !process.is_overdrawn());
        assert!(call.reserve(1).is_err());
        held.hold(100).expect("less than it has");
        assert!(!database.is_overdrawn());
        drop(held);
        assert_eq!(process.used(), 0);
        assert!(call.is_bounded() && !process.is_bounded());
    }

    #[test]
    fn an_account_that_goes_leaves_nothing() {
        let process = Account::root(Kind::Process, usize::MAX);
        let call = process.open(Kind::Instance, Terms::in_steps(usize::MAX, STEP));
        drop(call.reserve(STEP).expect("room"));
        let one = call.reserve(1).expect("room");
        drop(call);
        assert_eq!(process.used(), STEP, "the reservation keeps its account");
        drop(one);
        assert_eq!(process.used(), 0);
    }

    #[test]
    fn threads_do_not_lose_bytes() {
        let process = Account::root(Kind::Process, 1 << 30);
        let middle = process.open(Kind::Owner, Terms::in_steps(1 << 30, 7 * STEP));
        let call = middle.open(Kind::Instance, Terms::in_steps(1 << 30, STEP));
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let call = call.clone();
                scope.spawn(move || {
                    for round in 0..20_000_usize {
                        let bytes = (round * 7919 + thread * 104_729) % (3 * STEP);
                        let mut held = call.reserve(bytes).expect("room");
                        held.grow(round % 100).expect("room");
                        held.merge(call.reserve(bytes / 2).expect("room"));
                        held.shrink(bytes / 3);
                    }
                });
            }
        });
        assert_eq!(call.used(), 0);
        // Whoever was last saw nothing left, or one of the others did.
        drop(call.reserve(STEP).expect("room"));
        drop(call);
        assert_eq!(middle.used(), 0);
        drop(middle);
        assert_eq!(process.used(), 0);
    }
}
