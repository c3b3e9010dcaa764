//! Reducers, procedures, lifecycle assignments and schedules (02 §8.7).

use std::collections::HashMap;

use lightcone_types::{AlgebraicType, ColId, ProductType};

use super::context::Context;
use super::names::{check_given_name, check_names, NameRules, ObjectNames};
use super::state::Level;
use crate::args::ArgsLayout;
use crate::def::{
    ProcedureDef, ReducerDef, ScheduleDef, ScheduledFunctionKind, TableDef, Visibility,
};
use crate::error::{clip, TypeLocation, ValidationError};
use crate::raw::*;

impl Level<'_> {
    /// The canonical name of a function, after what all functions have was checked.
    pub(super) fn function(
        &mut self,
        entity: &'static str,
        source_name: &str,
        params: &ProductType,
    ) -> String {
        let name = self.rules.function(source_name);
        check_names(self.cx, source_name, &name);
        if !self.functions.insert(name.clone()) {
            let name = clip(&name);
            self.cx
                .push(ValidationError::DuplicateFunctionName { name });
        }
        self.uses.check_params(self.cx, entity, &name, params);
        name
    }

    fn param_names(&self, params: &ProductType) -> Vec<String> {
        let names = params.elements.iter();
        let names = names.map(|param| param.name().unwrap_or_default());
        names.map(|name| self.rules.parameter(name)).collect()
    }

    pub(super) fn reducer(&mut self, raw: RawReducerDefV10) -> ReducerDef {
        let name = self.function("reducer", &raw.source_name, &raw.params);
        if !raw.ok_return_type.is_unit() || raw.err_return_type != AlgebraicType::String {
            self.cx.push(ValidationError::InvalidReducerReturnType {
                name: clip(&name),
                ok: clip(&raw.ok_return_type.type_name()),
                err: clip(&raw.err_return_type.type_name()),
            });
        }
        ReducerDef {
            name,
            source_name: raw.source_name,
            args: ArgsLayout::new(self.converted, &raw.params),
            param_names: self.param_names(&raw.params),
            params: raw.params,
            params_typespace: self.converted.clone(),
            lifecycle: None,
            visibility: raw.visibility,
            policy: self.rules.policy(),
        }
    }

    pub(super) fn procedure(&mut self, raw: RawProcedureDefV10) -> ProcedureDef {
        let entity = "procedure";
        let name = self.function(entity, &raw.source_name, &raw.params);
        if let Err(reason) = self.uses.check(&raw.return_type) {
            let name = clip(&name);
            let location = TypeLocation::Return { entity, name };
            self.cx.push(ValidationError::TypeUse { location, reason });
        }
        ProcedureDef {
            name,
            source_name: raw.source_name,
            args: ArgsLayout::new(self.converted, &raw.params),
            param_names: self.param_names(&raw.params),
            params: raw.params,
            params_typespace: self.converted.clone(),
            return_type: raw.return_type,
            visibility: raw.visibility,
        }
    }
}

/// Positions by canonical name; the first of several counts (they are an error elsewhere).
pub(super) fn positions<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut positions = HashMap::new();
    for (i, name) in names.enumerate() {
        positions.entry(name).or_insert(i);
    }
    positions
}

/// Looks a declared name up: as a source name, then as a canonical name. The second is what the
/// schema endpoint of the reference answers (02 §15.1).
pub(super) fn lookup(
    positions: &HashMap<&str, usize>,
    resolved: &str,
    declared: &str,
) -> Option<usize> {
    let found = positions.get(resolved);
    found.or_else(|| positions.get(declared)).copied()
}

pub(super) fn lifecycles(
    cx: &mut Context,
    rules: &NameRules,
    is_root: bool,
    reducers: &mut [ReducerDef],
    raw: Vec<RawLifeCycleReducerDefV10>,
) {
    let mut assigned: Vec<(usize, Lifecycle)> = Vec::new();
    {
        let by_name = positions(reducers.iter().map(|r| r.name.as_str()));
        for raw in raw {
            let lifecycle = raw.lifecycle_spec;
            if !is_root {
                cx.push(ValidationError::LifecycleInSubmodule(lifecycle));
                continue;
            }
            let declared = &raw.function_name;
            let Some(reducer) = lookup(&by_name, &rules.function(declared), declared) else {
                cx.push(ValidationError::LifecycleWithoutReducer(lifecycle));
                continue;
            };
            let mut others = assigned.iter();
            if others.any(|&(r, l)| r == reducer || l == lifecycle) {
                cx.push(ValidationError::DuplicateLifecycle(lifecycle));
                continue;
            }
            assigned.push((reducer, lifecycle));
        }
    }
    for (reducer, lifecycle) in assigned {
        reducers[reducer].lifecycle = Some(lifecycle);
        // Version 9 knows no visibility.
        if cx.version == RawVersion::V10 {
            reducers[reducer].visibility = Visibility::Private;
        }
    }
}

/// Attaches schedules to their tables and hides the scheduled functions from clients.
pub(super) fn schedules(
    cx: &mut Context,
    rules: &NameRules,
    objects: &mut ObjectNames,
    tables: &mut [TableDef],
    reducers: &mut [ReducerDef],
    procedures: &mut [ProcedureDef],
    raw: Vec<RawScheduleDefV10>,
) {
    let Some(found) = find_schedules(cx, rules, objects, tables, (reducers, procedures), raw)
    else {
        return;
    };
    for (table, schedule, callee) in found {
        if cx.version == RawVersion::V10 {
            let visibility = match schedule.function_kind {
                ScheduledFunctionKind::Reducer => &mut reducers[callee].visibility,
                ScheduledFunctionKind::Procedure => &mut procedures[callee].visibility,
            };
            *visibility = Visibility::Private;
        }
        // Version 9 allows a given name, under which a second schedule would not be a duplicate.
        if let Some(first) = tables[table].schedule.replace(schedule) {
            let name = clip(&first.name);
            cx.push(ValidationError::DuplicateName { name });
        }
    }
}

/// A schedule between the positions of its table and of its function among those of its kind.
type Found = (usize, ScheduleDef, usize);

/// The schedules of a level; none if their names are too long together.
fn find_schedules(
    cx: &mut Context,
    rules: &NameRules,
    objects: &mut ObjectNames,
    tables: &[TableDef],
    (reducers, procedures): (&[ReducerDef], &[ProcedureDef]),
    raw: Vec<RawScheduleDefV10>,
) -> Option<Vec<Found>> {
    let tables_by_name = positions(tables.iter().map(|t| t.name.as_str()));
    let reducers_by_name = positions(reducers.iter().map(|r| r.name.as_str()));
    let procedures_by_name = positions(procedures.iter().map(|p| p.name.as_str()));
    let mut found = Vec::with_capacity(raw.len());
    for raw in raw {
        let resolved = rules.table(&raw.table_name);
        let Some(position) = lookup(&tables_by_name, &resolved, &raw.table_name) else {
            cx.push(ValidationError::TableNotFound {
                name: clip(&raw.table_name),
            });
            continue;
        };
        let table = &tables[position];
        // Version 10 ignores a given name.
        let name = match raw.source_name.filter(|_| cx.version == RawVersion::V9) {
            Some(name) => name,
            None if cx.charge_name(table.name.len()) => format!("{}_sched", table.name),
            None => return None,
        };
        check_given_name(cx, &name);
        objects.claim(cx, &name, None);
        check_schedule_columns(cx, table, raw.schedule_at_col);
        if table.is_event {
            let table = clip(&table.name);
            cx.push(ValidationError::ScheduledEventTable { table });
        }
        let resolved = rules.function(&raw.function_name);
        let reducer = lookup(&reducers_by_name, &resolved, &raw.function_name);
        let procedure = || lookup(&procedures_by_name, &resolved, &raw.function_name);
        let (callee, function_kind, function, params) = if let Some(id) = reducer {
            let ReducerDef { name, params, .. } = &reducers[id];
            (id, ScheduledFunctionKind::Reducer, name, params)
        } else if let Some(id) = procedure() {
            let ProcedureDef { name, params, .. } = &procedures[id];
            (id, ScheduledFunctionKind::Procedure, name, params)
        } else {
            let (table, function) = (clip(&table.name), clip(&resolved));
            cx.push(ValidationError::MissingScheduledFunction { table, function });
            continue;
        };
        if !takes_row_of(params, table) {
            let (table, function) = (clip(&table.name), clip(&resolved));
            cx.push(ValidationError::IncorrectScheduledFunctionParams { table, function });
        }
        let schedule = ScheduleDef {
            name,
            function_name: function.clone(),
            function_kind,
            at_column: raw.schedule_at_col,
        };
        found.push((position, schedule, callee));
    }
    Some(found)
}

/// Checks that a table has a column of times where it says, and a key that schedules can be named by.
fn check_schedule_columns(cx: &mut Context, table: &TableDef, at_column: ColId) {
    let column = |id: ColId| table.columns.get(id.index());
    let has_times = column(at_column).is_some_and(|column| column.ty.is_schedule_at());
    let key = table.primary_key.and_then(column);
    if !has_times || !key.is_some_and(|key| key.ty == AlgebraicType::U64) {
        cx.push(ValidationError::ScheduledIncorrectColumns {
            table: clip(&table.name),
        });
    }
}

/// Whether a function has one parameter, a row of this table.
fn takes_row_of(params: &ProductType, table: &TableDef) -> bool {
    matches!(
        &params.elements[..],
        [only] if only.algebraic_type == AlgebraicType::Ref(table.row_type)
    )
}
