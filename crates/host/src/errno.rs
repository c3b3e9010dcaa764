//! Errnos, which host calls return to a module (spec 03 §5).

use std::fmt;
use std::num::NonZeroU16;

/// The answer of a host call that had no effect. The transaction stays usable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(NonZeroU16);

macro_rules! errnos {
    ($($number:literal $name:ident $text:literal;)*) => {
        impl Errno {
            $(
                #[doc = $text]
                pub const $name: Errno = Errno(NonZeroU16::new($number).expect("the table has no zero"));
            )*

            /// In order.
            pub const ALL: &'static [Errno] = &[$(Errno::$name),*];

            /// As module libraries print it.
            pub fn name(self) -> &'static str {
                match self.number() {
                    $($number => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }

            /// The `message` in JavaScript.
            pub fn text(self) -> &'static str {
                match self.number() {
                    $($number => $text,)*
                    _ => "Unknown error",
                }
            }
        }
    };
}

errnos! {
    1 HOST_CALL_FAILURE "ABI called by host returned an error";
    2 NOT_IN_TRANSACTION "ABI call can only be made while in a transaction";
    3 BSATN_DECODE_ERROR "Couldn't decode the BSATN to the expected type";
    4 NO_SUCH_TABLE "No such table";
    5 NO_SUCH_INDEX "No such index";
    6 NO_SUCH_ITER "The provided row iterator is not valid";
    7 NO_SUCH_CONSOLE_TIMER "The provided console timer does not exist";
    8 NO_SUCH_BYTES "The provided bytes source or sink is not valid";
    9 NO_SPACE "The provided sink has no more space left";
    10 WRONG_INDEX_ALGO "The Index does not support range scans";
    11 BUFFER_TOO_SMALL "The provided buffer is not large enough to store the data";
    12 UNIQUE_ALREADY_EXISTS "Value with given unique identifier already exists";
    13 SCHEDULE_AT_DELAY_TOO_LONG "Specified delay in scheduling row was too long";
    14 INDEX_NOT_UNIQUE "The index was not unique";
    15 NO_SUCH_ROW "The row was not found, e.g., in an update call";
    16 AUTO_INC_OVERFLOW "The auto-increment sequence overflowed";
    17 WOULD_BLOCK_TRANSACTION "Attempted async or blocking op while holding open a transaction";
    18 TRANSACTION_NOT_ANONYMOUS "Not in an anonymous transaction. Called by a reducer?";
    19 TRANSACTION_IS_READ_ONLY "ABI call can only be made while within a mutable transaction";
    20 TRANSACTION_IS_MUT "ABI call can only be made while within a read-only transaction";
    21 HTTP_ERROR "The HTTP request failed";
}

impl Errno {
    pub fn from_number(number: u16) -> Option<Errno> {
        Errno::ALL
            .iter()
            .copied()
            .find(|errno| errno.number() == number)
    }

    pub fn number(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.number())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_dense_from_1_to_21() {
        for number in 1..=21 {
            assert_eq!(Errno::from_number(number).map(Errno::number), Some(number));
        }
        assert_eq!(Errno::from_number(0), None);
        assert_eq!(Errno::from_number(22), None);
        assert_eq!(Errno::UNIQUE_ALREADY_EXISTS.number(), 12);
        assert_eq!(format!("{:?}", Errno::NO_SUCH_ITER), "NO_SUCH_ITER(6)");
    }
}
