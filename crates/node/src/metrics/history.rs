//! How it went: one look a minute at all that is counted, for readers who come later (06 §5.21).
//!
//! Nothing is on the disk: the history begins with the server.

use std::collections::{HashMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::Compression;
use lightcone_accounts::{Account, Counted, Kind, Terms};
use lightcone_types::Identity;
use parking_lot::Mutex;
use serde_json::{json, Value};

use super::json::bounds_us;

/// Looks that are kept: six hours.
const HISTORY_LOOKS_MAX: usize = 360;
/// Compressed bytes of all looks. When they are more, the oldest looks go.
const HISTORY_BYTES_MAX: usize = 32 << 20;
/// Compressed bytes of one answer, which is a multiple of that; older looks are left out.
const ANSWER_KEPT_BYTES_MAX: usize = 2 << 20;

/// What was counted in the last six hours.
pub struct History {
    account: Arc<Account>,
    /// Oldest first.
    looks: Mutex<VecDeque<Look>>,
}

struct Look {
    /// Since 1970.
    at_ms: u64,
    /// The families of the server.
    server: Option<Kept>,
    /// Those with series of their own that were open.
    databases: HashMap<Identity, Kept>,
}

/// JSON, compressed. One look shares it with the one before, as long as nothing is counted.
type Kept = Arc<Counted<Vec<u8>>>;

impl History {
    pub(crate) fn new(process: &Arc<Account>) -> History {
        History {
            account: process.open(Kind::History, Terms::exact(HISTORY_BYTES_MAX)),
            looks: Mutex::default(),
        }
    }

    /// The looks at the server: of each the text of its own families. Blocks for some milliseconds.
    pub fn of_server(&self) -> String {
        self.text(|look| look.server.as_ref())
    }

    /// The looks at a database: of each what [`one_as_json`](super::one_as_json) says, without names. Blocks for some milliseconds.
    pub fn of_database(&self, identity: &Identity) -> String {
        self.text(|look| look.databases.get(identity))
    }

    fn text(&self, of: impl Fn(&Look) -> Option<&Kept>) -> String {
        let looks = self.looks.lock();
        let newest = looks.iter().rev();
        let newest = newest.filter_map(|look| Some((look.at_ms, of(look)?.clone())));
        let mut left = ANSWER_KEPT_BYTES_MAX;
        let newest = newest.take_while(|(_, kept)| {
            let fits = kept.len() <= left;
            left = left.saturating_sub(kept.len());
            fits
        });
        let mut kept: Vec<(u64, Kept)> = newest.collect();
        drop(looks);
        kept.reverse();
        let mut text = format!(r#"{{"bounds_us":{},"looks":["#, json!(bounds_us()));
        let mut comma = "";
        for (at_ms, kept) in &kept {
            if let Some(counts) = decompress(kept) {
                text += &format!(r#"{comma}{{"at_ms":{at_ms},"counts":"#);
                text += &counts;
                text.push('}');
                comma = ",";
            }
        }
        text + "]}"
    }

    /// Adds a look at the texts and counts of [`keep_history`](super::keep_history).
    pub(super) fn add(&self, at_ms: u64, server: &Value, databases: Vec<(Identity, Value)>) {
        let server = self.keep(server, |look| look.server.as_ref());
        let databases = databases.into_iter().filter_map(|(identity, counts)| {
            let kept = self.keep(&counts, |look| look.databases.get(&identity))?;
            Some((identity, kept))
        });
        let look = Look {
            at_ms,
            server,
            databases: databases.collect(),
        };
        let mut looks = self.looks.lock();
        looks.push_back(look);
        if looks.len() > HISTORY_LOOKS_MAX {
            looks.pop_front();
        }
    }

    /// Compresses what was counted; `before` is the same in the look before. None if there is no room without older looks.
    fn keep(&self, counts: &Value, before: impl Fn(&Look) -> Option<&Kept>) -> Option<Kept> {
        let bytes = compress(counts);
        loop {
            let mut looks = self.looks.lock();
            let same = looks.back().and_then(&before);
            if let Some(same) = same.filter(|same| ****same == bytes) {
                return Some(same.clone());
            }
            if let Ok(kept) = Counted::copy_of(&bytes, &self.account) {
                return Some(Arc::new(kept));
            }
            looks.pop_front()?;
        }
    }
}

fn compress(counts: &Value) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(counts.to_string().as_bytes());
    written
        .and_then(|()| encoder.finish())
        .expect("memory takes all")
}

/// None never happens: it was compressed here.
fn decompress(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &History, identity: &Identity) -> Vec<u64> {
        let text: Value = serde_json::from_str(&of.of_database(identity)).expect("JSON");
        let looks = text["looks"].as_array().expect("a list").iter();
        looks
            .map(|look| look["counts"]["n"].as_u64().expect("a number"))
            .collect()
    }

    #[test]
    fn the_oldest_looks_go() {
        let history = History::new(&Account::root(Kind::Process, usize::MAX));
        let (one, other) = (Identity::ZERO, Identity::from_le_bytes([1; 32]));
        for n in 0..HISTORY_LOOKS_MAX as u64 + 3 {
            history.add(
                n,
                &json!("text"),
                vec![(one, json!({ "n": n })), (other, json!({ "n": 7 }))],
            );
        }
        assert_eq!(
            counts(&history, &one),
            (3..HISTORY_LOOKS_MAX as u64 + 3).collect::<Vec<_>>()
        );
        assert_eq!(counts(&history, &other), vec![7; HISTORY_LOOKS_MAX]);
        let server: Value = serde_json::from_str(&history.of_server()).expect("JSON");
        assert_eq!(server["looks"][0]["at_ms"], 3);
        assert_eq!(server["looks"][0]["counts"], "text");
        assert_eq!(
            counts(&history, &Identity::from_le_bytes([2; 32])),
            Vec::<u64>::new()
        );
    }

    #[test]
    fn memory_is_bounded_and_what_is_equal_is_kept_once() {
        let history = History::new(&Account::root(Kind::Process, 4096));
        let same = json!({ "n": 1, "text": (0..400).map(|n| n.to_string()).collect::<String>() });
        for n in 0..20 {
            history.add(n, &json!(null), vec![(Identity::ZERO, same.clone())]);
        }
        assert_eq!(counts(&history, &Identity::ZERO).len(), 20);
        for n in 0..20 {
            let text: String = (0..400).map(|at| (at * 7 + n).to_string()).collect();
            history.add(
                n,
                &json!(null),
                vec![(Identity::ZERO, json!({ "n": n, "text": text }))],
            );
        }
        let left = counts(&history, &Identity::ZERO);
        assert!(!left.is_empty() && left.len() < 20, "{left:?}");
        assert_eq!(left.last(), Some(&19));
        assert!(history.account.used() <= 4096);
    }
}
