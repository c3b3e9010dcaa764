//! Canonical names and the namespaces in which they must be unique (02 §8.3, §8.4).

use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::migration;
use crate::case;
use crate::error::{clip, ValidationError};
use crate::name::{IdentifierError, IDENTIFIER_BYTES_MAX};
use crate::raw::{CaseConversionPolicy, ExplicitNameEntry, ExplicitNames};

/// How the source names of one level become canonical names.
pub(crate) struct NameRules {
    policy: CaseConversionPolicy,
    tables: HashMap<String, String>,
    functions: HashMap<String, String>,
    indexes: HashMap<String, String>,
    namespaces: HashMap<String, String>,
    /// The names that a migration function gives a meaning are left as they are.
    has_migration: bool,
}

impl NameRules {
    pub fn new(policy: CaseConversionPolicy, explicit: ExplicitNames, has_migration: bool) -> Self {
        let mut rules = NameRules {
            has_migration,
            policy,
            tables: HashMap::new(),
            functions: HashMap::new(),
            indexes: HashMap::new(),
            namespaces: HashMap::new(),
        };
        for entry in explicit.entries {
            let (names, mapping) = match entry {
                ExplicitNameEntry::Table(mapping) => (&mut rules.tables, mapping),
                ExplicitNameEntry::Function(mapping) => (&mut rules.functions, mapping),
                ExplicitNameEntry::Index(mapping) => (&mut rules.indexes, mapping),
                ExplicitNameEntry::Namespace(mapping) => (&mut rules.namespaces, mapping),
            };
            names.insert(mapping.source_name, mapping.canonical_name);
        }
        rules
    }

    /// For the names of columns and parameters.
    pub fn policy(&self) -> CaseConversionPolicy {
        self.policy
    }

    pub fn table(&self, source_name: &str) -> String {
        let is_fixed = self.has_migration && migration::old_name(source_name).is_some();
        self.name(is_fixed, &self.tables, source_name)
    }

    /// Reducers, procedures, views and HTTP handlers.
    pub fn function(&self, source_name: &str) -> String {
        let is_fixed = self.has_migration && migration::is_function_name(source_name);
        self.name(is_fixed, &self.functions, source_name)
    }

    fn name(
        &self,
        is_fixed: bool,
        explicit: &HashMap<String, String>,
        source_name: &str,
    ) -> String {
        match explicit.get(source_name) {
            _ if is_fixed => source_name.to_owned(),
            Some(name) => name.clone(),
            None => self.convert(source_name, case::to_snake),
        }
    }

    /// Where a submodule is mounted.
    pub fn namespace(&self, source_name: &str) -> String {
        self.name(false, &self.namespaces, source_name)
    }

    /// For clients; modules know parameters by their positions.
    pub fn parameter(&self, name: &str) -> String {
        self.convert(name, case::to_snake)
    }

    /// Indexes are not converted: without an explicit name the canonical one is generated.
    pub fn index(&self, source_name: &str) -> Option<String> {
        self.indexes.get(source_name).cloned()
    }

    pub fn type_name(&self, name: &str) -> String {
        self.convert(name, case::to_pascal)
    }

    fn convert(&self, name: &str, to_case: fn(&str) -> String) -> String {
        match self.policy {
            CaseConversionPolicy::None => name.to_owned(),
            CaseConversionPolicy::SnakeCase => to_case(name),
        }
    }
}

/// Checks a source name and the canonical name made from it.
pub(super) fn check_names(cx: &mut Context, source: &str, canonical: &str) {
    cx.check_identifier(source);
    if canonical != source {
        cx.check_identifier(canonical);
    }
}

/// Checks a name that is used as given and need not be an identifier.
pub(super) fn check_given_name(cx: &mut Context, name: &str) {
    if name.len() > IDENTIFIER_BYTES_MAX {
        cx.push(ValidationError::Identifier(IdentifierError::TooLong(
            name.len(),
        )));
    }
}

/// The names of tables, indexes, constraints, sequences, schedules and views of one level.
#[derive(Default)]
pub(super) struct ObjectNames {
    used: HashSet<String>,
}

impl ObjectNames {
    /// Claims the names of one object; a name it has twice counts once.
    pub fn claim(&mut self, cx: &mut Context, name: &str, alias: Option<&str>) {
        self.claim_one(cx, name);
        if let Some(alias) = alias.filter(|alias| *alias != name) {
            self.claim_one(cx, alias);
        }
    }

    fn claim_one(&mut self, cx: &mut Context, name: &str) {
        if !self.used.insert(name.to_owned()) {
            cx.push(ValidationError::DuplicateName { name: clip(name) });
        }
    }
}
