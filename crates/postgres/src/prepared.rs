//! Prepared statements and portals of a session, within bounds.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lightcone_query::postgresql::Format;
use lightcone_types::{AlgebraicType, ProductType};
use tokio::time::Instant;

use super::failure::{of_statement, state, Failure};
use lightcone_database::{HeldMemory, Holder, ParameterText, Rights};

/// Prepared statements of a session.
const STATEMENTS_MAX: usize = 256;
/// Bytes of prepared statements and portals: names, texts, parameters, columns. They are part of what the client may hold.
const PREPARED_BYTES_MAX: usize = 4 << 20;
/// What a parameter, a column or an entry takes besides.
const ENTRY_BYTES: usize = 64;
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

impl Prepared {
    fn bytes(&self) -> usize {
        let columns = self.columns.iter().flat_map(|columns| &*columns.elements);
        let names = columns.map(|column| ENTRY_BYTES + column.name().map_or(0, str::len));
        let parameters = self.types.len() * ENTRY_BYTES;
        ENTRY_BYTES + self.text.memory_bytes() + parameters + names.sum::<usize>()
    }
}

/// A statement with its values.
pub(super) struct Portal {
    pub prepared: Arc<Prepared>,
    pub text: String,
    pub formats: Vec<Format>,
    pub progress: Progress,
}

impl Portal {
    /// Without its rows, which are held for the client.
    fn bytes(&self) -> usize {
        // Its statement may be closed before it.
        self.prepared.bytes() + self.text.len() + self.formats.len()
    }
}

/// How far a portal has come. Each runs its statement once.
pub(super) enum Progress {
    New,
    /// Rows are still to be fetched.
    Suspended(Suspended),
    /// It waited too long, and its rows are gone.
    Stale,
    /// The client has lost the rights that its rows were read with, and they are gone.
    Revoked,
    Done,
}

/// The rest of a result.
pub(super) struct Suspended {
    pub pending: Pending,
    /// When the client has fetched some.
    pub since: Instant,
    /// What the client might do at the most when they were read.
    pub rights: Rights,
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
}

fn full(message: String) -> Result<(), Failure> {
    Err(Failure::new(state::LIMIT_REACHED, message))
}

/// What a session has prepared.
pub(super) struct Store {
    statements: HashMap<String, Arc<Prepared>>,
    bytes: usize,
    /// As many as `bytes`, in the account of the client.
    memory: HeldMemory,
    portals: HashMap<String, Portal>,
}

impl Store {
    pub fn new(holder: &Holder) -> Store {
        Store {
            statements: HashMap::new(),
            bytes: 0,
            memory: holder.memory(),
            portals: HashMap::new(),
        }
    }

    pub fn put_statement(&mut self, name: &str, prepared: Prepared) -> Result<(), Failure> {
        if name.is_empty() {
            self.close_statement(name);
        }
        if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(state::DUPLICATE_STATEMENT, message));
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return full(format!(
                "a session has at most {STATEMENTS_MAX} prepared statements: close some"
            ));
        }
        self.take(name.len() + prepared.bytes())?;
        self.statements.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.bytes + bytes > PREPARED_BYTES_MAX {
            return full(format!(
                "the prepared statements and portals of a session have at most {PREPARED_BYTES_MAX} bytes, with their names and columns: close some"
            ));
        }
        let taken = self.memory.set(self.bytes + bytes);
        taken.map_err(of_statement)?;
        self.bytes += bytes;
        Ok(())
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        // Fewer bytes are always taken.
        let _ = self.memory.set(self.bytes);
    }

    pub fn statement(&self, name: &str) -> Result<Arc<Prepared>, Failure> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Failure::new(state::NO_SUCH_STATEMENT, message)
        })
    }

    pub fn close_statement(&mut self, name: &str) {
        if let Some(closed) = self.statements.remove(name) {
            self.give_back(name.len() + closed.bytes());
        }
    }

    pub fn close_all(&mut self) {
        self.statements.clear();
        self.portals.clear();
        self.give_back(self.bytes);
    }

    pub fn put_portal(&mut self, name: &str, portal: Portal) -> Result<(), Failure> {
        if self.portals.len() >= PORTALS_MAX && !self.portals.contains_key(name) {
            return full(format!(
                "a session has at most {PORTALS_MAX} portals: close some"
            ));
        }
        self.close_portal(name);
        self.take(name.len() + portal.bytes())?;
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    pub fn portal(&mut self, name: &str) -> Result<&mut Portal, Failure> {
        self.portals.get_mut(name).ok_or_else(|| {
            let message = format!("portal \"{name}\" does not exist");
            Failure::new(state::NO_SUCH_CURSOR, message)
        })
    }

    pub fn close_portal(&mut self, name: &str) {
        if let Some(closed) = self.portals.remove(name) {
            self.give_back(name.len() + closed.bytes());
        }
    }

    pub fn close_portals(&mut self) {
        let closed = self.portals.drain();
        let bytes = closed.map(|(name, closed)| name.len() + closed.bytes());
        let bytes = bytes.sum();
        self.give_back(bytes);
    }

    /// Frees the rows that have waited too long. When to look again, if there are others.
    pub fn free_stale(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for portal in self.portals.values_mut() {
            let Progress::Suspended(suspended) = &portal.progress else {
                continue;
            };
            let end = suspended.since + SUSPENDED_TIME_MAX;
            match end <= now {
                true => portal.progress = Progress::Stale,
                false => next = Some(next.map_or(end, |next| next.min(end))),
            }
        }
        next
    }

    /// Frees the rows that were read with more rights than the client has now.
    pub fn free_revoked(&mut self, now: Rights) {
        for portal in self.portals.values_mut() {
            if matches!(&portal.progress, Progress::Suspended(rows) if rows.rights > now) {
                portal.progress = Progress::Revoked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lightcone_accounts::{Account, Kind};
    use lightcone_node::config::Config;

    use super::*;

    fn holder() -> Holder {
        // The machine's clock and threads are those of a runtime.
        let runtime = tokio::runtime::Runtime::new().expect("the system has threads");
        let _entered = runtime.enter();
        let process = Account::root(Kind::Process, usize::MAX);
        let commons =
            lightcone_node::databases::limits::commons(&process, &Config::default(), None);
        commons.holder(&lightcone_node::databases::limits::limits(
            &Config::default(),
        ))
    }

    fn prepared(columns: Option<ProductType>) -> Prepared {
        let text = ParameterText::read("select 1".to_owned()).expect("a text");
        Prepared {
            text: Arc::new(text),
            oids: Vec::new(),
            types: Vec::new(),
            columns,
        }
    }

    fn portal(prepared: &Arc<Prepared>) -> Portal {
        Portal {
            prepared: prepared.clone(),
            text: String::new(),
            formats: Vec::new(),
            progress: Progress::New,
        }
    }

    fn suspended(prepared: &Arc<Prepared>, since: Instant, rights: Rights) -> Portal {
        let pending = Pending::new(VecDeque::new(), String::new());
        Portal {
            progress: Progress::Suspended(Suspended {
                pending,
                since,
                rights,
            }),
            ..portal(prepared)
        }
    }

    #[test]
    fn names_and_columns_count() {
        let mut store = Store::new(&holder());
        let is_full = |result: Result<(), Failure>| {
            result.is_err_and(|failure| failure.state == state::LIMIT_REACHED)
        };
        let long = "n".repeat(PREPARED_BYTES_MAX / 2);
        let small = Arc::new(prepared(None));
        store.put_portal(&long, portal(&small)).expect("room");
        store
            .put_portal(&long, portal(&small))
            .expect("in its place");
        assert!(is_full(
            store.put_portal(&format!("{long}2"), portal(&small))
        ));
        let wide = || {
            let column = (&*long, AlgebraicType::Bool);
            prepared(Some(ProductType::new([column])))
        };
        assert!(is_full(store.put_statement("wide", wide())));
        store.close_portal(&long);
        store.put_statement("wide", wide()).expect("room");
        let of_wide = portal(&store.statement("wide").expect("it is there"));
        assert!(
            is_full(store.put_portal("p", of_wide)),
            "it keeps its columns"
        );
        store.put_portal("p", portal(&small)).expect("room");
        store.close_portals();
        store.close_statement("wide");
        assert_eq!(store.bytes, 0);
    }

    #[test]
    fn rows_are_not_kept_for_ever() {
        let prepared = Arc::new(prepared(None));
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut store = Store::new(&holder());
        for (name, seconds) in [("a", 0), ("b", 10)] {
            let portal = suspended(&prepared, later(seconds), Rights::Public);
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

    #[test]
    fn rows_go_with_the_rights_that_they_were_read_with() {
        let prepared = Arc::new(prepared(None));
        let mut store = Store::new(&holder());
        let rights = [Rights::Public, Rights::Reads, Rights::All];
        for rights in rights {
            let portal = suspended(&prepared, Instant::now(), rights);
            store
                .put_portal(&format!("{rights:?}"), portal)
                .expect("room");
        }
        store.free_revoked(Rights::Reads);
        let left = rights.map(|rights| {
            let portal = store.portal(&format!("{rights:?}")).expect("it is there");
            matches!(portal.progress, Progress::Suspended(_))
        });
        assert_eq!(left, [true, true, false]);
    }
}
