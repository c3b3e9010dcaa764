//! The vectors of docs/interface/vectors, which tests walk entry by entry.
#![allow(dead_code)]

use lightcone_types::AlgebraicType;
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

/// The entries of a section; a file without sections is one list.
pub fn entries(file_name: &str, section: &str) -> Vec<Entry> {
    let mut file = file(file_name);
    let list = match section {
        "" => file,
        section => file[section].take(),
    };
    let list: Vec<Value> = serde_json::from_value(list)
        .unwrap_or_else(|error| panic!("{file_name}, {section}: {error}"));
    assert!(!list.is_empty(), "{file_name}, {section} has entries");
    list.into_iter().map(Entry).collect()
}

/// Checks every entry of a section, and names those that fail. None may be marked as untested.
pub fn each(file_name: &str, section: &str, check: impl Fn(&Entry)) {
    each_but(0, file_name, section, check);
}

/// As [`each`], where so many entries say in the file why they are untested.
pub fn each_but(untested: usize, file_name: &str, section: &str, check: impl Fn(&Entry)) {
    let (left_out, tested): (Vec<Entry>, Vec<Entry>) = entries(file_name, section)
        .into_iter()
        .partition(Entry::is_untested);
    assert_eq!(
        left_out.len(),
        untested,
        "untested in {file_name}, {section}"
    );
    let passes = |entry: &&Entry| catch_unwind(AssertUnwindSafe(|| check(entry))).is_ok();
    let failed: Vec<String> = (tested.iter())
        .filter(|entry| !passes(entry))
        .map(Entry::name)
        .collect();
    assert!(failed.is_empty(), "{file_name}, {section}: {failed:#?}");
}

/// The entry of a name, for what a test asserts beyond the file.
pub fn named(file_name: &str, section: &str, name: &str) -> Entry {
    let mut entries = entries(file_name, section).into_iter();
    let entry = entries.find(|entry| entry.0["name"] == name);
    entry.unwrap_or_else(|| panic!("{file_name}, {section} has no {name}"))
}

/// A section that no test reads would be skipped in silence.
pub fn sections_are(file_name: &str, expected: &[&str]) {
    let file = file(file_name);
    let sections: Vec<&String> = file.as_object().expect("sections").keys().collect();
    assert_eq!(sections, expected, "{file_name}");
}

pub fn from_hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect(digits);
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The type that the files call so.
pub fn column_type(name: &str) -> AlgebraicType {
    use AlgebraicType as T;
    match name {
        "Bool" => T::Bool,
        "I8" => T::I8,
        "U8" => T::U8,
        "I16" => T::I16,
        "U16" => T::U16,
        "I32" => T::I32,
        "U32" => T::U32,
        "I64" => T::I64,
        "U64" => T::U64,
        "I128" => T::I128,
        "U128" => T::U128,
        "I256" => T::I256,
        "U256" => T::U256,
        "F32" => T::F32,
        "F64" => T::F64,
        "String" => T::String,
        "Bytes" => T::bytes(),
        "Identity" => T::identity(),
        "ConnectionId" => T::connection_id(),
        "Timestamp" => T::timestamp(),
        "TimeDuration" => T::time_duration(),
        "Uuid" => T::uuid(),
        "Array<String>" => T::array(T::String),
        "Option<U64>" => T::option(T::U64),
        unknown => panic!("no type {unknown}"),
    }
}

impl Entry {
    pub fn name(&self) -> String {
        match self.0.get("name") {
            Some(name) => name.to_string(),
            None => self.0.to_string(),
        }
    }

    fn is_untested(&self) -> bool {
        let reason = self.0.get("untested");
        reason.is_some_and(|reason| !reason.as_str().expect("a reason").is_empty())
    }

    pub fn text(&self, member: &str) -> &str {
        self.0[member].as_str().expect(member)
    }

    pub fn number(&self, member: &str) -> i64 {
        self.0[member].as_i64().expect(member)
    }

    pub fn list(&self, member: &str) -> &[Value] {
        self.0[member].as_array().expect(member)
    }

    pub fn bytes(&self, member: &str) -> Vec<u8> {
        from_hex(self.text(member))
    }

    pub fn hex(&self) -> Vec<u8> {
        self.bytes("hex")
    }
}
