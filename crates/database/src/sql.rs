//! SQL over HTTP: one statement, its rows as SATS-JSON (06 §5.14).

use std::sync::Arc;
use std::time::Duration;

use lightcone_query::{compile_statement, Projection, SelectPlan, Statement};
use lightcone_table::RowLayout;
use lightcone_types::json::bsatn_to_json_untyped;
use lightcone_types::{Reader, Typespace};
use tokio::sync::{oneshot, OwnedSemaphorePermit};

use crate::answer::ReadError;
use crate::budget::{Charge, ClientBudget, Exceeded, HeldBytes};
use crate::calls::Caller;
use crate::decode::COMPILED_HERE_BYTES_MAX;
use crate::error::SqlError;
use crate::evaluate::Source;
use crate::handle::DatabaseHandle;
use crate::inbox::{Command, FoundQuery, HttpQuery, QueryTurn};
use crate::reads::{Job, Once, Progress, Slice};

/// Answers are made, and given to the socket, in pieces of about this size.
const PIECE_BYTES: usize = 256 << 10;

/// Result of one statement.
pub struct SqlOutcome {
    /// The row type, in the named JSON form.
    pub schema_json: String,
    /// A JSON array of rows, untyped form, in pieces.
    pub rows_json: Vec<HeldBytes>,
    pub duration_us: u64,
    pub stats: SqlStats,
}

impl SqlOutcome {
    /// All pieces in one text.
    pub fn rows_json(&self) -> String {
        self.rows_json
            .iter()
            .map(|piece| String::from_utf8_lossy(piece.as_ref()))
            .collect()
    }
}

/// What a statement changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqlStats {
    pub rows_inserted: u64,
    pub rows_deleted: u64,
    pub rows_updated: u64,
}

impl DatabaseHandle {
    /// Runs one statement on the committed state. With `confirmed` the answer waits until that state is durable.
    ///
    /// # Errors
    /// As 06 §5.14.
    pub async fn sql(
        &self,
        caller: Caller,
        text: String,
        confirmed: bool,
    ) -> Result<SqlOutcome, SqlError> {
        let shared = &self.shared;
        let started = shared.environment().instant();
        let module = shared.module();
        let rights = lightcone_query::Caller {
            identity: caller.identity,
            is_owner: caller.identity == shared.options.owner,
        };
        let budget = shared.client_budget();
        let bytes = text.len();
        let compile = move || {
            compile_statement(&text, &module.catalog, &rights)
                .map(|Statement::Select(plan)| Arc::new(plan))
                .map_err(|error| SqlError::Query(error.to_string()))
        };
        let plan = if bytes <= COMPILED_HERE_BYTES_MAX {
            compile()
        } else {
            let (job, plan) = Once::new(compile);
            shared.read(&budget, Box::new(job));
            plan.await.map_err(|_| SqlError::ModuleGone)?
        };
        let ((plan, source), ticket) = self.find(caller, plan, confirmed, bytes).await?;
        let source = source.ok_or(SqlError::ModuleGone)?;
        let held = budget.reserve(source.held_bytes());
        let held = held.map_err(|exceeded| refusal(ReadError::Exceeded(exceeded)))?;
        let mut schema_json = String::new();
        lightcone_types::json::product_type_to_json(&plan.output_type(), &mut schema_json);
        let (sender, rows) = oneshot::channel();
        let job = RowsJob {
            rows: RowsJson::new(plan, source, &budget),
            sender: Some(sender),
            time_max: shared.options.limits.read_time_max,
            spent: Duration::ZERO,
        };
        shared.read(&budget, Box::new(job));
        let rows_json = rows
            .await
            .map_err(|_| SqlError::Database("evaluating the query failed".to_owned()))?
            .map_err(refusal)?;
        drop((ticket, held));
        Ok(SqlOutcome {
            schema_json,
            rows_json,
            duration_us: (shared.environment().instant() - started).as_micros() as u64,
            stats: SqlStats::default(),
        })
    }
}

impl DatabaseHandle {
    /// Finds the rows of a statement, with a permit if these are still to be looked for. Statements of all clients take turns
    /// for permits; a client over HTTP has one. What the writer finds itself waits for none.
    async fn find(
        &self,
        caller: Caller,
        plan: Result<Arc<SelectPlan>, SqlError>,
        confirmed: bool,
        bytes: usize,
    ) -> Result<(FoundQuery, Option<OwnedSemaphorePermit>), SqlError> {
        let shared = &self.shared;
        let ask = |plan, turn| self.ask(caller.clone(), plan, turn, confirmed, bytes);
        if let Ok(permit) = shared.reads.clone().try_acquire_owned() {
            return Ok((ask(plan, QueryTurn::Only).await?, Some(permit)));
        }
        let closed = |_| SqlError::ModuleGone;
        let first_try = shared.first_tries.acquire().await.map_err(closed)?;
        let (plan, source) = ask(plan, QueryTurn::First).await?;
        drop(first_try);
        if source.is_some() {
            return Ok(((plan, source), None));
        }
        let permit = shared.reads.clone().acquire_owned().await.map_err(closed)?;
        Ok((ask(Ok(plan), QueryTurn::Second).await?, Some(permit)))
    }

    /// Asks the writer for the rows of a statement, or what is needed to find them.
    async fn ask(
        &self,
        caller: Caller,
        plan: Result<Arc<SelectPlan>, SqlError>,
        turn: QueryTurn,
        confirmed: bool,
        bytes: usize,
    ) -> Result<FoundQuery, SqlError> {
        let shared = &self.shared;
        let permit = shared.inbox.permit(bytes).await?;
        let (reply, result) = oneshot::channel();
        let command = Command::Query {
            permit,
            query: HttpQuery {
                caller,
                connection_id: self.new_connection_id(),
                plan,
                turn,
            },
            confirmed,
            reply,
        };
        shared.inbox.command(command)?;
        result.await.map_err(|_| SqlError::ModuleGone)?
    }
}

fn refusal(error: ReadError) -> SqlError {
    match error {
        ReadError::Exceeded(Exceeded::Server) => SqlError::Busy(error.to_string()),
        error => SqlError::Query(error.to_string()),
    }
}

/// Rows on their way to JSON, page by page.
struct RowsJson {
    plan: Arc<SelectPlan>,
    source: Source,
    layout: RowLayout,
    columns: Vec<usize>,
    page: usize,
    count: u64,
    /// The piece under construction.
    out: String,
    pieces: Vec<HeldBytes>,
    /// Reserved for a long row in `out`.
    charge: Charge,
    budget: Arc<ClientBudget>,
    exceeded: Option<Exceeded>,
}

impl RowsJson {
    fn new(plan: Arc<SelectPlan>, source: Source, budget: &Arc<ClientBudget>) -> RowsJson {
        let types: Vec<_> = plan
            .table
            .columns
            .iter()
            .map(|column| column.ty.clone())
            .collect();
        let columns = match &plan.projection {
            Projection::Columns(columns) => columns
                .iter()
                .map(|(column, _)| usize::from(column.0))
                .collect(),
            _ => (0..types.len()).collect(),
        };
        RowsJson {
            layout: RowLayout::new(&types),
            columns,
            source,
            page: 0,
            count: 0,
            out: "[".to_owned(),
            pieces: Vec::new(),
            charge: Charge::default(),
            budget: budget.clone(),
            exceeded: None,
            plan,
        }
    }

    /// Writes the rows of the next page. False if there is none.
    fn page(&mut self) -> Result<bool, Exceeded> {
        if self.page >= self.source.page_count() {
            return Ok(false);
        }
        let (plan, source) = (
            self.plan.clone(),
            std::mem::replace(&mut self.source, Source::Count(0)),
        );
        match plan.projection {
            Projection::Count(_) => match &source {
                Source::Count(count) => self.count = *count,
                source => source.for_each_of_page(&plan, self.page, |_| self.count += 1),
            },
            _ => {
                let limit = plan.limit.unwrap_or(u64::MAX);
                source.for_each_of_page(&plan, self.page, |row| {
                    if self.count < limit && self.exceeded.is_none() {
                        self.exceeded = self.row(row).err();
                    }
                });
                if self.count >= limit {
                    self.page = source.page_count();
                }
            }
        }
        self.source = source;
        self.page += 1;
        match self.exceeded {
            Some(exceeded) => Err(exceeded),
            None => Ok(true),
        }
    }

    fn row(&mut self, row: &[u8]) -> Result<(), Exceeded> {
        if self.out.len() + row.len() >= PIECE_BYTES {
            self.end_piece()?;
        }
        if self.out.capacity() == 0 {
            self.out.reserve(PIECE_BYTES);
        }
        if row.len() > PIECE_BYTES {
            // Text of bytes is twice as long.
            self.charge = self.budget.reserve(2 * row.len())?;
        }
        let out = &mut self.out;
        if self.count > 0 {
            out.push(',');
        }
        self.count += 1;
        out.push('[');
        let typespace = Typespace::default();
        for (nth, &column) in self.columns.iter().enumerate() {
            if nth > 0 {
                out.push(',');
            }
            let reader = &mut Reader::new(self.layout.column(row, column));
            bsatn_to_json_untyped(&typespace, self.layout.column_type(column), reader, out)
                .expect("stored rows decode");
        }
        out.push(']');
        Ok(())
    }

    /// Puts what there is into a piece of its own.
    fn end_piece(&mut self) -> Result<(), Exceeded> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.charge = Charge::default();
        let piece = HeldBytes::new(std::mem::take(&mut self.out).into_bytes(), &self.budget)?;
        self.pieces.push(piece);
        Ok(())
    }

    /// Works until about `until`. None: there is more to do.
    fn step(&mut self, slice: &Slice<'_>) -> Result<Option<Vec<HeldBytes>>, Exceeded> {
        while self.page()? {
            if slice.is_over() {
                return Ok(None);
            }
        }
        if let (Projection::Count(_), false) = (&self.plan.projection, self.plan.limit == Some(0)) {
            self.out.push_str(&format!("[{}]", self.count));
        }
        self.out.push(']');
        self.end_piece()?;
        Ok(Some(std::mem::take(&mut self.pieces)))
    }
}

/// The rows of a statement, made beside the writer.
struct RowsJob {
    rows: RowsJson,
    /// None when the rows were sent.
    sender: Option<oneshot::Sender<Result<Vec<HeldBytes>, ReadError>>>,
    time_max: Duration,
    spent: Duration,
}

impl Job for RowsJob {
    fn run(&mut self, slice: &Slice<'_>) -> Progress {
        let waiting = self
            .sender
            .as_ref()
            .is_some_and(|sender| !sender.is_closed());
        if !waiting || self.rows.budget.is_gone() {
            return Progress::Done;
        }
        let step = self.rows.step(slice).map_err(ReadError::Exceeded);
        self.spent += slice.elapsed();
        let result = match step {
            Ok(None) if self.spent < self.time_max => return Progress::Again,
            Ok(None) => Err(ReadError::TooLong {
                limit: self.time_max,
            }),
            Ok(Some(pieces)) => Ok(pieces),
            Err(error) => Err(error),
        };
        if let Some(sender) = self.sender.take() {
            // Whoever asked may be gone by now.
            let _ = sender.send(result);
        }
        Progress::Done
    }
}
