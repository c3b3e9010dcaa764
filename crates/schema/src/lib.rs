//! Module definitions (02): the raw form a module hands over, its validation into a module
//! definition, the table schemas derived from it, and the comparison of two definitions.

#![forbid(unsafe_code)]

pub mod case;
pub mod raw;
pub mod table;

pub use raw::{Lifecycle, RawModuleDef, RawVersion};
pub use table::{
    ColumnSchema, ConstraintSchema, IdSource, IndexAlgorithm, IndexSchema, ScheduleSchema,
    SequenceSchema, SequentialIds, TableAccess, TableKind, TableSchema,
};
