//! The tables of Lightcone for unit tests of modules, as the feature `test-utils` of the published crate `spacetimedb` 2.14 uses them
//! (docs/design/module-tests.md). Only what that feature calls is here, under the names that it calls it by.
//!
//! A datastore has one transaction at a time. Outside of one, each call is a transaction of its own.

use std::cell::Cell;
use std::sync::Arc;
use std::thread::ThreadId;

use lightcone_engine::{CommitOutput, Datastore, DatastoreError, RangeBounds, RowBuffer};
use lightcone_query::{compile_statement, Caller, Catalog, Progress, Run};
use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{AlgebraicType, ProductTypeElement};
use parking_lot::{Condvar, Mutex};
use spacetimedb_lib::sats::ProductValue;
use spacetimedb_lib::{bsatn, AlgebraicValue, Identity, RawModuleDef};
use spacetimedb_primitives::{ColId, IndexId, TableId};

/// Rows of a query are found in pieces of so many steps; only the server has others to serve between two.
const STEPS: usize = 1 << 20;
/// What a query may hold.
const QUERY_BYTES_MAX: usize = 1 << 30;

/// Why a call failed. The transaction stays usable.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TestDatastoreError(Cause);

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Datastore(#[from] DatastoreError),
    #[error("{0}")]
    Other(String),
}

type Result<T, E = TestDatastoreError> = std::result::Result<T, E>;

impl From<DatastoreError> for TestDatastoreError {
    fn from(error: DatastoreError) -> Self {
        TestDatastoreError(Cause::Datastore(error))
    }
}

fn other(error: impl std::fmt::Display) -> TestDatastoreError {
    TestDatastoreError(Cause::Other(error.to_string()))
}

impl TestDatastoreError {
    /// The number by which a module hears of an insert that fails (03 §5).
    pub fn insert_errno_code(&self) -> Option<u16> {
        match &self.0 {
            Cause::Datastore(error) => error.errno(),
            Cause::Other(_) => None,
        }
    }
}

/// The tables of a module, in memory.
pub struct TestDatastore {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    datastore: Datastore,
    /// Of the open transaction.
    owner: Option<ThreadId>,
}

impl TestDatastore {
    /// Empty tables of a definition. No reducer has run, `init` neither.
    ///
    /// # Errors
    /// The definition is refused, as it would be at a publish.
    pub fn from_module_def(raw: RawModuleDef) -> Result<Self> {
        let raw = bsatn::to_vec(&raw).map_err(other)?;
        let def = ModuleDef::from_bsatn(&raw).map_err(other)?;
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(&def)?;
        datastore.commit(&mut CommitOutput::default())?;
        let state = State {
            datastore,
            owner: None,
        };
        Ok(TestDatastore {
            state: Mutex::new(state),
            ended: Condvar::new(),
        })
    }

    /// Opens a transaction, when the one of another thread has ended.
    ///
    /// # Panics
    /// This thread has an open transaction, for whose end it would wait for ever.
    pub fn begin_mut_tx(self: &Arc<Self>) -> TestTransaction {
        let mut state = self.state.lock();
        while let Some(owner) = state.owner {
            assert!(
                owner != std::thread::current().id(),
                "this thread has an open transaction of the datastore already"
            );
            self.ended.wait(&mut state);
        }
        state.owner = Some(std::thread::current().id());
        state.datastore.begin();
        TestTransaction {
            datastore: self.clone(),
            is_open: Cell::new(true),
        }
    }

    /// The rows of a query, which sees all tables.
    ///
    /// # Errors
    /// It is not one, or fails.
    pub fn run_select_query(&self, text: &str, sender: Identity) -> Result<Vec<ProductValue>> {
        let sender = lightcone_types::Identity::from_le_bytes(sender.to_byte_array());
        self.with(|datastore| {
            let caller = Caller {
                identity: sender,
                is_owner: true,
            };
            let statement = compile_statement(text, &Names(&*datastore), &caller);
            let query = statement.map_err(other)?.into_query();
            let query = query.ok_or_else(|| other("only queries can be run"))?;
            let columns = AlgebraicType::Product(query.output_type());
            let mut run = Run::new(Arc::new(query), sender, QUERY_BYTES_MAX);
            let mut rows = Vec::new();
            loop {
                let mut steps = STEPS;
                let progress = run.run(&*datastore, &mut steps, |row| {
                    rows.push(row.to_vec());
                    true
                });
                if progress.map_err(other)? == Progress::Done {
                    return values(&columns, rows);
                }
            }
        })
    }

    /// A call that is a transaction by itself.
    fn with<R>(&self, body: impl FnOnce(&mut Datastore) -> Result<R>) -> Result<R> {
        let mut state = self.state.lock();
        while let Some(owner) = state.owner {
            if owner == std::thread::current().id() {
                return Err(other(
                    "a transaction is open: use its context, and the test's when it has ended",
                ));
            }
            self.ended.wait(&mut state);
        }
        state.datastore.begin();
        let result = body(&mut state.datastore);
        match result {
            Ok(_) => {
                state.datastore.commit(&mut CommitOutput::default())?;
            }
            Err(_) => state.datastore.rollback(),
        }
        result
    }

    fn end(&self, body: impl FnOnce(&mut Datastore) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        let result = body(&mut state.datastore);
        if result.is_err() && state.datastore.in_transaction() {
            state.datastore.rollback();
        }
        state.owner = None;
        self.ended.notify_all();
        result
    }
}

/// The names of tables for queries.
struct Names<'d>(&'d Datastore);

impl Catalog for Names<'_> {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let id = self.0.table_id_from_name(name)?;
        self.0.schema(id).cloned()
    }

    fn parameters(&self, _table: lightcone_types::TableId) -> &[ProductTypeElement] {
        &[]
    }

    /// A test sees all rows, as the owner does.
    fn rules(&self, _table: lightcone_types::TableId) -> &[String] {
        &[]
    }
}

/// An open transaction. Dropped, it is rolled back.
pub struct TestTransaction {
    datastore: Arc<TestDatastore>,
    is_open: Cell<bool>,
}

impl TestTransaction {
    /// # Errors
    /// It has ended, or is too large.
    pub fn commit(&self) -> Result<()> {
        self.close()?;
        self.datastore.end(|datastore| {
            datastore.commit(&mut CommitOutput::default())?;
            Ok(())
        })
    }

    /// # Errors
    /// It has ended.
    pub fn rollback(&self) -> Result<()> {
        self.close()?;
        self.datastore.end(|datastore| {
            datastore.rollback();
            Ok(())
        })
    }

    fn close(&self) -> Result<()> {
        match self.is_open.replace(false) {
            true => Ok(()),
            false => Err(DatastoreError::NotInTransaction.into()),
        }
    }

    fn with<R>(&self, body: impl FnOnce(&mut Datastore) -> Result<R>) -> Result<R> {
        if !self.is_open.get() {
            return Err(DatastoreError::NotInTransaction.into());
        }
        body(&mut self.datastore.state.lock().datastore)
    }
}

impl Drop for TestTransaction {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.rollback();
    }
}

/// The calls that a transaction has, and a datastore outside of one (03 §8).
macro_rules! calls {
    ($($of:ident)*) => {$(
        impl $of {
            pub fn table_id(&self, name: &str) -> Result<TableId> {
                self.with(|datastore| {
                    let id = datastore.table_id_from_name(name);
                    Ok(TableId(id.ok_or(DatastoreError::NoSuchTable)?.0))
                })
            }

            pub fn index_id(&self, name: &str) -> Result<IndexId> {
                self.with(|datastore| {
                    let id = datastore.index_id_from_name(name);
                    Ok(IndexId(id.ok_or(DatastoreError::NoSuchIndex)?.0))
                })
            }

            pub fn table_row_count(&self, table: TableId) -> Result<u64> {
                self.with(|datastore| Ok(datastore.row_count(lightcone_types::TableId(table.0))?))
            }

            /// All rows.
            pub fn table_rows(&self, table: TableId) -> Result<Vec<ProductValue>> {
                let rows = self.table_rows_bsatn(table)?;
                self.with(|datastore| {
                    let schema = datastore.schema(lightcone_types::TableId(table.0));
                    let columns = schema.ok_or(DatastoreError::NoSuchTable)?.columns.iter();
                    let columns = columns.map(|column| (&*column.name, column.ty.clone()));
                    values(&AlgebraicType::product(columns), rows)
                })
            }

            /// All rows, each in BSATN.
            pub fn table_rows_bsatn(&self, table: TableId) -> Result<Vec<Vec<u8>>> {
                let table = lightcone_types::TableId(table.0);
                self.with(|datastore| {
                    let mut rows = RowBuffer::default();
                    datastore.scan(table, &mut rows)?;
                    split(datastore, table, &rows.bytes)
                })
            }

            pub fn index_scan_point_bsatn(&self, index: IndexId, point: &[u8]) -> Result<Vec<Vec<u8>>> {
                let index = lightcone_types::IndexId(index.0);
                self.with(|datastore| {
                    let mut rows = RowBuffer::default();
                    datastore.index_scan_point(index, point, &mut rows)?;
                    split_of(datastore, index, &rows.bytes)
                })
            }

            pub fn index_scan_range_bsatn(
                &self,
                index: IndexId,
                prefix: &[u8],
                prefix_columns: ColId,
                start: &[u8],
                end: &[u8],
            ) -> Result<Vec<Vec<u8>>> {
                let index = lightcone_types::IndexId(index.0);
                self.with(|datastore| {
                    let mut rows = RowBuffer::default();
                    let range = range(prefix, prefix_columns, start, end);
                    datastore.index_scan_range(index, range, &mut rows)?;
                    split_of(datastore, index, &rows.bytes)
                })
            }

            /// Returns the values of generated columns.
            pub fn insert_bsatn_generated_cols(&self, table: TableId, row: &[u8]) -> Result<Vec<u8>> {
                self.with(|datastore| {
                    let mut generated = Vec::new();
                    datastore.insert(lightcone_types::TableId(table.0), row, &mut generated)?;
                    Ok(generated)
                })
            }

            /// The same for the row with the same key in `index`.
            pub fn update_bsatn_generated_cols(
                &self,
                table: TableId,
                index: IndexId,
                row: &[u8],
            ) -> Result<Vec<u8>> {
                let (table, index) = (lightcone_types::TableId(table.0), lightcone_types::IndexId(index.0));
                self.with(|datastore| {
                    let mut generated = Vec::new();
                    datastore.update(table, index, row, &mut generated)?;
                    Ok(generated)
                })
            }

            /// Returns how many rows went.
            pub fn delete_by_index_scan_point_bsatn(&self, index: IndexId, point: &[u8]) -> Result<u32> {
                let index = lightcone_types::IndexId(index.0);
                self.with(|datastore| Ok(datastore.delete_by_index_point(index, point)?))
            }

            /// Returns how many rows went.
            pub fn delete_by_index_scan_range_bsatn(
                &self,
                index: IndexId,
                prefix: &[u8],
                prefix_columns: ColId,
                start: &[u8],
                end: &[u8],
            ) -> Result<u32> {
                let index = lightcone_types::IndexId(index.0);
                let range = range(prefix, prefix_columns, start, end);
                self.with(|datastore| Ok(datastore.delete_by_index_range(index, range)?))
            }
        }
    )*};
}

calls! { TestDatastore TestTransaction }

fn range<'a>(prefix: &'a [u8], columns: ColId, start: &'a [u8], end: &'a [u8]) -> RangeBounds<'a> {
    RangeBounds {
        prefix,
        prefix_columns: usize::from(columns.0),
        start,
        end,
    }
}

/// The rows of a table, which stand one behind the other.
fn split(
    datastore: &Datastore,
    table: lightcone_types::TableId,
    mut bytes: &[u8],
) -> Result<Vec<Vec<u8>>> {
    let table = datastore.table(table).ok_or(DatastoreError::NoSuchTable)?;
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let (row, rest) = bytes.split_at(table.layout().stored_len(bytes));
        rows.push(row.to_vec());
        bytes = rest;
    }
    Ok(rows)
}

fn split_of(
    datastore: &Datastore,
    index: lightcone_types::IndexId,
    bytes: &[u8],
) -> Result<Vec<Vec<u8>>> {
    let table = datastore.table_of_index(index);
    split(datastore, table.ok_or(DatastoreError::NoSuchIndex)?, bytes)
}

/// Rows as the published crates have them. Types have the same bytes there and here.
fn values(columns: &AlgebraicType, rows: Vec<Vec<u8>>) -> Result<Vec<ProductValue>> {
    let columns: spacetimedb_lib::AlgebraicType =
        bsatn::from_slice(&columns.to_vec()).map_err(other)?;
    let value = |row: Vec<u8>| {
        let value = AlgebraicValue::decode(&columns, &mut &*row).map_err(other)?;
        value
            .into_product()
            .map_err(|_| other("a row is a product"))
    };
    rows.into_iter().map(value).collect()
}
