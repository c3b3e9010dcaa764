//! Scalar newtypes that encode exactly as their integer (01 §1.1.5).

use std::fmt;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
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
    TableId(u32);
    SequenceId(u32);
    IndexId(u32);
    ConstraintId(u32);
    ScheduleId(u32);
    /// Position of a column in its table.
    ColId(u16);
}
