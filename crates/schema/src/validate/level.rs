//! One module level, the root or a submodule, validated on its own.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::Context;
use super::functions;
use super::names::{NameRules, ObjectNames};
use super::state::Level;
use super::types::{self, TypeUses};
use super::{environment, http, migration, outboxes, views};
use crate::def::ModuleLevel;
use crate::error::{clip, ValidationError};
use crate::name::NAMESPACE_BYTES_MAX;
use crate::raw::{RawRowLevelSecurityDef, RawSubmoduleV10, Sections};

/// Validates a level and everything below it. The result is complete only if no error was found.
pub(super) fn level(cx: &mut Context, sections: Sections, mounted: Option<Mounted>) -> ModuleLevel {
    let is_root = mounted.is_none();
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

    let submodule = mounted.as_ref().map(|of| of.source_namespace.as_str());
    let environment = sections.environment;
    let environment = environment.map(|raw| environment::declarations(cx, submodule, raw));

    let submodules = submodules(cx, &rules, sections.submodules);
    let Mounted {
        namespace,
        source_namespace,
    } = mounted.unwrap_or_default();
    let level = ModuleLevel {
        namespace,
        source_namespace,
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
        environment,
        migration,
        submodules,
    };
    check_conflicts(cx, &level);
    level
}

/// Where a submodule is: canonical, and in the code of its parent.
#[derive(Default)]
pub(super) struct Mounted {
    namespace: String,
    source_namespace: String,
}

fn submodules(cx: &mut Context, rules: &NameRules, raw: Vec<RawSubmoduleV10>) -> Vec<ModuleLevel> {
    let (mut namespaces, mut sources) = (HashSet::new(), HashSet::new());
    let mut submodules = Vec::with_capacity(raw.len());
    for raw in raw {
        let mounted = Mounted {
            namespace: rules.namespace(&raw.namespace),
            source_namespace: raw.namespace,
        };
        let names = [&mounted.source_namespace, &mounted.namespace];
        // One that stays as it is has its errors once.
        let differs = names[0] != names[1];
        for name in &names[..1 + usize::from(differs)] {
            let bytes = name.len();
            if bytes > NAMESPACE_BYTES_MAX {
                cx.push(ValidationError::NamespaceTooLong { bytes });
            } else {
                cx.check_identifier(name);
            }
        }
        let is_new = sources.insert(names[0].clone());
        if !namespaces.insert(names[1].clone()) || !is_new {
            let name = clip(names[1]);
            cx.push(ValidationError::DuplicateName { name });
        }
        let sections = Sections::from_v10(cx, raw.module);
        submodules.push(level(cx, sections, Some(mounted)));
    }
    submodules
}

/// In the code of a module, what it owns and what is mounted in it stand side by side.
fn check_conflicts(cx: &mut Context, level: &ModuleLevel) {
    let mounted = level.submodules.iter();
    let mounted: HashSet<&str> = mounted.map(|below| &*below.source_namespace).collect();
    if mounted.is_empty() {
        return;
    }
    let tables = level.tables.iter().map(|of| ("table", &of.source_name));
    let views = level.views.iter().map(|of| ("view", &of.source_name));
    let reducers = level.reducers.iter().map(|of| ("reducer", &of.source_name));
    let procedures = level.procedures.iter();
    let procedures = procedures.map(|of| ("procedure", &of.source_name));
    let all = tables.chain(views).chain(reducers).chain(procedures);
    for (kind, name) in all.filter(|(_, name)| mounted.contains(&***name)) {
        let name = clip(name);
        cx.push(ValidationError::NamespaceConflict { kind, name });
    }
}

/// Each rule once, in the order of first appearance.
fn distinct_rules(raw: Vec<RawRowLevelSecurityDef>) -> Vec<String> {
    let mut seen = HashSet::new();
    raw.into_iter()
        .map(|rule| rule.sql)
        .filter(|sql| seen.insert(sql.clone()))
        .collect()
}
