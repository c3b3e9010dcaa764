//! Shared by the parts of a validation: its errors and its bounds.

use crate::error::{ValidationError, ERRORS_MAX};
use crate::name::check_identifier;
use crate::raw::RawVersion;

/// Bytes of all derived names together.
const NAME_BYTES_MAX: usize = 64 << 20;
/// Parts of all resolved column types together.
const TYPE_PARTS_MAX: usize = 1 << 20;

/// Collects errors and keeps what the definition makes the host derive within bounds: names and
/// column types can be repeated so often that a small definition would otherwise fill the memory.
pub(super) struct Context {
    pub version: RawVersion,
    pub errors: Vec<ValidationError>,
    pub not_shown: usize,
    name_bytes_left: usize,
    type_parts_left: usize,
}

impl Context {
    pub fn new(version: RawVersion) -> Self {
        Context {
            version,
            errors: Vec::new(),
            not_shown: 0,
            name_bytes_left: NAME_BYTES_MAX,
            type_parts_left: TYPE_PARTS_MAX,
        }
    }

    pub fn push(&mut self, error: ValidationError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        } else {
            self.not_shown += 1;
        }
    }

    /// Keeps an error that explains why validation stopped, whatever else was found.
    pub fn push_first(&mut self, error: ValidationError) {
        self.errors.insert(0, error);
    }

    pub fn check(&mut self, result: Result<(), ValidationError>) {
        if let Err(error) = result {
            self.push(error);
        }
    }

    pub fn check_identifier(&mut self, name: &str) {
        self.check(check_identifier(name).map_err(ValidationError::Identifier));
    }

    /// Accounts for a derived name; false once the limit is passed.
    #[must_use]
    pub fn charge_name(&mut self, bytes: usize) -> bool {
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
    pub fn charge_type(&mut self, parts: usize) -> bool {
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

    pub fn too_large(&self) -> bool {
        self.name_bytes_left == 0 || self.type_parts_left == 0
    }
}
