//! Identity derivation, hashes and their text forms (spec 1.8, 1.12.8, 1.12.9).

use lightcone_types::{hex_encode, view_args_hash, ConnectionId, Hash, Identity, U256};

const ALICE: &str = "c20035600353a2e93544d898c6ed0eac323e200c0468300f22958f8b472a265d";

#[test]
fn identities_from_claims() {
    for (issuer, subject, hex) in [
        (
            "example.com",
            "123",
            "c200ef884364c1a99be0298dc68f2004e6b97c09d1b1658b7db22f51fb662059",
        ),
        ("localhost", "alice", ALICE),
        (
            "localhost",
            "bob",
            "c200e63a6bd07da2304dd6f5b4691d3338562ceaa43cad4624d0d181a7a6c0d4",
        ),
        (
            "localhost",
            "test-subject",
            "c200b3ce65d91b79ecfb7d881cd65bf8da2f647d590af1474ad19faa7aa87e38",
        ),
        (
            "issuer",
            "server",
            "c20077f774179cabd1fa3471168506b93dc3a44a49ddd9511123c3b0b076b811",
        ),
        (
            "issuer",
            "client",
            "c200c6a82c0a8cdd0838b71b061dd261787a91d2d261b92ce6737309727403be",
        ),
        (
            "https://auth.spacetimedb.com",
            "00000000-0000-4000-8000-000000000000",
            "c200b48be187ca3353ddc581126a4df5001b90e334fb7fb8e8e1185d82f33f11",
        ),
        (
            "http://ex.com/",
            "ünï|côdé",
            "c20067d0f36fc10ff0b89df9d35eefd919f169d347d60a30b4b92e02821a79e9",
        ),
    ] {
        assert_eq!(Identity::from_claims(issuer, subject).to_hex(), hex);
    }
}

#[test]
fn identity_text() {
    let alice = Identity::from_claims("localhost", "alice");
    let upper = ALICE.to_uppercase();
    assert_eq!(alice.to_string(), ALICE);
    assert_eq!(alice.to_abbreviated_hex(), "c20035600353a2e9");
    for text in [ALICE, &upper, &format!("0x{ALICE}"), &format!("X'{ALICE}")] {
        assert_eq!(Identity::parse_text(text), Ok(alice), "{text}");
    }
    for text in [
        "",
        "0x",
        &ALICE[1..],
        &format!("0X{ALICE}"),
        &format!("X'{ALICE}'"),
        &format!("0x0x{ALICE}"),
        &format!("x'{ALICE}"),
        &format!("0{ALICE}"),
        &ALICE.replace("5d", "5g"),
        &ALICE.replace("5d", "é"),
    ] {
        assert!(Identity::parse_text(text).is_err(), "{text}");
    }
    assert!(Identity::from_hex(&format!("0x{ALICE}")).is_err());
    assert_eq!(Identity::from_u256(alice.to_u256()), alice);
    assert_eq!(Identity::from_be_bytes(alice.to_be_bytes()), alice);
    assert_eq!(alice.to_words()[0], 0x22958f8b472a265d);
    assert_eq!(alice.to_words()[3], 0xc20035600353a2e9);
    assert_eq!(Identity::ZERO.to_hex(), "0".repeat(64));
}

#[test]
fn identities_sort_like_their_text() {
    let mut identities: Vec<Identity> = (0..50)
        .map(|n| Identity::from_claims("localhost", &n.to_string()))
        .collect();
    identities.extend([
        Identity::from_u256(U256::ONE),
        Identity::from_u256(U256::MAX),
    ]);
    let mut texts: Vec<String> = identities.iter().map(|i| i.to_hex()).collect();
    identities.sort();
    texts.sort();
    assert_eq!(
        identities.iter().map(|i| i.to_hex()).collect::<Vec<_>>(),
        texts
    );
}

#[test]
fn connection_ids() {
    let id = ConnectionId::parse_text("0x000102030405060708090A0b0c0d0e0f").unwrap();
    assert_eq!(id.0, 0x000102030405060708090a0b0c0d0e0f);
    assert_eq!(id.to_hex(), "000102030405060708090a0b0c0d0e0f");
    assert_eq!(id.to_words(), [0x08090a0b0c0d0e0f, 0x0001020304050607]);
    assert!(ConnectionId::from_hex("0x000102030405060708090a0b0c0d0e0f").is_err());
    assert!(ConnectionId::parse_text("102030405060708090a0b0c0d0e0f").is_err());
    assert!(!ConnectionId::from_random(0).is_zero());
}

#[test]
fn plain_json_forms() {
    let alice = Identity::from_claims("localhost", "alice");
    assert_eq!(
        serde_json::to_string(&alice).unwrap(),
        format!("\"{ALICE}\"")
    );
    assert_eq!(
        serde_json::from_str::<Identity>(&format!("\"{ALICE}\"")).unwrap(),
        alice
    );
    let bytes = serde_json::to_string(&alice.to_be_bytes()).unwrap();
    assert_eq!(serde_json::from_str::<Identity>(&bytes).unwrap(), alice);
    assert!(serde_json::from_str::<Identity>(&format!("\"0x{ALICE}\"")).is_err());
    assert!(serde_json::from_str::<Identity>("[1,2]").is_err());
    let id: ConnectionId = serde_json::from_str("\"000102030405060708090a0b0c0d0e0f\"").unwrap();
    assert_eq!(
        serde_json::to_string(&id).unwrap(),
        "\"000102030405060708090a0b0c0d0e0f\""
    );
}

#[test]
fn hashes() {
    for (input, hex, json) in [
        (
            &b""[..],
            "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
            "0x70a4855d04d8fa7b3b2782ca53b600e5c003c7dcb27d7e923c23f7860146d2c5",
        ),
        (
            b"\0asm\x01\0\0\0",
            "dca3676eb137c0de909fa86423cce7b2e91614ee6b739ee7514b1095382eee30",
            "0x30ee2e3895104b51e79e736bee1416e9b2e7cc2364a89f90dec037b16e67a3dc",
        ),
        (
            b"abc",
            "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
            "0x456c2da18ff544ec36a0643ae3e6d1c067d6c826a87bd4c74fa945ea7a65034e",
        ),
        (
            b"t10",
            "6df120e67a309fc0459cf362949876639b9d9db5b036c41563239175b7172600",
            "0x2617b77591236315c436b0b59d9d9b6376989462f39c45c09f307ae620f16d",
        ),
    ] {
        let hash = Hash::keccak256(input);
        assert_eq!(hash.to_hex(), hex);
        assert_eq!(hex_encode(&lightcone_types::Encode::to_vec(&hash)), hex);
        assert_eq!(hash.to_json_u256(), json);
        assert_eq!(Hash::from_json_u256(json), Some(hash));
        assert_eq!(Hash::from_hex(hex), Ok(hash));
    }
    assert_eq!(Hash::from_json_u256("2617b775"), None);
    assert_eq!(Hash::from_json_u256("0x"), None);
    assert_eq!(
        Hash::from_json_u256(&format!("0x1{}", "0".repeat(64))),
        None
    );
    assert_eq!(Hash::ZERO.to_json_u256(), "0x0");
}

#[test]
fn view_argument_hashes() {
    assert_eq!(
        view_args_hash(&[]).to_hex(),
        "e8b8b119022591171d4b06f6240a1ee6c7a4b209b187d2e07b973c1e54e2e8b2"
    );
    assert_eq!(
        view_args_hash(Identity::from_claims("localhost", "alice").as_le_bytes()).to_hex(),
        "3e31377d159ab931914976926f62495ab9e8335778c35fcb5307363e34641a88"
    );
}
