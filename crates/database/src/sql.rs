//! SQL from outside of a connection: one statement, its rows in the form of a front door (06 §5.14).

mod as_of;
mod json;
mod reading;
mod rows;

use std::sync::Arc;

use lightcone_query::{compile_postgresql, compile_statement, ParameterText, Statement, WritePlan};
use lightcone_types::{AlgebraicType, AsOf, Identity, ProductType};
use tokio::sync::OwnedSemaphorePermit;

use self::as_of::{check_past, refused};
use self::rows::RowsOf;
use crate::budget::{ClientBudget, HeldBytes, Holder};
use crate::calls::Caller;
use crate::catalog::{CatalogView, WithoutEnvironment};
use crate::decode::COMPILED_HERE_BYTES_MAX;
use crate::error::{Refusal, SqlError};
use crate::evaluate::Source;
use crate::handle::DatabaseHandle;
use crate::inbox::{FoundQuery, HttpQuery, HttpWrite, Input, QueryTurn};
use crate::reads::Once;
use crate::rights::Rights;
use crate::statements::{SqlStats, Write, Written};
use lightcone_live::BoundQuery;

pub use self::json::JsonRows;
pub use self::reading::Compiler;
pub use self::rows::{Piece, ResultRow, RowEncoder};

/// Result of one statement.
pub struct SqlOutcome {
    /// What the rows are made of.
    pub columns: ProductType,
    /// What the encoder has written, in pieces that are each to be freed when they are sent.
    pub rows: Vec<HeldBytes>,
    pub duration_us: u64,
    pub stats: SqlStats,
}

impl SqlOutcome {
    /// All rows in one text, if the encoder writes text.
    pub fn text(&self) -> String {
        let pieces = self.rows.iter();
        pieces
            .map(|piece| String::from_utf8_lossy(piece.as_ref()))
            .collect()
    }
}

/// What a client asks for.
#[derive(Default)]
struct Asks {
    text: String,
    /// The answer waits until what it was computed from is durable.
    confirmed: bool,
    only_reads: bool,
    of_assistant: bool,
    /// It is of a program for PostgreSQL. If it does not compile, nothing is run.
    is_postgresql: bool,
}

/// A statement that compiles.
#[derive(Clone, Debug)]
pub struct Described {
    pub parameters: Vec<AlgebraicType>,
    /// None if it gives no rows.
    pub columns: Option<ProductType>,
}

impl DatabaseHandle {
    /// Whom the rows of statements are held for that one client asks, one after the other.
    pub fn holder(&self) -> Holder {
        Holder::new(self.shared.client_budget())
    }

    /// Runs one statement of a client that asks no other.
    ///
    /// # Errors
    /// As 06 §5.14.
    pub async fn sql(
        &self,
        caller: Caller,
        text: String,
        confirmed: bool,
        encoder: impl RowEncoder + 'static,
    ) -> Result<SqlOutcome, SqlError> {
        let statement = Asks {
            text,
            confirmed,
            ..Asks::default()
        };
        self.run(&self.holder(), caller, statement, encoder).await
    }

    /// Runs one statement of an assistant, who is not shown variables of the environment; with `only_reads`, if it changes nothing.
    ///
    /// # Errors
    /// As 06 §5.14, and [`SqlError::Writes`].
    pub async fn sql_of_assistant(
        &self,
        caller: Caller,
        text: String,
        (confirmed, only_reads): (bool, bool),
        encoder: impl RowEncoder + 'static,
    ) -> Result<SqlOutcome, SqlError> {
        let statement = Asks {
            text,
            confirmed,
            only_reads,
            of_assistant: true,
            ..Asks::default()
        };
        self.run(&self.holder(), caller, statement, encoder).await
    }

    /// Runs one statement of a program for PostgreSQL.
    ///
    /// # Errors
    /// As 06 §5.14, and [`SqlError::NotCompiled`].
    pub async fn sql_for(
        &self,
        holder: &Holder,
        caller: Caller,
        text: String,
        (confirmed, only_reads): (bool, bool),
        encoder: impl RowEncoder + 'static,
    ) -> Result<SqlOutcome, SqlError> {
        let statement = Asks {
            text,
            confirmed,
            only_reads,
            is_postgresql: true,
            ..Asks::default()
        };
        self.run(holder, caller, statement, encoder).await
    }

    /// Compiles a statement without running it.
    ///
    /// # Errors
    /// What it is refused for, whatever the values of its parameters.
    pub async fn describe(
        &self,
        holder: &Holder,
        caller: &Caller,
        text: Arc<ParameterText>,
    ) -> Result<Described, SqlError> {
        let shared = &self.shared;
        let module = shared.module();
        let rights = shared.rights_of(&caller.identity, caller.rights);
        let identity = caller.identity;
        // Each parameter may take one more compilation.
        let bytes = text.text().len() * (text.count() + 1);
        let compile = move || {
            let (parameters, statement) = text
                .describe(
                    &WithoutEnvironment(&module.catalog),
                    &rights.caller(identity),
                )
                .map_err(not_compiled)?;
            let statement = permitted(statement, rights, identity)?;
            let columns = match &statement {
                Statement::Select(plan) => Some(plan.output_type()),
                Statement::Write(_) => None,
                Statement::Past(..) => {
                    return Err(refused(
                        "a prepared statement has no AS OF: send it as a simple query",
                    ))
                }
            };
            Ok(Described {
                parameters,
                columns,
            })
        };
        self.compile(holder, bytes, compile).await
    }

    /// Compiles statements of so many bytes: here if they are few.
    async fn compile<T: Send + 'static>(
        &self,
        holder: &Holder,
        bytes: usize,
        compile: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        match bytes <= COMPILED_HERE_BYTES_MAX {
            true => compile(),
            false => self.run_beside(holder, compile).await?,
        }
    }

    /// Does other work for a client on the threads for reads.
    ///
    /// # Errors
    /// The server stops, or has a bug that ended the work.
    pub async fn run_beside<T: Send + 'static>(
        &self,
        holder: &Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SqlError> {
        let (job, done) = Once::new(work);
        self.shared.read(holder.budget(), Box::new(job));
        done.await.map_err(|_| SqlError::ModuleGone)
    }

    /// Runs a statement on the committed state, and has its rows written by `encoder` on one of the threads for reads. With
    /// `confirmed` the answer waits until that state is durable.
    async fn run(
        &self,
        holder: &Holder,
        caller: Caller,
        Asks {
            text,
            confirmed,
            only_reads,
            of_assistant,
            is_postgresql,
        }: Asks,
        encoder: impl RowEncoder + 'static,
    ) -> Result<SqlOutcome, SqlError> {
        let shared = &self.shared;
        let started = shared.environment().instant();
        let module = shared.module();
        let identity = caller.identity;
        let rights = shared.rights_of(&identity, caller.rights);
        let budget = holder.budget();
        let bytes = text.len();
        let asks = rights.caller(identity);
        let compile_text = move |text: &str, catalog: &CatalogView| {
            let shown = WithoutEnvironment(catalog);
            match (is_postgresql, of_assistant) {
                (true, _) => compile_postgresql(text, &shown, &asks).map_err(not_compiled),
                (false, true) => Ok(compile_statement(text, &shown, &asks).map_err(Refusal::from)?),
                (false, false) => {
                    Ok(compile_statement(text, catalog, &asks).map_err(Refusal::from)?)
                }
            }
        };
        let compile = move || {
            let statement = compile_text(&text, &module.catalog)?;
            if only_reads && matches!(statement, Statement::Write(_)) {
                return Err(SqlError::Writes);
            }
            let statement = permitted(statement, rights, identity)?;
            Ok(Compiled::new(statement, identity))
        };
        let outcome = |columns, rows| SqlOutcome {
            columns,
            rows,
            duration_us: (shared.environment().instant() - started).as_micros() as u64,
            stats: SqlStats::default(),
        };
        let plan = match self.compile(holder, bytes, compile).await {
            Ok(Compiled::Write(plan)) => {
                let statements = vec![Write::plan(plan, bytes)];
                let written = self.write(caller, statements, true, confirmed).await?;
                let columns = ProductType::new::<&str>([]);
                return Ok(SqlOutcome {
                    stats: written.stats,
                    ..outcome(columns, no_rows(encoder, budget)?)
                });
            }
            Ok(Compiled::Past(as_of, text)) => {
                check_past(rights)?;
                let compile = move |catalog: &CatalogView| {
                    let query = compile_text(&text, catalog)?.into_query();
                    Ok(BoundQuery::new(query.ok_or(SqlError::Writes)?, identity))
                };
                let found = self.find_as_of(as_of, &caller, compile).await?;
                let (plan, source, turn) = found;
                let held = budget.reserve(source.held_bytes())?;
                let (columns, rows) = self.rows_of(budget, plan, source, encoder).await?;
                drop((turn, held));
                // All of it took a while.
                self.shared.check_past_now(&caller)?;
                return Ok(outcome(columns, rows));
            }
            Ok(Compiled::Read(plan)) => Ok(vec![plan]),
            // Nothing is run, also not what the module does for a client that comes.
            Err(error @ (SqlError::Writes | SqlError::ModuleGone | SqlError::NotCompiled(_))) => {
                return Err(error)
            }
            Err(error) => Err(error),
        };
        let mut encoder = Some(encoder);
        let encoder = || encoder.take().expect("one plan has one encoder");
        let mut read = self
            .read(budget, caller, plan, confirmed, bytes, encoder)
            .await?;
        let (columns, rows) = read.pop().expect("one plan was read");
        Ok(outcome(columns, rows))
    }

    /// The columns of a plan, and its rows as the encoder writes them.
    async fn rows_of<E: RowEncoder + 'static>(
        &self,
        budget: &Arc<ClientBudget>,
        plan: BoundQuery,
        source: Source,
        encoder: E,
    ) -> Result<(ProductType, Vec<HeldBytes>), SqlError> {
        let columns = plan.output_type();
        let rows = RowsOf::new(plan, source, encoder, budget);
        let rows = self.shared.read_for(budget, rows).await;
        let failed = |_| SqlError::Database("evaluating the query failed".to_owned());
        Ok((columns, rows.map_err(failed)??))
    }

    /// The rows of plans in one state, those of each by an encoder of its own.
    async fn read<E: RowEncoder + 'static>(
        &self,
        budget: &Arc<ClientBudget>,
        caller: Caller,
        plans: Result<Vec<BoundQuery>, SqlError>,
        confirmed: bool,
        bytes: usize,
        mut encoder: impl FnMut() -> E,
    ) -> Result<Vec<(ProductType, Vec<HeldBytes>)>, SqlError> {
        let ((plans, sources), ticket) = self.find(caller, plans, confirmed, bytes).await?;
        let sources = sources.ok_or(SqlError::ModuleGone)?;
        let held = budget.reserve(sources.iter().map(Source::held_bytes).sum())?;
        let mut read = Vec::with_capacity(plans.len());
        for (plan, source) in plans.into_iter().zip(sources) {
            read.push(self.rows_of(budget, plan, source, encoder()).await?);
        }
        drop((ticket, held));
        Ok(read)
    }
}

fn not_compiled(error: lightcone_query::SqlError) -> SqlError {
    match error.is_final() {
        true => Refusal::from(error).into(),
        false => SqlError::NotCompiled(error.to_string()),
    }
}

/// A statement that was compiled for a caller who sees all rows: he may not be one who changes them.
fn permitted(
    statement: Statement,
    rights: Rights,
    identity: Identity,
) -> Result<Statement, SqlError> {
    match statement {
        Statement::Write(_) if !rights.writes_rows() => Err(SqlError::not_authorized(identity)),
        statement => Ok(statement),
    }
}

/// A checked statement, to be shared with the writer.
enum Compiled {
    Read(BoundQuery),
    Write(Arc<WritePlan>),
    Past(AsOf, String),
}

impl Compiled {
    fn new(statement: Statement, sender: Identity) -> Compiled {
        match statement {
            Statement::Select(query) => Compiled::Read(BoundQuery::new(query, sender)),
            Statement::Write(plan) => Compiled::Write(Arc::new(plan)),
            Statement::Past(as_of, text) => Compiled::Past(as_of, text),
        }
    }
}

/// What an encoder writes for a statement that has no rows to give.
fn no_rows<E: RowEncoder>(
    mut encoder: E,
    budget: &Arc<ClientBudget>,
) -> Result<Vec<HeldBytes>, SqlError> {
    let mut out = E::Out::default();
    encoder.begin(&mut out);
    encoder.end(&mut out);
    Ok(vec![HeldBytes::new(out.into_bytes(), budget)?])
}

impl DatabaseHandle {
    /// Compiles a statement of the ad hoc language that changes rows, as [`sql_for`](Self::sql_for) does.
    ///
    /// # Errors
    /// What it is refused for; [`SqlError::NotCompiled`] also if it changes nothing.
    pub async fn compile_write(
        &self,
        holder: &Holder,
        caller: &Caller,
        text: String,
    ) -> Result<Write, SqlError> {
        let shared = &self.shared;
        let module = shared.module();
        let (identity, bytes) = (caller.identity, text.len());
        let rights = shared.rights_of(&identity, caller.rights);
        let compile = move || {
            let asks = rights.caller(identity);
            let catalog = WithoutEnvironment(&module.catalog);
            let statement = compile_postgresql(&text, &catalog, &asks);
            match permitted(statement.map_err(not_compiled)?, rights, identity)? {
                Statement::Write(plan) => Ok(Write::plan(Arc::new(plan), bytes)),
                Statement::Select(_) | Statement::Past(..) => {
                    Err(SqlError::NotCompiled("it changes nothing".to_owned()))
                }
            }
        };
        self.compile(holder, bytes, compile).await
    }

    /// Runs statements as one transaction. Gives what the last has answered. Without `is_kept`, nothing stays of it but that.
    ///
    /// # Errors
    /// One of them fails, or answers otherwise than before: nothing is kept then.
    pub async fn write(
        &self,
        caller: Caller,
        statements: Vec<Write>,
        is_kept: bool,
        confirmed: bool,
    ) -> Result<Arc<Written>, SqlError> {
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        let writes = statements.iter().any(|of| of.change.table().is_some());
        if writes && !rights.writes_rows() {
            return Err(SqlError::not_authorized(caller.identity));
        }
        let bytes = statements.iter().map(|of| of.bytes).sum();
        let permit = self.shared.inbox.capacity.permit(bytes).await?;
        let write = HttpWrite {
            caller,
            connection_id: self.new_connection_id(),
            statements,
            is_kept,
        };
        let write = |waiter| Input::Write(write, waiter);
        self.shared.ask(Some(permit), confirmed, write).await?
    }

    /// Finds the rows of a statement, with a permit if these are still to be looked for. Statements of all clients take turns
    /// for permits; a client over HTTP has one. What the writer finds itself waits for none.
    async fn find(
        &self,
        caller: Caller,
        plans: Result<Vec<BoundQuery>, SqlError>,
        confirmed: bool,
        bytes: usize,
    ) -> Result<(FoundQuery, Option<OwnedSemaphorePermit>), SqlError> {
        let shared = &self.shared;
        let ask = |plans, turn| self.ask(caller.clone(), plans, turn, confirmed, bytes);
        if let Ok(permit) = shared.reads.clone().try_acquire_owned() {
            return Ok((ask(plans, QueryTurn::Only).await?, Some(permit)));
        }
        let closed = |_| SqlError::ModuleGone;
        let first_try = shared.first_tries.acquire().await.map_err(closed)?;
        let (plans, sources) = ask(plans, QueryTurn::First).await?;
        drop(first_try);
        if sources.is_some() {
            return Ok(((plans, sources), None));
        }
        let permit = shared.reads.clone().acquire_owned().await.map_err(closed)?;
        Ok((ask(Ok(plans), QueryTurn::Second).await?, Some(permit)))
    }

    /// Asks the writer for the rows of a statement, or what is needed to find them.
    async fn ask(
        &self,
        caller: Caller,
        plans: Result<Vec<BoundQuery>, SqlError>,
        turn: QueryTurn,
        confirmed: bool,
        bytes: usize,
    ) -> Result<FoundQuery, SqlError> {
        let shared = &self.shared;
        let permit = shared.inbox.capacity.permit(bytes).await?;
        let query = HttpQuery {
            caller,
            connection_id: self.new_connection_id(),
            plans,
            turn,
        };
        let query = |waiter| Input::Query(query, waiter);
        shared.ask(Some(permit), confirmed, query).await?
    }
}
