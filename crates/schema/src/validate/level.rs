//! One module level, the root or a submodule, validated on its own.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::Context;
use super::functions;
use super::names::{NameRules, ObjectNames};
use super::state::Level;
use super::types::{self, TypeUses};
use super::{http, migration, outboxes, views};
use crate::def::ModuleLevel;
use crate::error::{clip, ValidationError};
use crate::name::NAMESPACE_BYTES_MAX;
use crate::raw::{RawRowLevelSecurityDef, RawSubmoduleV10, Sections};

/// Validates a level and everything below it. The result is complete only if no error was found.
pub(super) fn level(
    cx: &mut Context,
    sections: Sections,
    namespace: String,
    is_root: bool,
) -> ModuleLevel {
    let has_migration = is_root && migration::is_in(&sections.reducers, &sections.tables);
    let rules = NameRules::new(sections.policy, sections.explicit_names, has_migration);
    let typespace = types::convert_typespace(sections.policy, &sections.typespace);
    let typespace = Arc::new(typespace);
    let mut uses = TypeUses::new(&sections.typespace, &sections.types);
    let mut types = types::type_defs(cx, &rules, &mut uses, &typespace, sections.types);
    let mut level = Level {
        cx,
        rules: &rules,
        source: &sections.typespace,
        converted: &typespace,
        uses,
        objects: ObjectNames::default(),
        functions: HashSet::new(),
    };
    let mut tables = Vec::with_capacity(sections.tables.len());
    for raw in sections.tables {
        tables.extend(level.table(raw));
        if level.cx.too_large() {
            break;
        }
    }
    let reducers = sections.reducers.into_iter();
    let mut reducers: Vec<_> = reducers.map(|raw| level.reducer(raw)).collect();
    let procedures = sections.procedures.into_iter();
    let mut procedures: Vec<_> = procedures.map(|raw| level.procedure(raw)).collect();
    let mut views = Vec::with_capacity(sections.views.len());
    for raw in sections.views {
        views.extend(level.view(raw));
        if level.cx.too_large() {
            break;
        }
    }
    let mut objects = level.objects;
    views::primary_keys(cx, &mut views, &tables, sections.view_primary_keys);
    functions::lifecycles(cx, &rules, is_root, &mut reducers, sections.lifecycles);
    functions::schedules(
        cx,
        &rules,
        &mut objects,
        &mut tables,
        &mut reducers,
        &mut procedures,
        sections.schedules,
    );
    outboxes::outboxes(
        cx,
        &typespace,
        &mut tables,
        &mut reducers,
        sections.outboxes,
    );
    let migration = match has_migration {
        true => migration::take_out(
            cx,
            (&typespace, &mut types),
            &mut tables,
            &mut reducers,
            (&procedures, &views),
        ),
        false => None,
    };
    let http_handlers = http::handlers(cx, &rules, sections.http_handlers);
    let http_routes = http::routes(cx, &rules, &http_handlers, sections.http_routes);

    let submodules = submodules(cx, sections.submodules);
    ModuleLevel {
        namespace,
        policy: sections.policy,
        typespace,
        types,
        tables,
        reducers,
        procedures,
        views,
        http_handlers,
        http_routes,
        row_level_security: distinct_rules(sections.row_level_security),
        migration,
        submodules,
    }
}

fn submodules(cx: &mut Context, raw: Vec<RawSubmoduleV10>) -> Vec<ModuleLevel> {
    let mut namespaces = HashSet::new();
    let mut submodules = Vec::with_capacity(raw.len());
    for raw in raw {
        if raw.namespace.len() > NAMESPACE_BYTES_MAX {
            cx.push(ValidationError::NamespaceTooLong {
                bytes: raw.namespace.len(),
            });
        } else {
            cx.check_identifier(&raw.namespace);
        }
        if !namespaces.insert(raw.namespace.clone()) {
            cx.push(ValidationError::DuplicateName {
                name: clip(&raw.namespace),
            });
        }
        let sections = Sections::from_v10(cx, raw.module);
        submodules.push(level(cx, sections, raw.namespace, false));
    }
    submodules
}

/// Each rule once, in the order of first appearance.
fn distinct_rules(raw: Vec<RawRowLevelSecurityDef>) -> Vec<String> {
    let mut seen = HashSet::new();
    raw.into_iter()
        .map(|rule| rule.sql)
        .filter(|sql| seen.insert(sql.clone()))
        .collect()
}
