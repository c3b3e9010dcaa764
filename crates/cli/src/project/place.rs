//! Where in a project file something stands, for messages about it.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserializer;

/// One step of the way into a file: a member, by its key with `_`, or an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// The way as a user reads it: `children[1].num-replicas`.
pub(super) fn text_of(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&key.replace('_', "-"));
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

/// Line and column, both from 1, of what the path leads to: its key, or the element itself. `None` if the file does not have
/// it. The text must be valid JSON5.
pub(super) fn find(text: &str, path: &[Step]) -> Option<(usize, usize)> {
    let mut file = json5::Deserializer::from_str(text);
    // Who walks there stops with an error, and the reader adds the place to it.
    let stop = Walk { path }.deserialize(&mut file).err()?;
    let place = stop.position()?;
    Some((place.line + 1, place.column + 1))
}

/// Goes down a path, and fails where it ends.
#[derive(Clone, Copy)]
struct Walk<'a> {
    path: &'a [Step],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.path.first() {
            None => value.deserialize_any(Nothing),
            Some(_) => value.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some((Step::Key(wanted), rest)) = self.path.split_first() else {
            return IgnoredAny.visit_map(members).map(drop);
        };
        let is_last = rest.is_empty();
        while let Some(is_it) = members.next_key_seed(Key { wanted, is_last })? {
            match is_it {
                true => members.next_value_seed(Walk { path: rest })?,
                false => members.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        if let Some((Step::Index(wanted), rest)) = self.path.split_first() {
            for _ in 0..*wanted {
                if elements.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
            }
            elements.next_element_seed(Walk { path: rest })?;
        }
        IgnoredAny.visit_seq(elements).map(drop)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Compares a key with the wanted one; fails if the path ends with it.
struct Key<'a> {
    wanted: &'a str,
    is_last: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<bool, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        match key.replace('-', "_") == self.wanted {
            true if self.is_last => Err(E::custom("here")),
            is_it => Ok(is_it),
        }
    }
}

/// Takes no value at all, so that each fails where it stands.
struct Nothing;

impl Visitor<'_> for Nothing {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("nothing")
    }
}

/// The deepest nesting of brackets in a text, those in strings and comments with it: what is deeper than a project file ever
/// is must not reach a parser that calls itself for each of them.
pub(super) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &str) -> Vec<Step> {
        let step = |word: &str| match word.parse() {
            Ok(index) => Step::Index(index),
            Err(_) => Step::Key(word.to_owned()),
        };
        steps.split(' ').map(step).collect()
    }

    #[test]
    fn keys_and_elements_are_found() {
        let text = "// mine\n{ database: 'a', // here\n  \"module-path\": \"x\", children: [\n    {server: null}, 5,\n  {children: [{ 'num-replicas': [1, {}, 'x', true, 1.5, -1] }]}] }";
        for (steps, want) in [
            ("database", Some((2, 3))),
            ("module_path", Some((3, 3))),
            ("children 0 server", Some((4, 6))),
            ("children 1", Some((4, 21))),
            ("children 2 children 0 num_replicas", Some((5, 17))),
            ("children 2 children 0 num_replicas 3", Some((5, 46))),
            ("children 3", None),
            ("children 0 database", None),
            ("database x", None),
            ("nothing", None),
        ] {
            assert_eq!(find(text, &path(steps)), want, "{steps}");
        }
        assert_eq!(
            text_of(&path("children 2 num_replicas")),
            "children[2].num-replicas"
        );
    }

    #[test]
    fn depth_is_counted() {
        assert_eq!(depth("{a: [{}, [1]]}]]{"), 3);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[\\[\\]{}:,'a1\\n -]{0,40}", index in 0usize..3) {
            let _ = find(&text, &[Step::Key("a".into()), Step::Index(index)]);
        }
    }
}
