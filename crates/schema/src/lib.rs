//! Module definitions (02): the raw form a module hands over, its validation into a module
//! definition, the table schemas derived from it, and the comparison of two definitions.

#![forbid(unsafe_code)]

mod args;
pub mod case;
mod def;
mod error;
mod name;
pub mod raw;
mod sequence;
pub mod table;
mod validate;

pub use def::*;
pub use error::{Error, TypeLocation, TypeUseError, ValidationError, ValidationErrors};
pub use name::{check_identifier, IdentifierError, IDENTIFIER_BYTES_MAX, NAMESPACE_BYTES_MAX};
pub use raw::{Lifecycle, RawModuleDef, RawVersion};
pub use table::{
    ColumnSchema, ConstraintSchema, IdSource, IndexAlgorithm, IndexSchema, ScheduleSchema,
    SequenceSchema, SequentialIds, TableAccess, TableKind, TableSchema,
};
