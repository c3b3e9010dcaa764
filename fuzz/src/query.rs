//! Queries: their texts, and what they give on a few rows.

use std::sync::Arc;

use lightcone_query::{
    compile_statement, compile_subscription, Caller, Catalog, Progress, Run, Statement,
};
use lightcone_schema::{ColumnSchema, IndexAlgorithm, IndexSchema, TableSchema, ViewSchema};
use lightcone_table::{Table, TableView, Tables};
use lightcone_types::bsatn::{decode_value, Reader};
use lightcone_types::{
    AlgebraicType, ColId, Identity, IndexId, ProductType, ProductTypeElement, TableId, Typespace,
};

fn table(id: u32, name: &str) -> TableSchema {
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
    let columns = columns.into_iter().map(column).collect();
    TableSchema::plain(TableId(id), name.to_owned(), columns)
}

const VIEW: ViewSchema = ViewSchema {
    id: 1,
    is_anonymous: true,
};

/// A number, a text and a time: what arguments are made of.
fn parameters() -> Vec<ProductTypeElement> {
    let types = [
        ("n", AlgebraicType::U32),
        ("s", AlgebraicType::String),
        ("t", AlgebraicType::timestamp()),
    ];
    ProductType::new(types).elements
}

/// Compiles `data` as query text in both languages and evaluates what comes out. Must return, whatever `data` is.
pub fn fuzz_sql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let catalog = FewTables::new(&["t", "v"], &[]);
    let caller = Caller {
        identity: Identity::ZERO,
        is_owner: false,
    };
    let layout = catalog.tables[0].layout();
    // 4 + 1 bytes, an empty string, a float, an identity, no bytes, a timestamp.
    let row = [0u8; 4 + 1 + 4 + 8 + 32 + 4 + 8];
    let condition_only = format!("SELECT * FROM t WHERE {text}");
    let arguments_only = format!("SELECT * FROM v({text})");
    let plans = [&*text, &condition_only, &arguments_only]
        .into_iter()
        .flat_map(|text| {
            let mut ad_hoc = compile_statement(text, &catalog, &caller);
            if let Ok(Statement::Past(_, rest)) = &ad_hoc {
                ad_hoc = compile_statement(rest, &catalog, &caller);
                assert!(!matches!(ad_hoc, Ok(Statement::Past(..))), "{text}");
            }
            let ad_hoc = ad_hoc.ok().and_then(Statement::into_query);
            [compile_subscription(text, &catalog, &caller).ok(), ad_hoc]
        });
    for query in plans.flatten() {
        // Whatever is given to the view decodes as what it takes.
        if let Some(arguments) = &query.arguments {
            let mut reader = Reader::new(arguments);
            for parameter in &catalog.parameters {
                let ty = &parameter.algebraic_type;
                let value = decode_value(&Typespace::default(), ty, &mut reader);
                assert!(value.is_ok(), "{}: {arguments:?}", query.text);
            }
            assert!(reader.remaining().is_empty(), "{}", query.text);
            continue;
        }
        let Some(plan) = query.only_select_plan(&caller.identity) else {
            continue;
        };
        let whole = plan
            .predicate
            .as_ref()
            .is_none_or(|p| p.matches(layout, &row));
        let handled: Vec<_> = plan.equalities.iter().map(|(column, _)| *column).collect();
        let residual = plan.residual(&handled);
        let rest = residual.as_ref().is_none_or(|p| p.matches(layout, &row));
        // The residual is a part of the whole, so it can only be weaker.
        assert!(
            rest || !whole,
            "the residual of {:?} refuses a row the query takes",
            plan.text
        );
    }
}

/// Tables of a few rows, with a row-level security rule for `s`.
struct FewTables {
    tables: Vec<Table>,
    rules: Vec<String>,
    /// Of the view `v`.
    parameters: Vec<ProductTypeElement>,
}

impl FewTables {
    fn new(names: &[&str], indexes: &[&[u16]]) -> FewTables {
        let table = |(id, name): (u32, &&str)| {
            let mut schema = table(id, name);
            if *name == "v" {
                (schema.view, schema.columns[0].ty) = (Some(VIEW), AlgebraicType::HASH);
            }
            let index = |columns: &&[u16]| IndexSchema {
                id: IndexId(0),
                name: "i".to_owned(),
                accessor: None,
                algorithm: IndexAlgorithm::BTree(columns.iter().map(|c| ColId(*c)).collect()),
                unique: false,
            };
            schema.indexes = indexes.iter().map(index).collect();
            let mut table = Table::new(Arc::new(schema));
            for n in 0..6u8 {
                // The columns of `table` in turn: a number, a truth value, a text, a float, an identity, bytes, a time.
                let mut row = vec![n % 4, 0, 0, 0, n % 2, 1, 0, 0, 0, b'a' + n % 2];
                row.extend((f64::from(n % 3) - 1.0).to_le_bytes());
                row.extend([n % 2; 32]);
                row.extend([0; 4]);
                row.extend(i64::from(n).to_le_bytes());
                // Rows are valid, and differ in their times.
                let _ = table.insert(&row);
            }
            table
        };
        FewTables {
            tables: (4096..).zip(names).map(table).collect(),
            parameters: parameters(),
            rules: vec!["SELECT s.* FROM s JOIN r ON s.a = r.a WHERE r.i = :sender".to_owned()],
        }
    }
}

impl Catalog for FewTables {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let found = self.tables.iter().find(|table| table.schema.name == name)?;
        Some(found.schema.clone())
    }

    fn parameters(&self, table: TableId) -> &[ProductTypeElement] {
        let is_view = |of: &&Table| of.schema.id == table && of.schema.view.is_some();
        match self.tables.iter().find(is_view) {
            Some(_) => &self.parameters,
            None => &[],
        }
    }

    fn rules(&self, table: TableId) -> &[String] {
        match table.0 {
            4097 => &self.rules,
            _ => &[],
        }
    }
}

impl Tables for FewTables {
    fn table(&self, id: TableId) -> Option<&TableView> {
        let found = self.tables.iter().find(|table| table.schema.id == id)?;
        Some(found)
    }
}

/// A query that is not evaluated by then is given up.
const STEPS_MAX: usize = 1 << 17;
/// Work is done in pieces of so many steps.
const PIECE_STEPS: usize = 100;

/// The rows of a query, sorted; None if that takes too long or too much.
fn rows_of(text: &str, tables: &FewTables) -> Option<Vec<Vec<u8>>> {
    let caller = Caller {
        identity: Identity::ZERO,
        is_owner: false,
    };
    let query = compile_statement(text, tables, &caller)
        .ok()?
        .into_query()?;
    let mut run = Run::new(Arc::new(query), caller.identity, 1 << 16);
    let mut rows = Vec::new();
    for _ in 0..STEPS_MAX / PIECE_STEPS {
        let mut steps = PIECE_STEPS;
        let progress = run.run(tables, &mut steps, |row| {
            rows.push(row.to_vec());
            true
        });
        if progress.ok()? == Progress::Done {
            rows.sort_unstable();
            return Some(rows);
        }
    }
    None
}

/// Evaluates `data` as the end of a query, with indexes and without. Both must return, with the same rows.
pub fn fuzz_plan(data: &[u8]) {
    let end = String::from_utf8_lossy(data);
    let indexed = FewTables::new(&["r", "s"], &[&[0], &[1, 0], &[3], &[4, 2]]);
    let plain = FewTables::new(&["r", "s"], &[]);
    // Which rows come out under a limit depends on the plan.
    let is_limited = end.to_ascii_lowercase().contains("limit")
        || end.to_ascii_lowercase().contains("offset")
        || end.to_ascii_lowercase().contains("explain");
    for text in [
        format!("SELECT r.* FROM r {end}"),
        format!("SELECT s.* FROM r JOIN s ON {end}"),
        format!("SELECT COUNT(*) AS n FROM s WHERE {end}"),
        format!("SELECT {end}"),
    ] {
        let (found, expected) = (rows_of(&text, &indexed), rows_of(&text, &plain));
        if let (Some(found), Some(expected), false) = (found, expected, is_limited) {
            assert_eq!(found, expected, "{text}");
        }
    }
}
