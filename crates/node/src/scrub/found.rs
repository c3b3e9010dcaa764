//! What the scrub has found.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use lightcone_types::Identity;
use parking_lot::Mutex;

/// A database, or the control database.
pub(crate) type Place = Option<Identity>;

/// What the scrub has found.
#[derive(Default)]
pub struct Scrub {
    /// What is damaged, with file and byte. No place is in it without any.
    found: Mutex<BTreeMap<Place, Vec<String>>>,
    /// Read since the start.
    pub bytes: AtomicU64,
    /// Times that all was read.
    pub passes: AtomicU64,
}

impl Scrub {
    /// How many files, about, are damaged.
    pub fn damaged(&self) -> usize {
        self.found.lock().values().map(Vec::len).sum()
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.found.lock().keys().copied().collect()
    }

    pub(super) fn forget_all_but(&self, is_there: impl Fn(&Identity) -> bool) {
        let mut found = self.found.lock();
        found.retain(|place, _| place.as_ref().is_none_or(&is_there));
    }

    /// A place has been read. What is new is told once.
    pub(super) fn note(&self, place: Place, texts: Vec<String>) {
        let before = match texts.is_empty() {
            true => self.found.lock().remove(&place),
            false => self.found.lock().insert(place, texts.clone()),
        };
        let database = place.map_or_else(|| "control-db".to_owned(), |of| of.to_string());
        let before = before.unwrap_or_default();
        if texts.is_empty() && !before.is_empty() {
            tracing::warn!(database, "what the scrub had found to be damaged is needed no more, or in order again [LC0529]");
        }
        for found in texts.iter().filter(|text| !before.contains(text)) {
            tracing::error!(
                database,
                found,
                "a start of the database would need files that are damaged [LC0529]"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_known_until_it_is_in_order_or_gone() {
        let scrub = Scrub::default();
        let [first, second] = [1, 2].map(|byte| Identity::from_le_bytes([byte; 32]));
        let texts = |count: usize| vec!["damaged".to_owned(); count];
        scrub.note(None, texts(1));
        scrub.note(Some(first), texts(2));
        scrub.note(Some(second), texts(3));
        assert_eq!(scrub.damaged(), 6);
        scrub.note(Some(first), Vec::new());
        assert_eq!(scrub.places(), [None, Some(second)]);
        scrub.forget_all_but(|identity| *identity != second);
        assert_eq!((scrub.places(), scrub.damaged()), (vec![None], 1));
    }
}
