//! HTTP handlers and routes (02 §8.9).

use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::functions::{lookup, positions};
use super::names::{check_names, NameRules};
use crate::def::{HttpHandlerDef, HttpRouteDef};
use crate::error::{clip, ValidationError};
use crate::raw::{MethodOrAny, RawHttpHandlerDefV10, RawHttpRouteDefV10};

pub(super) fn handlers(
    cx: &mut Context,
    rules: &NameRules,
    raw: Vec<RawHttpHandlerDefV10>,
) -> Vec<HttpHandlerDef> {
    let mut names = HashSet::new();
    let mut handlers = Vec::with_capacity(raw.len());
    for raw in raw {
        let name = rules.function(&raw.source_name);
        check_names(cx, &raw.source_name, &name);
        if !names.insert(name.clone()) {
            cx.push(ValidationError::DuplicateHttpHandlerName { name: clip(&name) });
        }
        handlers.push(HttpHandlerDef {
            name,
            source_name: raw.source_name,
        });
    }
    handlers
}

pub(super) fn routes(
    cx: &mut Context,
    rules: &NameRules,
    handlers: &[HttpHandlerDef],
    raw: Vec<RawHttpRouteDefV10>,
) -> Vec<HttpRouteDef> {
    let by_name = positions(handlers.iter().map(|h| h.name.as_str()));
    let mut methods_by_path: HashMap<String, HashSet<MethodOrAny>> = HashMap::new();
    let mut routes = Vec::with_capacity(raw.len());
    for raw in raw {
        let declared = &raw.handler_function;
        let Some(handler) = lookup(&by_name, &rules.function(declared), declared) else {
            let (path, handler) = (clip(&raw.path), clip(declared));
            cx.push(ValidationError::MissingHttpHandler { path, handler });
            continue;
        };
        if !is_valid_path(&raw.path) {
            cx.push(ValidationError::InvalidHttpRoutePath {
                path: clip(&raw.path),
            });
        }
        let methods = methods_by_path.entry(raw.path.clone()).or_default();
        let conflict = methods.contains(&MethodOrAny::Any)
            || methods.contains(&raw.method)
            || (raw.method == MethodOrAny::Any && !methods.is_empty());
        methods.insert(raw.method.clone());
        if conflict {
            cx.push(ValidationError::DuplicateHttpRoute {
                path: clip(&raw.path),
            });
        }
        routes.push(HttpRouteDef {
            handler,
            method: raw.method,
            path: raw.path,
        });
    }
    routes
}

fn is_valid_path(path: &str) -> bool {
    let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'/');
    path.is_empty() || (path.starts_with('/') && path.bytes().all(allowed))
}
