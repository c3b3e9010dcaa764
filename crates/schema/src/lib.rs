//! Module definitions (02): the raw form of a module, its validation, the table schemas derived from it, and plans between two
//! definitions.

#![forbid(unsafe_code)]

mod args;
mod build;
pub mod case;
mod def;
mod emit;
mod environment;
mod error;
mod name;
mod plan;
pub mod raw;
mod sequence;
mod signature;
pub mod table;
mod validate;

pub use def::*;
pub use environment::{
    is_environment_key, is_sealed, EnvironmentType, EnvironmentVariableDef, ENVIRONMENT_BYTES_MAX,
    ENVIRONMENT_KEYS_MAX, ENVIRONMENT_KEY_BYTES_MAX, ENVIRONMENT_VALUE_BYTES_MAX, SEALED_PREFIX,
};
pub use error::{Error, TypeLocation, TypeUseError, ValidationError, ValidationErrors};
pub use name::{check_identifier, IdentifierError, IDENTIFIER_BYTES_MAX, NAMESPACE_BYTES_MAX};
pub use plan::{
    migration_token, plan, upgradable, Incompatible, Layout, MigrationPlan, Mismatch, PlanStyle,
    Refusal, Refused, Step, StepKind,
};
pub use raw::{Lifecycle, RawModuleDef, RawVersion};
pub use table::{
    ColumnSchema, ConstraintSchema, IndexAlgorithm, IndexSchema, OutboxDef, ScheduleSchema,
    SequenceSchema, SequentialIds, TableAccess, TableKind, TableSchema, ViewSchema, FIRST_USER_ID,
    VIEW_HASH_BYTES,
};
