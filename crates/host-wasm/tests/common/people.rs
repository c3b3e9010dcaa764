//! A table of people with indexes of all kinds, and a module that makes calls on it.

#![allow(dead_code)]

use lightcone_engine::Datastore;
use lightcone_host::HostLimits;
use lightcone_schema::raw::*;
use lightcone_schema::{IndexAlgorithm, ModuleDef, TableAccess, TableKind};
use lightcone_types::{AlgebraicType, ColId, TypeRef, Typespace};
use serde_json::Value;

use super::common::*;
use super::script::{self, Script};

/// `person { id: u64 autoinc pk, name: string, age: u8 }`, indexes on (name), (name, age) and a hash index on (age).
pub fn people() -> Datastore {
    let person = AlgebraicType::product([
        ("id", AlgebraicType::U64),
        ("name", AlgebraicType::String),
        ("age", AlgebraicType::U8),
    ]);
    let index = |name: &str, algorithm| RawIndexDefV9 {
        name: Some(name.into()),
        accessor_name: Some(name.into()),
        algorithm,
    };
    let table = RawTableDefV9 {
        name: "person".into(),
        product_type_ref: TypeRef(0),
        primary_key: vec![ColId(0)],
        indexes: vec![
            index("person_id_idx_btree", IndexAlgorithm::BTree(vec![ColId(0)])),
            index(
                "person_name_idx_btree",
                IndexAlgorithm::BTree(vec![ColId(1)]),
            ),
            index(
                "person_name_age_idx_btree",
                IndexAlgorithm::BTree(vec![ColId(1), ColId(2)]),
            ),
            index("person_age_idx_hash", IndexAlgorithm::Hash(vec![ColId(2)])),
        ],
        constraints: vec![RawConstraintDefV9 {
            name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(0)],
            }),
        }],
        sequences: vec![RawSequenceDefV9 {
            name: None,
            column: ColId(0),
            start: None,
            min_value: None,
            max_value: None,
            increment: 1,
        }],
        schedule: None,
        table_type: TableKind::User,
        table_access: TableAccess::Public,
    };
    let def = RawModuleDefV9 {
        typespace: Typespace {
            types: vec![person],
        },
        tables: vec![table],
        types: vec![RawTypeDefV9 {
            name: RawScopedTypeNameV9 {
                scope: vec![],
                name: "Person".into(),
            },
            ty: TypeRef(0),
            custom_ordering: true,
        }],
        ..RawModuleDefV9::default()
    };
    let def =
        ModuleDef::validate(RawModuleDef::V9(def)).unwrap_or_else(|errors| panic!("{errors}"));
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(&def).unwrap();
    datastore
        .commit(&mut Default::default())
        .expect("the record fits");
    // The ids of the vectors begin at 100, which no definition may say any more: those before were given to rows that were taken back.
    let person = datastore.table_id_from_name("person").expect("a table");
    for _ in 1..100 {
        datastore.begin();
        datastore
            .insert(person, &row(0, "", 0), &mut Vec::new())
            .expect("inserted");
        datastore.rollback();
    }
    datastore
}

pub struct Ids {
    pub person: u32,
    pub by_id: u32,
    pub by_name: u32,
    pub by_name_age: u32,
    pub by_age: u32,
}

pub fn start() -> (Running, Ids) {
    start_with(small_limits())
}

pub fn start_with(limits: HostLimits) -> (Running, Ids) {
    let mut running = Running::start_with(&script::interpreter(), limits);
    let mut datastore = people();
    datastore.begin();
    running.datastore = datastore;
    let mut script = Script::default();
    let person = script.lookup("table_id_from_name", "person");
    let names = [
        "person_id_idx_btree",
        "person_name_idx_btree",
        "person_name_age_idx_btree",
        "person_age_idx_hash",
    ];
    let indexes = names.map(|name| script.lookup("index_id_from_name", name));
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0; 5]);
    let [by_id, by_name, by_name_age, by_age] = indexes.map(|at| report.u32(at));
    (
        running,
        Ids {
            person: report.u32(person),
            by_id,
            by_name,
            by_name_age,
            by_age,
        },
    )
}

pub fn row(id: u64, name: &str, age: u8) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.extend((name.len() as u32).to_le_bytes());
    row.extend(name.as_bytes());
    row.push(age);
    row
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// The bytes of a member of the chapter's vectors.
pub fn bytes_of(entry: &Value, member: &str) -> Vec<u8> {
    hex(entry[member].as_str().expect(member))
}

/// The index over these columns; none where an entry only shows how keys are encoded.
pub fn index_of(entry: &Value, ids: &Ids) -> Option<u32> {
    let columns = entry["index"].as_array()?;
    let columns: Vec<&str> = columns.iter().filter_map(Value::as_str).collect();
    match columns[..] {
        ["id"] => Some(ids.by_id),
        ["name"] => Some(ids.by_name),
        ["name", "age"] => Some(ids.by_name_age),
        _ => panic!("no index over {columns:?}"),
    }
}
