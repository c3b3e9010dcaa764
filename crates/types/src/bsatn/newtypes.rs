//! Structures of one field, which encode as that field (01 §1.1.5).

use super::decode::Decode;
use super::encode::Encode;
use super::reader::{DecodeError, Reader};
use crate::algebraic_type::TypeRef;
use crate::hash::Hash;
use crate::ids::{ColId, ConstraintId, IndexId, ScheduleId, SequenceId, TableId};

macro_rules! encode_as_number {
    ($($name:ident),*) => {$(
        impl Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
        }

        impl Decode for $name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Decode::decode(r).map(Self)
            }
        }
    )*};
}

encode_as_number! {
    TypeRef, TableId, SequenceId, IndexId, ConstraintId, ScheduleId, ColId
}

/// 32 bytes, which are those of a number.
impl Encode for Hash {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode for Hash {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.read_array("u256").map(Self)
    }
}
