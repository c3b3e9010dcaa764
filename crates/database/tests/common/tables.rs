//! A module that is nothing but tables. Its program is JSON like an entry of `08-execution.json`: `tables` with columns and
//! types, `uniqueKeys`, `indexes`, `rules`; and beyond it `autoInc` (table to column, or columns), `events` and `private` (tables), `defaults` (by
//! table, values of columns), and
//! `views`: by name, the `query` whose rows a view has for who looks, with `{sender}` for him, and the `table` that these are of,
//! or their `columns`. With `params`, names and types, `{name}` stands for what it is given; with `anonymous`, it is the same for all. It looks the table `looksUp` up first, as modules do before they use one. Instead of a query, it may be a function:
//! with `countsRows`, a table, it gives one row, the number of rows of that.
//!
//! `schedules` names a table with `id` and `at`: its rows call `tick`, which puts their ids into the table `ticked`, or makes the
//! changes `ticks`.
//!
//! With `procedures`, `tick` is a procedure: it sleeps for a while and does nothing, but is counted in [`TICKS`]. And there is the
//! procedure `later`, which takes a text: JSON of `first` and `then`, both as `change` takes them, and `us`, how long it sleeps
//! between these two transactions. There it gets the address `fetch`, if there is one, in the time `fetch_us`. It makes the
//! changes `gives_up` before, if there are any, and takes them back. With `suspends`, calls
//! of procedures are suspended while they wait, as those in WebAssembly are.
//!
//! With `migrate`, there is a migration function: it copies rows as `copy` says (from which table, into which, which columns), makes
//! the `changes`, asks for the number of rows of those that `counts` lists, has the function `immediate` called outside of the
//! transaction, then waits to be ended if `waits` is set, and fails with the text `fails`. Tables that it reads have `__old_` in front
//! of their names.
//!
//! With `rows`, there are functions for rows: by table, `into` says which rows one makes of a row of `__old_` and that name (into which
//! table, which columns; -1 is a U64 that a counter gives). It fails for rows whose first column is `failsAt`, panics where it is `traps`, sleeps for `sleeps_us`, makes
//! rows of what it was called before if `remembers` is set, reads if `reads` is, and goes on from failures if `goesOn` is.
//!
//! Each instance takes `starts_ms` to start.
//!
//! Its reducer `change` takes a text: JSON of tables with the rows to be deleted, to be inserted, and to replace those with their
//! keys in the first index, all in one transaction. A number at `sleeps_ms` is how long it takes.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use lightcone_database::{DatabaseHandle, DatabaseOptions, Engines, HostKind, JsonRows, SqlError};
use lightcone_engine::DatastoreError;
use lightcone_host::{
    lend, Ask, Counted, HoldsEnv, HostEnv, HostError, HostTrap, HttpMethod, HttpRequest,
    HttpVersion, InstanceOptions, Interrupt, Lent, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ProcedureResult, ReadSet, ReadView,
    ReducerCall, ReducerOutcome, SuspendableInstance, Suspended, Transactions, ViewCall,
    ViewOutcome, Waiting,
};
use lightcone_schema::raw::{
    CaseConversionPolicy, ExplicitNameEntry, ExplicitNames, NameMapping, RawColumnDefaultValueV10,
    RawConstraintData, RawConstraintDefV10, RawIndexAlgorithm, RawIndexDefV10, RawModuleDefV10,
    RawModuleDefV10Section as Section, RawProcedureDefV10, RawReducerDefV10,
    RawRowLevelSecurityDef, RawScheduleDefV10, RawScopedTypeNameV10, RawSequenceDefV10,
    RawTableDefV10, RawTypeDefV10, RawUniqueConstraintData, RawViewDefV10,
};
use lightcone_schema::{RawModuleDef, TableAccess, TableKind, Visibility};
use lightcone_table::RowLayout;
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{
    AlgebraicType as T, ColId, Decode as _, Identity, ProductType, Reader, TimeDuration, Timestamp,
    TypeRef, Typespace,
};
use serde_json::Value;

use super::{caller, options};

/// Migration functions that have begun to wait, in this process.
pub static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Calls of the procedure `tick`, in this process.
pub static TICKS: Ticks = Ticks {
    begun: AtomicUsize::new(0),
    running: AtomicUsize::new(0),
    running_max: AtomicUsize::new(0),
};

pub struct Ticks {
    pub begun: AtomicUsize,
    running: AtomicUsize,
    pub running_max: AtomicUsize,
}

pub struct TablesEngine;

struct Tables {
    definition: Vec<u8>,
    program: Arc<Value>,
}

struct Changing(Arc<Value>, Arc<Interrupt>, HostEnv, u64);

impl HoldsEnv for Changing {
    fn env(&mut self) -> &mut HostEnv {
        &mut self.2
    }
}

impl ModuleEngine for TablesEngine {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn load(
        &self,
        program: &[u8],
        _: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        let program: Value = serde_json::from_slice(program).expect("the program is JSON");
        Ok(Box::new(Tables {
            definition: definition(&program),
            program: Arc::new(program),
        }))
    }
}

impl LoadedModule for Tables {
    fn describe(&self) -> &[u8] {
        &self.definition
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        let program = self.program.clone();
        let ms = program["starts_ms"].as_u64().unwrap_or_default();
        std::thread::sleep(std::time::Duration::from_millis(ms));
        Ok(Box::new(Changing(program, Arc::default(), env, 0)))
    }

    fn suspends(&self) -> bool {
        self.program["suspends"] == true
    }

    fn instantiate_suspendable(
        &self,
        env: HostEnv,
    ) -> Option<Suspended<'_, Result<Box<dyn SuspendableInstance>, HostError>>> {
        let made = Changing(self.program.clone(), Arc::default(), env, 0);
        Some(Box::pin(async move {
            let made: Box<dyn SuspendableInstance> = Box::new(made);
            Ok(made)
        }))
    }
}

impl ModuleInstance for Changing {
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        if &**call.name == "tick" && self.0["ticks"].is_object() {
            return match self.change(transaction, &self.0["ticks"]) {
                Ok(()) => ReducerOutcome::Ok,
                Err(error) => ReducerOutcome::Fatal {
                    message: error.to_string(),
                },
            };
        }
        if &**call.name == "tick" {
            let datastore = transaction.into_datastore();
            let ticked = datastore.table_id_from_name("ticked").expect("a table");
            let inserted = datastore.insert(ticked, &call.args[..8], &mut Vec::new());
            inserted.expect("the key is free");
            return ReducerOutcome::Ok;
        }
        if &**call.name == "__migrate" {
            return self.migrate(transaction);
        }
        if let Some(table) = call.name.strip_prefix("__migrate_") {
            return self.make_rows(transaction, table, call.args);
        }
        let changed = self.change(transaction, &text_of(call));
        changed.expect("the keys are free");
        ReducerOutcome::Ok
    }

    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        Some(self.1.clone())
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        at_once(self.procedure(transactions, call, true))
    }

    fn call_view(
        &mut self,
        tables: ReadView<'_>,
        call: &ViewCall<'_>,
        reads: &mut ReadSet,
    ) -> ViewOutcome {
        let program = self.0.clone();
        let view = &program["views"][&**call.name];
        if let Some(table) = view["countsRows"].as_str() {
            self.2.begin_reads();
            let count = |module: &mut Changing| {
                let table = module.2.table_id_from_name(table)?;
                module.2.table_row_count(table)
            };
            let count = lend(self, Lent::Read(tables), count).expect("the table is there");
            reads.extend(self.2.end_reads());
            return ViewOutcome::Rows([&1_u32.to_le_bytes()[..], &count.to_le_bytes()].concat());
        }
        let query = with_arguments(view, call.args);
        if let Some(table) = view["looksUp"].as_str() {
            let look = |module: &mut Changing| module.2.table_id_from_name(table);
            if let Err(error) = lend(self, Lent::Read(tables), look) {
                let message = format!("{table}: {error:?}");
                return ViewOutcome::Failed { message };
            }
        }
        ViewOutcome::Query(match call.sender {
            Some(sender) => query.replace("{sender}", &format!("0x{}", sender.to_hex())),
            None => query,
        })
    }

    fn is_poisoned(&self) -> bool {
        false
    }
}

impl SuspendableInstance for Changing {
    fn call<'a>(
        &'a mut self,
        mut transactions: Box<dyn Transactions>,
        call: &'a ProcedureCall<'a>,
    ) -> Suspended<'a, ProcedureOutcome> {
        Box::pin(async move { self.procedure(&mut *transactions, call, false).await })
    }

    fn interrupt(&self) -> Arc<Interrupt> {
        self.1.clone()
    }
}

/// The result of a procedure that blocks its thread.
fn at_once<R>(future: impl Future<Output = R>) -> R {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it blocks its thread"),
    }
}

async fn wait(waiting: Option<Waiting>, blocks: bool) {
    match waiting {
        Some(waiting) if blocks => drop(waiting.blocking_recv()),
        Some(waiting) => drop(waiting.await),
        None => {}
    }
}

impl Changing {
    async fn procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        ProcedureCall { call, body, .. }: &ProcedureCall<'_>,
        blocks: bool,
    ) -> ProcedureOutcome {
        assert!(body.is_none(), "there are no handlers");
        let nothing = ProcedureResult::Value(Counted::constant(Vec::new()));
        if &**call.name == "tick" {
            TICKS.begun.fetch_add(1, Ordering::SeqCst);
            let running = TICKS.running.fetch_add(1, Ordering::SeqCst) + 1;
            TICKS.running_max.fetch_max(running, Ordering::SeqCst);
            wait(ask_sleep(transactions, 500_000), blocks).await;
            TICKS.running.fetch_sub(1, Ordering::SeqCst);
            return ProcedureOutcome::Returned(nothing);
        }
        match self.later(transactions, &text_of(call), blocks).await {
            Ok(()) => ProcedureOutcome::Returned(nothing),
            Err(trap) => ProcedureOutcome::Failed {
                message: trap.to_string(),
            },
        }
    }

    async fn later(
        &mut self,
        transactions: &mut dyn Transactions,
        what: &Value,
        blocks: bool,
    ) -> Result<(), HostTrap> {
        if what["gives_up"].is_object() {
            wait(transactions.ask(Ask::Transaction), blocks).await;
            let changed = self.change(transactions.begin()?, &what["gives_up"]);
            changed.expect("the keys are free");
            transactions.rollback();
        }
        for (place, changes) in ["first", "then"].into_iter().enumerate() {
            if place == 1 {
                let us = what["us"].as_i64().expect("a number");
                wait(ask_sleep(transactions, us), blocks).await;
                if let Some(waiting) = ask_fetch(transactions, what) {
                    wait(Some(waiting), blocks).await;
                    if let Some(trap) = transactions.ended() {
                        return Err(trap);
                    }
                    let answer = transactions.http_answer();
                    answer.map_err(|text| HostTrap::Internal(text.into()))?;
                }
            }
            wait(transactions.ask(Ask::Transaction), blocks).await;
            let changed = self.change(transactions.begin()?, &what[changes]);
            changed.expect("the keys are free");
            wait(transactions.ask(Ask::Commit), blocks).await;
            transactions.commit()?;
        }
        Ok(())
    }

    fn migrate(&mut self, transaction: OpenTransaction<'_>) -> ReducerOutcome {
        let what = &self.0["migrate"];
        let fatal = |error: &dyn std::fmt::Display| ReducerOutcome::Fatal {
            message: error.to_string(),
        };
        let datastore = transaction.into_datastore();
        for copy in what["copy"].as_array().into_iter().flatten() {
            let (from, to, columns): (String, String, Vec<usize>) =
                serde_json::from_value(copy.clone()).expect("tables and columns");
            let from = datastore.table_id_from_name(&from).expect("an old table");
            // As code of a module reads it.
            datastore.row_count(from).expect("a transaction is open");
            let table = datastore.table(from).expect("it is there");
            let mut rows = Vec::new();
            table.rows().for_each(|_, row| {
                let columns = columns.iter().map(|c| table.layout().column(row, *c));
                rows.push(columns.collect::<Vec<_>>().concat());
            });
            let to = datastore.table_id_from_name(&to).expect("a table");
            for row in rows {
                if let Err(error) = datastore.insert(to, &row, &mut Vec::new()) {
                    return fatal(&error);
                }
            }
        }
        for table in what["counts"].as_array().into_iter().flatten() {
            let table = datastore.table_id_from_name(table.as_str().expect("a name"));
            let table = table.expect("an old table");
            datastore.row_count(table).expect("a transaction is open");
        }
        if what["changes"].is_object() {
            let changed = self.change(OpenTransaction::of(datastore), &what["changes"]);
            if let Err(error) = changed {
                return fatal(&error);
            }
        }
        if let Some(function) = what["immediate"].as_str() {
            let scheduled = self.2.volatile_nonatomic_schedule_immediate(function, &[]);
            if let Err(error) = scheduled {
                return fatal(&error);
            }
        }
        if what["waits"] == true {
            WAITING.fetch_add(1, Ordering::SeqCst);
            let reason = loop {
                match self.1.reason() {
                    Some(reason) => break reason,
                    None => std::thread::sleep(std::time::Duration::from_millis(1)),
                }
            };
            let message = format!("{reason:?}");
            return ReducerOutcome::Fatal { message };
        }
        match what["fails"].as_str() {
            Some(text) => ReducerOutcome::UserError(text.to_owned()),
            None => ReducerOutcome::Ok,
        }
    }

    fn make_rows(
        &mut self,
        transaction: OpenTransaction<'_>,
        table: &str,
        row: &[u8],
    ) -> ReducerOutcome {
        let program = self.0.clone();
        let what = &program["rows"][table];
        let datastore = transaction.into_datastore();
        let types: Vec<(String, String)> =
            serde_json::from_value(program["tables"][format!("__old_{table}")].clone())
                .expect("names and types");
        let types: Vec<T> = types.iter().map(|(_, ty)| column_type(ty)).collect();
        let layout = RowLayout::new(&types);
        let first = layout.column(row, 0).first().copied().map(u64::from);
        if let Some(us) = what["sleeps_us"].as_u64() {
            std::thread::sleep(std::time::Duration::from_micros(us));
        }
        if let Some(reason) = self.1.reason() {
            let message = format!("{reason:?}");
            return ReducerOutcome::Fatal { message };
        }
        if what["reads"] == true {
            assert!(datastore.is_making(), "the host refuses to read then");
        }
        if first.is_some() && what["failsAt"].as_u64() == first {
            return ReducerOutcome::UserError("this row is not wanted".to_owned());
        }
        if first.is_some() && what["traps"].as_u64() == first {
            let message = "a trap".to_owned();
            return ReducerOutcome::Fatal { message };
        }
        self.3 += 1;
        for into in what["into"].as_array().into_iter().flatten() {
            let (to, columns): (String, Vec<i64>) =
                serde_json::from_value(into.clone()).expect("a table and columns");
            let columns = columns.iter().map(|column| match usize::try_from(*column) {
                Ok(_) if what["remembers"] == true => self.3.to_le_bytes()[..4].to_vec(),
                Ok(column) => layout.column(row, column).to_vec(),
                Err(_) => vec![0; 8],
            });
            let made = columns.collect::<Vec<_>>().concat();
            let to = datastore.table_id_for_rows(&to);
            let inserted = datastore.insert_made(to, &made, &mut Vec::new());
            if let Err(error) = inserted.or_else(|error| match what["goesOn"] == true {
                true => Ok(()),
                false => Err(error),
            }) {
                let message = error.to_string();
                return ReducerOutcome::Fatal { message };
            }
        }
        ReducerOutcome::Ok
    }

    fn change(
        &self,
        transaction: OpenTransaction<'_>,
        changes: &Value,
    ) -> Result<(), DatastoreError> {
        let datastore = transaction.into_datastore();
        for (name, change) in changes.as_object().expect("tables") {
            if name == "sleeps_ms" {
                let ms = change.as_u64().expect("a number");
                std::thread::sleep(std::time::Duration::from_millis(ms));
                continue;
            }
            let canonical = name.split('/').next().expect("a name");
            let id = datastore.table_id_from_name(canonical).expect("a table");
            let types = self.0["tables"][name].as_array().expect("columns");
            let rows = |kind: &str| {
                let rows = change[kind].as_array().cloned().unwrap_or_default();
                rows.iter().map(|row| row_bsatn(types, row)).collect()
            };
            let deletes: Vec<Vec<u8>> = rows("deletes");
            let mut listed = (deletes.len() as u32).to_vec();
            listed.extend(deletes.into_iter().flatten());
            datastore.delete_all_by_eq(id, &listed)?;
            let inserts: Vec<Vec<u8>> = rows("inserts");
            for row in inserts {
                datastore.insert(id, &row, &mut Vec::new())?;
            }
            let replaced: Vec<Vec<u8>> = rows("replaced");
            for row in replaced {
                let index = datastore.schema(id).expect("a table").indexes[0].id;
                datastore.update(id, index, &row, &mut Vec::new())?;
            }
        }
        Ok(())
    }
}

fn text_of(call: &ReducerCall<'_>) -> Value {
    let text = String::decode(&mut Reader::new(call.args)).expect("a text");
    serde_json::from_str(&text).expect("JSON")
}

fn ask_sleep(transactions: &mut dyn Transactions, us: i64) -> Option<Waiting> {
    let until = Timestamp(transactions.now().0 + us);
    (us != 0).then(|| transactions.ask(Ask::Until(until)))?
}

/// Gets what `what` says.
fn ask_fetch(transactions: &mut dyn Transactions, what: &Value) -> Option<Waiting> {
    let request = HttpRequest {
        method: HttpMethod::Get,
        headers: Vec::new(),
        timeout: what["fetch_us"].as_i64().map(TimeDuration),
        uri: what["fetch"].as_str()?.to_owned(),
        version: HttpVersion::Http11,
    };
    let body = Counted::constant(Vec::new());
    transactions.ask(Ask::Http(Box::new((request, body))))
}

/// A row of JSON values as BSATN.
pub fn row_bsatn(columns: &[Value], row: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (column, value) in columns.iter().zip(row.as_array().expect("a row")) {
        let number = || value.as_u64().expect("a number");
        match column[1].as_str().expect("a type") {
            "Bool" => value.as_bool().expect("a Bool").encode(&mut bytes),
            "U32" => (number() as u32).encode(&mut bytes),
            kind if kind.starts_with("Kind") => (number() as u8).encode(&mut bytes),
            "U64" => number().encode(&mut bytes),
            "I32" => {
                let number = value.as_i64().expect("a number");
                (number as i32).encode(&mut bytes);
            }
            // Microseconds since 1970, or of an interval if negative.
            "ScheduleAt" => {
                let time = value.as_i64().expect("a number");
                u8::from(time >= 0).encode(&mut bytes);
                time.abs().encode(&mut bytes);
            }
            "F64" => value.as_f64().expect("a number").encode(&mut bytes),
            "String" => value
                .as_str()
                .expect("a text")
                .to_owned()
                .encode(&mut bytes),
            "Identity" => Identity::from_hex(value.as_str().expect("hex"))
                .expect("an identity")
                .encode(&mut bytes),
            other => panic!("no JSON of {other}"),
        }
    }
    bytes
}

/// `Kind3` is an enum of three.
fn named_type(name: &str, types: &mut Vec<T>, names: &mut Vec<RawTypeDefV10>) -> T {
    let Some(variants) = name.strip_prefix("Kind") else {
        return column_type(name);
    };
    let count: usize = variants.parse().expect("a number");
    let variants = ["A", "B", "C", "D"].into_iter().take(count);
    types.push(T::sum(variants.map(|name| (name, T::unit()))));
    let ty = TypeRef(types.len() as u32 - 1);
    names.push(RawTypeDefV10 {
        source_name: RawScopedTypeNameV10 {
            scope: Vec::new(),
            source_name: format!("Kind{}", ty.0),
        },
        ty,
        custom_ordering: true,
    });
    T::Ref(ty)
}

fn column_type(name: &str) -> T {
    match name {
        "Bool" => T::Bool,
        "U8" => T::U8,
        "U32" => T::U32,
        "I32" => T::I32,
        "U64" => T::U64,
        "U128" => T::U128,
        "I128" => T::I128,
        "F64" => T::F64,
        "String" => T::String,
        "Bytes" => T::bytes(),
        "Identity" => T::identity(),
        "ScheduleAt" => T::schedule_at(),
        "Timestamp" => T::timestamp(),
        "Uuid" => T::uuid(),
        "Option<U64>" => T::option(T::U64),
        "Option<F64>" => T::option(T::F64),
        "Option<I128>" => T::option(T::I128),
        "Option<String>" => T::option(T::String),
        "Array<String>" => T::array(T::String),
        unknown => panic!("no type {unknown}"),
    }
}

fn definition(program: &Value) -> Vec<u8> {
    let (mut types, mut tables, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut views = Vec::new();
    let (mut schedules, mut ticks, mut procedures) = (Vec::new(), Vec::new(), Vec::new());
    let mut type_names = Vec::new();
    for (name, columns) in program["tables"].as_object().expect("tables") {
        let (canonical, source) = name.split_once('/').unwrap_or((name, name));
        names.push(ExplicitNameEntry::Table(NameMapping {
            source_name: source.to_owned(),
            canonical_name: canonical.to_owned(),
        }));
        let columns: Vec<(String, String)> =
            serde_json::from_value(columns.clone()).expect("names and types");
        let column_types: Vec<T> = columns
            .iter()
            .map(|(_, ty)| named_type(ty, &mut types, &mut type_names))
            .collect();
        let columns_of = |column: &ColId| &columns[usize::from(column.0)];
        let place = |column: &str| {
            let found = columns.iter().position(|(name, _)| name == column);
            ColId(found.expect("a column") as u16)
        };
        let key = program["uniqueKeys"][canonical].as_str().map(place);
        let listed = program["indexes"][canonical].as_array().cloned();
        let listed = listed.unwrap_or_default().into_iter().map(|columns| {
            let columns: Vec<String> = serde_json::from_value(columns).expect("columns");
            columns.iter().map(|column| place(column)).collect()
        });
        let indexes = key.map(|key| vec![key]).into_iter().chain(listed);
        let index = |columns: Vec<ColId>| {
            let names = columns.iter().map(|column: &ColId| &*columns_of(column).0);
            let name = format!("{source}_{}_idx_btree", names.collect::<Vec<_>>().join("_"));
            RawIndexDefV10 {
                source_name: Some(name),
                accessor_name: None,
                algorithm: RawIndexAlgorithm::BTree(columns),
            }
        };
        let counted = match &program["autoInc"][canonical] {
            Value::Array(columns) => columns.clone(),
            column => vec![column.clone()],
        };
        let counted = counted.iter().filter_map(Value::as_str);
        let sequence = counted.map(|column| RawSequenceDefV10 {
            source_name: None,
            column: place(column),
            start: None,
            min_value: None,
            max_value: None,
            increment: 1,
        });
        let of_views = program["views"].as_object().into_iter().flatten();
        for (view, _) in of_views.filter(|(_, view)| view["table"] == canonical) {
            views.push(view_of(
                (view, &program["views"][view]),
                &views,
                types.len(),
            ));
        }
        if program["schedules"] == canonical {
            schedules.push(RawScheduleDefV10 {
                source_name: None,
                table_name: source.to_owned(),
                schedule_at_col: place("at"),
                function_name: "tick".to_owned(),
            });
        }
        let is_old = canonical.starts_with("__old_");
        if !is_old && columns.iter().any(|(_, ty)| ty == "ScheduleAt") {
            let ty = TypeRef(types.len() as u32);
            let row = T::Ref(ty);
            type_names.push(RawTypeDefV10 {
                source_name: RawScopedTypeNameV10 {
                    scope: Vec::new(),
                    source_name: "Job".to_owned(),
                },
                ty,
                custom_ordering: true,
            });
            let row = ProductType::new([("row", row)]);
            match program["procedures"].is_null() {
                true => ticks.push(reducer("tick", row)),
                false => procedures.push(procedure("tick", row)),
            }
        }
        let is_event = |name: &Value| name == canonical;
        let mut events = program["events"].as_array().into_iter().flatten();
        let mut private = program["private"].as_array().into_iter().flatten();
        let of_table = program["defaults"][canonical].as_object();
        let defaults = of_table.into_iter().flatten().map(|(column, value)| {
            let column = place(column);
            let (name, ty) = columns_of(&column);
            let columns = [serde_json::json!([name, ty])];
            RawColumnDefaultValueV10 {
                col_id: column,
                value: row_bsatn(&columns, &serde_json::json!([value])),
            }
        });
        tables.push(RawTableDefV10 {
            source_name: source.to_owned(),
            product_type_ref: TypeRef(types.len() as u32),
            primary_key: key.into_iter().collect(),
            indexes: indexes.map(index).collect(),
            constraints: key
                .map(|key| RawConstraintDefV10 {
                    source_name: None,
                    data: RawConstraintData::Unique(RawUniqueConstraintData { columns: vec![key] }),
                })
                .into_iter()
                .collect(),
            sequences: sequence.collect(),
            table_type: TableKind::User,
            table_access: match private.any(is_event) {
                true => TableAccess::Private,
                false => TableAccess::Public,
            },
            default_values: defaults.collect(),
            is_event: events.any(is_event),
        });
        if let Some(of) = canonical.strip_prefix("__old_") {
            if program["rows"][of].is_object() {
                let ty = TypeRef(types.len() as u32);
                type_names.push(RawTypeDefV10 {
                    source_name: RawScopedTypeNameV10 {
                        scope: Vec::new(),
                        source_name: format!("Old{}", ty.0),
                    },
                    ty,
                    custom_ordering: true,
                });
                let row = T::Ref(ty);
                ticks.push(reducer(
                    &format!("__migrate_{of}"),
                    ProductType::new([("old", row)]),
                ));
            }
        }
        let names = columns.iter().map(|(name, _)| name.as_str());
        types.push(T::product(names.zip(column_types)));
    }
    let with_columns = program["views"].as_object().into_iter().flatten();
    for (view, with_columns) in with_columns.filter(|(_, view)| view["columns"].is_array()) {
        let columns: Vec<(String, String)> =
            serde_json::from_value(with_columns["columns"].clone()).expect("names and types");
        let columns = columns.iter();
        views.push(view_of((view, with_columns), &views, types.len()));
        types.push(T::product(
            columns.map(|(name, ty)| (name.as_str(), column_type(ty))),
        ));
    }
    let rules = program["rules"].as_array().into_iter().flatten();
    let rule = |sql: &Value| RawRowLevelSecurityDef {
        sql: sql.as_str().expect("a text").to_owned(),
    };
    if !program["procedures"].is_null() {
        procedures.push(procedure("later", ProductType::new([("what", T::String)])));
    }
    let change = reducer("change", ProductType::new([("changes", T::String)]));
    let migrate = program["migrate"].is_object();
    let migrate = migrate.then(|| reducer("__migrate", ProductType::new::<&str>([])));
    let sections = vec![
        Section::Typespace(Typespace { types }),
        Section::Types(type_names),
        Section::Tables(tables),
        Section::Reducers(ticks.into_iter().chain([change]).chain(migrate).collect()),
        Section::Procedures(procedures),
        Section::Schedules(schedules),
        Section::Views(views),
        Section::RowLevelSecurity(rules.map(rule).collect()),
        Section::CaseConversionPolicy(CaseConversionPolicy::None),
        Section::ExplicitNames(ExplicitNames { entries: names }),
    ];
    RawModuleDef::V10(RawModuleDefV10 { sections }).to_vec()
}

fn reducer(name: &str, params: ProductType) -> RawReducerDefV10 {
    RawReducerDefV10 {
        source_name: name.to_owned(),
        params,
        visibility: Visibility::ClientCallable,
        ok_return_type: T::product::<&str>([]),
        err_return_type: T::String,
    }
}

fn procedure(name: &str, params: ProductType) -> RawProcedureDefV10 {
    RawProcedureDefV10 {
        source_name: name.to_owned(),
        params,
        return_type: T::product::<&str>([]),
        visibility: Visibility::ClientCallable,
    }
}

fn view_of(
    (name, view): (&str, &Value),
    before: &[RawViewDefV10],
    row_type: usize,
) -> RawViewDefV10 {
    let is_anonymous = view["anonymous"] == true;
    let of_kind = before.iter();
    let of_kind = of_kind.filter(|before| before.is_anonymous == is_anonymous);
    RawViewDefV10 {
        source_name: name.to_owned(),
        index: of_kind.count() as u32,
        is_public: true,
        is_anonymous,
        params: ProductType::new(params_of(view)),
        return_type: T::array(T::Ref(TypeRef(row_type as u32))),
    }
}

fn params_of(view: &Value) -> Vec<(String, T)> {
    let params: Option<Vec<(String, String)>> =
        serde_json::from_value(view["params"].clone()).expect("names and types");
    let params = params.into_iter().flatten();
    params.map(|(name, ty)| (name, column_type(&ty))).collect()
}

/// The query of a view, with literals in the places of its parameters.
fn with_arguments(view: &Value, args: &[u8]) -> String {
    let mut query = view["query"].as_str().expect("a text").to_owned();
    let mut reader = Reader::new(args);
    for (name, ty) in params_of(view) {
        let literal = match ty {
            T::String => {
                let text = reader.read_str().expect("a text");
                format!("'{}'", text.replace('\'', "''"))
            }
            _ => u32::decode(&mut reader).expect("a number").to_string(),
        };
        query = query.replace(&format!("{{{name}}}"), &literal);
    }
    assert!(reader.remaining().is_empty(), "all of them");
    query
}

pub fn table_options(directory: &Path) -> DatabaseOptions {
    DatabaseOptions {
        engines: Engines {
            wasm: Arc::new(TablesEngine),
            js: None,
        },
        ..options(directory)
    }
}

/// A database with the tables of a program, empty.
pub async fn create_tables(options: DatabaseOptions, program: &Value) -> DatabaseHandle {
    let program = program.to_string().into_bytes();
    let create = move || DatabaseHandle::create(options, program, HostKind::Wasm);
    let created = tokio::task::spawn_blocking(create).await;
    created.expect("no panic").expect("the tables are valid")
}

/// What a statement gave: rows, and how many were inserted, updated and deleted.
pub async fn sql(
    database: &DatabaseHandle,
    identity: Identity,
    text: &str,
) -> Result<(Value, [u64; 3]), String> {
    let encoder = JsonRows::default();
    let run = database.sql(caller(identity), text.to_owned(), true, encoder);
    match run.await {
        Ok(outcome) => {
            let rows = serde_json::from_str(&outcome.text()).expect("JSON");
            let stats = outcome.stats;
            let counts = [stats.rows_inserted, stats.rows_updated, stats.rows_deleted];
            Ok((rows, counts))
        }
        Err(SqlError::Query(text)) => Err(text),
        Err(other) => panic!("{text}: {other:?}"),
    }
}
