//! Definitions that change: tables as a test describes them, and the module definition that a program would have.
#![allow(dead_code)] // every test file uses its own part

use std::collections::{BTreeMap, BTreeSet};

use lightcone_schema::raw::{
    RawColumnDefaultValueV10, RawConstraintData, RawConstraintDefV10, RawIndexDefV10, RawModuleDef,
    RawModuleDefV10, RawModuleDefV10Section as Section, RawScopedTypeNameV10, RawSequenceDefV10,
    RawTableDefV10, RawTypeDefV10, RawUniqueConstraintData,
};
use lightcone_schema::{IndexAlgorithm, ModuleDef, TableAccess, TableKind};
use lightcone_types::bsatn::encode_value;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId, TypeRef, Typespace};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    U32,
    I64,
    Text,
    /// So many variants without payload.
    Simple(u8),
    /// A variant with a `u32`, and so many without payload.
    Payload(u8),
}

impl Kind {
    fn ty(self) -> T {
        const NAMES: [&str; 6] = ["A", "B", "C", "D", "E", "F"];
        match self {
            Kind::U32 => T::U32,
            Kind::I64 => T::I64,
            Kind::Text => T::String,
            Kind::Simple(count) => T::sum(
                NAMES[..usize::from(count)]
                    .iter()
                    .map(|name| (*name, T::unit())),
            ),
            Kind::Payload(count) => {
                let more = NAMES[1..=usize::from(count)]
                    .iter()
                    .map(|name| (*name, T::unit()));
                T::sum(std::iter::once(("A", T::U32)).chain(more))
            }
        }
    }

    /// A value; few different ones.
    pub fn value(self, seed: u32) -> V {
        let unit = || Box::new(V::Product(Vec::new()));
        match self {
            Kind::U32 => V::U32(seed % 8),
            Kind::I64 => V::I64(i64::from(seed % 8) - 4),
            Kind::Text => V::String("x".repeat(seed as usize % 8).into()),
            Kind::Simple(count) => V::Sum {
                tag: (seed % u32::from(count)) as u8,
                value: unit(),
            },
            Kind::Payload(count) => match (seed % (u32::from(count) + 1)) as u8 {
                0 => V::Sum {
                    tag: 0,
                    value: Box::new(V::U32(seed % 5)),
                },
                tag => V::Sum { tag, value: unit() },
            },
        }
    }

    pub fn bytes(self, seed: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_value(&self.value(seed), &mut bytes);
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    BTree,
    Hash,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// With the default that rows get when the column is added.
    pub columns: Vec<(Kind, u32)>,
    pub indexes: BTreeSet<(Vec<u16>, Algorithm)>,
    /// Each has an index.
    pub unique: BTreeSet<Vec<u16>>,
    /// The first column, which is unique then.
    pub has_key: bool,
    /// On the first column, if that is a number.
    pub has_sequence: bool,
    pub is_private: bool,
    pub is_event: bool,
}

pub type Tables = BTreeMap<String, Table>;

fn ids(columns: &[u16]) -> Vec<ColId> {
    columns.iter().map(|column| ColId(*column)).collect()
}

impl Table {
    pub fn new(columns: &[Kind]) -> Table {
        Table {
            columns: columns.iter().map(|kind| (*kind, 1)).collect(),
            ..Table::default()
        }
    }

    pub fn index(mut self, columns: &[u16], algorithm: Algorithm) -> Table {
        self.indexes.insert((columns.to_vec(), algorithm));
        self
    }

    /// A unique constraint, with an ordered index unless there is one.
    pub fn unique(mut self, columns: &[u16]) -> Table {
        self.make_unique(columns);
        self
    }

    pub fn make_unique(&mut self, columns: &[u16]) {
        self.unique.insert(columns.to_vec());
        if !self.indexes.iter().any(|(of, _)| of == columns) {
            self.indexes.insert((columns.to_vec(), Algorithm::BTree));
        }
    }

    pub fn key(mut self) -> Table {
        self.make_unique(&[0]);
        self.has_key = true;
        self
    }

    pub fn sequence(mut self) -> Table {
        self.has_sequence = true;
        self
    }

    pub fn event(mut self) -> Table {
        self.is_event = true;
        self
    }

    fn column_name(position: usize) -> String {
        format!("c{}", (b'a' + position as u8) as char)
    }

    fn raw(&self, name: &str, types: &mut Types) -> RawTableDefV10 {
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(|(position, (kind, _))| {
                let ty = match kind.ty() {
                    T::Sum(sum) => T::Ref(types.add(&format!("{name}{position}"), T::Sum(sum))),
                    ty => ty,
                };
                (Self::column_name(position), ty)
            });
        let columns: Vec<(String, T)> = columns.collect();
        let row = T::product(columns.iter().map(|(name, ty)| (name.as_str(), ty.clone())));
        let indexes = self.indexes.iter().enumerate();
        let indexes = indexes.map(|(number, (columns, algorithm))| RawIndexDefV10 {
            source_name: Some(format!("{name}_{number}_{columns:?}_{algorithm:?}")),
            accessor_name: None,
            algorithm: match algorithm {
                Algorithm::BTree => IndexAlgorithm::BTree(ids(columns)),
                Algorithm::Hash => IndexAlgorithm::Hash(ids(columns)),
            },
        });
        let constraints = self.unique.iter().map(|columns| RawConstraintDefV10 {
            source_name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: ids(columns),
            }),
        });
        let sequence = RawSequenceDefV10 {
            source_name: None,
            column: ColId(0),
            start: None,
            min_value: None,
            max_value: None,
            increment: 1,
        };
        let defaults = self.columns.iter().enumerate();
        let defaults = defaults.map(|(position, (kind, seed))| RawColumnDefaultValueV10 {
            col_id: ColId(position as u16),
            value: kind.bytes(*seed),
        });
        RawTableDefV10 {
            source_name: name.into(),
            product_type_ref: types.add(name, row),
            primary_key: if self.has_key { ids(&[0]) } else { Vec::new() },
            indexes: indexes.collect(),
            constraints: constraints.collect(),
            sequences: self.has_sequence.then_some(sequence).into_iter().collect(),
            table_type: TableKind::User,
            table_access: match self.is_private {
                true => TableAccess::Private,
                false => TableAccess::Public,
            },
            default_values: defaults.collect(),
            is_event: self.is_event,
        }
    }
}

#[derive(Default)]
struct Types {
    types: Vec<T>,
    names: Vec<RawTypeDefV10>,
}

impl Types {
    fn add(&mut self, name: &str, ty: T) -> TypeRef {
        let at = TypeRef(self.types.len() as u32);
        self.types.push(ty);
        self.names.push(RawTypeDefV10 {
            source_name: RawScopedTypeNameV10 {
                scope: Vec::new(),
                source_name: format!("T{name}"),
            },
            ty: at,
            custom_ordering: true,
        });
        at
    }
}

/// The definition of a program with these tables.
pub fn definition(tables: &Tables) -> ModuleDef {
    with_sections(tables, Vec::new())
}

pub fn with_sections(tables: &Tables, more: Vec<Section>) -> ModuleDef {
    let mut types = Types::default();
    let raw: Vec<_> = tables
        .iter()
        .map(|(name, table)| table.raw(name, &mut types))
        .collect();
    let mut sections = vec![
        Section::Typespace(Typespace { types: types.types }),
        Section::Types(types.names),
        Section::Tables(raw),
    ];
    sections.extend(more);
    ModuleDef::validate(RawModuleDef::V10(RawModuleDefV10 { sections }))
        .unwrap_or_else(|errors| panic!("{errors}: {tables:?}"))
}

/// A row of a table, from a number.
pub fn row_of(table: &Table, seed: u32) -> Vec<u8> {
    let columns = table.columns.iter().enumerate();
    columns
        .flat_map(|(position, (kind, _))| {
            let shift = 3 * position as u32;
            kind.bytes(seed.rotate_right(shift))
        })
        .collect()
}
