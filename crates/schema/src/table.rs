//! Tables as the engine holds them: a definition plus the ids the database gave it (02 §10, §11).

use lightcone_types::{
    AlgebraicType, ColId, ConstraintId, Hash, IndexId, ScheduleId, SequenceId, TableId,
};

/// The first id of every kind that a user object gets in a fresh database (02 §11.1).
pub const FIRST_USER_ID: u32 = 4096;

/// Who may read a table (02 §4.1). The discriminants are the BSATN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableAccess {
    Public,
    Private,
}

impl TableAccess {
    /// The text stored in `st_table.table_access` (02 §11.2).
    pub fn as_str(self) -> &'static str {
        match self {
            TableAccess::Public => "public",
            TableAccess::Private => "private",
        }
    }
}

/// Whether a table belongs to the system or to the module (02 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    System,
    User,
}

impl TableKind {
    /// The text stored in `st_table.table_type` (02 §11.2).
    pub fn as_str(self) -> &'static str {
        match self {
            TableKind::System => "system",
            TableKind::User => "user",
        }
    }
}

/// How an index is organised, and over which columns (02 §4.1). Column order matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexAlgorithm {
    BTree(Vec<ColId>),
    Hash(Vec<ColId>),
    Direct(ColId),
}

impl IndexAlgorithm {
    /// The indexed columns, in index order.
    pub fn columns(&self) -> &[ColId] {
        match self {
            IndexAlgorithm::BTree(columns) | IndexAlgorithm::Hash(columns) => columns,
            IndexAlgorithm::Direct(column) => std::slice::from_ref(column),
        }
    }

    /// The indexed columns as an ascending list without repeats, the form in which they are
    /// compared with unique constraints.
    pub fn column_set(&self) -> Vec<ColId> {
        column_set(self.columns())
    }

    /// `btree`, `hash` or `direct`, as in generated index names (02 §8.3).
    pub fn suffix(&self) -> &'static str {
        match self {
            IndexAlgorithm::BTree(_) => "btree",
            IndexAlgorithm::Hash(_) => "hash",
            IndexAlgorithm::Direct(_) => "direct",
        }
    }
}

/// Sorts a column list and drops repeats.
pub fn column_set(columns: &[ColId]) -> Vec<ColId> {
    let mut set = columns.to_vec();
    set.sort_unstable();
    set.dedup();
    set
}

/// A table with its ids, as the engine holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    pub id: TableId,
    /// Canonical, namespaced name.
    pub name: String,
    /// The name the module's code uses (`st_table_accessor`); system tables have none.
    pub accessor: Option<String>,
    pub columns: Vec<ColumnSchema>,
    pub primary_key: Option<ColId>,
    pub indexes: Vec<IndexSchema>,
    pub constraints: Vec<ConstraintSchema>,
    pub sequences: Vec<SequenceSchema>,
    pub schedule: Option<ScheduleSchema>,
    pub outbox: Option<OutboxDef>,
    pub access: TableAccess,
    pub kind: TableKind,
    /// Rows live only inside the inserting transaction (02 §10.2).
    pub is_event: bool,
    /// Set for the backing table of a view (02 §10.3).
    pub view: Option<ViewSchema>,
}

/// The view of a backing table. The first column, hidden from clients and modules, is the instance of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSchema {
    /// The id in `st_view`.
    pub id: u32,
    /// One instance for all callers, rather than one for each identity.
    pub is_anonymous: bool,
}

/// Bytes of the hidden first column of a backing table, a hash: behind them is the row as the view declares it.
pub const VIEW_HASH_BYTES: usize = 32;

impl TableSchema {
    /// A public table of these columns with nothing else.
    pub fn plain(id: TableId, name: String, columns: Vec<ColumnSchema>) -> TableSchema {
        TableSchema {
            id,
            name,
            accessor: None,
            columns,
            primary_key: None,
            indexes: Vec::new(),
            constraints: Vec::new(),
            sequences: Vec::new(),
            schedule: None,
            outbox: None,
            access: TableAccess::Public,
            kind: TableKind::User,
            is_event: false,
            view: None,
        }
    }

    /// Position of the declared column with this canonical name.
    pub fn column_by_name(&self, name: &str) -> Option<ColId> {
        self.position(|c| c.name == name)
    }

    /// Position of the column named so in SQL: accessor first, then canonical name (02 §10.4).
    pub fn column_by_accessor_or_name(&self, name: &str) -> Option<ColId> {
        self.position(|c| c.accessor.as_deref() == Some(name))
            .or_else(|| self.column_by_name(name))
    }

    fn position(&self, matches: impl Fn(&ColumnSchema) -> bool) -> Option<ColId> {
        let hidden = self.columns.len() - self.declared_columns().len();
        let found = self.declared_columns().iter().position(matches)?;
        u16::try_from(found + hidden).ok().map(ColId)
    }

    /// Bytes at the start of each row that are hidden from clients and modules.
    pub fn hidden_bytes(&self) -> usize {
        self.view.map_or(0, |_| VIEW_HASH_BYTES)
    }

    /// The columns that are declared: all but the hidden one.
    pub fn declared_columns(&self) -> &[ColumnSchema] {
        &self.columns[usize::from(self.view.is_some())..]
    }

    /// Whether the module has an index on this column alone.
    pub fn has_index_on(&self, column: ColId) -> bool {
        let mut indexes = self.indexes.iter();
        indexes.any(|index| *index.algorithm.columns() == [column])
    }

    /// The column at this position.
    pub fn column(&self, column: ColId) -> Option<&ColumnSchema> {
        self.columns.get(usize::from(column.0))
    }
}

/// A column; its id is its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    pub name: String,
    pub accessor: Option<String>,
    /// Free of refs.
    pub ty: AlgebraicType,
}

/// An index with its id. `unique` holds iff a unique constraint covers the same column set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    pub id: IndexId,
    pub name: String,
    /// The source name by which module code looks the index up (`st_index_accessor`).
    pub accessor: Option<String>,
    pub algorithm: IndexAlgorithm,
    pub unique: bool,
}

/// A unique constraint with its id; columns are ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstraintSchema {
    pub id: ConstraintId,
    pub name: String,
    pub columns: Vec<ColId>,
}

/// A sequence with its id and effective parameters (02 §12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceSchema {
    pub id: SequenceId,
    pub name: String,
    pub column: ColId,
    pub start: i128,
    pub min_value: i128,
    pub max_value: i128,
    pub increment: i128,
}

/// The schedule of a scheduled table (`st_scheduled`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSchema {
    pub id: ScheduleId,
    pub name: String,
    /// Canonical, namespaced name of the reducer or procedure.
    pub function_name: String,
    pub at_column: ColId,
}

/// What makes a table an outbox table: its rows are messages to a reducer of other databases (02 §8.7a).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxDef {
    /// In the target database, with its namespace.
    pub remote_reducer: String,
    pub target_column: ColId,
    /// In the order of the receiver's parameters.
    pub arg_columns: Vec<ColId>,
    /// Canonical, namespaced name of the reducer of this module that hears of results.
    pub on_result: Option<String>,
    /// Of the receiver's reducer, as the module knows it.
    pub signature_hash: Hash,
}

/// Hands out object ids while a table is created. Counts every kind up from [`FIRST_USER_ID`], as a fresh database does.
#[derive(Clone, Debug)]
pub struct SequentialIds {
    pub table: u32,
    pub index: u32,
    pub constraint: u32,
    pub sequence: u32,
    pub schedule: u32,
}

impl Default for SequentialIds {
    fn default() -> Self {
        SequentialIds {
            table: FIRST_USER_ID,
            index: FIRST_USER_ID,
            constraint: FIRST_USER_ID,
            sequence: FIRST_USER_ID,
            schedule: FIRST_USER_ID,
        }
    }
}

impl SequentialIds {
    /// The next number of a kind.
    pub(crate) fn take<T>(counter: &mut u32, id: fn(u32) -> T) -> T {
        let number = *counter;
        *counter = counter.saturating_add(1);
        id(number)
    }
}
