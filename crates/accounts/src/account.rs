//! Accounts and reservations.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// What an account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All memory that is counted.
    Process,
    /// What clients have requested and not yet received.
    Clients,
    /// One client's part of `Clients`.
    Client,
    /// Half-received requests and messages.
    Requests,
    /// Modules that are received, or wait to be published.
    Uploads,
    /// The instances that the writer of a database uses.
    Instances,
    /// Calls beside the writers, of all databases.
    AllProcedures,
    /// Calls beside the writers, of one owner's databases.
    Owner,
    /// Calls beside the writer of one database.
    Procedures,
    /// One instance, with the call that it runs.
    Instance,
    /// The linear memory of several instances, or the array buffers of one.
    Memory,
    /// A state of the past that is queried.
    Past,
    /// What was counted in the last hours.
    History,
    /// Not bytes: memory mappings of the process.
    Mappings,
}

/// The bound of an account, and how it takes bytes from its parent.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub bytes_max: usize,
    /// The account takes multiples of this from its parent.
    pub step_bytes: usize,
    /// The first bytes, which are not taken from the parent.
    pub floor_bytes: usize,
    /// The account takes at most half of what its parent has left, so that a few holders cannot use up everything.
    pub leaves_as_much: bool,
}

impl Terms {
    /// Every byte is taken from the parent.
    pub const fn exact(bytes_max: usize) -> Terms {
        Terms::in_steps(bytes_max, 1)
    }

    pub const fn in_steps(bytes_max: usize, step_bytes: usize) -> Terms {
        Terms {
            bytes_max,
            step_bytes,
            floor_bytes: 0,
            leaves_as_much: false,
        }
    }
}

/// Called when an account is exhausted, with the share that the caller would have had.
type Relief = Box<dyn Fn(usize) + Send + Sync>;

/// A node in the tree of counted memory.
pub struct Account {
    kind: Kind,
    terms: Terms,
    parent: Option<Arc<Account>>,
    used: AtomicUsize,
    /// Taken from the parent.
    share: AtomicUsize,
    relief: Option<Relief>,
}

/// An account is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    pub kind: Kind,
    /// The bound of that account.
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
    /// The root of a tree.
    pub fn root(kind: Kind, bytes_max: usize) -> Arc<Account> {
        Arc::new(Account::new(kind, Terms::exact(bytes_max), None, None))
    }

    pub fn open(self: &Arc<Self>, kind: Kind, terms: Terms) -> Arc<Account> {
        Arc::new(Account::new(kind, terms, Some(self.clone()), None))
    }

    /// An account below this one that calls `relief` when it is exhausted.
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
        parent: Option<Arc<Account>>,
        relief: Option<Relief>,
    ) -> Account {
        Account {
            kind,
            terms,
            parent,
            used: AtomicUsize::new(0),
            share: AtomicUsize::new(0),
            relief,
        }
    }

    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Bytes taken from the parent.
    pub fn share(&self) -> usize {
        self.share.load(Relaxed)
    }

    pub fn bytes_max(&self) -> usize {
        self.terms.bytes_max
    }

    /// Whether it holds more than its bound, after [`Account::take_anyway`].
    pub fn is_overdrawn(&self) -> bool {
        self.used() > self.bytes_max()
    }

    /// Whether this account or one above it has a bound.
    pub fn is_bounded(&self) -> bool {
        let parent = self.parent.as_ref();
        self.bytes_max() < usize::MAX || parent.is_some_and(|parent| parent.is_bounded())
    }

    /// About how many more bytes can be reserved now.
    pub fn free_bytes(&self) -> usize {
        let own = self.bytes_max().saturating_sub(self.used());
        let Some(parent) = &self.parent else {
            return own;
        };
        let mut left = parent.free_bytes();
        if self.terms.leaves_as_much {
            // It may take half of the remainder, and leaves the other half.
            left = left.saturating_sub(self.share()) / 2;
        }
        own.min(left.max(self.terms.floor_bytes))
    }

    /// Reserves bytes, or nothing if this account or one above it is exhausted.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Exceeded> {
        let mut reservation = Reservation::none(self);
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Counts bytes without a [`Reservation`]; the caller gives them back.
    pub fn take(&self, bytes: usize) -> Result<(), Exceeded> {
        self.take_share(bytes, 0)
    }

    /// Counts bytes that are already allocated, beyond the bound if need be.
    pub fn take_anyway(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let Some(parent) = &self.parent else {
            return;
        };
        self.raise_share(used, |more, _| {
            parent.take_anyway(more);
            Ok(())
        })
        .expect("it is taken anyway");
    }

    pub fn give_back(&self, bytes: usize) {
        let used = self.used.fetch_sub(bytes, Relaxed) - bytes;
        let Some(parent) = &self.parent else {
            return;
        };
        let (share, wanted) = (self.share(), self.share_of(used));
        // One step is kept while anything is used, so that a use of about one step does not take and give back all the time.
        let step_bytes = match self.terms.step_bytes {
            1 => 0,
            step_bytes => step_bytes,
        };
        if share > wanted.saturating_add(step_bytes) || (wanted == 0 && share > 0) {
            let set = self.share.compare_exchange(share, wanted, Relaxed, Relaxed);
            if set.is_ok() {
                parent.give_back(share - wanted);
            }
        }
    }

    /// `share`: what the child would have taken from this account; as much must be left. 0: no such rule.
    fn take_share(&self, bytes: usize, share: usize) -> Result<(), Exceeded> {
        // A refused amount is never in the sum, not even for a moment: it would cause other refusals.
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
        let Some(parent) = &self.parent else {
            return Ok(());
        };
        let leaves_as_much = self.terms.leaves_as_much;
        let raised = self.raise_share(before + bytes, |more, wanted| {
            let share = if leaves_as_much { wanted } else { 0 };
            parent.take_share(more, share)
        });
        raised.inspect_err(|_| self.give_back(bytes))
    }

    /// Raises the share to what `used` bytes need. `take(more, share)` takes it from the parent.
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
            match (set, &self.parent) {
                (Err(_), Some(parent)) => parent.give_back(wanted - share),
                _ => return Ok(()),
            }
        }
    }

    /// What an account that uses so many bytes takes from its parent.
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
        if let Some(parent) = &self.parent {
            parent.give_back(*self.share.get_mut());
        }
    }
}

/// Reserved bytes, given back on drop. The default has no account and counts nowhere.
#[derive(Debug, Default)]
pub struct Reservation {
    account: Option<Arc<Account>>,
    bytes: usize,
}

impl Reservation {
    pub fn none(account: &Arc<Account>) -> Reservation {
        Reservation {
            account: Some(account.clone()),
            bytes: 0,
        }
    }

    pub fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more bytes. On an error the old reservation stays.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        if let Some(account) = &self.account {
            account.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Reserves exactly so many bytes.
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

    /// As `hold`, for bytes that are already allocated.
    pub fn hold_anyway(&mut self, bytes: usize) {
        match &self.account {
            Some(account) if bytes > self.bytes => {
                account.take_anyway(bytes - self.bytes);
                self.bytes = bytes;
            }
            _ => self.shrink(bytes),
        }
    }

    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let over = self.bytes.saturating_sub(bytes);
        if let Some(account) = self.account.as_ref().filter(|_| over > 0) {
            account.give_back(over);
            self.bytes -= over;
        }
    }

    /// Takes over the other reservation. Both have the same account, or this one has none.
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
        // The last thread saw nothing left, or one of the others did.
        drop(call.reserve(STEP).expect("room"));
        drop(call);
        assert_eq!(middle.used(), 0);
        drop(middle);
        assert_eq!(process.used(), 0);
    }
}
