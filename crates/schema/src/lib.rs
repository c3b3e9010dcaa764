//! Module definitions (02): the raw form a module hands over, its validation into a module
//! definition, the table schemas derived from it, and the comparison of two definitions.

#![forbid(unsafe_code)]

mod args;
mod build;
pub mod case;
mod def;
mod diff;
mod emit;
mod error;
pub mod fuzzing;
mod name;
mod plan;
pub mod raw;
mod sequence;
pub mod table;
mod validate;

pub use def::*;
pub use diff::{diff, SchemaChange, SchemaDiff, TableChange, ViewChange};
pub use error::{Error, TypeLocation, TypeUseError, ValidationError, ValidationErrors};
pub use name::{check_identifier, IdentifierError, IDENTIFIER_BYTES_MAX, NAMESPACE_BYTES_MAX};
pub use plan::{migration_token, unchanged_plan_text, MigrationPlan, PlanStyle, Step};
pub use raw::{Lifecycle, RawModuleDef, RawVersion};
pub use table::{
    ColumnSchema, ConstraintSchema, IdSource, IndexAlgorithm, IndexSchema, ScheduleSchema,
    SequenceSchema, SequentialIds, TableAccess, TableKind, TableSchema, ViewSchema, FIRST_USER_ID,
    VIEW_HASH_BYTES,
};
