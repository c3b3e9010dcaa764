//! The migration function of a module, or its row functions, and the tables that they are for (02 §14.8, §14.9): found by their
//! names, as the published libraries have no other way to declare them, and taken out of what clients see.

use std::collections::HashSet;

use lightcone_types::{AlgebraicType, ProductTypeElement, TypeRef, Typespace};

use super::context::Context;
use crate::case::to_pascal;
use crate::def::{
    ColumnDef, MigrationDef, MigrationFunctions, ProcedureDef, ReducerDef, TableDef, TypeDef,
    ViewDef, Visibility,
};
use crate::error::{clip, ValidationError};
use crate::raw::{RawReducerDefV10, RawTableDefV10};

/// The name of the function in the module's code.
pub(super) const FUNCTION_NAME: &str = "__migrate";
/// The prefix of functions that get the rows of one table.
const ROW_FUNCTION_PREFIX: &str = "__migrate_";
/// The prefix of the tables of these functions.
const OLD_PREFIX: &str = "__old_";

/// The name of the table that an old table was, if it is one.
pub(crate) fn old_name(source_name: &str) -> Option<&str> {
    let name = source_name.strip_prefix(OLD_PREFIX)?;
    (!name.is_empty()).then_some(name)
}

/// The name of the table whose rows a function gets, if it may be one.
fn row_table(source_name: &str) -> Option<&str> {
    let name = source_name.strip_prefix(ROW_FUNCTION_PREFIX)?;
    (!name.is_empty()).then_some(name)
}

/// Whether a name stays as it is in the code, in a level that has a migration.
pub(super) fn is_function_name(source_name: &str) -> bool {
    source_name == FUNCTION_NAME || row_table(source_name).is_some()
}

/// Whether a level has a migration function, or one for the rows of an old table. Without one no name has a meaning of its own.
pub(super) fn is_in(reducers: &[RawReducerDefV10], tables: &[RawTableDefV10]) -> bool {
    let old: HashSet<&str> = tables
        .iter()
        .filter_map(|table| old_name(&table.source_name))
        .collect();
    let is_of_rows = |name: &str| row_table(name).is_some_and(|table| old.contains(table));
    let mut reducers = reducers.iter().map(|reducer| reducer.source_name.as_str());
    reducers.any(|name| name == FUNCTION_NAME || is_of_rows(name))
}

/// Checks functions and tables, hides them from clients, and takes the tables out of those that are created.
pub(super) fn take_out(
    cx: &mut Context,
    (typespace, types): (&Typespace, &mut Vec<TypeDef>),
    tables: &mut Vec<TableDef>,
    reducers: &mut [ReducerDef],
    (procedures, views): (&[ProcedureDef], &[ViewDef]),
) -> Option<MigrationDef> {
    let is_old = |table: &TableDef| old_name(&table.source_name).is_some();
    let (old_tables, kept): (Vec<_>, Vec<_>) = tables.drain(..).partition(is_old);
    *tables = kept;
    let functions = functions(cx, reducers, &old_tables)?;
    match &functions {
        MigrationFunctions::Whole(function) => check_whole(cx, &reducers[*function]),
        MigrationFunctions::Rows(functions) => {
            let of_tables = functions.iter().zip(&old_tables);
            of_tables.for_each(|(function, table)| {
                let function = function.map(|function| &reducers[function]);
                check_rows(cx, function, table, (typespace, tables));
            });
        }
    }
    let migration = MigrationDef {
        functions,
        old_tables,
    };
    let ids = 0..reducers.len();
    for id in ids.filter(|id| migration.is_function(*id)) {
        check(cx, &reducers[id], tables, &migration.old_tables);
        reducers[id].visibility = Visibility::Private;
    }
    check_names(cx, tables);
    let shown = Shown {
        tables,
        reducers,
        migration: &migration,
        procedures,
        views,
    };
    hide_types(typespace, types, &shown);
    Some(migration)
}

/// The one function, or those for rows.
fn functions(
    cx: &mut Context,
    reducers: &[ReducerDef],
    old_tables: &[TableDef],
) -> Option<MigrationFunctions> {
    let of_rows = |table: &TableDef| {
        let name = old_name(&table.source_name);
        let mut reducers = reducers.iter();
        reducers.position(|reducer| row_table(&reducer.source_name) == name)
    };
    let by_rows: Vec<Option<usize>> = old_tables.iter().map(of_rows).collect();
    let named = |reducer: &ReducerDef| reducer.source_name == FUNCTION_NAME;
    let Some(whole) = reducers.iter().position(named) else {
        let some = by_rows.iter().any(Option::is_some);
        return some.then_some(MigrationFunctions::Rows(by_rows));
    };
    if let Some(other) = by_rows.iter().flatten().next() {
        let other = clip(&reducers[*other].source_name);
        let problem = format!("sees all rows at once, and `{other}` gets them one by one: a module has the one or the others");
        refuse(cx, FUNCTION_NAME, problem);
    }
    Some(MigrationFunctions::Whole(whole))
}

fn refuse(cx: &mut Context, function: &str, problem: String) {
    let function = clip(function);
    cx.push(ValidationError::Migration { function, problem });
}

fn check_whole(cx: &mut Context, function: &ReducerDef) {
    if !function.params.elements.is_empty() {
        let problem = "must take no arguments but the context".to_owned();
        refuse(cx, &function.source_name, problem);
    }
}

/// A function for rows takes one row of the old table. Only the rows of a table that is gone need none.
fn check_rows(
    cx: &mut Context,
    function: Option<&ReducerDef>,
    table: &TableDef,
    (typespace, tables): (&Typespace, &[TableDef]),
) {
    let name = old_name(&table.source_name).unwrap_or_default();
    let Some(function) = function else {
        let is_kept = |new: &TableDef| new.source_name == name || new.name == name;
        if tables.iter().any(is_kept) {
            let declared = clip(&table.source_name);
            let problem = format!("is missing: `{declared}` is declared, and other tables have functions for their rows");
            refuse(cx, &format!("{ROW_FUNCTION_PREFIX}{name}"), problem);
        }
        return;
    };
    if !takes_row_of(function, table, typespace) {
        let declared = clip(&table.source_name);
        let problem = format!("must take one argument beside the context, a row of `{declared}`");
        refuse(cx, &function.source_name, problem);
    }
}

fn takes_row_of(function: &ReducerDef, table: &TableDef, typespace: &Typespace) -> bool {
    let [param] = function.params.elements.as_slice() else {
        return false;
    };
    if param.algebraic_type == AlgebraicType::Ref(table.row_type) {
        return true;
    }
    let Ok(AlgebraicType::Product(row)) = typespace.resolve(&param.algebraic_type) else {
        return false;
    };
    let same = |(element, column): (&ProductTypeElement, &ColumnDef)| {
        let name = element.name.as_deref();
        let is_named = [&column.name, &column.source_name]
            .iter()
            .any(|known| name == Some(known.as_str()));
        is_named && element.algebraic_type == column.ty
    };
    row.elements.len() == table.columns.len() && row.elements.iter().zip(&table.columns).all(same)
}

fn check(cx: &mut Context, function: &ReducerDef, tables: &[TableDef], old_tables: &[TableDef]) {
    let name = &function.source_name;
    if let Some(lifecycle) = function.lifecycle {
        let problem = format!("cannot be the reducer for {lifecycle:?} as well");
        refuse(cx, name, problem);
    }
    let calls_it = |table: &&TableDef| {
        let schedule = table.schedule.as_ref();
        schedule.is_some_and(|schedule| schedule.function_name == function.name)
    };
    for table in tables.iter().chain(old_tables).filter(calls_it) {
        let table = clip(&table.name);
        refuse(
            cx,
            name,
            format!("cannot be scheduled, but table `{table}` does so"),
        );
    }
    for table in old_tables {
        let table_name = clip(&table.name);
        if table.is_event {
            let problem = format!("reads the rows of `{table_name}`, but that is declared as an event table, which has none");
            refuse(cx, name, problem);
        }
        if table.schedule.is_some() {
            let problem = format!("reads the rows of `{table_name}`, which cannot have a schedule; leave it out there");
            refuse(cx, name, problem);
        }
    }
}

fn check_names(cx: &mut Context, tables: &[TableDef]) {
    let is_taken = |table: &&TableDef| table.name.starts_with(OLD_PREFIX);
    for table in tables.iter().filter(is_taken) {
        let problem = format!(
            "reads tables by their names in the code, and `{}` is an old one in the database only; call it so in the code too",
            clip(&table.source_name)
        );
        refuse(cx, FUNCTION_NAME, problem);
    }
}

/// The visible part of a level, and its migration functions among the reducers.
struct Shown<'a> {
    tables: &'a [TableDef],
    reducers: &'a [ReducerDef],
    migration: &'a MigrationDef,
    procedures: &'a [ProcedureDef],
    views: &'a [ViewDef],
}

/// Forgets the names of types that only the old tables and the function have use for.
fn hide_types(typespace: &Typespace, types: &mut Vec<TypeDef>, shown: &Shown<'_>) {
    let migration = shown.migration;
    let rows = migration.old_tables.iter().map(|table| table.row_type);
    let functions = shown.reducers.iter().enumerate();
    let functions = functions.filter(|(id, _)| migration.is_function(*id));
    let functions: Vec<&ReducerDef> = functions.map(|(_, function)| function).collect();
    let params = types
        .iter()
        .filter(|ty| is_params_of_function(typespace, ty, &functions));
    let candidates = reachable(typespace, rows.chain(params.map(|ty| ty.ty)).collect());
    let others = types.iter().map(|ty| ty.ty);
    let mut roots: Vec<TypeRef> = others.filter(|ty| !candidates.contains(ty)).collect();
    roots.extend(shown.refs());
    let kept = reachable(typespace, roots);
    types.retain(|ty| !candidates.contains(&ty.ty) || kept.contains(&ty.ty));
}

/// TypeScript names a type for the parameters of each reducer.
fn is_params_of_function(typespace: &Typespace, ty: &TypeDef, functions: &[&ReducerDef]) -> bool {
    let is_of = |function: &&ReducerDef| {
        let named = ty.name == to_pascal(&function.source_name);
        let params = AlgebraicType::Product(function.params.clone());
        named && typespace.get(ty.ty) == Some(&params)
    };
    ty.scope.is_empty() && functions.iter().any(is_of)
}

impl Shown<'_> {
    /// The types that the visible part refers to directly.
    fn refs(&self) -> Vec<TypeRef> {
        let tables = self.tables.iter().map(|table| table.row_type);
        let mut refs: Vec<TypeRef> = tables
            .chain(self.views.iter().map(|view| view.row_type))
            .collect();
        let mut found = |ty: TypeRef| refs.push(ty);
        let reducers = self.reducers.iter().enumerate();
        let shown = reducers.filter(|(id, _)| !self.migration.is_function(*id));
        let params = shown.map(|(_, reducer)| &reducer.params);
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
        _ => ty.parts().for_each(|(_, part)| each_ref(part, found)),
    }
}
