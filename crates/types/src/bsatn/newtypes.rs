//! Structures of one field, which encode as that field (01 §1.1.5).

use super::decode::Decode;
use super::encode::Encode;
use super::reader::{DecodeError, Reader};
use crate::algebraic_type::TypeRef;
use crate::connection_id::ConnectionId;
use crate::hash::Hash;
use crate::identity::Identity;
use crate::ids::{ColId, ConstraintId, IndexId, ScheduleId, SequenceId, TableId};
use crate::time::{TimeDuration, Timestamp};
use crate::uuid::Uuid;

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
    TypeRef, TableId, SequenceId, IndexId, ConstraintId, ScheduleId, ColId, Timestamp, TimeDuration, Uuid, ConnectionId
}

/// 32 bytes, which are those of a number.
macro_rules! encode_as_bytes {
    ($($name:ident),*) => {$(
        impl Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0);
            }
        }

        impl Decode for $name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.read_array("u256").map(Self)
            }
        }
    )*};
}

encode_as_bytes!(Identity, Hash);
