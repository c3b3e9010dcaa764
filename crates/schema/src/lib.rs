//! Module definitions (02): the raw form a module hands over, its validation into a
//! [`ModuleDef`](crate), the table schemas derived from it, and the comparison of two definitions.

pub mod table;

pub use table::{
    ColumnSchema, ConstraintSchema, IdSource, IndexAlgorithm, IndexSchema, ScheduleSchema, SequenceSchema,
    SequentialIds, TableAccess, TableKind, TableSchema,
};
