//! Key bytes against the value order of `lightcone-types` (01 §1.6.1).

use crate::common::*;
use lightcone_table::key::{encode_column_value, successor};
use lightcone_types::bsatn::fixed_size;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn byte_order_is_value_order(
        (ty, a, b, tail) in column_type().prop_flat_map(|ty| {
            (Just(ty.clone()), value(&ty), value(&ty), prop::collection::vec(any::<u8>(), 0..3))
        }),
    ) {
        let key = |value| {
            let mut bytes = encode(value);
            let length = bytes.len();
            bytes.extend_from_slice(&tail);
            let mut key = Vec::new();
            assert_eq!(encode_column_value(&ty, &bytes, &mut key), Ok(length), "what follows is left alone");
            key
        };
        let (key_a, key_b) = (key(&a), key(&b));
        prop_assert_eq!(key_a.cmp(&key_b), a.value_cmp(&b), "{:?} {:?}", key_a, key_b);
        prop_assert!(key_a == key_b || !key_b.starts_with(&key_a), "keys delimit themselves");
        if let Some(size) = fixed_size(&ty) {
            prop_assert_eq!(key_a.len(), size);
        }
    }

    #[test]
    fn cut_values_are_refused((ty, a) in column_type().prop_flat_map(|ty| (Just(ty.clone()), value(&ty)))) {
        let bytes = encode(&a);
        for length in 0..bytes.len() {
            prop_assert!(encode_column_value(&ty, &bytes[..length], &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn successor_ends_a_prefix(prefix in prop::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 0..4),
                               other in prop::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 0..5)) {
        match successor(&prefix) {
            Some(end) => prop_assert_eq!(other >= prefix && other < end, other.starts_with(&prefix)),
            None => prop_assert_eq!(other >= prefix, other.starts_with(&prefix)),
        }
    }
}
