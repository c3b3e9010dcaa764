//! The vectors of docs/interface/vectors, which tests walk entry by entry.
#![allow(dead_code)]

use lightcone_types::json::{type_from_json, typespace_from_json, value_from_json};
use lightcone_types::{AlgebraicType, AlgebraicValue, Typespace};
use serde_json::Value;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// One entry of a file.
pub struct Entry(pub Value);

pub fn file(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interface/vectors");
    let text = std::fs::read_to_string(folder.join(name)).expect(name);
    serde_json::from_str(&text).expect(name)
}

/// Checks every entry of a section, and names those that fail.
/// None may be marked as untested: nothing in these files needs more than this crate.
pub fn each(file_name: &str, section: &str, check: impl Fn(&Entry)) {
    let entries = file(file_name)[section].take();
    let entries: Vec<Entry> = serde_json::from_value::<Vec<Value>>(entries)
        .unwrap_or_else(|error| panic!("{file_name}, {section}: {error}"))
        .into_iter()
        .map(Entry)
        .collect();
    assert!(!entries.is_empty(), "{file_name}, {section} has entries");
    let passes = |entry: &&Entry| {
        assert!(entry.0.get("untested").is_none(), "{}", entry.name());
        catch_unwind(AssertUnwindSafe(|| check(entry))).is_ok()
    };
    let failed: Vec<String> = (entries.iter())
        .filter(|entry| !passes(entry))
        .map(Entry::name)
        .collect();
    assert!(failed.is_empty(), "{file_name}, {section}: {failed:#?}");
}

/// The entry of a name, for what a test asserts beyond the file.
pub fn named(file_name: &str, section: &str, name: &str) -> Entry {
    let entries = file(file_name)[section].take();
    let mut entries = entries.as_array().expect(section).iter();
    let entry = entries.find(|entry| entry["name"] == name);
    Entry(entry.expect(name).clone())
}

/// A section that no test reads would be skipped in silence.
pub fn sections_are(file_name: &str, expected: &[&str]) {
    let file = file(file_name);
    let sections: Vec<&String> = file.as_object().expect("sections").keys().collect();
    assert_eq!(sections, expected, "{file_name}");
}

impl Entry {
    pub fn name(&self) -> String {
        match self.0.get("name") {
            Some(name) => name.to_string(),
            None => self.0.to_string(),
        }
    }

    pub fn text(&self, member: &str) -> &str {
        self.0[member].as_str().expect(member)
    }

    pub fn texts(&self, member: &str) -> Vec<&str> {
        let texts = self.0[member].as_array().expect(member);
        texts.iter().map(|t| t.as_str().expect(member)).collect()
    }

    pub fn number(&self, member: &str) -> i64 {
        self.0[member].as_i64().expect(member)
    }

    pub fn bytes(&self, member: &str) -> Vec<u8> {
        let digits = self.text(member);
        assert!(digits.len().is_multiple_of(2), "{digits}");
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect(digits);
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    pub fn hex(&self) -> Vec<u8> {
        self.bytes("hex")
    }

    pub fn ty(&self) -> AlgebraicType {
        type_from_json(&self.0["type"].to_string()).expect("a type")
    }

    /// The types that refs point into: a list of types, the whole typespace, or absent.
    pub fn typespace(&self) -> Typespace {
        match self.0.get("typespace") {
            None => Typespace::default(),
            Some(Value::Array(types)) => {
                let types = types.iter().map(|ty| type_from_json(&ty.to_string()));
                Typespace::new(types.collect::<Result<_, _>>().expect("types"))
            }
            Some(typespace) => typespace_from_json(&typespace.to_string()).expect("a typespace"),
        }
    }

    /// The value that a SATS-JSON text says.
    pub fn read(&self, text: &str) -> Result<AlgebraicValue, String> {
        value_from_json(&self.typespace(), &self.ty(), text).map_err(|error| error.to_string())
    }
}
