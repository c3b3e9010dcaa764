//! The structs that the macro makes of a section of the table.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};

use crate::compression::CompressionChoice;

pub(crate) trait Value: DeserializeOwned {
    /// As TOML writes it.
    fn toml(&self) -> String;

    /// A number is at least one. Which durations may be zero is decided where they are used.
    fn is_zero_number(&self) -> bool {
        false
    }

    /// As `config.toml` has it.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

macro_rules! numbers {
    ($($number:ident $({ $($read:tt)* })?;)+) => {$(
        impl Value for $number {
            fn toml(&self) -> String {
                self.to_string()
            }

            fn is_zero_number(&self) -> bool {
                *self == 0
            }

            $($($read)*)?
        }
    )+};
}

numbers! {
    u8;
    u64;
    usize {
        /// More bytes than can be addressed are all of them.
        fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let bytes = u64::deserialize(deserializer)?;
            Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
        }
    };
}

impl Value for bool {
    fn toml(&self) -> String {
        self.to_string()
    }
}

/// The server chooses it if the file does not; it may be zero.
impl Value for Option<u64> {
    fn toml(&self) -> String {
        self.map_or_else(String::new, |number| number.to_string())
    }
}

impl Value for Option<usize> {
    fn toml(&self) -> String {
        self.map_or_else(String::new, |number| number.to_string())
    }

    fn is_zero_number(&self) -> bool {
        *self == Some(0)
    }
}

impl Value for Duration {
    fn toml(&self) -> String {
        format!("\"{}\"", humantime::format_duration(*self))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::duration::read(deserializer)
    }
}

impl Value for CompressionChoice {
    fn toml(&self) -> String {
        let mut words = CompressionChoice::WORDS.iter();
        let word = words.find(|(_, choice)| choice == self);
        format!("\"{}\"", word.expect("each has a word").0)
    }
}

/// The struct of a section of `config.toml` for serde, with defaults and rows, and the structs of its parts.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:literal => pub struct $Section:ident;
        $($(#[$part_meta:meta])* $Part:ident {
            $(also { $($also:tt)+ })?
            $(in $Subject:ident {
                $(
                    $(#[doc = $comment:literal])+
                    $(#[serde $serde:tt])?
                    $field:ident: $ty:ty = $default:expr $(, shown as $shown:literal)?;
                    bounds $bounds:literal;
                    reached $reached:literal;
                )+
            })+
        })+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(default, rename_all = "kebab-case")]
        pub struct $Section {
            $($($(
                $(#[doc = $comment])+
                $(#[serde $serde])?
                #[serde(deserialize_with = "crate::section::Value::read")]
                pub $field: $ty,
            )+)+)+
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($($($field: $default,)+)+)+ }
            }
        }

        impl $Section {
            /// In the order of the table.
            pub fn rows() -> Vec<$crate::row::Row> {
                let default = Self::default();
                vec![$($($($crate::row::Row {
                    section: $name,
                    field: stringify!($field),
                    comment: &[$($comment),+],
                    default: $crate::section::shown!(default.$field $(, $shown)?),
                    subject: $crate::row::Subject::$Subject,
                    bounds: $bounds,
                    reached: $reached,
                },)+)+)+]
            }

            /// A key whose number is zero, which none may be.
            pub fn zero_key(&self) -> Option<String> {
                $($($(
                    if $crate::section::Value::is_zero_number(&self.$field) {
                        return Some($crate::row::key($name, stringify!($field)));
                    }
                )+)+)+
                None
            }
        }

        $($crate::section::part! {
            $(#[$part_meta])*
            $Part of $Section
            { $($($also)+)? }
            { $($($(#[doc = $comment])+ $field: $ty,)+)+ }
        })+
    };
}

/// The struct of a part of a section. Its other fields are filled in by code that knows the other sections.
macro_rules! part {
    (server of $Section:ident {} { $($fields:tt)+ }) => {};
    (
        $(#[$meta:meta])*
        $Part:ident of $Section:ident
        { $($(#[$also_meta:meta])* pub $also:ident: $also_ty:ty = $also_default:expr;)* }
        { $($(#[doc = $comment:literal])+ $field:ident: $ty:ty,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Part {
            $($(#[$also_meta])* pub $also: $also_ty,)*
            $($(#[doc = $comment])+ pub $field: $ty,)+
        }

        impl From<&$Section> for $Part {
            fn from(section: &$Section) -> Self {
                Self {
                    $($also: $also_default,)*
                    $($field: section.$field,)+
                }
            }
        }

        impl Default for $Part {
            fn default() -> Self {
                Self::from(&$Section::default())
            }
        }
    };
}

/// A default as the file and the page show it.
macro_rules! shown {
    ($value:expr) => {
        $crate::section::Value::toml(&$value)
    };
    ($value:expr, $shown:literal) => {
        $shown.to_owned()
    };
}

pub(crate) use {part, section, shown};
