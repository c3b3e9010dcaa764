//! Configuration values that are one of some words.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::Deserializer;

/// Reads one of these words; the error names them all.
/// It is another one, or no word at all; the text names all that there are.
pub fn one_of<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    words: &'static [(&'static str, T)],
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Words(words))
}

struct Words<T: 'static>(&'static [(&'static str, T)]);

impl<T: Copy> Visitor<'_> for Words<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one of the words ")?;
        for (number, (word, _)) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(formatter, "{comma}{word:?}")?;
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let found = self.0.iter().find(|(word, _)| *word == text);
        let found = found.map(|(_, value)| *value);
        found.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}
