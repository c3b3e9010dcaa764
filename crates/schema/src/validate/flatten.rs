//! Joining the levels: namespaced names, ids in depth-first order, tables in creation order
//! (02 §8.11, §9.1, §9.3, §13).

use rustc_hash::FxHashMap;

use super::context::Context;
use crate::def::{ModuleDef, ModuleLevel, TableDef};
use crate::error::{clip, ValidationError};
use crate::raw::Lifecycle;

pub(super) fn flatten(cx: &mut Context, root: ModuleLevel) -> Option<ModuleDef> {
    let mut module = ModuleDef {
        version: cx.version,
        typespace: root.typespace.clone(),
        tables: Vec::new(),
        reducers: Vec::new(),
        procedures: Vec::new(),
        views: Vec::new(),
        http_handlers: root.http_handlers.clone(),
        http_routes: root.http_routes.clone(),
        row_level_security: root.row_level_security.clone(),
        types: root.types.clone(),
        init: None,
        on_connect: None,
        on_disconnect: None,
        migration: root.migration.clone(),
        tables_by_name: FxHashMap::default(),
        reducers_by_name: FxHashMap::default(),
        procedures_by_name: FxHashMap::default(),
        views_by_name: FxHashMap::default(),
        root: ModuleLevel::default(),
    };
    let mut view_ids = ViewIds::default();
    add_level(cx, &mut module, &mut view_ids, ("", ""), &root)?;
    module.root = root;
    module.tables.sort_by(|a, b| a.name.cmp(&b.name));
    // Given names of sequences may hold dots and so meet a namespaced name of another level.
    let mut names = std::collections::HashSet::new();
    for table in &module.tables {
        let indexes = table.indexes.iter().map(|i| &i.name);
        let constraints = table.constraints.iter().map(|c| &c.name);
        for name in indexes
            .chain(constraints)
            .chain(table.sequences.iter().map(|s| &s.name))
        {
            if !names.insert(name) {
                cx.push(ValidationError::DuplicateName { name: clip(name) });
            }
        }
    }
    for (id, reducer) in module.reducers.iter().enumerate() {
        match reducer.lifecycle {
            Some(Lifecycle::Init) => module.init = Some(id),
            Some(Lifecycle::OnConnect) => module.on_connect = Some(id),
            Some(Lifecycle::OnDisconnect) => module.on_disconnect = Some(id),
            None => {}
        }
    }
    module.tables_by_name = by_name(module.tables.iter().map(|t| &t.name));
    module.reducers_by_name = by_name(module.reducers.iter().map(|r| &r.name));
    module.procedures_by_name = by_name(module.procedures.iter().map(|p| &p.name));
    module.views_by_name = by_name(module.views.iter().map(|v| &v.name));
    Some(module)
}

fn by_name<'a>(names: impl Iterator<Item = &'a String>) -> FxHashMap<String, usize> {
    names
        .enumerate()
        .map(|(i, name)| (name.clone(), i))
        .collect()
}

/// How many views of each kind the levels so far have.
#[derive(Default)]
struct ViewIds {
    sender: u32,
    anonymous: u32,
}

fn add_level(
    cx: &mut Context,
    module: &mut ModuleDef,
    view_ids: &mut ViewIds,
    (prefix, source_prefix): (&str, &str),
    level: &ModuleLevel,
) -> Option<()> {
    for table in &level.tables {
        let objects = 2 + 2 * table.indexes.len() + table.constraints.len() + table.sequences.len();
        if !cx.charge_name(source_prefix.len().max(prefix.len()) * objects) {
            return None;
        }
        module.tables.push(namespaced(prefix, source_prefix, table));
    }
    let functions = level.reducers.len() + level.procedures.len() + 2 * level.views.len();
    if !cx.charge_name(source_prefix.len().max(prefix.len()) * functions) {
        return None;
    }
    for reducer in &level.reducers {
        let mut reducer = reducer.clone();
        reducer.name.insert_str(0, prefix);
        module.reducers.push(reducer);
    }
    for procedure in &level.procedures {
        let mut procedure = procedure.clone();
        procedure.name.insert_str(0, prefix);
        module.procedures.push(procedure);
    }
    let mut own = ViewIds::default();
    for view in &level.views {
        let mut view = view.clone();
        view.name.insert_str(0, prefix);
        view.source_name.insert_str(0, source_prefix);
        let (offset, count) = if view.is_anonymous {
            (view_ids.anonymous, &mut own.anonymous)
        } else {
            (view_ids.sender, &mut own.sender)
        };
        view.id = view.index.saturating_add(offset);
        *count += 1;
        module.views.push(view);
    }
    view_ids.sender += own.sender;
    view_ids.anonymous += own.anonymous;
    for submodule in &level.submodules {
        let prefixes = (
            &*format!("{prefix}{}.", submodule.namespace),
            &*format!("{source_prefix}{}.", submodule.source_namespace),
        );
        add_level(cx, module, view_ids, prefixes, submodule)?;
    }
    Some(())
}

fn namespaced(prefix: &str, source_prefix: &str, table: &TableDef) -> TableDef {
    let mut table = table.clone();
    if prefix.is_empty() {
        return table;
    }
    table.name.insert_str(0, prefix);
    table.source_name.insert_str(0, source_prefix);
    for index in &mut table.indexes {
        index.name.insert_str(0, prefix);
        index.source_name.insert_str(0, source_prefix);
    }
    for constraint in &mut table.constraints {
        constraint.name.insert_str(0, prefix);
    }
    for sequence in &mut table.sequences {
        sequence.name.insert_str(0, prefix);
    }
    // The schedule's own name stays as it is.
    if let Some(schedule) = &mut table.schedule {
        schedule.function_name.insert_str(0, prefix);
    }
    if let Some(on_result) = table
        .outbox
        .as_mut()
        .and_then(|outbox| outbox.on_result.as_mut())
    {
        on_result.insert_str(0, prefix);
    }
    table
}
