//! A module engine whose modules are written in Rust: a program is a list of words that say how the module behaves.
//!
//! `module` must be the first word. `fail-init`: the init reducer refuses. `refuse`: the connect reducer refuses; `tired`: it uses up
//! its budget.
//! `changed`: one more table. `rule:` and a query with `+` for the spaces: a row-level security rule; `secret`: a private
//! table. `table:` and `private:` with a name: a table of this name, public or not. `level`: a column with a default in `person`;
//! `level-plain`: without one. `long-id`: another type of its key. `unique-names`: an index and a unique constraint. `v9`: the older
//! form, without HTTP handlers. `procedure`: a procedure that fails. `typed`: a table with columns of many types. `items`: one with
//! numbers from a sequence, another unique column, a default and an option. `timer`: a schedule table with one row. `named`: a view of the
//! people with the name that it is given. `hang`: loading never ends, and nothing stops it. `slow-load`: loading takes
//! [`SLOW_LOAD`]. `held-load`: it takes as long as [`HELD`]. Any other word only makes the program a different one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use lightcone_database::Engines;
use lightcone_host::{
    Counted, HandlerResponse, HostEnv, HostError, HttpHeader, HttpMethod, HttpRequest,
    HttpResponse, HttpVersion, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ProcedureResult, ReadSet, ReadView,
    ReducerCall, ReducerOutcome, Transactions, ViewCall, ViewOutcome,
};
use lightcone_schema::raw::{
    FunctionVisibility, MethodOrAny, RawColumnDefaultValueV10, RawConstraintData,
    RawConstraintDefV10, RawHttpHandlerDefV10, RawHttpRouteDefV10, RawIndexAlgorithm,
    RawIndexDefV10, RawLifeCycleReducerDefV10, RawModuleDefV10, RawModuleDefV10Section as Section,
    RawProcedureDefV10, RawReducerDefV10, RawRowLevelSecurityDef, RawScheduleDefV10,
    RawScopedTypeNameV10, RawSequenceDefV10, RawTableDefV10, RawTypeDefV10,
    RawUniqueConstraintData, RawViewDefV10,
};
use lightcone_schema::{Lifecycle, ModuleDef, RawModuleDef, TableAccess, TableKind};
use lightcone_types::bsatn::{Decode as _, Encode as _};
use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

pub const SLOW_LOAD: std::time::Duration = std::time::Duration::from_millis(700);
/// Set by a test of its own process alone.
pub static HELD: AtomicBool = AtomicBool::new(false);

pub fn engines() -> Engines {
    Engines {
        wasm: Arc::new(FakeEngine),
        js: None,
    }
}

pub struct FakeEngine;

struct FakeModule {
    definition: Vec<u8>,
    words: Vec<String>,
}

struct FakeInstance {
    words: Vec<String>,
}

impl ModuleEngine for FakeEngine {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn load(
        &self,
        program: &[u8],
        _: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        let words: Vec<String> = String::from_utf8_lossy(program)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if words.first().map(String::as_str) != Some("module") {
            return Err(HostError::Compile("the first word is not `module`".into()));
        }
        while words.iter().any(|word| word == "hang") {
            std::thread::park();
        }
        if words.iter().any(|word| word == "slow-load") {
            std::thread::sleep(SLOW_LOAD);
        }
        while HELD.load(Ordering::SeqCst) && words.iter().any(|word| word == "held-load") {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(Box::new(FakeModule {
            definition: definition(&words),
            words,
        }))
    }
}

impl LoadedModule for FakeModule {
    fn describe(&self) -> &[u8] {
        &self.definition
    }

    fn instantiate(&self, _: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        Ok(Box::new(FakeInstance {
            words: self.words.clone(),
        }))
    }
}

impl ModuleInstance for FakeInstance {
    /// Procedures do nothing. The handler `show` answers with what it got, `answer` with the response that the request's body is, in
    /// lines: status, headers.
    fn call_procedure(
        &mut self,
        _: &mut dyn Transactions,
        ProcedureCall { call, body, .. }: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        let Some(body) = body else {
            return ProcedureOutcome::Failed {
                message: format!("{} does nothing", call.name),
            };
        };
        let request = HttpRequest::from_slice(call.args).expect("a request");
        let text = String::from_utf8_lossy(body).into_owned();
        let mut lines = text.lines();
        let (code, headers, body) = match &**call.name {
            "show" => {
                let mut shown = format!("{:?} {}\n", request.method, request.uri);
                for HttpHeader { name, value } in &request.headers {
                    shown += &format!("{name}: {}\n", value.escape_ascii());
                }
                (
                    200,
                    Vec::new(),
                    format!("{shown}{} {text}", body.len()).into_bytes(),
                )
            }
            "answer" => {
                let code = lines.next().and_then(|line| line.parse().ok());
                let header = |line: &str| {
                    let (name, value) = line.split_once(':').expect("a header");
                    let (name, value) = (name.to_owned(), value.as_bytes().to_vec());
                    HttpHeader { name, value }
                };
                (
                    code.expect("a status"),
                    lines.map(header).collect(),
                    b"answered".to_vec(),
                )
            }
            _ => {
                return ProcedureOutcome::Failed {
                    message: "the handler's own words".to_owned(),
                }
            }
        };
        let version = HttpVersion::Http3;
        let head = HttpResponse {
            headers,
            version,
            code,
        }
        .to_vec();
        let (head, body) = (Counted::constant(head), Counted::constant(body));
        ProcedureOutcome::Returned(ProcedureResult::Response(HandlerResponse { head, body }))
    }

    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        let datastore = transaction.into_datastore();
        let has = |word: &str| self.words.iter().any(|each| each == word);
        match &**call.name {
            "init" if has("timer") => {
                let table = datastore.table_id_from_name("timer").expect("table");
                let mut row = 1_u64.to_vec();
                // An interval of 10 ms.
                row.push(0);
                10_000_i64.encode(&mut row);
                match datastore.insert(table, &row, &mut Vec::new()) {
                    Ok(()) => ReducerOutcome::Ok,
                    Err(error) => ReducerOutcome::UserError(error.to_string()),
                }
            }
            "tick" => {
                let table = datastore.table_id_from_name("person").expect("table");
                let people = datastore.row_count(table).expect("table") as u32;
                let mut row = (people + 1000).to_vec();
                "tick".encode(&mut row);
                match datastore.insert(table, &row, &mut Vec::new()) {
                    Ok(()) => ReducerOutcome::Ok,
                    Err(error) => ReducerOutcome::UserError(error.to_string()),
                }
            }
            "init" if has("fail-init") => ReducerOutcome::UserError("init does not want to".into()),
            "on_connect" if has("tired") => ReducerOutcome::TimedOut {
                message: "the call ran too long".into(),
            },
            "on_connect" if has("refuse") => {
                ReducerOutcome::UserError("no client may enter".into())
            }
            "add" => {
                let table = datastore.table_id_from_name("person").expect("table");
                match datastore.insert(table, call.args, &mut Vec::new()) {
                    Ok(()) => ReducerOutcome::Ok,
                    Err(error) => ReducerOutcome::UserError(error.to_string()),
                }
            }
            "fail" => {
                let text = call.args.get(4..).unwrap_or_default();
                ReducerOutcome::UserError(String::from_utf8_lossy(text).into_owned())
            }
            "panic" => ReducerOutcome::Fatal {
                message: "what really happened".into(),
            },
            "slow" => ReducerOutcome::TimedOut {
                message: "call_ms_max".into(),
            },
            _ => ReducerOutcome::Ok,
        }
    }

    fn call_view(&mut self, _: ReadView<'_>, call: &ViewCall<'_>, _: &mut ReadSet) -> ViewOutcome {
        let name = String::from_slice(call.args).expect("a name");
        let name = name.replace('\'', "''");
        ViewOutcome::Query(format!("SELECT * FROM person WHERE name = '{name}'"))
    }

    fn is_poisoned(&self) -> bool {
        false
    }
}

fn definition(words: &[String]) -> Vec<u8> {
    let person =
        || AlgebraicType::product([("id", AlgebraicType::U32), ("name", AlgebraicType::String)]);
    let product = |fields: &[(&'static str, AlgebraicType)]| -> ProductType {
        match AlgebraicType::product(fields.iter().cloned()) {
            AlgebraicType::Product(product) => product,
            _ => unreachable!(),
        }
    };
    let reducer = |name: &str, params: ProductType, visibility| RawReducerDefV10 {
        source_name: name.into(),
        params,
        visibility,
        ok_return_type: AlgebraicType::unit(),
        err_return_type: AlgebraicType::String,
    };
    let (open, private) = (
        FunctionVisibility::ClientCallable,
        FunctionVisibility::Private,
    );
    let table = |name: &str, type_ref| RawTableDefV10 {
        source_name: name.into(),
        product_type_ref: TypeRef(type_ref),
        primary_key: vec![ColId(0)],
        indexes: vec![RawIndexDefV10 {
            source_name: Some(format!("{name}_id_idx_btree")),
            accessor_name: None,
            algorithm: RawIndexAlgorithm::BTree(vec![ColId(0)]),
        }],
        constraints: vec![RawConstraintDefV10 {
            source_name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(0)],
            }),
        }],
        sequences: vec![],
        table_type: TableKind::User,
        table_access: TableAccess::Public,
        default_values: vec![],
        is_event: false,
    };
    let lifecycle = |lifecycle_spec, name: &str| RawLifeCycleReducerDefV10 {
        lifecycle_spec,
        function_name: name.into(),
    };
    let route = |method, path: &str, handler: &str| RawHttpRouteDefV10 {
        handler_function: handler.to_owned(),
        method,
        path: path.to_owned(),
    };
    let has = |word: &str| words.iter().any(|w| w == word);
    let mut tables = vec![table("person", 0)];
    let mut types = vec![person()];
    if has("long-id") {
        types[0] =
            AlgebraicType::product([("id", AlgebraicType::U64), ("name", AlgebraicType::String)]);
    }
    if has("level") || has("level-plain") {
        types[0] = AlgebraicType::product([
            ("id", AlgebraicType::U32),
            ("name", AlgebraicType::String),
            ("level", AlgebraicType::U16),
        ]);
    }
    if has("level") {
        tables[0].default_values.push(RawColumnDefaultValueV10 {
            col_id: ColId(2),
            value: vec![7, 0],
        });
    }
    if has("unique-names") {
        tables[0].indexes.push(RawIndexDefV10 {
            source_name: Some("person_name_idx_btree".into()),
            accessor_name: None,
            algorithm: RawIndexAlgorithm::BTree(vec![ColId(1)]),
        });
        tables[0].constraints.push(RawConstraintDefV10 {
            source_name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(1)],
            }),
        });
    }
    if words.iter().any(|word| word == "changed") {
        types.push(person());
        tables.push(table("extra", 1));
    }
    if words.iter().any(|word| word == "secret") {
        types.push(person());
        tables.push(RawTableDefV10 {
            table_access: TableAccess::Private,
            ..table("secret", types.len() as u32 - 1)
        });
    }
    if words.iter().any(|word| word == "typed") {
        use AlgebraicType as T;
        types.push(T::product([
            ("id", T::U32),
            ("flag", T::Bool),
            ("small", T::I16),
            ("whole", T::I32),
            ("long", T::I64),
            ("large", T::U64),
            ("ratio", T::F64),
            ("label", T::String),
            ("blob", T::bytes()),
            ("uid", T::uuid()),
            ("at", T::timestamp()),
            ("tags", T::array(T::String)),
        ]));
        tables.push(table("typed", types.len() as u32 - 1));
    }
    if has("items") {
        use AlgebraicType as T;
        types.push(T::product([
            ("id", T::U64),
            ("code", T::String),
            ("note", T::option(T::String)),
            ("amount", T::I32),
            ("paid", T::Bool),
        ]));
        let mut items = table("item", types.len() as u32 - 1);
        items.sequences.push(RawSequenceDefV10 {
            source_name: None,
            column: ColId(0),
            start: None,
            min_value: None,
            max_value: None,
            increment: 1,
        });
        items.default_values.push(RawColumnDefaultValueV10 {
            col_id: ColId(3),
            value: vec![7, 0, 0, 0],
        });
        items.indexes.push(RawIndexDefV10 {
            source_name: Some("item_code_idx_btree".into()),
            accessor_name: None,
            algorithm: RawIndexAlgorithm::BTree(vec![ColId(1)]),
        });
        items.constraints.push(RawConstraintDefV10 {
            source_name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(1)],
            }),
        });
        tables.push(items);
    }
    for word in words {
        let (name, table_access) = match word.split_once(':') {
            Some(("table", name)) => (name, TableAccess::Public),
            Some(("private", name)) => (name, TableAccess::Private),
            _ => continue,
        };
        types.push(person());
        tables.push(RawTableDefV10 {
            table_access,
            ..table(name, types.len() as u32 - 1)
        });
    }
    let rules = words.iter().filter_map(|word| word.strip_prefix("rule:"));
    let rules = rules.map(|sql| RawRowLevelSecurityDef {
        sql: sql.replace('+', " "),
    });
    let has_timer = words.iter().any(|word| word == "timer");
    let mut ticks = Vec::new();
    let timer_type = TypeRef(types.len() as u32);
    if has_timer {
        types.push(AlgebraicType::product([
            ("scheduled_id", AlgebraicType::U64),
            ("scheduled_at", AlgebraicType::schedule_at()),
        ]));
        tables.push(table("timer", timer_type.0));
        let row = AlgebraicType::Ref(timer_type);
        ticks.push(reducer("tick", product(&[("timer", row)]), private));
    }
    let mut sections = vec![
        Section::RowLevelSecurity(rules.collect()),
        Section::Typespace(Typespace { types }),
        Section::Tables(tables),
        Section::Reducers(
            ticks
                .into_iter()
                .chain([
                    reducer("init", product(&[]), private),
                    reducer("on_connect", product(&[]), private),
                    reducer(
                        "add",
                        product(&[("id", AlgebraicType::U32), ("name", AlgebraicType::String)]),
                        open,
                    ),
                    reducer("fail", product(&[("message", AlgebraicType::String)]), open),
                    reducer("panic", product(&[]), open),
                    reducer("slow", product(&[]), open),
                    reducer("hidden", product(&[]), private),
                ])
                .collect(),
        ),
        Section::HttpHandlers(
            ["show", "answer", "broken"]
                .map(|name| RawHttpHandlerDefV10 {
                    source_name: name.to_owned(),
                })
                .to_vec(),
        ),
        Section::HttpRoutes(vec![
            route(MethodOrAny::Any, "", "show"),
            route(MethodOrAny::Method(HttpMethod::Get), "/", "show"),
            route(MethodOrAny::Any, "/ab/c", "show"),
            route(MethodOrAny::Method(HttpMethod::Get), "/get", "show"),
            route(MethodOrAny::Any, "/answer", "answer"),
            route(MethodOrAny::Any, "/broken", "broken"),
        ]),
        Section::LifeCycleReducers(vec![
            lifecycle(Lifecycle::Init, "init"),
            lifecycle(Lifecycle::OnConnect, "on_connect"),
        ]),
    ];
    if has("named") {
        sections.push(Section::Views(vec![RawViewDefV10 {
            source_name: "named".into(),
            index: 0,
            is_public: true,
            is_anonymous: true,
            params: product(&[("name", AlgebraicType::String)]),
            return_type: AlgebraicType::array(AlgebraicType::Ref(TypeRef(0))),
        }]));
    }
    if has("procedure") {
        sections.push(Section::Procedures(vec![RawProcedureDefV10 {
            source_name: "work".into(),
            params: product(&[]),
            return_type: AlgebraicType::unit(),
            visibility: open,
        }]));
    }
    if has_timer {
        sections.push(Section::Types(vec![RawTypeDefV10 {
            source_name: RawScopedTypeNameV10 {
                scope: vec![],
                source_name: "Timer".into(),
            },
            ty: timer_type,
            custom_ordering: true,
        }]));
        sections.push(Section::Schedules(vec![RawScheduleDefV10 {
            source_name: None,
            table_name: "timer".into(),
            schedule_at_col: ColId(1),
            function_name: "tick".into(),
        }]));
    }
    let definition = RawModuleDef::V10(RawModuleDefV10 { sections });
    if !has("v9") {
        return definition.to_vec();
    }
    let valid = ModuleDef::validate(definition).expect("a valid module");
    RawModuleDef::V9(valid.to_raw_v9()).to_vec()
}
