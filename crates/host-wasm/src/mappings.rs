//! Memory mappings of the process. The system bounds them; each instance and each new thread takes some. Uncounted, sleeping
//! instances would leave none for the next thread, whose start would then end the server.

use std::sync::Arc;

use lightcone_host::{Account, HostError, Kind, Reservation, Terms};

const MAX_MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// A linear memory has the guard before it, the part in use with the program's data, and the part that it may grow into.
const MAPPINGS_PER_INSTANCE: usize = 5;
/// The stack of a suspendable instance has the stack and its guard.
const MAPPINGS_PER_STACK: usize = 2;

#[derive(Clone)]
pub(crate) struct Mappings {
    all: Arc<Account>,
    suspendable: Arc<Account>,
}

impl Mappings {
    /// Without a bound of the system there is none here.
    pub(crate) fn of_process() -> Mappings {
        let text = std::fs::read_to_string(MAX_MAP_COUNT).ok();
        let count_max = text.and_then(|text| text.trim().parse().ok());
        Mappings::new(count_max.unwrap_or(usize::MAX))
    }

    /// Three quarters are for instances, half for suspended ones, so that a writer always finds some.
    pub(crate) fn new(count_max: usize) -> Mappings {
        let all = Account::root(Kind::Mappings, count_max / 4 * 3);
        Mappings {
            suspendable: all.open(Kind::Mappings, Terms::exact(count_max / 2)),
            all,
        }
    }

    /// For an instance on the stack of its thread.
    pub(crate) fn take(&self) -> Result<Reservation, HostError> {
        of(&self.all, MAPPINGS_PER_INSTANCE)
    }

    /// For an instance with a stack of its own.
    pub(crate) fn take_suspendable(&self) -> Result<Reservation, HostError> {
        of(
            &self.suspendable,
            MAPPINGS_PER_INSTANCE + MAPPINGS_PER_STACK,
        )
    }
}

fn of(account: &Arc<Account>, count: usize) -> Result<Reservation, HostError> {
    let taken = account.reserve(count);
    taken.map_err(|exceeded| HostError::Mappings(exceeded.bytes_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_sleep_leave_some_for_others() {
        let mappings = Mappings::new(400);
        let sleeping: Vec<_> = std::iter::from_fn(|| mappings.take_suspendable().ok()).collect();
        assert_eq!(
            sleeping.len(),
            200 / (MAPPINGS_PER_INSTANCE + MAPPINGS_PER_STACK)
        );
        let refused = mappings.take_suspendable().unwrap_err();
        assert!(refused.to_string().contains("200"), "{refused}");
        assert!(refused.to_string().contains("LC0729"), "{refused}");
        let awake: Vec<_> = std::iter::from_fn(|| mappings.take().ok()).collect();
        assert!(awake.len() >= 20);
        drop((sleeping, awake));
        assert_eq!(mappings.all.used(), 0);
    }
}
