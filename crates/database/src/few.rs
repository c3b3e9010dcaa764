//! Lists that mostly hold one entry, and keys that are mostly short, where they are used: finding them elsewhere in memory is
//! most of what a client costs whom a change concerns.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// A list that needs no memory of its own for one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Few<T> {
    #[default]
    /// No entry.
    None,
    /// The only entry.
    One(T),
    /// Any number of entries.
    Many(Vec<T>),
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(entry) => std::slice::from_ref(entry),
            Few::Many(entries) => entries,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::None => &mut [],
            Few::One(entry) => std::slice::from_mut(entry),
            Few::Many(entries) => entries,
        }
    }
}

impl<'f, T> IntoIterator for &'f Few<T> {
    type Item = &'f T;
    type IntoIter = std::slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Few<T> {
    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        match self {
            Few::None => *self = Few::One(entry),
            Few::Many(entries) => entries.push(entry),
            Few::One(_) => {
                let Few::One(first) = std::mem::take(self) else {
                    unreachable!("it was just looked at");
                };
                *self = Few::Many(vec![first, entry]);
            }
        }
    }

    /// Removes an entry; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, place: usize) {
        match self {
            Few::Many(entries) => drop(entries.swap_remove(place)),
            few => *few = Few::None,
        }
    }

    /// Bytes of memory beside its own.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Few::Many(entries) => entries.capacity() * size_of::<T>(),
            _ => 0,
        }
    }
}

/// As many bytes of a key as are kept in place: an identity, and something beside it.
const SHORT_MAX: usize = 38;

/// The key of a map, which is found by bytes.
#[derive(Clone)]
pub(crate) enum Key {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Box<[u8]>),
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        if key.len() > SHORT_MAX {
            return Key::Long(key.into());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..key.len()].copy_from_slice(key);
        let len = key.len() as u8;
        Key::Short { len, bytes }
    }
}

impl Key {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Key::Short { len, bytes } => &bytes[..usize::from(*len)],
            Key::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Key {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_like_any_other(changes in prop::collection::vec(any::<Option<u8>>(), 0..40)) {
            let (mut few, mut all) = (Few::default(), Vec::new());
            for change in changes {
                match change {
                    Some(entry) => {
                        few.push(entry);
                        all.push(entry);
                    }
                    None if all.is_empty() => {}
                    None => {
                        few.swap_remove(all.len() / 2);
                        all.swap_remove(all.len() / 2);
                    }
                }
                prop_assert_eq!(&few[..], &all[..]);
            }
        }

        #[test]
        fn keys_are_their_bytes(one in prop::collection::vec(0_u8..2, 0..60), other in prop::collection::vec(0_u8..2, 0..60)) {
            let mut map = hashbrown::HashMap::<Key, u8>::new();
            map.insert(one[..].into(), 1);
            prop_assert_eq!(map.get(&other[..]).is_some(), one == other);
            prop_assert_eq!(map.get(&one[..]), Some(&1));
        }
    }
}
