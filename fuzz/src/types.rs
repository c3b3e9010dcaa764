//! Types and values. Each function takes any bytes and must neither panic, hang nor allocate out of
//! proportion; what it decodes must survive its round trip.

use lightcone_types::bsatn::{decode_value, validate, Decode, Encode, Reader};
use lightcone_types::{json, text, AlgebraicType, Typespace};

/// A typespace, a type and a value of that type, one after the other.
pub fn fuzz_value(data: &[u8]) {
    let mut r = Reader::new(data);
    let Ok(typespace) = Typespace::decode(&mut r) else {
        return;
    };
    let Ok(ty) = AlgebraicType::decode(&mut r) else {
        return;
    };
    let bytes = r.remaining();
    let mut checked = Reader::new(bytes);
    let mut decoded = Reader::new(bytes);
    let mut transcoded = Reader::new(bytes);
    let checked_ok = validate(&typespace, &ty, &mut checked);
    let value = decode_value(&typespace, &ty, &mut decoded);
    let mut untyped = String::new();
    let untyped_ok = json::bsatn_to_json_untyped(&typespace, &ty, &mut transcoded, &mut untyped);
    assert_eq!(checked_ok, value.as_ref().map(drop).map_err(Clone::clone));
    assert_eq!(checked_ok, untyped_ok);
    let Ok(value) = value else { return };
    assert_eq!(checked.position(), decoded.position());
    assert_eq!(checked.position(), transcoded.position());
    assert_eq!(value.to_vec(), &bytes[..decoded.position()]);
    let mut from_value = String::new();
    json::value_to_json_untyped(&value, &mut from_value);
    assert_eq!(untyped, from_value);
    text::format_value(&typespace, &ty, &value);
    let mut named = String::new();
    json::value_to_json_named(&typespace, &ty, &value, &mut named);
    // Non-finite floats are `null`, deep values exceed JSON's depth, names may repeat: the result
    // need not be a value again, but it must be JSON unless it is too deep.
    if let Err(error) = json::parse(&named) {
        assert_eq!(error.message(), "recursion limit exceeded");
    }
}

/// A type: BSATN and JSON round trips, resolution.
pub fn fuzz_type(data: &[u8]) {
    let mut r = Reader::new(data);
    let Ok(typespace) = Typespace::decode(&mut r) else {
        return;
    };
    assert_eq!(typespace.to_vec(), &data[..r.position()]);
    for ty in &typespace.types {
        let _ = ty.type_name();
        if let Ok(resolved) = typespace.resolve(ty) {
            assert!(Typespace::EMPTY.resolve(&resolved).is_ok());
        }
    }
    let mut text = String::new();
    let meta = json::META_TYPESPACE.into();
    json::description_to_json(&json::META_TYPES, &meta, &typespace, &mut text);
    let node = json::parse(&text);
    let back = node
        .and_then(|node| json::description_from_node::<Typespace>(&json::META_TYPES, &meta, &node));
    match back {
        Ok(back) => assert_eq!(back, typespace),
        Err(error) => assert_eq!(error.message(), "recursion limit exceeded"),
    }
}

/// A type in BSATN, then JSON text to be read as a value of that type.
pub fn fuzz_json(data: &[u8]) {
    let mut r = Reader::new(data);
    let Ok(typespace) = Typespace::decode(&mut r) else {
        return;
    };
    let Ok(ty) = AlgebraicType::decode(&mut r) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(r.remaining()) else {
        return;
    };
    if let Ok(node) = json::parse(text) {
        let meta = json::META_ALGEBRAIC_TYPE.into();
        let _ = json::description_from_node::<AlgebraicType>(&json::META_TYPES, &meta, &node);
    }
    let Ok(value) = json::value_from_json(&typespace, &ty, text) else {
        return;
    };
    let bytes = value.to_vec();
    let back = decode_value(&typespace, &ty, &mut Reader::new(&bytes));
    assert_eq!(back.as_ref(), Ok(&value));
    let mut again = String::new();
    json::value_to_json_untyped(&value, &mut again);
    // Overflowing `F32` literals become infinities, which JSON can only show as `null`.
    if !again.contains("null") {
        assert_eq!(
            json::value_from_json(&typespace, &ty, &again).as_ref(),
            Ok(&value)
        );
    }
}
