//! Scalar newtypes that encode exactly as their integer (01 §1.1.5).

use std::fmt;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// The id as a position.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self(value)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

id! {
    /// Id of a table.
    TableId(u32);
    /// Id of a view.
    ViewId(u32);
    /// Id of a sequence.
    SequenceId(u32);
    /// Id of an index.
    IndexId(u32);
    /// Id of a constraint.
    ConstraintId(u32);
    /// Id of a schedule.
    ScheduleId(u32);
    /// Position of a column in its table.
    ColId(u16);
    /// Id of a set of view arguments.
    ArgId(u64);
}
