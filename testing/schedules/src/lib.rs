//! Scheduled reducers and procedures in unit tests of modules: they run when a test lets time pass (docs/design/module-tests.md).
//!
//! ```ignore
//! let test = TestContext::new()?;
//! let mut time = Schedules::new(&test).reducer("reminders", remind).procedure("reports", report);
//! test.with_reducer_tx(user("ann"), |ctx| remind_me(ctx, 3600))?;
//! assert!(time.advance(TimeDuration::from_micros(3_600_000_000)).is_empty());
//! ```

use std::collections::BTreeMap;
use std::fmt::Display;

use spacetimedb::spacetimedb_lib::bsatn;
use spacetimedb::test_utils::{TestAuth, TestContext};
use spacetimedb::{DeserializeOwned, ProcedureContext, ReducerContext, TimeDuration, Timestamp};
use spacetimedb_test_datastore::{ScheduledRow, ScheduledTime};

/// Shorter intervals count as this long, as on a server.
const INTERVAL_US_MIN: i64 = 1000;

/// What a reducer returns: nothing, or why it refuses.
pub trait Outcome {
    fn refusal(self) -> Result<(), String>;
}

impl Outcome for () {
    fn refusal(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn refusal(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

type Run = Box<dyn Fn(&TestContext, &[u8]) -> Result<(), String>>;

/// A function that rows call.
struct Function {
    is_procedure: bool,
    run: Run,
}

/// The calls that are to come of a test's database, and the functions that they are of.
pub struct Schedules {
    test: TestContext,
    /// By the table whose rows call them.
    functions: BTreeMap<String, Function>,
    /// When the rows that were there are due, in microseconds.
    due: BTreeMap<(u32, u64), (ScheduledRow, i64)>,
}

impl Schedules {
    /// Knows no function yet.
    pub fn new(test: &TestContext) -> Schedules {
        Schedules {
            test: test.clone(),
            functions: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    /// The reducer that rows of the table call.
    pub fn reducer<Row, R>(self, table: &str, reducer: fn(&ReducerContext, Row) -> R) -> Schedules
    where
        Row: DeserializeOwned + 'static,
        R: Outcome + 'static,
    {
        let run = move |test: &TestContext, row: &[u8]| {
            let row = row_of(row);
            test.with_reducer_tx(TestAuth::internal(), |ctx| reducer(ctx, row).refusal())
        };
        self.with(table, false, Box::new(run))
    }

    /// The procedure that rows of the table call. While it sleeps, nothing else runs.
    pub fn procedure<Row, R>(
        self,
        table: &str,
        procedure: fn(&mut ProcedureContext, Row) -> R,
    ) -> Schedules
    where
        Row: DeserializeOwned + 'static,
        R: 'static,
    {
        let run = move |test: &TestContext, row: &[u8]| {
            procedure(
                &mut test.procedure_context(TestAuth::internal()),
                row_of(row),
            );
            Ok(())
        };
        self.with(table, true, Box::new(run))
    }

    fn with(mut self, table: &str, is_procedure: bool, run: Run) -> Schedules {
        let function = Function { is_procedure, run };
        self.functions.insert(table.to_owned(), function);
        self
    }

    /// Lets so much time pass: what is due runs, each at its time and in order. Gives what reducers have refused, which a server logs.
    ///
    /// An interval begins when this first sees its row, so it is called too before the clock is moved in another way.
    ///
    /// # Panics
    /// A function does, or none is known for a row that is due.
    #[must_use = "what reducers have refused"]
    pub fn advance(&mut self, by: TimeDuration) -> Vec<String> {
        let end_us = self.now_us() + by.to_micros();
        let mut refused = Vec::new();
        loop {
            self.plan();
            let first = self
                .due
                .values()
                .min_by_key(|(row, due_us)| (*due_us, row.key()));
            let Some((row, due_us)) = first.filter(|(_, due_us)| *due_us <= end_us).cloned() else {
                break;
            };
            self.set_clock(due_us);
            refused.extend(self.run(&row, due_us).err());
        }
        self.set_clock(end_us);
        refused
    }

    fn now_us(&self) -> i64 {
        self.test.clock.now().to_micros_since_unix_epoch()
    }

    /// Procedures that sleep may have moved it further.
    fn set_clock(&self, us: i64) {
        let now_us = self.now_us().max(us);
        self.test
            .clock
            .set(Timestamp::from_micros_since_unix_epoch(now_us));
    }

    fn rows(&self) -> Vec<ScheduledRow> {
        let rows = self.test.datastore().scheduled_rows();
        rows.expect("no transaction is open while time passes")
    }

    /// Rows that came, changed or went since.
    fn plan(&mut self) {
        let now_us = self.now_us();
        let before = std::mem::take(&mut self.due);
        for row in self.rows() {
            let same = before
                .get(&row.key())
                .filter(|(old, _)| old.planned == row.planned);
            let due_us = match (same, row.planned) {
                (Some((_, due_us)), _) => *due_us,
                (None, ScheduledTime::At(time_us)) => time_us.max(now_us),
                (None, ScheduledTime::Every(step_us)) => now_us + step_us.max(INTERVAL_US_MIN),
            };
            self.due.insert(row.key(), (row, due_us));
        }
    }

    /// Calls the function of a row that is due. A row that calls once goes: before a procedure, and after a reducer.
    fn run(&mut self, row: &ScheduledRow, due_us: i64) -> Result<(), String> {
        let datastore = self.test.datastore().clone();
        let table = &row.table;
        let function = self.functions.get(table);
        let function = function.unwrap_or_else(|| {
            panic!("a row of `{table}` is due: name its function by .reducer({table:?}, …) or .procedure({table:?}, …)")
        });
        let found = datastore.scheduled_row(row);
        let bytes = found
            .expect("no transaction is open")
            .expect("it was there just now");
        let once = matches!(row.planned, ScheduledTime::At(_));
        let delete = || {
            datastore
                .delete_scheduled_row(row)
                .expect("it may be deleted")
        };
        if once && function.is_procedure {
            delete();
        }
        let result = (function.run)(&self.test, &bytes);
        let mut rows = self.rows().into_iter();
        let after = rows.find(|other| other.key() == row.key());
        let is_unchanged = after.is_some_and(|after| after.planned == row.planned);
        match row.planned {
            ScheduledTime::At(_) if is_unchanged && !function.is_procedure => delete(),
            ScheduledTime::Every(step_us) if is_unchanged => {
                let step_us = step_us.max(INTERVAL_US_MIN);
                let passed = (self.now_us() - due_us).max(0) / step_us;
                let next_us = due_us + (passed + 1) * step_us;
                self.due.insert(row.key(), (row.clone(), next_us));
            }
            _ => {}
        }
        result
    }
}

fn row_of<Row: DeserializeOwned>(row: &[u8]) -> Row {
    bsatn::from_slice(row).expect("the function takes a row of its table")
}
