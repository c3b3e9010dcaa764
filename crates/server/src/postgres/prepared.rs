//! Prepared statements and portals of a session, within bounds.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lightcone_types::{AlgebraicType, ProductType};
use tokio::time::Instant;

use super::failure::{state, Failure};
use super::values::Format;
use crate::database::ParameterText;

/// Prepared statements of a session, and bytes of their texts.
const STATEMENTS_MAX: usize = 256;
const STATEMENT_BYTES_MAX: usize = 1 << 20;
/// Portals of a session: statements with their values, and the rows that the client has not fetched.
const PORTALS_MAX: usize = 16;
/// A portal keeps rows so long after the client has fetched some.
pub(super) const SUSPENDED_TIME_MAX: Duration = Duration::from_secs(5 * 60);

/// A statement that compiles.
#[derive(Debug)]
pub(super) struct Prepared {
    pub text: Arc<ParameterText>,
    /// What the client sends, and what it is used as.
    pub oids: Vec<u32>,
    pub types: Vec<AlgebraicType>,
    pub columns: Option<ProductType>,
}

/// A statement with its values.
pub(super) struct Portal {
    pub prepared: Arc<Prepared>,
    pub text: String,
    pub formats: Vec<Format>,
    pub progress: Progress,
}

/// How far a portal has come. Each runs its statement once.
pub(super) enum Progress {
    New,
    /// Rows are still to be fetched, since then.
    Suspended(Pending, Instant),
    /// It waited too long, and its rows are gone.
    Stale,
    Done,
}

/// Messages of rows, in pieces that are freed when they are sent.
pub(super) struct Pending {
    pub pieces: VecDeque<Piece>,
    /// Bytes of the first piece that were sent.
    pub sent: usize,
    pub tag: String,
    /// It answers a `COPY`.
    pub is_copy: bool,
    /// The columns of a `COPY` that has not been announced yet.
    pub copied_columns: Option<usize>,
}

/// Whole messages.
pub(super) type Piece = Box<dyn AsRef<[u8]> + Send + Sync>;

impl Pending {
    pub fn new(pieces: VecDeque<Piece>, tag: String) -> Pending {
        Pending {
            pieces,
            sent: 0,
            tag,
            is_copy: false,
            copied_columns: None,
        }
    }

    /// As the answer to a `COPY`.
    pub fn copied(mut self, columns: usize) -> Pending {
        self.is_copy = true;
        self.copied_columns = Some(columns);
        self
    }
}

/// What a session has prepared.
#[derive(Default)]
pub(super) struct Store {
    statements: HashMap<String, Arc<Prepared>>,
    bytes: usize,
    portals: HashMap<String, Portal>,
}

impl Store {
    pub fn put_statement(&mut self, name: &str, prepared: Prepared) -> Result<(), Failure> {
        if name.is_empty() {
            self.close_statement(name);
        }
        if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(state::DUPLICATE_STATEMENT, message));
        }
        let bytes = name.len() + prepared.text.text().len();
        if self.statements.len() >= STATEMENTS_MAX || self.bytes + bytes > STATEMENT_BYTES_MAX {
            return Err(Failure::new(
                state::LIMIT_REACHED,
                format!("a session has at most {STATEMENTS_MAX} prepared statements of {STATEMENT_BYTES_MAX} bytes together: close some"),
            ));
        }
        self.bytes += bytes;
        self.statements.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    pub fn statement(&self, name: &str) -> Result<Arc<Prepared>, Failure> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Failure::new(state::NO_SUCH_STATEMENT, message)
        })
    }

    pub fn close_statement(&mut self, name: &str) {
        if let Some(closed) = self.statements.remove(name) {
            self.bytes -= name.len() + closed.text.text().len();
        }
    }

    pub fn close_all(&mut self) {
        *self = Store::default();
    }

    pub fn put_portal(&mut self, name: &str, portal: Portal) -> Result<(), Failure> {
        if self.portals.len() >= PORTALS_MAX && !self.portals.contains_key(name) {
            return Err(Failure::new(
                state::LIMIT_REACHED,
                format!("a session has at most {PORTALS_MAX} portals: close some"),
            ));
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    pub fn portal(&mut self, name: &str) -> Result<&mut Portal, Failure> {
        self.portals.get_mut(name).ok_or_else(|| {
            Failure::new(
                state::NO_SUCH_CURSOR,
                format!("portal \"{name}\" does not exist"),
            )
        })
    }

    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    pub fn close_portals(&mut self) {
        self.portals.clear();
    }

    /// Frees the rows that have waited too long. When to look again, if there are others.
    pub fn free_stale(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for portal in self.portals.values_mut() {
            let Progress::Suspended(_, since) = &portal.progress else {
                continue;
            };
            let end = *since + SUSPENDED_TIME_MAX;
            if end <= now {
                portal.progress = Progress::Stale;
                continue;
            }
            next = Some(next.map_or(end, |next| next.min(end)));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_not_kept_for_ever() {
        let text = ParameterText::read("select 1".to_owned()).expect("a text");
        let prepared = Arc::new(Prepared {
            text: Arc::new(text),
            oids: Vec::new(),
            types: Vec::new(),
            columns: None,
        });
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut store = Store::default();
        for (name, seconds) in [("a", 0), ("b", 10)] {
            let pending = Pending::new(VecDeque::new(), String::new());
            let portal = Portal {
                prepared: prepared.clone(),
                text: String::new(),
                formats: Vec::new(),
                progress: Progress::Suspended(pending, later(seconds)),
            };
            store.put_portal(name, portal).expect("room");
        }
        assert_eq!(store.free_stale(later(1)), Some(later(300)));
        assert_eq!(store.free_stale(later(300)), Some(later(310)));
        let is_stale = |store: &mut Store, name| {
            let portal = store.portal(name).expect("it is there");
            matches!(portal.progress, Progress::Stale)
        };
        assert!(is_stale(&mut store, "a") && !is_stale(&mut store, "b"));
        assert_eq!(store.free_stale(later(310)), None);
        assert!(is_stale(&mut store, "b"));
    }
}
