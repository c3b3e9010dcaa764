//! The migration function of a module and the tables that it reads (02 §14.8): found by their names, as the published libraries
//! have no other way to declare them, and taken out of what clients see.

use std::collections::HashSet;

use lightcone_types::{AlgebraicType, TypeRef, Typespace};

use super::Context;
use crate::case::to_pascal;
use crate::def::{MigrationDef, ProcedureDef, ReducerDef, TableDef, TypeDef, ViewDef, Visibility};
use crate::error::{clip, ValidationError};
use crate::raw::RawReducerDefV10;

/// The name of the function in the module's code.
pub(super) const FUNCTION_NAME: &str = "__migrate";
/// What the names of tables begin with that it reads.
const OLD_PREFIX: &str = "__old_";

/// The name of the table that an old table was, if it is one.
pub(crate) fn old_name(source_name: &str) -> Option<&str> {
    let name = source_name.strip_prefix(OLD_PREFIX)?;
    (!name.is_empty()).then_some(name)
}

/// Whether a level has a migration function. Without one no name has a meaning of its own.
pub(super) fn is_in(reducers: &[RawReducerDefV10]) -> bool {
    let mut reducers = reducers.iter();
    reducers.any(|reducer| reducer.source_name == FUNCTION_NAME)
}

/// Checks function and tables, hides them from clients, and takes the tables out of those that are created.
pub(super) fn take_out(
    cx: &mut Context,
    (typespace, types): (&Typespace, &mut Vec<TypeDef>),
    tables: &mut Vec<TableDef>,
    reducers: &mut [ReducerDef],
    (procedures, views): (&[ProcedureDef], &[ViewDef]),
) -> Option<MigrationDef> {
    let named = |reducer: &ReducerDef| reducer.source_name == FUNCTION_NAME;
    let reducer = reducers.iter().position(named)?;
    let is_old = |table: &TableDef| old_name(&table.source_name).is_some();
    let (old_tables, kept): (Vec<_>, Vec<_>) = tables.drain(..).partition(is_old);
    *tables = kept;
    check(cx, &reducers[reducer], tables, &old_tables);
    reducers[reducer].visibility = Visibility::Private;
    hide_types(
        typespace,
        types,
        &old_tables,
        &Shown {
            tables,
            reducers,
            procedures,
            views,
        },
    );
    Some(MigrationDef {
        reducer,
        old_tables,
    })
}

fn check(cx: &mut Context, function: &ReducerDef, tables: &[TableDef], old_tables: &[TableDef]) {
    let mut refuse = |problem: String| {
        cx.push(ValidationError::Migration {
            function: FUNCTION_NAME.to_owned(),
            problem,
        });
    };
    if !function.params.elements.is_empty() {
        refuse("must take no arguments but the context".to_owned());
    }
    if let Some(lifecycle) = function.lifecycle {
        refuse(format!("cannot be the reducer for {lifecycle:?} as well"));
    }
    let calls_it = |table: &&TableDef| {
        let schedule = table.schedule.as_ref();
        schedule.is_some_and(|schedule| schedule.function_name == FUNCTION_NAME)
    };
    for table in tables.iter().chain(old_tables).filter(calls_it) {
        refuse(format!(
            "cannot be scheduled, but table `{}` does so",
            clip(&table.name)
        ));
    }
    for table in tables
        .iter()
        .filter(|table| table.name.starts_with(OLD_PREFIX))
    {
        refuse(format!(
            "reads tables by their names in the code, and `{}` is an old one in the database only; call it so in the code too",
            clip(&table.source_name)
        ));
    }
    for table in old_tables {
        let name = clip(&table.name);
        if table.is_event {
            refuse(format!(
                "reads the rows of `{name}`, but that is declared as an event table, which has none"
            ));
        }
        if table.schedule.is_some() {
            refuse(format!(
                "reads the rows of `{name}`, which cannot have a schedule; leave it out there"
            ));
        }
    }
}

/// What clients may see of a level.
struct Shown<'a> {
    tables: &'a [TableDef],
    reducers: &'a [ReducerDef],
    procedures: &'a [ProcedureDef],
    views: &'a [ViewDef],
}

/// Forgets the names of types that only the old tables and the function have use for.
fn hide_types(
    typespace: &Typespace,
    types: &mut Vec<TypeDef>,
    old_tables: &[TableDef],
    shown: &Shown<'_>,
) {
    let rows = old_tables.iter().map(|table| table.row_type);
    let params = types
        .iter()
        .filter(|ty| is_params_of_function(typespace, ty));
    let candidates = reachable(typespace, rows.chain(params.map(|ty| ty.ty)).collect());
    let others = types.iter().map(|ty| ty.ty);
    let mut roots: Vec<TypeRef> = others.filter(|ty| !candidates.contains(ty)).collect();
    roots.extend(shown.refs());
    let kept = reachable(typespace, roots);
    types.retain(|ty| !candidates.contains(&ty.ty) || kept.contains(&ty.ty));
}

/// TypeScript names a type for the parameters of each reducer.
fn is_params_of_function(typespace: &Typespace, ty: &TypeDef) -> bool {
    let is_empty = |ty: &AlgebraicType| ty.is_unit();
    ty.scope.is_empty()
        && ty.name == to_pascal(FUNCTION_NAME)
        && typespace.get(ty.ty).is_some_and(is_empty)
}

impl Shown<'_> {
    /// What clients see refers to, without what stands behind that.
    fn refs(&self) -> Vec<TypeRef> {
        let tables = self.tables.iter().map(|table| table.row_type);
        let mut refs: Vec<TypeRef> = tables
            .chain(self.views.iter().map(|view| view.row_type))
            .collect();
        let mut found = |ty: TypeRef| refs.push(ty);
        let params = self.reducers.iter().map(|reducer| &reducer.params);
        let params = params.chain(self.procedures.iter().map(|procedure| &procedure.params));
        for element in params.flat_map(|params| &params.elements) {
            each_ref(&element.algebraic_type, &mut found);
        }
        for procedure in self.procedures {
            each_ref(&procedure.return_type, &mut found);
        }
        refs
    }
}

/// These types, and all that they refer to.
fn reachable(typespace: &Typespace, mut open: Vec<TypeRef>) -> HashSet<TypeRef> {
    let mut known = HashSet::new();
    while let Some(next) = open.pop() {
        if known.insert(next) {
            if let Some(ty) = typespace.get(next) {
                each_ref(ty, &mut |ty| open.push(ty));
            }
        }
    }
    known
}

/// The refs in a type, those behind them left out.
fn each_ref(ty: &AlgebraicType, found: &mut impl FnMut(TypeRef)) {
    match ty {
        AlgebraicType::Ref(target) => found(*target),
        AlgebraicType::Array(element) => each_ref(element, found),
        AlgebraicType::Product(product) => {
            for element in &product.elements {
                each_ref(&element.algebraic_type, found);
            }
        }
        AlgebraicType::Sum(sum) => {
            for variant in &sum.variants {
                each_ref(&variant.algebraic_type, found);
            }
        }
        _ => {}
    }
}
