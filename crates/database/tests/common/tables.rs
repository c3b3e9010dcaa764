//! A module that is nothing but tables. Its program is JSON like an entry of `08-execution.json`: `tables` with columns and
//! types, `uniqueKeys`, `indexes`, `rules`; and beyond it `autoInc` (table to column) and `events` (tables).

use std::path::Path;
use std::sync::Arc;

use lightcone_database::{DatabaseHandle, DatabaseOptions, Engines, HostKind, JsonRows, SqlError};
use lightcone_host::{
    HandlerResponse, HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine,
    ModuleInstance, OpenTransaction, ProcedureOutcome, ReducerCall, ReducerOutcome, Transactions,
};
use lightcone_schema::raw::{
    CaseConversionPolicy, ExplicitNameEntry, ExplicitNames, NameMapping, RawConstraintData,
    RawConstraintDefV10, RawIndexAlgorithm, RawIndexDefV10, RawModuleDefV10,
    RawModuleDefV10Section as Section, RawRowLevelSecurityDef, RawSequenceDefV10, RawTableDefV10,
    RawUniqueConstraintData,
};
use lightcone_schema::{RawModuleDef, TableAccess, TableKind};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{AlgebraicType as T, ColId, Identity, TypeRef, Typespace};
use serde_json::Value;

use super::{caller, options};

pub struct TablesEngine;

struct Tables(Vec<u8>);

struct Nothing;

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
        Ok(Box::new(Tables(definition(&program))))
    }
}

impl LoadedModule for Tables {
    fn describe(&self) -> &[u8] {
        &self.0
    }

    fn instantiate(&self, _: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        Ok(Box::new(Nothing))
    }
}

impl ModuleInstance for Nothing {
    fn call_reducer(&mut self, _: OpenTransaction<'_>, _: &ReducerCall<'_>) -> ReducerOutcome {
        ReducerOutcome::Ok
    }

    fn call_procedure(
        &mut self,
        _: &mut dyn Transactions,
        _: &ReducerCall<'_>,
    ) -> ProcedureOutcome {
        unreachable!("there are no procedures")
    }

    fn call_http_handler(
        &mut self,
        _: &mut dyn Transactions,
        _: &ReducerCall<'_>,
        _: &[u8],
    ) -> ProcedureOutcome<HandlerResponse> {
        unreachable!("there are no handlers")
    }

    fn is_poisoned(&self) -> bool {
        false
    }
}

fn column_type(name: &str) -> T {
    match name {
        "Bool" => T::Bool,
        "U8" => T::U8,
        "U32" => T::U32,
        "I32" => T::I32,
        "U64" => T::U64,
        "F64" => T::F64,
        "String" => T::String,
        "Bytes" => T::bytes(),
        "Identity" => T::identity(),
        "Timestamp" => T::timestamp(),
        "Uuid" => T::uuid(),
        "Option<U64>" => T::option(T::U64),
        "Array<String>" => T::array(T::String),
        unknown => panic!("no type {unknown}"),
    }
}

fn definition(program: &Value) -> Vec<u8> {
    let (mut types, mut tables, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (name, columns) in program["tables"].as_object().expect("tables") {
        let (canonical, source) = name.split_once('/').unwrap_or((name, name));
        names.push(ExplicitNameEntry::Table(NameMapping {
            source_name: source.to_owned(),
            canonical_name: canonical.to_owned(),
        }));
        let columns: Vec<(String, String)> =
            serde_json::from_value(columns.clone()).expect("names and types");
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
        let sequence = program["autoInc"][canonical]
            .as_str()
            .map(|column| RawSequenceDefV10 {
                source_name: None,
                column: place(column),
                start: None,
                min_value: None,
                max_value: None,
                increment: 1,
            });
        let is_event = |name: &Value| name == canonical;
        let mut events = program["events"].as_array().into_iter().flatten();
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
            sequences: sequence.into_iter().collect(),
            table_type: TableKind::User,
            table_access: TableAccess::Public,
            default_values: Vec::new(),
            is_event: events.any(is_event),
        });
        types.push(T::product(
            columns
                .iter()
                .map(|(name, ty)| (name.as_str(), column_type(ty))),
        ));
    }
    let rules = program["rules"].as_array().into_iter().flatten();
    let rule = |sql: &Value| RawRowLevelSecurityDef {
        sql: sql.as_str().expect("a text").to_owned(),
    };
    let sections = vec![
        Section::Typespace(Typespace { types }),
        Section::Tables(tables),
        Section::RowLevelSecurity(rules.map(rule).collect()),
        Section::CaseConversionPolicy(CaseConversionPolicy::None),
        Section::ExplicitNames(ExplicitNames { entries: names }),
    ];
    RawModuleDef::V10(RawModuleDefV10 { sections }).to_vec()
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
    let program = program.to_string().into_bytes().into();
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
