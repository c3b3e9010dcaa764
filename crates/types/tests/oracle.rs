//! Random types and values against the published crates.

use crate::common;
use crate::common::{any_type, any_typed_value, any_value, decode, sats_type, sats_value};
use lightcone_types::bsatn::{fixed_size, min_size, Encode};
use lightcone_types::{json, AlgebraicType, Hash, Identity, SpecialProduct, Typespace};
use proptest::prelude::*;
use spacetimedb_sats as sats;
use std::cmp::Ordering;

const EMPTY: &Typespace = Typespace::EMPTY;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn types_encode_alike(ty in any_type()) {
        let ours = ty.to_vec();
        let theirs = sats_type(&ty);
        prop_assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), ours.clone());
        prop_assert_eq!(common::decode_type(&ours), ty);
    }

    #[test]
    fn type_json_alike(ty in any_type()) {
        let ours = common::type_to_json(&ty);
        let theirs = sats_type(&ty);
        let wrapped = sats::ser::serde::SerializeWrapper::from_ref(&theirs);
        prop_assert_eq!(serde_json::to_string(wrapped).unwrap(), ours.clone());
        prop_assert_eq!(common::type_from_json(&ours).unwrap(), ty);
    }

    #[test]
    fn recognition_alike(ty in any_type()) {
        let theirs = sats_type(&ty);
        prop_assert_eq!(ty.is_special(), theirs.is_special());
        prop_assert_eq!(ty.as_option().is_some(), theirs.is_option());
        prop_assert_eq!(ty.as_result().is_some(), theirs.is_result());
        prop_assert_eq!(ty.is_bytes(), theirs.is_bytes());
        prop_assert_eq!(ty.is_unit(), theirs.is_unit());
        let special = ty.special_product();
        prop_assert_eq!(special == Some(SpecialProduct::Identity), theirs.is_identity());
        prop_assert_eq!(special == Some(SpecialProduct::ConnectionId), theirs.is_connection_id());
        prop_assert_eq!(special == Some(SpecialProduct::Timestamp), theirs.is_timestamp());
        prop_assert_eq!(special == Some(SpecialProduct::TimeDuration), theirs.is_time_duration());
        prop_assert_eq!(special == Some(SpecialProduct::Uuid), theirs.is_uuid());
        prop_assert_eq!(ty.is_schedule_at(), theirs.is_schedule_at());
    }

    #[test]
    fn values_encode_alike((ty, value) in any_typed_value()) {
        let ours = value.to_vec();
        let theirs = sats_value(EMPTY, &ty, &ours).unwrap();
        prop_assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), ours.clone());
        prop_assert_eq!(decode(EMPTY, &ty, &ours), Ok(value));
        prop_assert!(ours.len() >= min_size(&ty));
        if let Some(size) = fixed_size(&ty) {
            prop_assert_eq!(ours.len(), size);
        }
    }

    #[test]
    fn arbitrary_bytes_decode_alike(ty in any_type(), bytes in any::<Vec<u8>>()) {
        let mut r = lightcone_types::Reader::new(&bytes);
        let ours = lightcone_types::bsatn::decode_value(EMPTY, &ty, &mut r);
        // The limit on values that take no input is ours alone: without it, memory runs out.
        if ours.as_ref().is_err_and(|e| e.to_string().contains("empty values")) {
            return Ok(());
        }
        match (ours, sats_value(EMPTY, &ty, &bytes)) {
            (Ok(ours), Ok(theirs)) => {
                prop_assert_eq!(ours.to_vec(), sats::bsatn::to_vec(&theirs).unwrap());
            }
            (Err(ours), Err(theirs)) => prop_assert_eq!(ours.to_string(), theirs),
            (ours, theirs) => prop_assert!(false, "{:?} but {:?}", ours, theirs),
        }
    }

    #[test]
    fn order_alike((ty, a, b) in any_type().prop_flat_map(|ty| {
        let (a, b) = (any_value(&ty), any_value(&ty));
        (Just(ty), a, b)
    })) {
        let (x, y) = (sats_value(EMPTY, &ty, &a.to_vec()), sats_value(EMPTY, &ty, &b.to_vec()));
        prop_assert_eq!(a.value_cmp(&b), x.unwrap().cmp(&y.unwrap()));
        prop_assert_eq!(b.value_cmp(&a), a.value_cmp(&b).reverse());
        prop_assert_eq!(a.value_cmp(&a), Ordering::Equal);
        prop_assert_eq!(&a, &a);
        prop_assert_eq!(a == b, a.to_vec() == b.to_vec());
    }

    #[test]
    fn untyped_json_alike((ty, value) in any_typed_value()) {
        let mut ours = String::new();
        json::value_to_json_untyped(&value, &mut ours);
        let bytes = value.to_vec();
        let mut streamed = String::new();
        let mut r = lightcone_types::Reader::new(&bytes);
        json::bsatn_to_json_untyped(EMPTY, &ty, &mut r, &mut streamed).unwrap();
        prop_assert_eq!(&streamed, &ours);
        let theirs = sats_value(EMPTY, &ty, &bytes).unwrap();
        let wrapped = sats::ser::serde::SerializeWrapper::from_ref(&theirs);
        let theirs = serde_json::to_string(wrapped).unwrap();
        // Exponent thresholds and ties of floats may differ: compare numbers by what they mean.
        prop_assert_eq!(json_meaning(&theirs), json_meaning(&ours));
    }

    #[test]
    fn json_round_trip((ty, value) in any_typed_value()) {
        let mut untyped = String::new();
        json::value_to_json_untyped(&value, &mut untyped);
        let mut named = String::new();
        json::value_to_json_named(EMPTY, &ty, &value, &mut named);
        let mut streamed = String::new();
        let bytes = value.to_vec();
        let mut r = lightcone_types::Reader::new(&bytes);
        json::bsatn_to_json_named(EMPTY, &ty, &mut r, &mut streamed).unwrap();
        prop_assert_eq!(&streamed, &named);
        if !has_unsendable_float(&untyped) {
            prop_assert_eq!(json::value_from_json(EMPTY, &ty, &untyped), Ok(value.clone()));
            prop_assert_eq!(json::value_from_json(EMPTY, &ty, &named), Ok(value.clone()));
            let theirs = sats_from_json(&ty, &named).unwrap();
            prop_assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), bytes);
        }
    }

    #[test]
    fn mutated_json_is_judged_alike(
        (ty, value) in any_typed_value(),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec![
            "", "0", "1", "-", "5", "\"", "[", "]", "{", "}", ",", ":", "null", ".5", "e3", "x", " ", "+",
        ]),
        remove in 0usize..3,
    ) {
        let mut text = String::new();
        json::value_to_json_named(EMPTY, &ty, &value, &mut text);
        let characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len() + 1);
        let end = (at + remove).min(characters.len());
        let head: String = characters[..at].iter().collect();
        let tail: String = characters[end..].iter().collect();
        let text = format!("{head}{with}{tail}");
        let ours = json::value_from_json(EMPTY, &ty, &text);
        let theirs = sats_from_json(&ty, &text);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let theirs = sats::bsatn::to_vec(&theirs).unwrap();
                let theirs = decode(EMPTY, &ty, &theirs).unwrap();
                prop_assert_eq!(ours, theirs, "{}", text);
            }
            (Err(_), Err(_)) => {}
            // By the rules an `F32` overflows to an infinity; the exact mode the oracle has to run
            // in refuses that.
            (Ok(ours), Err(_)) if format!("{ours:?}").contains("inf") => {}
            (ours, theirs) => prop_assert!(false, "{} as {}: {:?} but {:?}", text, ty, ours, theirs),
        }
    }

    #[test]
    fn identities_alike(issuer in any::<String>(), subject in any::<String>()) {
        let theirs = spacetimedb_lib::Identity::from_claims(&issuer, &subject);
        let ours = Identity::from_claims(&issuer, &subject);
        prop_assert_eq!(ours.to_le_bytes(), theirs.to_byte_array());
        prop_assert_eq!(ours.to_hex(), theirs.to_hex().to_string());
        prop_assert_eq!(ours.to_abbreviated_hex(), theirs.to_abbreviated_hex().to_string());
    }

    #[test]
    fn hashes_alike(bytes in any::<Vec<u8>>()) {
        let (ours, theirs) = (Hash::keccak256(&bytes), spacetimedb_lib::hash_bytes(&bytes));
        prop_assert_eq!(ours.to_hex(), theirs.to_hex().to_string());
        prop_assert_eq!(ours.to_vec(), sats::bsatn::to_vec(&theirs).unwrap());
        let json = serde_json::to_string(sats::ser::serde::SerializeWrapper::from_ref(&theirs)).unwrap();
        prop_assert_eq!(format!("\"{}\"", ours.to_json_u256()), json);
        prop_assert_eq!(Hash::from_json_u256(&ours.to_json_u256()), Some(ours));
    }
}

fn sats_from_json(ty: &AlgebraicType, text: &str) -> Result<sats::AlgebraicValue, String> {
    let typespace = sats::Typespace::default();
    let ty = sats_type(ty);
    let seed = sats::de::serde::SeedWrapper(sats::WithTypespace::new(&typespace, &ty));
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde::de::DeserializeSeed::deserialize(seed, &mut deserializer);
    let value = value.map_err(|e| e.to_string())?;
    deserializer.end().map_err(|e| e.to_string())?;
    Ok(value)
}

/// `null` outside strings stands for a NaN or an infinity.
fn has_unsendable_float(text: &str) -> bool {
    fn has_null(node: &json::Node<'_>) -> bool {
        node.is_null()
            || node.as_array().is_some_and(|a| a.iter().any(has_null))
            || node
                .as_object()
                .is_some_and(|o| o.iter().any(|(_, n)| has_null(n)))
    }
    has_null(&json::parse(text).unwrap())
}

/// The text with every float replaced by its bits as binary32. Two decimals of the same shortest
/// length may name the same float; that the text reads back exactly is `json_round_trip`.
fn json_meaning(text: &str) -> String {
    fn write(node: &json::Node<'_>, out: &mut String) {
        match &node.kind {
            json::NodeKind::Number(n) if n.contains(['.', 'e']) => {
                out.push_str(&format!("f{:x}", n.parse::<f32>().unwrap().to_bits()));
            }
            json::NodeKind::Array(elements) => {
                out.push('[');
                for e in elements {
                    write(e, out);
                    out.push(',');
                }
                out.push(']');
            }
            other => out.push_str(&format!("{other:?}")),
        }
    }
    let mut out = String::new();
    write(&json::parse(text).unwrap(), &mut out);
    out
}
