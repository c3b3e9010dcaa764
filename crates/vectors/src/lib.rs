//! The vectors of `docs/interface/vectors`, which tests walk entry by entry. For tests only: what is missing or malformed panics.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// One entry of a file.
pub struct Entry(pub Value);

/// A whole file.
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
    let Value::Array(list) = list else {
        panic!("{file_name}, {section} is no list");
    };
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

/// The bytes of hexadecimal digits.
pub fn from_hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect(digits);
    (0..digits.len()).step_by(2).map(byte).collect()
}

impl Entry {
    /// What a failure calls it; all of an entry that has no name.
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

    /// A member that is a text.
    pub fn text(&self, member: &str) -> &str {
        self.0[member].as_str().expect(member)
    }

    /// A member that is a list of texts.
    pub fn texts(&self, member: &str) -> Vec<&str> {
        let texts = self.list(member).iter();
        texts.map(|text| text.as_str().expect(member)).collect()
    }

    /// A member that is a whole number.
    pub fn number(&self, member: &str) -> i64 {
        self.0[member].as_i64().expect(member)
    }

    /// A member that is a list.
    pub fn list(&self, member: &str) -> &[Value] {
        self.0[member].as_array().expect(member)
    }

    /// A member that has bytes, in hexadecimal digits.
    pub fn bytes(&self, member: &str) -> Vec<u8> {
        from_hex(self.text(member))
    }

    /// The bytes that the entry is about.
    pub fn hex(&self) -> Vec<u8> {
        self.bytes("hex")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "01-values.json";

    #[test]
    fn a_failing_entry_is_named() {
        let checked = || {
            each(FILE, "integers", |entry| {
                assert_ne!(entry.name(), entries(FILE, "integers")[0].name());
            });
        };
        let panic = catch_unwind(checked).expect_err("the first entry fails");
        let message = panic.downcast_ref::<String>().expect("a text");
        assert!(message.contains(FILE), "{message}");
        assert!(message.contains(&format!("{:?}", entries(FILE, "integers")[0].name())));
    }

    #[test]
    #[should_panic(expected = "untested in 01-values.json")]
    fn entries_that_are_left_out_are_counted() {
        each_but(1, FILE, "integers", |_| ());
    }

    #[test]
    #[should_panic(expected = "is no list")]
    fn a_section_that_is_not_there_is_a_failure() {
        entries(FILE, "nothing");
    }
}
