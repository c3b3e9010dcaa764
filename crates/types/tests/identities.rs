//! Identity derivation, hashes and their text forms (01 §1.8, 1.12.8, 1.12.9).

use lightcone_types::{hex_encode, view_args_hash, ConnectionId, Encode, Hash, Identity, U256};
use lightcone_vectors::{each, file, named, sections_are, Entry};

const FILE: &str = "01-identities.json";

const ALICE: &str = "c20035600353a2e93544d898c6ed0eac323e200c0468300f22958f8b472a265d";

#[test]
fn all_sections_are_read() {
    let sections = [
        "identities",
        "derivation",
        "hashes",
        "not_a_hash",
        "view_arguments",
        "identity_texts",
    ];
    sections_are(FILE, &sections);
}

#[test]
fn identities_from_claims() {
    each(FILE, "identities", |entry| {
        let identity = Identity::from_claims(entry.text("issuer"), entry.text("subject"));
        assert_eq!(identity.to_hex(), entry.text("identity"));
    });
}

/// The steps that lead to an identity: 26 bytes of one digest, and a checksum over them.
#[test]
fn derivation() {
    let entry = Entry(file(FILE)["derivation"].take());
    let (issuer, subject) = (entry.text("issuer"), entry.text("subject"));
    let first = blake3::hash(format!("{issuer}|{subject}").as_bytes());
    assert_eq!(first.to_hex().as_str(), entry.text("first_digest"));
    let kept = &first.as_bytes()[..26];
    let checksum = blake3::hash(&[&[0xc2, 0x00], kept].concat());
    assert_eq!(checksum.to_hex().as_str(), entry.text("checksum_digest"));
    let checksum = hex_encode(&checksum.as_bytes()[..4]);
    assert_eq!(checksum, entry.text("checksum"));
    let identity = format!("c200{checksum}{}", hex_encode(kept));
    assert_eq!(Identity::from_claims(issuer, subject).to_hex(), identity);
}

#[test]
fn identity_text() {
    let alice = Identity::from_claims("localhost", "alice");
    assert_eq!(alice.to_string(), ALICE);
    assert_eq!(alice.to_abbreviated_hex(), "c20035600353a2e9");
    let texts = Entry(file(FILE)["identity_texts"].take());
    assert_eq!(texts.text("identity"), ALICE);
    for text in texts.texts("accepted") {
        assert_eq!(Identity::parse_text(text), Ok(alice), "{text}");
    }
    for text in texts.texts("refused") {
        assert!(Identity::parse_text(text).is_err(), "{text}");
    }
    // As many bytes as an identity has digits, but not as many characters.
    let text = ALICE.replace("5d", "é");
    assert!(Identity::parse_text(&text).is_err(), "{text}");
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

/// The words in which identities reach a module, the least significant one first.
#[test]
fn words_of_a_call() {
    let file = file("03-identity-split.json");
    let words = |entry: &Entry| -> Vec<u64> {
        let words = entry.texts("words").into_iter();
        words
            .map(|word| u64::from_str_radix(word, 16).expect(word))
            .collect()
    };
    let entry = Entry(file["identity"].clone());
    let identity = Identity::from_hex(entry.text("text")).unwrap();
    assert_eq!(identity.to_vec(), entry.hex());
    assert_eq!(identity.to_words().to_vec(), words(&entry));
    let entry = Entry(file["connection_id"].clone());
    let id = ConnectionId::from_hex(entry.text("text")).unwrap();
    assert_eq!(id.to_vec(), entry.hex());
    assert_eq!(id.to_words().to_vec(), words(&entry));
    sections_are(
        "03-identity-split.json",
        &["note", "identity", "connection_id"],
    );
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
    each(FILE, "hashes", |entry| {
        let (hash, hex) = (Hash::keccak256(&entry.bytes("input")), entry.text("hex"));
        assert_eq!(hash.to_hex(), hex);
        assert_eq!(hex_encode(&hash.to_vec()), hex);
        assert_eq!(hash.to_json_u256(), entry.text("json"));
        assert_eq!(Hash::from_json_u256(entry.text("json")), Some(hash));
        assert_eq!(Hash::from_hex(hex), Ok(hash));
    });
    let wrong = Entry(file(FILE)["not_a_hash"].take());
    assert_ne!(Hash::keccak256(b"").to_hex(), wrong.text("hex"));
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
    each(FILE, "view_arguments", |entry| {
        let hash = view_args_hash(&entry.bytes("arguments"));
        assert_eq!(hash.to_hex(), entry.text("hex"));
    });
    let alice = Identity::from_claims("localhost", "alice");
    let sender = named(
        FILE,
        "view_arguments",
        "caller is the identity of localhost and alice",
    );
    assert_eq!(alice.as_le_bytes()[..], sender.bytes("arguments"));
}
