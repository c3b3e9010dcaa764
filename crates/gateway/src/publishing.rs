//! Whose turn it is to publish: few modules are loaded at a time, and few publishes wait.
//!
//! A turn is taken before anything is locked, so that a module that takes its time holds up nothing but other publishes;
//! and no publisher takes all turns.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use lightcone_types::Identity;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Modules that are loaded at once, at least; one owner's may take all but one.
const TURNS_MIN: usize = 2;

/// Bounds on publishes that wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingMax {
    pub all: usize,
    /// Of one owner; twice as many of one address.
    pub per_owner: usize,
}

/// Who publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publisher {
    pub owner: Identity,
    /// None where many come from one address: this machine, or a proxy.
    pub address: Option<IpAddr>,
}

impl Publisher {
    /// How many are of the same owner, and how many of the same address.
    fn count_in<'p>(&self, others: impl Iterator<Item = &'p Publisher> + Clone) -> (usize, usize) {
        let is_same_owner = |other: &&Publisher| self.owner == other.owner;
        let is_same_address =
            |other: &&Publisher| self.address.is_some() && self.address == other.address;
        let of_owner = others.clone().filter(is_same_owner).count();
        (of_owner, others.filter(is_same_address).count())
    }
}

pub(crate) struct Publishing {
    turns: usize,
    waiting_max: WaitingMax,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    running: Vec<(u64, Publisher)>,
    waiting: VecDeque<(u64, Publisher, oneshot::Sender<()>)>,
}

/// The right to load a module, or a place in the queue; given back when dropped.
pub(crate) struct Turn {
    publishing: Arc<Publishing>,
    number: u64,
}

/// Why there is no place in the queue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Full {
    #[error("too many publishes or dry runs wait on this server; try again later [LC0123]")]
    All,
    #[error("too many publishes or dry runs of this owner wait; let some of them end and try again [LC0123]")]
    Owner,
    #[error(
        "too many publishes or dry runs of this address wait; let some of them end and try again [LC0123]"
    )]
    Address,
}

impl Publishing {
    /// As few turns as there can be, so that an owner has one of them.
    pub(crate) fn few(waiting_max: WaitingMax) -> Arc<Publishing> {
        Publishing::new(TURNS_MIN, waiting_max)
    }

    pub(crate) fn new(processors: usize, waiting_max: WaitingMax) -> Arc<Publishing> {
        Arc::new(Publishing {
            turns: processors.max(TURNS_MIN),
            waiting_max,
            state: Mutex::default(),
        })
    }

    /// Waits for a turn, behind those that came before.
    pub(crate) async fn turn(self: &Arc<Self>, publisher: Publisher) -> Result<Turn, Full> {
        let (turn, granted) = self.enqueue(publisher)?;
        // Dropping the turn, also while this waits, takes it back.
        let _ = granted.await;
        Ok(turn)
    }

    fn enqueue(
        self: &Arc<Self>,
        publisher: Publisher,
    ) -> Result<(Turn, oneshot::Receiver<()>), Full> {
        let (sender, granted) = oneshot::channel();
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, publisher, sender));
        state.grant(self.turns);
        let is_waiting = state.waiting.iter().any(|(other, ..)| *other == number);
        if let Some(full) = self.is_full(&state, &publisher).filter(|_| is_waiting) {
            state.waiting.pop_back();
            return Err(full);
        }
        let turn = Turn {
            publishing: self.clone(),
            number,
        };
        Ok((turn, granted))
    }

    /// With the one that asks in the queue already.
    fn is_full(&self, state: &State, publisher: &Publisher) -> Option<Full> {
        let max = &self.waiting_max;
        let waiting = state.waiting.iter().map(|(_, other, _)| other);
        let (of_owner, of_address) = publisher.count_in(waiting);
        if state.waiting.len() > max.all {
            return Some(Full::All);
        }
        if of_owner > max.per_owner {
            return Some(Full::Owner);
        }
        (of_address > max.per_owner.saturating_mul(2)).then_some(Full::Address)
    }
}

impl State {
    /// Gives free turns to those who wait: the first of an owner who has none, or else the first who may have another.
    fn grant(&mut self, turns: usize) {
        while self.running.len() < turns {
            let may = |publisher: &Publisher, most: usize| {
                let running = self.running.iter().map(|(_, other)| other);
                let (of_owner, of_address) = publisher.count_in(running);
                of_owner < most && of_address < turns - 1
            };
            let first = |most| {
                let mut waiting = self.waiting.iter();
                waiting.position(|(_, publisher, _)| may(publisher, most))
            };
            let Some(at) = first(1).or_else(|| first(turns - 1)) else {
                return;
            };
            let (number, publisher, granted) = self.waiting.remove(at).expect("just found there");
            self.running.push((number, publisher));
            // A caller that has gone gives the turn back by dropping it.
            let _ = granted.send(());
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.publishing.state.lock();
        state.running.retain(|(number, _)| *number != self.number);
        state.waiting.retain(|(number, ..)| *number != self.number);
        state.grant(self.publishing.turns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(owner: u8, address: Option<u8>) -> Publisher {
        Publisher {
            owner: Identity::from_le_bytes([owner; 32]),
            address: address.map(|last| IpAddr::from([10, 0, 0, last])),
        }
    }

    fn publishing(turns: usize) -> Arc<Publishing> {
        let waiting_max = WaitingMax {
            all: 6,
            per_owner: 2,
        };
        Publishing::new(turns, waiting_max)
    }

    type Asked = (Turn, oneshot::Receiver<()>);

    fn has_turn(asked: &mut Asked) -> bool {
        asked.1.try_recv() != Err(oneshot::error::TryRecvError::Empty)
    }

    #[test]
    fn one_owner_leaves_a_turn_to_others() {
        let publishing = publishing(1);
        let ask = |owner| publishing.enqueue(publisher(owner, None)).expect("room");
        let (mut first, mut second) = (ask(1), ask(1));
        assert!(has_turn(&mut first) && !has_turn(&mut second));
        let mut other = ask(2);
        assert!(has_turn(&mut other));
        let mut third = ask(3);
        drop(other);
        assert!(has_turn(&mut third), "an owner without a turn comes first");
        drop(first);
        assert!(has_turn(&mut second));
    }

    #[test]
    fn one_address_leaves_a_turn_to_others() {
        let publishing = publishing(2);
        let ask = |owner, address| {
            let asked = publishing.enqueue(publisher(owner, address));
            asked.expect("room")
        };
        let (mut first, mut second) = (ask(1, Some(1)), ask(2, Some(1)));
        assert!(has_turn(&mut first) && !has_turn(&mut second));
        assert!(has_turn(&mut ask(3, Some(2))));
    }

    #[test]
    fn the_queue_is_bounded_and_those_who_leave_make_room() {
        let publishing = publishing(2);
        let ask = |owner, address| publishing.enqueue(publisher(owner, address));
        let mut kept: Vec<Asked> = Vec::new();
        for owner in 1..=2 {
            kept.push(ask(owner, None).expect("a turn"));
        }
        kept.push(ask(1, None).expect("waits"));
        kept.push(ask(1, None).expect("waits"));
        assert!(matches!(ask(1, None), Err(Full::Owner)));
        for owner in 3..=6 {
            kept.push(ask(owner, Some(1)).expect("waits"));
        }
        assert!(matches!(ask(7, None), Err(Full::All)));
        kept.retain_mut(has_turn);
        assert_eq!(kept.len(), 2);
        for owner in 3..=6 {
            kept.push(ask(owner, Some(1)).expect("waits"));
        }
        assert!(matches!(ask(7, Some(1)), Err(Full::Address)));
        kept.push(ask(7, Some(2)).expect("waits"));
    }

    #[tokio::test]
    async fn a_turn_is_waited_for() {
        let publishing = publishing(2);
        let first = publishing.turn(publisher(1, None)).await.expect("a turn");
        let again = publishing.clone();
        let waits = tokio::spawn(async move { again.turn(publisher(1, None)).await });
        tokio::task::yield_now().await;
        // A caller that gives up waiting is forgotten.
        waits.abort();
        assert!(waits.await.is_err());
        drop(first);
        let state = publishing.state.lock();
        assert!(state.running.is_empty() && state.waiting.is_empty());
    }
}
