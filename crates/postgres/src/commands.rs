//! What drivers say about their session: answered here (08 §19).

use lightcone_query::postgresql::{is_word, name, text, word, Token};

use super::failure::{state, Failure};
use super::table::SmallTable;

/// What a client calls itself, and the database that it has opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub user: String,
    pub database: String,
    pub application_name: String,
}

/// What a transaction block is, for drivers that use them (08 §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// `reads`: nothing is changed in it.
    Begin {
        reads: bool,
    },
    Commit,
    Rollback,
}

/// An answer that needs no database.
#[derive(Debug)]
pub(super) enum Answer {
    Done(&'static str),
    Block(Block),
    /// The client's name for itself.
    ApplicationName(String),
    /// Prepared statements are to be forgotten: this one, or all.
    Deallocate(Option<String>),
    Rows(SmallTable),
}

/// What PostgreSQL this one takes itself for, so that drivers know what to ask.
pub(super) const SERVER_VERSION: &str = concat!("15.0 (spacetime ", env!("CARGO_PKG_VERSION"), ")");

/// Settings whose value is always the same. Setting them is answered, and changes nothing.
pub(super) const SETTINGS: [(&str, &str); 34] = [
    ("allow_system_table_mods", "off"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, YMD"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("enable_seqscan", "on"),
    ("extra_float_digits", "1"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "on"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("max_parallel_workers_per_gather", "0"),
    ("quote_all_identifiers", "off"),
    ("row_security", "on"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("synchronize_seqscans", "on"),
    ("timezone", "Etc/UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
];

pub(super) fn setting(name: &str) -> Option<&'static str> {
    let found = SETTINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// The answer to a statement, if it is one of these.
pub(super) fn answer(tokens: &[Token], names: &Names) -> Option<Result<Answer, Failure>> {
    let (first, rest) = tokens.split_first()?;
    let is_next = |word: &str| rest.first().is_some_and(|next| is_word(next, word));
    let has = |word: &str| rest.iter().any(|of| is_word(of, word));
    let first = word(first)?;
    // What stands behind it would be lost.
    if rest.contains(&Token::SemiColon) && first != "show" {
        let message = "cannot insert multiple commands into a prepared statement";
        return Some(Err(Failure::new(state::SYNTAX_ERROR, message)));
    }
    Some(Ok(match first.as_str() {
        "begin" => Answer::Block(Block::Begin { reads: has("only") }),
        "start" if is_next("transaction") => Answer::Block(Block::Begin { reads: has("only") }),
        "commit" | "end" | "rollback" | "abort"
            if has("chain") && !has("no") || has("prepared") =>
        {
            return Some(Err(Failure::unsupported("AND CHAIN and PREPARED")))
        }
        "commit" | "end" => Answer::Block(Block::Commit),
        "rollback" if has("to") => return Some(Err(no_savepoints())),
        "rollback" | "abort" => Answer::Block(Block::Rollback),
        "savepoint" | "release" => return Some(Err(no_savepoints())),
        "discard" => Answer::Deallocate(None),
        "deallocate" => {
            let name = name(rest.iter().rfind(|of| !is_word(of, "prepare"))?)?;
            Answer::Deallocate(Some(name).filter(|name| name != "all"))
        }
        "reset" => Answer::Done("RESET"),
        "set" => return set(rest),
        "show" => return show(rest, names).map(|table| Ok(Answer::Rows(table))),
        _ => return None,
    }))
}

fn no_savepoints() -> Failure {
    Failure::unsupported(
        "there are no savepoints: a transaction block is kept as a whole, or not at all",
    )
}

fn set(rest: &[Token]) -> Option<Result<Answer, Failure>> {
    let is_scope = |of: &&Token| is_word(of, "session") || is_word(of, "local");
    let setting_name = name(rest.iter().find(|of| !is_scope(of))?)?.to_lowercase();
    let value = || match rest.last() {
        Some(Token::Number(number, _)) => number.clone(),
        Some(value) => match text(value) {
            Some(text) => text.to_owned(),
            None => name(value).unwrap_or_default(),
        },
        None => String::new(),
    };
    match setting_name.as_str() {
        // Of transactions, which are as they are whatever is wanted (08 §19); and of time, which is in UTC.
        "characteristics" | "transaction" | "time" | "names" => {}
        "application_name" => return Some(Ok(Answer::ApplicationName(value()))),
        "client_encoding" if !is_utf8(&value()) => {
            return Some(Err(Failure::new(
                state::INVALID_PARAMETER_VALUE,
                format!(
                    "invalid value for parameter \"client_encoding\": \"{}\": texts are UTF8",
                    value()
                ),
            )))
        }
        name => {
            setting(name)?;
        }
    }
    Some(Ok(Answer::Done("SET")))
}

pub(super) fn is_utf8(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode", "default"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

fn show(rest: &[Token], names: &Names) -> Option<SmallTable> {
    let words: Option<Vec<String>> = rest.iter().map(name).collect();
    let name = match words?.join("_").to_lowercase().as_str() {
        "transaction_isolation_level" => "transaction_isolation".to_owned(),
        "time_zone" => "timezone".to_owned(),
        name => name.to_owned(),
    };
    let value = match name.as_str() {
        "application_name" => &names.application_name,
        "session_authorization" => &names.user,
        name => setting(name)?,
    };
    Some(SmallTable::text(&name, value))
}

#[cfg(test)]
mod tests {
    use super::super::table::text;
    use super::*;
    use lightcone_query::postgresql::{tokens, Cell};

    fn of(text: &str) -> Option<Result<Answer, Failure>> {
        let names = Names {
            user: "me".to_owned(),
            database: "bank".to_owned(),
            application_name: "psql".to_owned(),
        };
        answer(&tokens(text).expect("tokens"), &names)
    }

    #[test]
    fn settings_are_shown() {
        match of("show transaction isolation level") {
            Some(Ok(Answer::Rows(table))) => {
                assert_eq!(table.rows[0][0], Cell::Value(text("read committed")));
            }
            other => panic!("{other:?}"),
        }
        for text in ["SHOW row_limit", "SET row_limit = 1", "SELECT 1", "VACUUM"] {
            assert!(of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn sessions_are_set_up() {
        for text in [
            "SET extra_float_digits = 3",
            "set DateStyle to 'ISO'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET TIME ZONE 'UTC'",
            "SET NAMES 'UTF8'",
            "SET client_encoding = 'utf-8'",
            "SET LOCAL statement_timeout = 0",
        ] {
            assert!(matches!(of(text), Some(Ok(Answer::Done("SET")))), "{text}");
        }
        assert!(matches!(
            of("SET client_encoding TO 'LATIN1'"),
            Some(Err(_))
        ));
        assert!(matches!(
            of("BEGIN ISOLATION LEVEL SERIALIZABLE"),
            Some(Ok(Answer::Block(Block::Begin { reads: false })))
        ));
        assert!(matches!(of("ROLLBACK TO SAVEPOINT x"), Some(Err(_))));
        assert!(matches!(
            of("DEALLOCATE ALL"),
            Some(Ok(Answer::Deallocate(None)))
        ));
    }
}
