//! Helpers for building raw definitions in tests.
#![allow(dead_code)]

use lightcone_schema::raw::*;
use lightcone_schema::{
    IndexAlgorithm, ModuleDef, TableAccess, TableKind, ValidationError, Visibility,
};
use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

/// Both definitions mean the same to a database.
pub fn assert_same_schema(old: &ModuleDef, new: &ModuleDef) {
    let plan = lightcone_schema::plan(old, new).expect("a plan");
    assert!(plan.keeps_schema(old, new), "{plan:?}");
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// A definition under construction; `finish` makes it a raw one.
#[derive(Clone, Default)]
pub struct Build {
    pub types: Vec<AlgebraicType>,
    pub named: Vec<RawTypeDefV10>,
    pub tables: Vec<RawTableDefV10>,
    pub reducers: Vec<RawReducerDefV10>,
    pub rest: Vec<RawModuleDefV10Section>,
}

pub fn cols(columns: &[u16]) -> Vec<ColId> {
    columns.iter().map(|c| ColId(*c)).collect()
}

pub fn type_name(name: &str) -> RawScopedTypeNameV10 {
    RawScopedTypeNameV10 {
        scope: vec![],
        source_name: name.into(),
    }
}

pub fn unique(columns: &[u16]) -> RawConstraintDefV10 {
    RawConstraintDefV10 {
        source_name: None,
        data: RawConstraintData::Unique(RawUniqueConstraintData {
            columns: cols(columns),
        }),
    }
}

pub fn index(source_name: &str, algorithm: IndexAlgorithm) -> RawIndexDefV10 {
    RawIndexDefV10 {
        source_name: Some(source_name.into()),
        accessor_name: None,
        algorithm,
    }
}

pub fn btree(source_name: &str, columns: &[u16]) -> RawIndexDefV10 {
    index(source_name, IndexAlgorithm::BTree(cols(columns)))
}

pub fn sequence(column: u16) -> RawSequenceDefV10 {
    RawSequenceDefV10 {
        source_name: None,
        column: ColId(column),
        start: None,
        min_value: None,
        max_value: None,
        increment: 1,
    }
}

pub fn reducer(name: &str, params: ProductType) -> RawReducerDefV10 {
    RawReducerDefV10 {
        source_name: name.into(),
        params,
        visibility: Visibility::ClientCallable,
        ok_return_type: AlgebraicType::unit(),
        err_return_type: AlgebraicType::String,
    }
}

impl Build {
    pub fn named_type(&mut self, name: &str, ty: AlgebraicType) -> TypeRef {
        let at = TypeRef(self.types.len() as u32);
        self.types.push(ty);
        self.named.push(RawTypeDefV10 {
            source_name: type_name(name),
            ty: at,
            custom_ordering: true,
        });
        at
    }

    /// A plain table with a row type of its own.
    pub fn table(&mut self, name: &str, fields: &[(&str, AlgebraicType)]) -> &mut RawTableDefV10 {
        let row = AlgebraicType::product(fields.iter().cloned());
        let row_name = format!("{name}Row{}", self.types.len());
        let product_type_ref = self.named_type(&row_name, row);
        self.tables.push(RawTableDefV10 {
            source_name: name.into(),
            product_type_ref,
            primary_key: vec![],
            indexes: vec![],
            constraints: vec![],
            sequences: vec![],
            table_type: TableKind::User,
            table_access: TableAccess::Public,
            default_values: vec![],
            is_event: false,
        });
        self.tables.last_mut().expect("it was just added")
    }

    pub fn raw(self) -> RawModuleDefV10 {
        use RawModuleDefV10Section as S;
        let mut sections = vec![
            S::Typespace(Typespace { types: self.types }),
            S::Types(self.named),
            S::Tables(self.tables),
            S::Reducers(self.reducers),
        ];
        sections.extend(self.rest);
        RawModuleDefV10 { sections }
    }

    pub fn validate(self) -> Result<ModuleDef, Vec<ValidationError>> {
        ModuleDef::validate(RawModuleDef::V10(self.raw())).map_err(|e| e.errors)
    }

    pub fn valid(self) -> ModuleDef {
        self.validate().expect("the definition is valid")
    }

    pub fn errors(self) -> Vec<ValidationError> {
        self.validate()
            .expect_err("the definition should be refused")
    }
}

pub fn texts(build: Build) -> Vec<String> {
    build.errors().iter().map(ToString::to_string).collect()
}

/// Asserts that validation finds exactly the given errors.
macro_rules! refused {
    ($build:expr, $($pattern:pat),+ $(,)?) => {{
        let errors = $build.errors();
        let mut errors = errors.iter();
        $( assert!(matches!(errors.next(), Some($pattern)), "expected {} in {errors:?}", stringify!($pattern)); )+
        assert_eq!(errors.next(), None);
    }};
}

pub fn one_table(
    name: &str,
    fields: &[(&str, AlgebraicType)],
    change: impl FnOnce(&mut RawTableDefV10),
) -> Build {
    let mut build = Build::default();
    change(build.table(name, fields));
    build
}

pub fn with_sections(sections: Vec<RawModuleDefV10Section>) -> Build {
    Build {
        rest: sections,
        ..Build::default()
    }
}

pub const ID: (&str, AlgebraicType) = ("id", AlgebraicType::U64);

pub fn keyed(table: &mut RawTableDefV10) {
    table.primary_key = cols(&[0]);
    table.constraints.push(unique(&[0]));
    table.indexes.push(btree("k", &[0]));
}
