//! The entry for fuzz targets.

use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableAccess, TableKind, TableSchema};
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Identity, TableId};

use crate::{compile_statement, compile_subscription, Caller, Catalog, Statement};

struct OneTable(Arc<TableSchema>);

impl Catalog for OneTable {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        (name == self.0.name).then(|| Arc::clone(&self.0))
    }
}

fn table() -> TableSchema {
    let column = |(name, ty): (&str, AlgebraicType)| ColumnSchema {
        name: name.to_owned(),
        accessor: None,
        ty,
    };
    let columns = [
        ("a", AlgebraicType::U32),
        ("b", AlgebraicType::Bool),
        ("s", AlgebraicType::String),
        ("f", AlgebraicType::F64),
        ("i", AlgebraicType::identity()),
        ("x", AlgebraicType::bytes()),
        ("t", AlgebraicType::timestamp()),
    ];
    TableSchema {
        id: TableId(4096),
        name: "t".to_owned(),
        accessor: None,
        columns: columns.into_iter().map(column).collect(),
        primary_key: None,
        indexes: Vec::new(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        access: TableAccess::Public,
        kind: TableKind::User,
        is_event: false,
        view: None,
    }
}

/// Compiles `data` as query text in both languages and evaluates what comes out. Must return, whatever `data` is.
pub fn fuzz_sql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let catalog = OneTable(Arc::new(table()));
    let caller = Caller {
        identity: Identity::ZERO,
        is_owner: false,
    };
    let types: Vec<AlgebraicType> = catalog.0.columns.iter().map(|c| c.ty.clone()).collect();
    let layout = RowLayout::new(&types);
    // 4 + 1 bytes, an empty string, a float, an identity, no bytes, a timestamp.
    let row = [0u8; 4 + 1 + 4 + 8 + 32 + 4 + 8];
    let condition_only = format!("SELECT * FROM t WHERE {text}");
    let plans = [&*text, &condition_only].into_iter().flat_map(|text| {
        let ad_hoc = compile_statement(text, &catalog, &caller)
            .ok()
            .and_then(Statement::into_query);
        [compile_subscription(text, &catalog, &caller).ok(), ad_hoc]
    });
    for query in plans.flatten() {
        let Some(plan) = query.only_select_plan(&caller.identity) else {
            continue;
        };
        let whole = plan
            .predicate
            .as_ref()
            .is_none_or(|p| p.matches(&layout, &row));
        let handled: Vec<_> = plan.equalities.iter().map(|(column, _)| *column).collect();
        let residual = plan.residual(&handled);
        let rest = residual.as_ref().is_none_or(|p| p.matches(&layout, &row));
        // The residual is a part of the whole, so it can only be weaker.
        assert!(
            rest || !whole,
            "the residual of {:?} refuses a row the query takes",
            plan.text
        );
    }
}
