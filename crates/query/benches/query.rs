//! Cost of compiling a query and of testing one row.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lightcone_query::{compile_subscription, Caller, Catalog};
use lightcone_schema::{ColumnSchema, TableSchema};
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Identity, ProductTypeElement, TableId};

struct OneTable(Arc<TableSchema>);

impl Catalog for OneTable {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        (name == self.0.name).then(|| Arc::clone(&self.0))
    }

    fn parameters(&self, _: TableId) -> &[ProductTypeElement] {
        &[]
    }

    fn rules(&self, _: TableId) -> &[String] {
        &[]
    }
}

/// `accounts(id, balance, name, region)`: two columns at fixed places, two behind a string's length.
fn accounts() -> OneTable {
    let column = |(name, ty): (&str, AlgebraicType)| ColumnSchema {
        name: name.to_owned(),
        accessor: None,
        ty,
    };
    let columns = [
        ("id", AlgebraicType::U32),
        ("balance", AlgebraicType::I64),
        ("name", AlgebraicType::String),
        ("region", AlgebraicType::U16),
    ];
    let columns = columns.into_iter().map(column).collect();
    OneTable(Arc::new(TableSchema::plain(
        TableId(4096),
        "accounts".to_owned(),
        columns,
    )))
}

fn rows() -> Vec<Vec<u8>> {
    let row = |n: u32| {
        let mut row = n.to_le_bytes().to_vec();
        row.extend((i64::from(n) * 3 - 500).to_le_bytes());
        let name = format!("account {n}");
        row.extend((name.len() as u32).to_le_bytes());
        row.extend(name.as_bytes());
        row.extend(((n % 7) as u16).to_le_bytes());
        row
    };
    (0..1000).map(row).collect()
}

const QUERIES: &[(&str, &str)] = &[
    ("point", "SELECT * FROM accounts WHERE id = 7"),
    ("range", "SELECT * FROM accounts WHERE balance >= 100 AND balance < 900"),
    ("string", "SELECT * FROM accounts WHERE name = 'account 500'"),
    ("behind string", "SELECT * FROM accounts WHERE region = 3"),
    ("or", "SELECT * FROM accounts WHERE id = 1 OR id = 2 OR id = 3 OR (balance > 0 AND NOT region = 5)"),
];

fn benchmarks(criterion: &mut Criterion) {
    let catalog = accounts();
    let caller = Caller {
        identity: Identity::ZERO,
        is_owner: false,
    };
    let types: Vec<AlgebraicType> = catalog.0.columns.iter().map(|c| c.ty.clone()).collect();
    let layout = RowLayout::new(&types);
    let rows = rows();
    let compile = |text: &str| {
        let query = compile_subscription(text, &catalog, &caller).expect("the query is valid");
        query
            .only_select_plan(&caller.identity)
            .expect("it is on one table")
    };

    let mut group = criterion.benchmark_group("compile");
    for (name, text) in QUERIES {
        group.bench_function(*name, |b| b.iter(|| compile(black_box(text))));
    }
    group.finish();

    let mut group = criterion.benchmark_group("row");
    group.throughput(Throughput::Elements(rows.len() as u64));
    for (name, text) in QUERIES {
        let predicate = compile(text).predicate.expect("the query has a condition");
        group.bench_function(*name, |b| {
            b.iter(|| {
                rows.iter()
                    .filter(|row| predicate.matches(&layout, black_box(row)))
                    .count()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
