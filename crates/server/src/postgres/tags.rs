//! How the tags of statements are written: as the reference writes them, or as drivers read them (08 §19).

use std::time::Duration;

use lightcone_query::postgresql::first_word;

use crate::database::SqlStats;

/// How the tags of statements that change rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tags {
    /// As the reference writes them (08 §19).
    Counts,
    /// As PostgreSQL does, where the reference answers nothing.
    Drivers,
}

pub(super) fn verb_of(text: &str) -> &'static str {
    let first = first_word(text).unwrap_or_default().to_uppercase();
    let verbs = ["INSERT", "UPDATE", "DELETE", "SET", "SHOW"];
    let found = verbs.into_iter().find(|verb| *verb == first);
    found.unwrap_or("SELECT")
}

/// `inserted: 1, server: 271.00µs`, without counts of zero.
pub(super) fn counts(stats: SqlStats, duration_us: u64) -> String {
    let counts = [
        ("inserted", stats.rows_inserted),
        ("deleted", stats.rows_deleted),
        ("updated", stats.rows_updated),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        parts.push(format!("{name}: {count}"));
    }
    let duration = Duration::from_micros(duration_us);
    parts.push(format!("server: {duration:.2?}"));
    parts.join(", ")
}

pub(super) fn tag_of(verb: &str, stats: SqlStats) -> String {
    match verb {
        "INSERT" => format!("INSERT 0 {}", stats.rows_inserted),
        "UPDATE" => format!("UPDATE {}", stats.rows_updated),
        "DELETE" => format!("DELETE {}", stats.rows_deleted),
        verb => verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_the_chapter() {
        let stats = SqlStats {
            rows_updated: 1,
            ..SqlStats::default()
        };
        assert_eq!(counts(stats, 160), "updated: 1, server: 160.00µs");
        assert_eq!(counts(SqlStats::default(), 75), "server: 75.00µs");
        assert_eq!(counts(SqlStats::default(), 1000), "server: 1.00ms");
        assert_eq!(tag_of(verb_of(" insert into t"), stats), "INSERT 0 0");
        assert_eq!(verb_of("select 1"), "SELECT");
    }
}
