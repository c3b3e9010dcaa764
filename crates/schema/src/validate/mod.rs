//! From the raw definition to a [`ModuleDef`] (02 §8).
//!
//! Both versions are first brought into one form, [`Sections`]; each module level is validated on its
//! own ([`level`]), and the levels are then joined under namespaced names ([`flatten`]).

mod flatten;
mod functions;
mod http;
mod level;
mod migration;
mod names;
mod sections;
mod tables;
mod types;
mod views;

use crate::def::ModuleDef;
use crate::error::{ValidationError, ValidationErrors, ERRORS_MAX};
use crate::raw::{RawModuleDef, RawVersion};

pub(crate) use migration::old_name;
pub(crate) use names::NameRules;
use sections::Sections;

/// Bytes of all derived names together.
const NAME_BYTES_MAX: usize = 64 << 20;
/// Parts of all resolved column types together.
const TYPE_PARTS_MAX: usize = 1 << 20;

/// Collects errors and keeps what the definition makes the host derive within bounds: names and
/// column types can be repeated so often that a small definition would otherwise fill the memory.
struct Context {
    version: RawVersion,
    errors: Vec<ValidationError>,
    not_shown: usize,
    name_bytes_left: usize,
    type_parts_left: usize,
}

impl Context {
    fn new(version: RawVersion) -> Self {
        Context {
            version,
            errors: Vec::new(),
            not_shown: 0,
            name_bytes_left: NAME_BYTES_MAX,
            type_parts_left: TYPE_PARTS_MAX,
        }
    }

    fn push(&mut self, error: ValidationError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        } else {
            self.not_shown += 1;
        }
    }

    /// Keeps an error that explains why validation stopped, whatever else was found.
    fn push_first(&mut self, error: ValidationError) {
        self.errors.insert(0, error);
    }

    fn check(&mut self, result: Result<(), ValidationError>) {
        if let Err(error) = result {
            self.push(error);
        }
    }

    /// Accounts for a derived name; false once the limit is passed.
    #[must_use]
    fn charge_name(&mut self, bytes: usize) -> bool {
        let passed_before = self.name_bytes_left == 0;
        self.name_bytes_left = self.name_bytes_left.saturating_sub(bytes);
        if self.name_bytes_left == 0 && !passed_before {
            self.push_first(ValidationError::TooLarge {
                what: "bytes of derived names",
                limit: NAME_BYTES_MAX,
            });
        }
        self.name_bytes_left > 0
    }

    /// Accounts for a resolved type; false once the limit is passed.
    #[must_use]
    fn charge_type(&mut self, parts: usize) -> bool {
        let passed_before = self.type_parts_left == 0;
        self.type_parts_left = self.type_parts_left.saturating_sub(parts);
        if self.type_parts_left == 0 && !passed_before {
            self.push_first(ValidationError::TooLarge {
                what: "parts of column types",
                limit: TYPE_PARTS_MAX,
            });
        }
        self.type_parts_left > 0
    }

    fn too_large(&self) -> bool {
        self.name_bytes_left == 0 || self.type_parts_left == 0
    }
}

/// Validates a whole module.
pub(crate) fn module(raw: RawModuleDef) -> Result<ModuleDef, ValidationErrors> {
    let (version, sections);
    let mut cx;
    match raw {
        RawModuleDef::V9(raw) => {
            version = RawVersion::V9;
            cx = Context::new(version);
            sections = Sections::from_v9(&mut cx, raw);
        }
        RawModuleDef::V10(raw) => {
            version = RawVersion::V10;
            cx = Context::new(version);
            sections = Sections::from_v10(&mut cx, raw);
        }
    }
    let root = level::level(&mut cx, sections, String::new(), true);
    let module = if cx.errors.is_empty() {
        flatten::flatten(&mut cx, root)
    } else {
        None
    };
    match module {
        Some(module) if cx.errors.is_empty() => Ok(module),
        _ => Err(ValidationErrors {
            errors: cx.errors,
            not_shown: cx.not_shown,
        }),
    }
}
