//! Keys of a `config.toml` that mean nothing to this server: the log warns of them.

use std::collections::BTreeSet;

use super::template::uncommented_default;

/// Keys of the reference that have no meaning here, and why.
const WITHOUT_EFFECT: [(&str, &str); 10] = [
    ("commitlog.log-format-version", LOG),
    ("commitlog.offset-index-interval-bytes", LOG),
    ("commitlog.offset-interval-bytes", LOG),
    ("commitlog.offset-index-require-segment-fsync", LOG),
    ("commitlog.offset-index-require-fsync", LOG),
    (
        "commitlog.write-buffer-size",
        "the log writes what is queued at once",
    ),
    ("v8-heap-policy.heap-check-request-interval", HEAP),
    ("v8-heap-policy.heap-check-time-interval", HEAP),
    ("v8-heap-policy.heap-gc-trigger-fraction", HEAP),
    ("v8-heap-policy.heap-retire-fraction", HEAP),
];
const LOG: &str = "the log has a format of its own, without an index of offsets";
const HEAP: &str = "a heap is looked at when it reaches its limit, and by nothing before";
/// Keys that the default file does not show.
const NOT_SHOWN: [&str; 1] = ["limits.outgoing-queue-bytes"];
/// More of them are counted.
const NAMED_MAX: usize = 50;
const NAME_BYTES_MAX: usize = 200;

/// A warning for each key of a file that changes nothing.
pub(super) fn warnings(text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<toml::Table>() else {
        return Vec::new();
    };
    let known = known();
    let mut warnings: Vec<String> = keys(&table)
        .filter_map(|key| warning(&key, &known))
        .collect();
    let more = warnings.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        warnings.truncate(NAMED_MAX);
        warnings.push(format!("and {more} more keys like these"));
    }
    warnings
}

fn warning(key: &str, known: &BTreeSet<String>) -> Option<String> {
    let without = WITHOUT_EFFECT.iter().find(|(name, _)| *name == key);
    if let Some((_, why)) = without {
        return Some(format!("{key} has no effect here: {why}"));
    }
    let is_known = known.contains(key) || NOT_SHOWN.contains(&key);
    let shown: String = key.chars().take(NAME_BYTES_MAX).collect();
    (!is_known).then(|| format!("{shown} is no key of this server, and is ignored"))
}

/// Keys as `table.key`; what is in a value that is a table itself is that key's.
fn keys(table: &toml::Table) -> impl Iterator<Item = String> + '_ {
    table.iter().flat_map(|(section, value)| {
        let names: Vec<String> = match value {
            toml::Value::Table(keys) => {
                let names = keys.keys();
                names.map(|name| format!("{section}.{name}")).collect()
            }
            _ => vec![section.clone()],
        };
        names
    })
}

/// All keys that the default file shows.
fn known() -> BTreeSet<String> {
    let table = uncommented_default().parse::<toml::Table>();
    keys(&table.expect("a test parses the default file")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::template::default_text;
    use super::*;

    #[test]
    fn keys_that_change_nothing_are_named() {
        let text = "top = 1\n[commitlog]\nwrite-buffer-size = 1\nmax-segment-size = 1048576\n\
            [threads]\nschedulin = \"batch\"\nscheduling = \"batch\"\n\
            [auth]\nkeys = { \"https://a.example\" = \"x\" }\n\
            [limits]\noutgoing-queue-bytes = 5\n\
            [v8-heap-policy]\nheap-limit-mb = 512\nheap-retire-fraction = 0.5\n[unknown]\na = 1";
        let warnings = warnings(text);
        let named: Vec<_> = warnings
            .iter()
            .map(|warning| warning.split_once(' ').expect("a name").0)
            .collect();
        assert_eq!(
            named,
            [
                "commitlog.write-buffer-size",
                "threads.schedulin",
                "top",
                "unknown.a",
                "v8-heap-policy.heap-retire-fraction",
            ]
        );
        assert!(warnings[0].contains("has no effect here"), "{warnings:?}");
        assert!(warnings[1].contains("is no key"), "{warnings:?}");
    }

    #[test]
    fn the_default_file_warns_of_nothing() {
        assert_eq!(super::warnings(&default_text()), [""; 0]);
        assert_eq!(super::warnings(&uncommented_default()), [""; 0]);
        let many: String = (0..NAMED_MAX + 7).map(|n| format!("k{n} = 1\n")).collect();
        let warnings = super::warnings(&many);
        assert_eq!(warnings.len(), NAMED_MAX + 1);
        assert_eq!(warnings[NAMED_MAX], "and 7 more keys like these");
    }
}
