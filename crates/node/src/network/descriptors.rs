//! File descriptors: how many the process may have, and that neither connections nor requests of modules take the last ones.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// One part in so many is kept for the databases.
const RESERVED_PART: u64 = 4;
/// Most that are kept: logs, snapshots and module logs of thousands of databases.
const RESERVED_MAX: u64 = 16_384;

/// One part in so many is for requests of modules, each of which has a socket.
const OUTBOUND_PART: u64 = 16;
const OUTBOUND_MAX: u64 = 4096;

/// The descriptors that connections, and requests of modules, may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// A connection with this number, or a higher one, is refused.
    connections_end: u64,
    /// Requests of modules at a time.
    pub outbound_max: usize,
}

impl Descriptors {
    /// Raises the process's limit as far as it may, and divides what there is.
    pub fn raise() -> Descriptors {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        let now = match (current, maximum) {
            (Some(soft), Some(hard)) if soft >= hard => Some(soft),
            (None, _) => None,
            (Some(soft), hard) => match setrlimit(Resource::Nofile, raised) {
                Ok(()) => hard,
                Err(error) => {
                    tracing::warn!(soft, ?hard, %error, "the limit of file descriptors cannot be raised");
                    Some(soft)
                }
            },
        };
        tracing::debug!(limit = ?now, "file descriptors");
        Descriptors::of(now.unwrap_or(u64::MAX))
    }

    fn of(limit: u64) -> Descriptors {
        let reserved = (limit / RESERVED_PART).min(RESERVED_MAX);
        let outbound = (limit / OUTBOUND_PART).min(OUTBOUND_MAX);
        Descriptors {
            connections_end: limit - reserved - outbound,
            outbound_max: usize::try_from(outbound).unwrap_or(1).max(1),
        }
    }

    /// Whether a new connection may stay. The system gives the lowest free number, so while all connections have lower
    /// numbers than `connections_end`, those from there on are free for files and for requests of modules.
    pub fn permit(self, connection: impl AsFd) -> bool {
        let number = connection.as_fd().as_raw_fd();
        u64::try_from(number).is_ok_and(|number| number < self.connections_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_kept_up_to_a_bound() {
        let end = |limit| Descriptors::of(limit).connections_end;
        assert_eq!(end(1024), 768 - 64);
        assert_eq!(end(65_536), 49_152 - 4096);
        assert_eq!(end(1 << 20), (1 << 20) - 16_384 - 4096);
        assert_eq!(end(0), 0);
        assert_eq!(end(u64::MAX), u64::MAX - 16_384 - 4096);
        assert_eq!(Descriptors::of(1024).outbound_max, 64);
    }

    #[test]
    fn a_connection_with_a_low_number_may_stay() {
        let file = std::fs::File::open("/").expect("the root");
        assert!(Descriptors::of(1024).permit(&file));
        assert!(!Descriptors::of(0).permit(&file));
    }
}
