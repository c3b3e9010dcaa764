//! What a query can be refused for, with the texts of 08 §7.2.

use lightcone_types::{Identity, TableId};

/// Query texts longer than this many UTF-8 bytes are refused (08 §16).
pub const QUERY_BYTES_MAX: usize = 50_000;

/// Queries that read more relations are refused, those of row-level security rules counted. No text that is allowed comes
/// near it by itself.
pub const RELATIONS_MAX: usize = 8192;

/// Subscriptions and queries of views that read more relations are refused, those of subqueries and of row-level security rules
/// counted. The rows that a change is joined with are kept in a list of this length.
pub const LIVE_RELATIONS_MAX: usize = 16;
/// Subqueries stand in subqueries at most so deep: parsing and checking them recurses.
pub const SUBQUERY_DEPTH_MAX: usize = 8;

/// A query has at most so many subqueries.
pub const SUBQUERIES_MAX: usize = 64;

/// What a text is, unless it is refused.
pub(crate) type Result<T, E = SqlError> = std::result::Result<T, E>;

/// Why a query text was refused. `Display` is the text that the client gets (08 §7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    // Text
    #[error("sql parser error: {0}")]
    Syntax(String),
    #[error("SQL query exceeds maximum allowed length: \"{prefix}...\"")]
    TooLong { prefix: String },
    #[error("Empty SQL query")]
    Empty,
    #[error("SubscriptionError: Empty string")]
    EmptySubscription,
    #[error("Multiple SQL statements are not supported")]
    MultipleStatements,

    // Syntax that is understood and refused
    #[error("Unsupported literal expression: {0}")]
    UnsupportedLiteral(String),
    #[error("Unsupported expression: {0}")]
    UnsupportedExpression(String),
    #[error("Unsupported binary operator: {0}")]
    UnsupportedOperator(String),
    #[error("Unsupported projection expression: {0}")]
    UnsupportedProjectionExpression(String),
    #[error("Unsupported aggregate function: {0}")]
    UnsupportedAggregate(String),
    #[error("Aggregate expressions must have column aliases")]
    AggregateWithoutAlias,
    #[error("Mixed wildcard projections are not supported")]
    MixedWildcard,
    #[error("Unsupported FROM expression: {0}")]
    UnsupportedFrom(String),
    #[error("A FROM clause is required")]
    MissingFrom,
    #[error("Implicit joins are not supported")]
    ImplicitJoin,
    #[error("Non-inner joins are not supported")]
    NonInnerJoin,
    #[error("Unsupported SELECT: {0}")]
    UnsupportedSelect(String),
    #[error("Unsupported set operation: {0}")]
    UnsupportedSetOperation(String),
    #[error("Unsupported INSERT expression: {0}")]
    UnsupportedInsert(String),
    #[error("Unsupported INSERT value: {0}")]
    UnsupportedInsertValue(String),
    #[error("Unsupported column/variable assignment expression: {0}")]
    UnsupportedAssignment(String),
    #[error("Unsupported table expression in DELETE: {0}")]
    UnsupportedDelete(String),
    #[error("Multi-table DELETE is not supported")]
    MultiTableDelete,
    #[error("Unsupported: {0}")]
    Unsupported(String),
    #[error("Unsupported: Non-SELECT queries")]
    NotSelect,

    // Names
    #[error("`{0}` is not in scope")]
    NotInScope(String),
    #[error("no such table: `{0}`. If the table exists, it may be marked private.")]
    NoSuchTable(String),
    #[error("Duplicate name `{0}`")]
    DuplicateName(String),
    #[error("Names must be qualified when using joins")]
    UnqualifiedName,
    #[error("SELECT * is not supported for joins")]
    WildcardOnJoin,
    #[error("Column projections are not supported in subscriptions; Subscriptions must return a table type")]
    ProjectionInSubscription,

    // Views with parameters
    #[error("View `{view}` takes {parameters} argument(s), but {arguments} were given")]
    ViewArguments {
        view: String,
        parameters: usize,
        arguments: usize,
    },
    #[error("`{0}` is a table, not a view; it does not take arguments")]
    ArgumentsOfTable(String),
    #[error(
        "Parameter `{parameter}` of view `{view}` has type {ty}, which cannot be passed from SQL"
    )]
    ViewParameterType {
        parameter: String,
        view: String,
        ty: String,
    },
    #[error("View `{0}` takes arguments, so it can only be queried as `SELECT * FROM {0}(...)`")]
    ViewTakesArguments(String),
    #[error("Unsupported view argument: {text}. View arguments must be {what}")]
    ViewArgument { text: String, what: &'static str },
    #[error("Unsupported view call in a JOIN: `{0}`. A view that takes arguments can only be queried by itself")]
    ViewCallInJoin(String),

    #[error("Cannot define RLS rule on private table: {0}. Please make table public if you wish to restrict access using RLS.")]
    RuleOnPrivateTable(String),

    // Types
    #[error("Unexpected type: (expected) {expected} != {inferred} (inferred)")]
    UnexpectedType { expected: String, inferred: String },
    #[error("Invalid binary operator `{operator}` for type `{ty}`")]
    InvalidOperator { operator: &'static str, ty: String },
    #[error("The literal expression `{text}` cannot be parsed as type `{ty}`")]
    InvalidLiteral { text: String, ty: String },
    #[error("Cannot resolve type for literal expression")]
    UntypedLiteral,

    // Statements
    #[error("Caller {} is not authorized to run SQL DML statements", .0.to_hex())]
    NotAuthorized(Identity),
    #[error("`{0}` is a system table, which SQL does not change: of these only `st_var` can be changed [LC0407]")]
    DmlOnSystemTable(String),
    #[error("Database environment variables can only be changed by publishing")]
    DmlOnEnvironment,
    #[error("SQL writes to outbox tables are not supported")]
    DmlOnOutboxTable,
    #[error("`{table}` does not have a field `{field}`")]
    NoSuchField { table: String, field: String },
    #[error("The number of fields ({fields}) in the INSERT does not match the number of columns ({columns}) of the table \"{table}\"")]
    InsertFields {
        fields: usize,
        columns: usize,
        table: String,
    },
    #[error("Inserting a row with {values} values into `{table}` which has {columns} fields")]
    InsertValues {
        values: usize,
        table: String,
        columns: usize,
    },
    #[error("SQL writes to scheduled tables are not supported")]
    DmlOnScheduledTable,
    #[error("`{0}` is a view; DML on views is not supported")]
    DmlOnView(String),
    #[error("{0} is not a valid system variable")]
    UnknownVariable(String),

    // Admission of subscriptions
    #[error("Subscriptions require indexes on join columns")]
    JoinWithoutIndex,
    #[error("Event tables cannot be used as the lookup table in subscription joins")]
    EventTableLookedUp,
    #[error("Invalid number of tables in subscription: {0}; it may read {LIVE_RELATIONS_MAX}, those of row-level security rules included [LC0719]")]
    TooManyTables(usize),

    #[error("a subscription with ORDER BY and LIMIT is not possible here: {0} [LC0415]")]
    Window(&'static str),
    #[error("{text}: a result of aggregates is live as a view of the module that returns this query; subscribe to the view [LC0416]")]
    AggregateInSubscription { text: String },

    #[error("a subscription follows a subquery by columns that equal those around it, and nothing leads to `{0}` in one: add a comparison `column = column` with the query around it, which all of its condition is joined to with AND [LC0417]")]
    UnlinkedSubquery(String),

    #[error("{0} [LC0411]")]
    Inconsistent(&'static str),
    #[error("{0} [LC0412]")]
    Subquery(&'static str),
    #[error("subqueries stand in subqueries at most {SUBQUERY_DEPTH_MAX} deep, and there are at most {SUBQUERIES_MAX} of them: write a join in place of some [LC0412]")]
    TooManySubqueries,

    // Row-level security
    #[error("Discovered cyclic dependency when resolving RLS rules for table id `{0}`")]
    CyclicRules(TableId),
    #[error("with the row-level security rules of its tables, the query would be more than {fragments_max} queries, or a long one: read fewer tables that have several rules [LC0408]")]
    RulesMultiply { fragments_max: usize },
    #[error("a query reads at most {RELATIONS_MAX} relations, row-level security rules included [LC0409]")]
    TooManyRelations,
}

impl SqlError {
    /// A text is longer than any may be.
    pub fn too_long(text: &str) -> SqlError {
        let prefix = text.chars().take(120).collect();
        SqlError::TooLong { prefix }
    }

    /// Something that is no literal stands where a view's argument does.
    pub(crate) fn view_argument(text: String) -> SqlError {
        let what = match text.contains("=>") {
            true => "positional literals",
            false => "literals",
        };
        SqlError::ViewArgument { text, what }
    }

    /// It is refused in every language that has it: for its size, or as a value that the column cannot have.
    pub fn is_final(&self) -> bool {
        match self {
            // Of sums and products there are no literals here.
            SqlError::InvalidLiteral { ty, .. } => !ty.starts_with('('),
            SqlError::TooLong { .. }
            | SqlError::MultipleStatements
            | SqlError::CyclicRules(_)
            | SqlError::RulesMultiply { .. }
            | SqlError::TooManyRelations
            | SqlError::ViewArguments { .. }
            | SqlError::ArgumentsOfTable(_)
            | SqlError::ViewParameterType { .. }
            | SqlError::ViewTakesArguments(_)
            | SqlError::ViewCallInJoin(_) => true,
            _ => false,
        }
    }
}
