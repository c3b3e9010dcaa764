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
        let left = self.name_bytes_left.saturating_sub(bytes);
        if left == 0 && self.name_bytes_left > 0 {
            self.push_too_large("bytes of derived names", NAME_BYTES_MAX);
        }
        self.name_bytes_left = left;
        left > 0
    }

    /// Accounts for a resolved type; false once the limit is passed.
    #[must_use]
    pub fn charge_type(&mut self, parts: usize) -> bool {
        let left = self.type_parts_left.saturating_sub(parts);
        if left == 0 && self.type_parts_left > 0 {
            self.push_too_large("parts of column types", TYPE_PARTS_MAX);
        }
        self.type_parts_left = left;
        left > 0
    }

    /// Explains why validation stopped, whatever else was found.
    fn push_too_large(&mut self, what: &'static str, limit: usize) {
        let error = ValidationError::TooLarge { what, limit };
        self.errors.insert(0, error);
    }

    pub fn too_large(&self) -> bool {
        self.name_bytes_left == 0 || self.type_parts_left == 0
    }
}
