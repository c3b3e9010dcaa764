//! Issuers that nobody has listed, where the configuration accepts any.
//!
//! Anybody can name as many as he likes. So those that have not signed a good token yet can only displace each other, and the
//! requests to them have bounds per client, per host, and together. Nobody waits in line: beyond a bound he is refused.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::oidc::Issuer;
use crate::client_address::bounded_as;

/// Issuers that are remembered: of those with a good token, and of the others. The one that was not named for the longest
/// time goes.
const VERIFIED_ISSUERS_MAX: usize = 1024;
const NAMED_ISSUERS_MAX: usize = 1024;
/// Of those with a good token, on one host: whoever has a host has as many issuers as he likes.
const VERIFIED_PER_HOST_MAX: usize = 64;
/// Unfinished requests to issuers without a good token: together, of one client, and to one host.
const PARALLEL_FETCHES_MAX: usize = 64;
const CLIENT_FETCHES_MAX: usize = 2;
/// More than one client has, or one could keep all others from a host.
const HOST_FETCHES_MAX: usize = 4;
const _: () = assert!(CLIENT_FETCHES_MAX < HOST_FETCHES_MAX);

#[derive(Default)]
pub(super) struct Strangers {
    known: HashMap<String, Stranger>,
    verified: usize,
    /// Counts up with each use.
    clock: u64,
    fetches: Arc<Mutex<Fetches>>,
}

struct Stranger {
    issuer: Arc<Issuer>,
    used_at: u64,
    is_verified: bool,
}

#[derive(Default)]
struct Fetches {
    all: usize,
    of_client: HashMap<IpAddr, usize>,
    to_host: HashMap<String, usize>,
}

/// Leave to ask an issuer, as long as it lives.
pub(super) struct FetchPermit {
    fetches: Arc<Mutex<Fetches>>,
    client: IpAddr,
    host: String,
}

impl Strangers {
    pub(super) fn find(&mut self, name: &str) -> Option<Arc<Issuer>> {
        self.clock += 1;
        let known = self.known.get_mut(name)?;
        known.used_at = self.clock;
        Some(known.issuer.clone())
    }

    /// Remembers an issuer that a token has named.
    pub(super) fn add(&mut self, name: &str, issuer: Arc<Issuer>) -> Arc<Issuer> {
        // Another request may have named it in this moment.
        if let Some(known) = self.find(name) {
            return known;
        }
        if self.known.len() - self.verified >= NAMED_ISSUERS_MAX {
            self.forget_oldest(false);
        }
        let stranger = Stranger {
            issuer: issuer.clone(),
            used_at: self.clock,
            is_verified: false,
        };
        self.known.insert(name.to_owned(), stranger);
        issuer
    }

    /// A token of this issuer was good.
    pub(super) fn verified(&mut self, name: &str) {
        let Some(known) = self.known.get_mut(name).filter(|known| !known.is_verified) else {
            return;
        };
        known.is_verified = true;
        known.issuer.set_known_good();
        let host = known.issuer.host().to_owned();
        self.verified += 1;
        let of_host = |known: &Stranger| known.is_verified && known.issuer.host() == host;
        let count = self.known.values().filter(|known| of_host(known)).count();
        if count > VERIFIED_PER_HOST_MAX {
            self.forget_oldest_of(of_host);
        }
        if self.verified > VERIFIED_ISSUERS_MAX {
            self.forget_oldest(true);
        }
    }

    fn forget_oldest(&mut self, is_verified: bool) {
        self.forget_oldest_of(|known| known.is_verified == is_verified);
    }

    fn forget_oldest_of(&mut self, is_of: impl Fn(&Stranger) -> bool) {
        let of_kind = self.known.iter().filter(|(_, known)| is_of(known));
        let oldest = of_kind.min_by_key(|(_, known)| known.used_at);
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return;
        };
        if let Some(gone) = self.known.remove(&name) {
            self.verified -= usize::from(gone.is_verified);
        }
    }

    /// FetchPermit for a request to a host that a token of `client` names; `None` when there is none.
    pub(super) fn fetch_permit(&self, host: &str, client: IpAddr) -> Option<FetchPermit> {
        let client = bounded_as(client);
        let mut fetches = lock(&self.fetches);
        let has_room = fetches.all < PARALLEL_FETCHES_MAX
            && count(&fetches.of_client, &client) < CLIENT_FETCHES_MAX
            && count(&fetches.to_host, host) < HOST_FETCHES_MAX;
        if !has_room {
            return None;
        }
        fetches.all += 1;
        *fetches.of_client.entry(client).or_default() += 1;
        *fetches.to_host.entry(host.to_owned()).or_default() += 1;
        Some(FetchPermit {
            fetches: self.fetches.clone(),
            client,
            host: host.to_owned(),
        })
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        let mut fetches = lock(&self.fetches);
        fetches.all -= 1;
        give_back(&mut fetches.of_client, &self.client);
        give_back(&mut fetches.to_host, &self.host);
    }
}

fn count<K: Borrow<Q> + Eq + Hash, Q: Eq + Hash + ?Sized>(
    counts: &HashMap<K, usize>,
    key: &Q,
) -> usize {
    counts.get(key).copied().unwrap_or(0)
}

fn give_back<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn lock(fetches: &Mutex<Fetches>) -> MutexGuard<'_, Fetches> {
    // Numbers that are changed together, by code that does not panic.
    fetches.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::issuer::{self, NamedBy};

    fn add(strangers: &mut Strangers, name: &str) {
        let url = issuer::parse(name, NamedBy::Token).expect("an issuer");
        strangers.add(name, Issuer::new(url, NamedBy::Token));
    }

    #[test]
    fn what_is_merely_named_displaces_nobody_with_a_good_token() {
        let mut strangers = Strangers::default();
        let good = "https://good.example";
        add(&mut strangers, good);
        strangers.verified(good);
        let recent = "https://recent.example";
        add(&mut strangers, recent);
        for number in 0..3 * NAMED_ISSUERS_MAX {
            add(&mut strangers, &format!("https://bad.example/{number}"));
            assert!(strangers.find(recent).is_some(), "it was used a moment ago");
        }
        assert!(strangers.find(good).is_some());
        assert_eq!(strangers.known.len(), NAMED_ISSUERS_MAX + 1);
        for number in 0..VERIFIED_ISSUERS_MAX {
            let name = format!("https://also{number}.example");
            add(&mut strangers, &name);
            strangers.verified(&name);
            strangers.verified(&name);
        }
        assert!(strangers.find(good).is_none(), "the oldest of its kind");
        assert_eq!(strangers.verified, VERIFIED_ISSUERS_MAX);
        assert!(strangers.known.len() <= NAMED_ISSUERS_MAX + VERIFIED_ISSUERS_MAX);
    }

    #[test]
    fn the_issuers_of_one_host_displace_each_other() {
        let mut strangers = Strangers::default();
        let good = "https://good.example";
        add(&mut strangers, good);
        strangers.verified(good);
        for number in 0..2 * VERIFIED_ISSUERS_MAX {
            let name = format!("https://evil.example/{number}");
            add(&mut strangers, &name);
            strangers.verified(&name);
        }
        assert!(strangers.find(good).is_some());
        assert_eq!(strangers.verified, VERIFIED_PER_HOST_MAX + 1);
    }

    #[test]
    fn requests_have_bounds() {
        let mut strangers = Strangers::default();
        add(&mut strangers, "https://good.example");
        strangers.verified("https://good.example");
        let client = |number: usize| IpAddr::from([10, 0, (number >> 8) as u8, number as u8]);
        let of_one: Vec<_> =
            std::iter::from_fn(|| strangers.fetch_permit("own.example", client(7))).collect();
        let of_another = strangers.fetch_permit("own.example", client(8));
        assert!(of_another.is_some(), "one client leaves room for others");
        drop((of_one, of_another));
        let mut held = Vec::new();
        for number in 0..CLIENT_FETCHES_MAX {
            held.push(
                strangers
                    .fetch_permit(&format!("{number}.example"), client(0))
                    .expect("room"),
            );
        }
        assert!(
            strangers.fetch_permit("other.example", client(0)).is_none(),
            "per client"
        );
        for number in 0..HOST_FETCHES_MAX {
            held.push(
                strangers
                    .fetch_permit("one.example", client(1 + number))
                    .expect("room"),
            );
        }
        assert!(
            strangers.fetch_permit("one.example", client(99)).is_none(),
            "per host"
        );
        let mut number = 100;
        while held.len() < PARALLEL_FETCHES_MAX {
            number += 1;
            held.push(
                strangers
                    .fetch_permit(&format!("{number}.example"), client(number))
                    .expect("room"),
            );
        }
        assert!(
            strangers
                .fetch_permit("last.example", client(999))
                .is_none(),
            "together"
        );
        let good = strangers.find("https://good.example").expect("known");
        assert!(good.is_known_good(), "it needs no room");
        held.clear();
        assert!(strangers.fetch_permit("one.example", client(0)).is_some());
        let fetches = lock(&strangers.fetches);
        assert_eq!(
            (fetches.all, fetches.of_client.len(), fetches.to_host.len()),
            (0, 0, 0)
        );
    }
}
