//! What drivers say about their session, and questions about the server: answered here (08 §19).

use lightcone_types::{AlgebraicType, AlgebraicValue};

use super::failure::{state, Failure};
use super::table::{text, too_many_columns, Cell, SmallTable, COLUMNS_MAX};
use super::tokens::{self, is_word, name, word, Token};

/// Who asks, and where.
#[derive(Clone, Debug, Default)]
pub(super) struct Asker {
    pub user: String,
    pub database: String,
    pub application_name: String,
}

/// What a transaction block is, for drivers that use them (08 §19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Begin,
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
    ("default_transaction_isolation", "serializable"),
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
    ("transaction_isolation", "serializable"),
    ("transaction_read_only", "off"),
];

fn setting(name: &str) -> Option<&'static str> {
    let found = SETTINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// The answer to a statement, if it is one of these.
pub(super) fn answer(tokens: &[Token], asker: &Asker) -> Option<Result<Answer, Failure>> {
    let (first, rest) = tokens.split_first()?;
    let is_next = |word: &str| rest.first().is_some_and(|next| is_word(next, word));
    Some(Ok(match word(first)?.as_str() {
        "begin" => Answer::Block(Block::Begin),
        "start" if is_next("transaction") => Answer::Block(Block::Begin),
        "commit" | "end" => Answer::Block(Block::Commit),
        "rollback" if rest.iter().any(|of| is_word(of, "to")) => return Some(Err(no_savepoints())),
        "rollback" | "abort" => Answer::Block(Block::Rollback),
        "savepoint" | "release" => return Some(Err(no_savepoints())),
        "discard" => Answer::Deallocate(None),
        "deallocate" => {
            let name = name(rest.iter().rfind(|of| !is_word(of, "prepare"))?)?;
            Answer::Deallocate(Some(name).filter(|name| name != "all"))
        }
        "reset" => Answer::Done("RESET"),
        "set" => return set(rest),
        "show" => return show(rest, asker).map(|table| Ok(Answer::Rows(table))),
        "select" => return select(rest, asker).map(|table| table.map(Answer::Rows)),
        _ => return None,
    }))
}

fn no_savepoints() -> Failure {
    Failure::unsupported("there are no savepoints: each statement is a transaction of its own")
}

fn set(rest: &[Token]) -> Option<Result<Answer, Failure>> {
    let is_scope = |of: &&Token| is_word(of, "session") || is_word(of, "local");
    let setting_name = name(rest.iter().find(|of| !is_scope(of))?)?.to_lowercase();
    let value = || match rest.last() {
        Some(Token::Number(number, _)) => number.clone(),
        Some(value) => match tokens::text(value) {
            Some(text) => text.to_owned(),
            None => name(value).unwrap_or_default(),
        },
        None => String::new(),
    };
    match setting_name.as_str() {
        // Of transactions, which are serializable whatever is wanted; and of time, which is in UTC.
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

fn show(rest: &[Token], asker: &Asker) -> Option<SmallTable> {
    let words: Option<Vec<String>> = rest.iter().map(name).collect();
    let name = match words?.join("_").to_lowercase().as_str() {
        "transaction_isolation_level" => "transaction_isolation".to_owned(),
        "time_zone" => "timezone".to_owned(),
        name => name.to_owned(),
    };
    let value = match name.as_str() {
        "application_name" => &asker.application_name,
        "session_authorization" => &asker.user,
        name => setting(name)?,
    };
    Some(SmallTable::text(&name, value))
}

/// `SELECT` of constants and of functions about the server, without `FROM`.
fn select(mut rest: &[Token], asker: &Asker) -> Option<Result<SmallTable, Failure>> {
    let mut table = SmallTable {
        rows: vec![Vec::new()],
        ..SmallTable::default()
    };
    loop {
        let (mut column, ty, value, behind) = item(rest, asker)?;
        rest = behind;
        // A cast changes nothing but the type of a constant, which is as good as any.
        while let [Token::DoubleColon, Token::Word(_), behind @ ..] = rest {
            rest = behind;
        }
        match rest {
            [as_, alias, behind @ ..] if is_word(as_, "as") => {
                column = name(alias)?;
                rest = behind;
            }
            [from, ..] if is_word(from, "from") => return None,
            [alias @ Token::Word(_), behind @ ..] => {
                column = name(alias)?;
                rest = behind;
            }
            _ => {}
        }
        if table.columns.len() == COLUMNS_MAX {
            return Some(Err(too_many_columns()));
        }
        table.columns.push((column, ty));
        table.rows[0].push(Cell::from(value));
        match rest {
            [] => return Some(Ok(table)),
            [Token::Comma, behind @ ..] => rest = behind,
            _ => return None,
        }
    }
}

type Item<'t> = (String, AlgebraicType, Option<AlgebraicValue>, &'t [Token]);

fn item<'t>(mut tokens: &'t [Token], asker: &Asker) -> Option<Item<'t>> {
    use {AlgebraicType as T, AlgebraicValue as V};
    let unnamed = "?column?".to_owned();
    // A loop, as a stranger says how often it stands there.
    while let [schema, Token::Period, rest @ ..] = tokens {
        if !is_word(schema, "pg_catalog") {
            break;
        }
        tokens = rest;
    }
    match tokens {
        [Token::Number(number, _), rest @ ..] => match number.parse() {
            Ok(number) => Some((unnamed, T::I32, Some(V::I32(number)), rest)),
            Err(_) => Some((unnamed, T::F64, Some(V::F64(number.parse().ok()?)), rest)),
        },
        [Token::SingleQuotedString(value), rest @ ..] => {
            Some((unnamed, T::String, Some(text(value)), rest))
        }
        [of, rest @ ..] => {
            let called = word(of)?;
            let (arguments, rest) = arguments(rest)?;
            let (ty, value) = function(&called, arguments, asker)?;
            Some((called, ty, value, rest))
        }
        [] => None,
    }
}

/// What stands in parentheses, if there are any, and what behind them.
fn arguments(tokens: &[Token]) -> Option<(&[Token], &[Token])> {
    if tokens.first() != Some(&Token::LParen) {
        return Some((&[], tokens));
    }
    let end = tokens.iter().position(|of| *of == Token::RParen)?;
    Some((&tokens[1..end], &tokens[end + 1..]))
}

fn function(
    name: &str,
    arguments: &[Token],
    asker: &Asker,
) -> Option<(AlgebraicType, Option<AlgebraicValue>)> {
    use {AlgebraicType as T, AlgebraicValue as V};
    let string = |value: &str| Some((T::String, Some(text(value))));
    match name {
        "true" => Some((T::Bool, Some(V::Bool(true)))),
        "false" | "pg_is_in_recovery" => Some((T::Bool, Some(V::Bool(false)))),
        "null" => Some((T::String, None)),
        "version" => string(&format!("PostgreSQL {SERVER_VERSION}")),
        "current_schema" => string("public"),
        "current_schemas" => Some((T::array(T::String), Some(V::Array(vec![text("public")])))),
        "current_database" | "current_catalog" => string(&asker.database),
        "current_user" | "session_user" | "user" | "current_role" => string(&asker.user),
        "pg_backend_pid" => Some((T::I32, Some(V::I32(0)))),
        "current_setting" => {
            let name = tokens::text(arguments.first()?)?.to_lowercase();
            string(setting(&name)?)
        }
        "set_config" => string(tokens::text(arguments.get(2)?)?),
        "pg_encoding_to_char" => string("UTF8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn of(text: &str) -> Option<Result<Answer, Failure>> {
        let asker = Asker {
            user: "me".to_owned(),
            database: "bank".to_owned(),
            application_name: "psql".to_owned(),
        };
        answer(&tokens(text).expect("tokens"), &asker)
    }

    fn values(text: &str) -> Vec<(String, Cell)> {
        match of(text) {
            Some(Ok(Answer::Rows(table))) => {
                let names = table.columns.iter().map(|(name, _)| name.clone());
                names.zip(table.rows[0].clone()).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn constants_and_functions() {
        let found =
            values("SELECT 1, 'x' AS a, current_database(), pg_catalog.current_schema() s, TRUE");
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["?column?", "a", "current_database", "s", "true"]);
        assert_eq!(found[2].1, Cell::Value(text("bank")));
        assert_eq!(found[3].1, Cell::Value(text("public")));
        assert_eq!(
            values("show transaction isolation level")[0].1,
            Cell::Value(text("serializable"))
        );
        for text in [
            "SELECT 1 FROM t",
            "SELECT x",
            "SELECT 1 + 1",
            "SHOW row_limit",
            "SET row_limit = 1",
            "SELECT",
            "SELECT *",
            "VACUUM",
        ] {
            assert!(of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn long_texts_need_no_stack_and_have_bounds() {
        let qualified = format!("SELECT {}version()", "pg_catalog.".repeat(100_000));
        assert!(matches!(of(&qualified), Some(Ok(Answer::Rows(_)))));
        let many = |count| of(&format!("SELECT 1{}", ",1".repeat(count - 1)));
        assert!(matches!(many(COLUMNS_MAX), Some(Ok(Answer::Rows(_)))));
        let refused = many(COLUMNS_MAX + 1).expect("an answer");
        assert_eq!(refused.map_err(|e| e.state).err(), Some("54000"));
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
            Some(Ok(Answer::Block(Block::Begin)))
        ));
        assert!(matches!(of("ROLLBACK TO SAVEPOINT x"), Some(Err(_))));
        assert!(matches!(
            of("DEALLOCATE ALL"),
            Some(Ok(Answer::Deallocate(None)))
        ));
    }
}
