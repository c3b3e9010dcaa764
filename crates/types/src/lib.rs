//! Types, values and their encodings: the base every other Lightcone crate builds on.
//!
//! * [`AlgebraicType`] and [`AlgebraicValue`]: the structural type system.
//! * [`bsatn`]: the binary encoding; [`json`]: SATS-JSON; [`text`]: cells for people.
//! * [`Identity`], [`ConnectionId`], [`Hash`], [`Timestamp`], [`TimeDuration`], [`Uuid`] and the
//!   id newtypes of the system tables.

#![forbid(unsafe_code)]

mod algebraic_type;
mod algebraic_value;
mod as_of;
pub mod bsatn;
mod cut;
mod due;
mod error_code;
mod hash;
mod hex;
mod ids;
pub mod integer;
pub mod json;
mod special;
pub mod text;
mod typespace;

pub use algebraic_type::{
    AlgebraicType, ProductType, ProductTypeElement, SumType, SumTypeVariant, TypePart, TypeRef,
};
pub use algebraic_value::{cmp_floats, AlgebraicValue};
pub use as_of::AsOf;
pub use bsatn::{Decode, DecodeError, Encode, Reader};
pub use cut::{cut, cut_name, SHOWN_NAME_BYTES_MAX};
pub use due::Due;
pub use error_code::error_code;
pub use hash::{view_args_hash, Hash};
pub use hex::{decode as hex_decode, encode as hex_encode, HexError};
pub use ids::{ColId, ConstraintId, IndexId, ScheduleId, SequenceId, TableId};
pub use integer::{IntegerType, I256, U256};
pub use special::*;
pub use typespace::{TypeError, Typespace};
