//! Memory that clients have asked for and not yet taken: an account for each client, below one for all of them.
//!
//! Code that builds something for a client reserves its bytes first; they are given back when the socket has taken them, by
//! dropping the [`Charge`]. A client takes from the common account in steps, so that small answers touch only counters of
//! the client's own. When the common account is used up, the client that holds most loses its connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lightcone_accounts::{Account, Counted, Kind, Reservation, Terms};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::environment::Environment;
use crate::error::{Exceeded, SqlError};

/// A client takes and gives back parts of the common account of this size.
const STEP_BYTES: usize = 64 << 10;
/// All of them take parts of this size from the account of the process.
const ALL_STEP_BYTES: usize = 1 << 20;
/// So much every client may have without asking for its part of the common account, however many others there are.
const FLOOR_BYTES: usize = 32 << 10;
/// When the common account is used up, a client that holds so many times what the asking one would have is given up.
const EVICTION_FACTOR: usize = 4;
/// One client is given up at a time; what it had takes a moment to be freed.
const EVICTION_INTERVAL: Duration = Duration::from_millis(100);

/// The bytes of all clients of the server.
#[derive(Debug)]
pub struct MemoryBudget {
    account: Arc<Account>,
    clients: Arc<Clients>,
}

/// Who has an account below the common one.
#[derive(Debug)]
struct Clients {
    next_client: AtomicU64,
    last_eviction: Mutex<Option<Instant>>,
    environment: Arc<dyn Environment>,
    /// Looked at only when clients come and go, and when the common account is used up.
    clients: Mutex<FxHashMap<u64, Weak<ClientBudget>>>,
}

impl MemoryBudget {
    #[cfg(test)]
    pub fn new(environment: Arc<dyn Environment>, bytes_max: usize) -> Arc<MemoryBudget> {
        let process = Account::root(Kind::Process, usize::MAX);
        Self::below(&process, environment, bytes_max)
    }

    /// Below the account of the process.
    pub fn below(
        process: &Arc<Account>,
        environment: Arc<dyn Environment>,
        bytes_max: usize,
    ) -> Arc<MemoryBudget> {
        let clients = Arc::new(Clients {
            next_client: AtomicU64::new(0),
            last_eviction: Mutex::new(None),
            environment,
            clients: Mutex::default(),
        });
        let relief = clients.clone();
        let terms = Terms::in_steps(bytes_max, ALL_STEP_BYTES);
        let account = process.open_with_relief(Kind::Clients, terms, move |wanted| {
            relief.evict(wanted);
        });
        Arc::new(MemoryBudget { account, clients })
    }

    /// Bytes that clients hold, in steps.
    pub fn used(&self) -> usize {
        self.account.used()
    }
}

impl Clients {
    /// Gives up the client that holds most, if that is much more than what is wanted: one that takes nothing must not lock
    /// out the others.
    fn evict(&self, wanted: usize) {
        // Another thread is at it, otherwise.
        let Some(mut last) = self.last_eviction.try_lock() else {
            return;
        };
        let now = self.environment.instant();
        if last.is_some_and(|last| now - last < EVICTION_INTERVAL) {
            return;
        }
        *last = Some(now);
        let clients: Vec<_> = self
            .clients
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        let largest = clients
            .iter()
            .filter(|client| !client.is_gone())
            .max_by_key(|client| client.account.share());
        if let Some(largest) = largest {
            let share = largest.account.share();
            if share / EVICTION_FACTOR >= wanted {
                tracing::warn!(
                    bytes = share,
                    "the memory for all clients is used up; the client that has taken least of its answers is cut"
                );
                largest.leave();
            }
        }
    }
}

/// The bytes of one client: a connection, or a request over HTTP.
#[derive(Debug)]
pub(crate) struct ClientBudget {
    account: Arc<Account>,
    clients: Arc<Clients>,
    /// Of one message.
    message_max: usize,
    gone: AtomicBool,
    /// Told when it is gone.
    left: Notify,
    number: u64,
}

impl ClientBudget {
    #[cfg(test)]
    pub fn new(all: &Arc<MemoryBudget>, bytes_max: usize) -> Arc<ClientBudget> {
        Self::with_messages(all, bytes_max, usize::MAX)
    }

    /// For a client who may have `bytes_max` bytes, in messages of at most `message_max`.
    pub fn with_messages(
        all: &Arc<MemoryBudget>,
        bytes_max: usize,
        message_max: usize,
    ) -> Arc<ClientBudget> {
        let terms = Terms {
            bytes_max,
            step_bytes: STEP_BYTES,
            floor_bytes: FLOOR_BYTES,
            leaves_as_much: true,
        };
        let client = Arc::new(ClientBudget {
            account: all.account.open(Kind::Client, terms),
            clients: all.clients.clone(),
            message_max,
            gone: AtomicBool::new(false),
            left: Notify::new(),
            number: all.clients.next_client.fetch_add(1, Relaxed),
        });
        let weak = Arc::downgrade(&client);
        all.clients.clients.lock().insert(client.number, weak);
        client
    }

    /// The client will take nothing any more: work for this client ends.
    pub fn leave(&self) {
        self.gone.store(true, Relaxed);
        self.left.notify_one();
    }

    /// Waits until this client is gone. For one waiter.
    ///
    /// Cancel safe.
    pub async fn left(&self) {
        self.left.notified().await;
    }

    /// Could a message of so many bytes ever be built, whatever others have?
    pub fn check_message(&self, bytes: usize) -> Result<(), Exceeded> {
        let bytes_max = self.account.bytes_max();
        if bytes > bytes_max {
            return Err(Exceeded::Client { bytes_max });
        }
        if bytes > self.message_max {
            let bytes_max = self.message_max;
            return Err(Exceeded::Message { bytes_max });
        }
        Ok(())
    }

    /// The most that one message may have.
    pub fn message_bytes_max(&self) -> usize {
        self.message_max
    }

    /// Tells clients apart.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// About how many more bytes this client may have now.
    pub fn free_bytes(&self) -> usize {
        self.account.free_bytes()
    }

    /// Reserves bytes.
    ///
    /// # Errors
    /// The client, or all clients together, would have too many; nothing is reserved then.
    pub fn reserve(&self, bytes: usize) -> Result<Charge, Exceeded> {
        Ok(Charge(self.account.reserve(bytes)?))
    }
}

impl Drop for ClientBudget {
    fn drop(&mut self) {
        self.clients.clients.lock().remove(&self.number);
    }
}

/// Reserved bytes of a client; given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge(Reservation);

impl Charge {
    /// Reserves more.
    ///
    /// # Errors
    /// As [`ClientBudget::reserve`].
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        Ok(self.0.grow(bytes)?)
    }

    /// Reserves more from a budget, also if nothing was reserved before.
    ///
    /// # Errors
    /// As [`ClientBudget::reserve`].
    pub fn grow_in(&mut self, budget: &ClientBudget, bytes: usize) -> Result<(), Exceeded> {
        if self.is_none() {
            self.0 = Reservation::none(&budget.account);
        }
        self.grow(bytes)
    }

    /// Takes over what the other has; both are of the same client.
    pub fn merge(&mut self, other: Charge) {
        self.0.merge(other.0);
    }

    pub fn is_none(&self) -> bool {
        self.0.account().is_none()
    }

    /// What is reserved, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Bytes that count as a client's until they are dropped.
pub struct HeldBytes {
    bytes: Counted<Vec<u8>>,
    holder: Holder,
}

impl HeldBytes {
    pub(crate) fn new(bytes: Vec<u8>, budget: &Arc<ClientBudget>) -> Result<HeldBytes, Exceeded> {
        Ok(HeldBytes {
            bytes: Counted::of(bytes, &budget.account)?,
            holder: Holder(budget.clone()),
        })
    }

    /// Whom they are held for.
    pub fn holder(&self) -> Option<Holder> {
        Some(self.holder.clone())
    }
}

/// Whom bytes are held for.
#[derive(Clone, Debug)]
pub struct Holder(Arc<ClientBudget>);

impl Holder {
    pub(crate) fn new(budget: Arc<ClientBudget>) -> Holder {
        Holder(budget)
    }

    pub(crate) fn budget(&self) -> &Arc<ClientBudget> {
        &self.0
    }

    /// Holds bytes that were made elsewhere.
    ///
    /// # Errors
    /// The client, or all clients together, would have too many.
    pub fn hold(&self, bytes: Vec<u8>) -> Result<HeldBytes, SqlError> {
        Ok(HeldBytes::new(bytes, &self.0)?)
    }

    /// An account of memory that is held for the client, of nothing yet.
    pub fn memory(&self) -> HeldMemory {
        HeldMemory(Reservation::none(&self.0.account))
    }

    /// Waits until the memory is needed for others: the sender of the bytes gives up. For one waiter.
    ///
    /// Cancel safe.
    pub async fn left(&self) {
        self.0.left().await;
    }
}

/// Memory that is held for a client in another form than [`HeldBytes`]; none of it is when this is dropped.
#[derive(Debug)]
pub struct HeldMemory(Reservation);

impl HeldMemory {
    /// Says how many bytes there are now. Fewer are always taken.
    ///
    /// # Errors
    /// The client, or all clients together, would have too many; it counts as many as before then.
    pub fn set(&mut self, bytes: usize) -> Result<(), SqlError> {
        Ok(self.count(bytes)?)
    }

    pub(crate) fn count(&mut self, bytes: usize) -> Result<(), Exceeded> {
        Ok(self.0.hold(bytes)?)
    }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;

    #[test]
    fn what_is_reserved_is_given_back() {
        let all = MemoryBudget::new(machine(), 100 * STEP_BYTES);
        let client = ClientBudget::new(&all, 10 * STEP_BYTES);
        let small = client.reserve(FLOOR_BYTES).expect("room");
        assert_eq!(all.used(), 0, "small answers touch nothing that is shared");
        let mut large = client.reserve(3 * STEP_BYTES).expect("room");
        assert_eq!(all.used(), 3 * STEP_BYTES);
        large.grow(STEP_BYTES).expect("room");
        assert_eq!(
            large.grow(10 * STEP_BYTES),
            Err(Exceeded::Client {
                bytes_max: 10 * STEP_BYTES
            })
        );
        drop(small);
        assert_eq!(all.used(), 4 * STEP_BYTES);
        drop(large);
        assert_eq!(all.used(), 0);
        assert_eq!(client.account.used(), 0);
    }

    #[test]
    fn greedy_clients_leave_something_for_the_next_one() {
        let all = MemoryBudget::new(machine(), 1000 * STEP_BYTES);
        let mut charges = Vec::new();
        for _ in 0..200 {
            let client = ClientBudget::new(&all, usize::MAX);
            while let Ok(charge) = client.reserve(STEP_BYTES) {
                charges.push(charge);
            }
        }
        assert!(all.used() <= 1000 * STEP_BYTES);
        let next = ClientBudget::new(&all, usize::MAX);
        assert!(next.free_bytes() >= FLOOR_BYTES);
        assert!(
            next.reserve(FLOOR_BYTES).is_ok(),
            "all clients have the floor"
        );
        drop(charges);
        assert_eq!(all.used(), 0);
        assert!(
            next.free_bytes() >= 400 * STEP_BYTES,
            "{}",
            next.free_bytes()
        );
    }

    #[test]
    fn the_one_with_most_is_given_up() {
        let all = MemoryBudget::new(machine(), 100 * STEP_BYTES);
        let client = || ClientBudget::new(&all, 100 * STEP_BYTES);
        let (largest, second, greedy, modest) = (client(), client(), client(), client());
        let step = |client: &Arc<ClientBudget>, steps| client.reserve(steps * STEP_BYTES);
        let _held = (
            step(&largest, 45).expect("room"),
            step(&second, 25).expect("room"),
            step(&greedy, 15).expect("room"),
        );
        assert_eq!(step(&greedy, 15).err(), Some(Exceeded::Server));
        assert!(
            !largest.is_gone(),
            "who asks for as much gets no other client cut"
        );
        let _rest = (0..14)
            .map_while(|_| step(&modest, 1).ok())
            .collect::<Vec<_>>();
        all.clients.last_eviction.lock().take();
        assert!(step(&client(), 8).is_err());
        assert!(largest.is_gone());
        assert!(!second.is_gone());
    }

    #[test]
    fn what_is_refused_refuses_no_other() {
        let all = MemoryBudget::new(machine(), 100 * STEP_BYTES);
        let client = ClientBudget::new(&all, 50 * STEP_BYTES);
        let neighbour = ClientBudget::new(&all, 50 * STEP_BYTES);
        std::thread::scope(|scope| {
            for bytes in [60 * STEP_BYTES, 49 * STEP_BYTES] {
                let client = client.clone();
                scope.spawn(move || {
                    let _held = client.reserve(2 * STEP_BYTES);
                    for _ in 0..200_000 {
                        drop(client.reserve(bytes));
                    }
                });
            }
            for _ in 0..200_000 {
                client.reserve(1).expect("there is room for it");
                neighbour.reserve(STEP_BYTES).expect("there is room for it");
            }
        });
        assert_eq!(all.used(), 0);
    }

    #[test]
    fn threads_do_not_lose_bytes() {
        let all = MemoryBudget::new(machine(), 1 << 30);
        let client = ClientBudget::new(&all, 1 << 30);
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let client = client.clone();
                scope.spawn(move || {
                    for round in 0..20_000_usize {
                        let bytes = (round * 7919 + thread * 104_729) % (3 * STEP_BYTES);
                        let mut charge = client.reserve(bytes).expect("room");
                        charge.grow(round % 100).expect("room");
                        let other = client.reserve(bytes / 2).expect("room");
                        charge.merge(other);
                    }
                });
            }
        });
        assert_eq!(client.account.used(), 0);
        // The thread that was last saw nothing left, or one of the others did.
        drop(client.reserve(STEP_BYTES).expect("room"));
        assert_eq!(all.used(), 0);
    }
}
