//! A catalog for tests.
#![allow(dead_code)]

pub mod database;
pub mod values;

use std::sync::{Arc, OnceLock};

use lightcone_query::{
    compile_statement, compile_subscription, Caller, Catalog, Query, RowChange, SelectPlan,
    SqlError, Statement,
};
use lightcone_schema::{
    ColumnSchema, IndexAlgorithm, IndexSchema, TableAccess, TableKind, TableSchema, ViewSchema,
};
use lightcone_table::RowLayout;
use lightcone_types::bsatn::encode_value;
use lightcone_types::{
    AlgebraicType, AlgebraicValue, ColId, Identity, IndexId, ProductTypeElement, TableId,
};

const GUARDED_RULE: &str =
    "SELECT guarded.* FROM guarded JOIN team ON guarded.id = team.id WHERE team.open = TRUE";
static GUARDED: OnceLock<Vec<String>> = OnceLock::new();

pub struct Tables(pub Vec<Arc<TableSchema>>);

impl Catalog for Tables {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let canonical = self.0.iter().find(|t| t.name == name);
        canonical
            .or_else(|| self.0.iter().find(|t| t.accessor.as_deref() == Some(name)))
            .cloned()
    }

    fn parameters(&self, _: TableId) -> &[ProductTypeElement] {
        &[]
    }

    fn rules(&self, table: TableId) -> &[String] {
        let guarded = self.0.iter().any(|t| t.id == table && t.name == "guarded");
        let rules = guarded.then(|| GUARDED.get_or_init(|| vec![GUARDED_RULE.to_owned()]));
        rules.map_or(&[], Vec::as_slice)
    }
}

/// A public table; a column name `canonical/accessor` gives both names.
pub fn table(id: u32, name: &str, columns: &[(&str, AlgebraicType)]) -> TableSchema {
    let (canonical, accessor) = names(name);
    let column = |(name, ty): &(&str, AlgebraicType)| {
        let (name, accessor) = names(name);
        ColumnSchema {
            name,
            accessor,
            ty: ty.clone(),
        }
    };
    let columns = columns.iter().map(column).collect();
    TableSchema {
        accessor,
        ..TableSchema::plain(TableId(id), canonical, columns)
    }
}

/// An index over columns.
pub fn btree(columns: &[u16]) -> IndexSchema {
    IndexSchema {
        id: IndexId(1),
        name: "i".to_owned(),
        accessor: None,
        algorithm: IndexAlgorithm::BTree(columns.iter().map(|column| ColId(*column)).collect()),
        unique: false,
    }
}

/// The backing table of an anonymous view with a column `id`.
fn view(id: u32, name: &str, access: TableAccess) -> TableSchema {
    use AlgebraicType as T;
    let mut view = table(id, name, &[("arg_hash", T::U256), ("id", T::U32)]);
    view.access = access;
    view.view = Some(ViewSchema {
        id,
        is_anonymous: true,
    });
    view
}

fn names(text: &str) -> (String, Option<String>) {
    match text.split_once('/') {
        Some((canonical, accessor)) => (canonical.to_owned(), Some(accessor.to_owned())),
        None => (text.to_owned(), None),
    }
}

/// The tables of 08 §20, those of §17.1, and some with awkward names.
pub fn catalog() -> Tables {
    use AlgebraicType as T;
    let strings = T::array(T::String);
    let mut private = table(7, "secret", &[("id", T::U32)]);
    private.access = TableAccess::Private;
    let mut event = table(8, "event", &[("id", T::U32)]);
    event.is_event = true;
    let mut system = table(1, "st_table", &[("table_id", T::U32)]);
    system.kind = TableKind::System;
    let mut variables = table(
        17,
        "st_var",
        &[("name", T::String), ("value", T::sum([("U64", T::U64)]))],
    );
    variables.kind = TableKind::System;
    let tables = vec![
        variables,
        table(
            2,
            "t",
            &[
                ("ts", T::timestamp()),
                ("i_8/i8", T::I8),
                ("u_8/u8", T::U8),
                ("i_16/i16", T::I16),
                ("u_16/u16", T::U16),
                ("i_32/i32", T::I32),
                ("u_32/u32", T::U32),
                ("i_64/i64", T::I64),
                ("u_64/u64", T::U64),
                ("int", T::U32),
                ("f_32/f32", T::F32),
                ("f_64/f64", T::F64),
                ("i_128/i128", T::I128),
                ("u_128/u128", T::U128),
                ("i_256/i256", T::I256),
                ("u_256/u256", T::U256),
                ("str", T::String),
                ("arr", strings.clone()),
            ],
        ),
        table(
            3,
            "s",
            &[
                ("id", T::identity()),
                ("u32", T::U32),
                ("arr", strings),
                ("bytes", T::bytes()),
            ],
        ),
        table(
            4,
            "player",
            &[
                ("id", T::U64),
                ("level", T::I32),
                ("score", T::F64),
                ("name", T::String),
                ("online", T::Bool),
                ("big", T::I256),
                ("identity", T::identity()),
                ("conn", T::connection_id()),
                ("ts", T::timestamp()),
                ("uid", T::uuid()),
                ("team_id/teamId", T::U32),
                ("muted", T::Bool),
                ("maybe", T::option(T::U64)),
                ("wait", T::time_duration()),
            ],
        ),
        table(
            5,
            "team",
            &[("id", T::U32), ("open", T::Bool), ("label", T::String)],
        ),
        table(6, "we\"ird", &[("co\"l", T::String)]),
        private,
        event,
        system,
        table(9, "lib.items", &[("id", T::U32)]),
        table(
            10,
            "player_state/playerState",
            &[("player_id/playerId", T::U32)],
        ),
        table(
            11,
            "user",
            &[
                ("identity", T::identity()),
                ("order", T::U32),
                ("timestamp", T::timestamp()),
            ],
        ),
        table(12, "guarded", &[("id", T::U32)]),
        table(13, "ns.t", &[("a", T::U32)]),
        table(14, "ns.s", &[("a", T::U32)]),
        table(15, "users", &[("id", T::U32), ("age", T::U32)]),
        table(16, "other", &[("uid", T::U32)]),
        view(117, "public_view", TableAccess::Public),
        view(118, "private_view", TableAccess::Private),
    ];
    let mut ranked = table(17, "ranked", &[("a", T::U32), ("b", T::U32)]);
    ranked.indexes.push(btree(&[0, 1]));
    let mut keyed = table(18, "keyed", &[("id", T::U32), ("owner", T::identity())]);
    keyed.indexes.push(btree(&[0]));
    let mut happening = table(19, "happening", &[("id", T::U32)]);
    happening.is_event = true;
    happening.indexes.push(btree(&[0]));
    let tables = tables.into_iter().chain([ranked, keyed, happening]);
    Tables(tables.map(Arc::new).collect())
}

pub fn owner() -> Caller {
    Caller {
        identity: Identity::from_le_bytes([7; 32]),
        is_owner: true,
    }
}

pub fn guest() -> Caller {
    let mut bytes = [0; 32];
    bytes[0] = 1;
    Caller {
        identity: Identity::from_le_bytes(bytes),
        is_owner: false,
    }
}

pub fn subscription_query(text: &str) -> Result<Query, SqlError> {
    compile_subscription(text, &catalog(), &guest())
}

pub fn ad_hoc_query(text: &str) -> Result<Query, SqlError> {
    compile_statement(text, &catalog(), &guest())
        .map(|statement| statement.into_query().expect("a query"))
}

/// The plan of a query on one relation.
pub fn only(query: Query) -> SelectPlan {
    let plan = query.only_select_plan(&guest().identity);
    plan.unwrap_or_else(|| panic!("{}: several relations", query.text))
}

pub fn subscription(text: &str) -> Result<SelectPlan, SqlError> {
    subscription_query(text).map(only)
}

pub fn ad_hoc(text: &str) -> Result<SelectPlan, SqlError> {
    let plan_of = |statement| match statement {
        Statement::Select(query) => only(query),
        Statement::Write(write) => match write.change {
            RowChange::Update { rows, .. } | RowChange::Delete { rows } => {
                rows.plan().expect("no subqueries").clone()
            }
            change => panic!("{change:?} reads no rows"),
        },
        Statement::Past(as_of, _) => panic!("{text}: the state {as_of}"),
    };
    compile_statement(text, &catalog(), &guest()).map(plan_of)
}

pub fn layout(table: &TableSchema) -> RowLayout {
    let types: Vec<AlgebraicType> = table.columns.iter().map(|c| c.ty.clone()).collect();
    RowLayout::new(&types)
}

pub fn encode_row(values: &[AlgebraicValue]) -> Vec<u8> {
    let mut row = Vec::new();
    for value in values {
        encode_value(value, &mut row);
    }
    row
}

pub fn matches(plan: &SelectPlan, row: &[u8]) -> bool {
    plan.predicate
        .as_ref()
        .is_none_or(|p| p.matches(&layout(&plan.table), row))
}

/// How many cases a property is tried with: more if PROPTEST_CASES says so.
pub fn cases(cases: u32) -> u32 {
    let wanted = std::env::var("PROPTEST_CASES").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(cases)
}
