//! What tables there are, for programs that ask PostgreSQL's catalogue (08 §19).
//!
//! ```text
//! text ─▶ read ─▶ tree of sqlparser ─▶ bind ─▶ plan ─▶ run ─▶ rows
//!                                      relations        functions
//! ```
//!
//! psql, drivers and programs for reports ask in PostgreSQL's full language: joins, questions in questions, arrays. It is
//! understood here, on tables that are made for the question, and nowhere else. What is not understood is refused: no answer
//! is a guess. Depth, work and memory of every question are bounded.

mod bind;
mod cancelled;
mod functions;
mod patterns;
mod plan;
mod read;
mod relations;
mod run;
mod seen;
mod values;

use std::sync::Arc;

use lightcone_schema::{ModuleDef, TableAccess};

use self::bind::Unbound;
pub(super) use self::cancelled::CancelOnDrop;
use self::cancelled::Cancelled;
use self::run::Runner;
use self::seen::Seen;
use self::values::Value;
use super::commands::Asker;
use super::failure::{state, Failure};
use super::table::{check_size, SmallTable};
use super::tokens::{is_word, name, Token};
use crate::database::Rights;

/// At most so many characters of a question come back in a refusal.
const SHOWN_CHARS_MAX: usize = 2_000;
/// The stack for a large question: what reads it, and what drops its tree, calls itself. 48 floors of the parser take 1.5 MiB, a
/// chain of operators that is as long as it may be 0.7 MiB, with little optimization.
const STACK_BYTES: usize = 16 << 20;
/// An answer of the catalogue has at most so many bytes, before it is written as messages.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Does a statement ask the catalogue, or no table at all?
pub(super) fn is_asked(tokens: &[Token]) -> bool {
    let is_first = |word| tokens.first().is_some_and(|first| is_word(first, word));
    let is_of_nothing = || is_first("select") && !tokens.iter().any(|of| is_word(of, "from"));
    (is_first("select") || is_first("with")) && named(tokens).next().is_some() || is_of_nothing()
}

/// Names that could be of the catalogue: tables, and schemas of tables and functions.
fn named(tokens: &[Token]) -> impl Iterator<Item = String> + '_ {
    let is_of_catalogue =
        |name: &String| name.starts_with("pg_") || name.eq_ignore_ascii_case("information_schema");
    let around = tokens
        .windows(2)
        .filter_map(|pair| name(&pair[0]).filter(|_| pair[1] == Token::Period));
    names_read(tokens).chain(around).filter(is_of_catalogue)
}

/// Names of what a statement reads, or of their schemas.
fn names_read(tokens: &[Token]) -> impl Iterator<Item = String> + '_ {
    tokens.windows(2).filter_map(|pair| {
        let is_read = is_word(&pair[0], "from") || is_word(&pair[0], "join");
        name(&pair[1]).filter(|_| is_read)
    })
}

/// What one caller sees of a database.
pub(super) struct Catalogue {
    module: Arc<ModuleDef>,
    rights: Rights,
    asker: Asker,
}

impl Catalogue {
    pub fn new(module: Arc<ModuleDef>, rights: Rights, asker: Asker) -> Catalogue {
        Catalogue {
            module,
            rights,
            asker,
        }
    }

    /// Does a statement mean tables of the module, whose names only look like those of the catalogue? What the catalogue
    /// has comes first.
    pub fn is_of_module(&self, tokens: &[Token]) -> bool {
        let is_known = |name: String| is_schema(&name) || relations::is_known(&name);
        !named(tokens).any(is_known) && names_read(tokens).any(|name| self.has(&name))
    }

    /// Does the module have something of this name that the caller sees? A word is folded, and its case not known.
    fn has(&self, name: &str) -> bool {
        let sees_all = self.rights.sees_all_rows();
        let is_seen = |access| sees_all || access == TableAccess::Public;
        let mut tables = self.module.tables.iter();
        let mut views = self.module.views.iter();
        tables.any(|table| is_seen(table.access) && table.name.eq_ignore_ascii_case(name))
            || views
                .any(|view| (sees_all || view.is_public) && view.name.eq_ignore_ascii_case(name))
    }

    /// Answers a question; if it is only described, with the columns of the answer.
    pub fn answer(
        &self,
        text: &str,
        is_described: bool,
        cancelled: &Cancelled,
    ) -> Result<SmallTable, Failure> {
        let tokens = read::tokens(text).map_err(|reason| not_answered(text, &reason))?;
        let is_large = read::is_large(&tokens);
        let answer = || self.answer_here(text, tokens, is_described, cancelled);
        if !is_large {
            return answer();
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = thread.spawn_scoped(scope, answer).map_err(|error| {
                let message = format!("the system has no thread for the question: {error}");
                Failure::new(state::INTERNAL, message)
            })?;
            let answer = thread.join();
            answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn answer_here(
        &self,
        text: &str,
        tokens: Vec<Token>,
        is_described: bool,
        cancelled: &Cancelled,
    ) -> Result<SmallTable, Failure> {
        let seen = Seen::new(&self.module, self.rights, self.asker.clone());
        let refused = |reason: String| not_answered(text, &reason);
        let query = read::read(tokens).map_err(refused)?;
        let plan = bind::bind(&query, &seen, is_described).map_err(|unbound| match unbound {
            Unbound::Refused(reason) => refused(reason),
            Unbound::Failed(failure) => failure,
        })?;
        check_size(0, plan.columns.len())?;
        let columns = plan.columns.iter();
        let columns = columns
            .map(|(name, ty)| (name.clone(), ty.algebraic()))
            .collect();
        let mut table = SmallTable {
            columns,
            rows: Vec::new(),
        };
        if is_described {
            return Ok(table);
        }
        let rows = Runner::new(&seen, cancelled).rows(&plan, None)?;
        check_size(rows.len(), plan.columns.len())?;
        let mut left = ANSWER_BYTES_MAX;
        for row in rows {
            let weight: usize = row.iter().map(Value::weight).sum();
            // A step of weight is 16 bytes.
            let rest = left.checked_sub(weight.saturating_mul(16));
            left = rest.ok_or_else(too_many_bytes)?;
            let values = row.iter().zip(&plan.columns);
            let values = values.map(|(value, (name, ty))| {
                value.cell(*ty, &seen).ok_or_else(|| out_of_range(name))
            });
            table.rows.push(values.collect::<Result<_, _>>()?);
        }
        Ok(table)
    }
}

fn out_of_range(column: &str) -> Failure {
    let message = format!("a value of \"{column}\" is not of the column's type");
    Failure::new(state::OUT_OF_RANGE, message)
}

fn is_schema(name: &str) -> bool {
    name == "pg_catalog" || name.eq_ignore_ascii_case("information_schema")
}

fn too_many_bytes() -> Failure {
    let message = format!("the answer would have more than {ANSWER_BYTES_MAX} bytes: ask for fewer columns, or for some of the tables");
    Failure::new(state::LIMIT_REACHED, message)
}

fn not_answered(text: &str, reason: &str) -> Failure {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    Failure::new(
        state::FEATURE_NOT_SUPPORTED,
        format!("this question to the catalogue is not supported ({reason}): {shown}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_schema::raw::RawModuleDefV10;
    use lightcone_schema::RawModuleDef;

    #[test]
    fn a_question_ends_when_it_is_cancelled() {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let module = ModuleDef::validate(raw).expect("a module");
        let catalogue = Catalogue::new(Arc::new(module), Rights::default(), Asker::default());
        let (guard, cancelled) = CancelOnDrop::new();
        let text = "SELECT count(*) FROM generate_series(1, 1000) x WHERE x % 2 = 0";
        assert!(catalogue.answer(text, false, &cancelled).is_ok());
        drop(guard);
        let ended = catalogue.answer(text, false, &cancelled);
        assert_eq!(ended.map(|_| ()), Err(Failure::cancelled()));
    }

    #[test]
    fn questions_are_recognised() {
        let of = |text: &str| super::super::tokens::tokens(text).expect("tokens");
        for text in [
            "SELECT * FROM pg_tables",
            "select 1 from information_schema.tables",
            "SELECT c.oid FROM pg_catalog.pg_class c",
            "WITH x AS (SELECT 1) SELECT pg_catalog.format_type(1, 2)",
            "SELECT 1 + 1, has_schema_privilege('public', 'usage')",
        ] {
            assert!(is_asked(&of(text)), "{text}");
        }
        for text in [
            "SELECT * FROM page",
            "SELECT pg_x FROM t",
            "SELECT (SELECT pg_x FROM t)",
            "DELETE FROM pg_tables",
        ] {
            assert!(!is_asked(&of(text)), "{text}");
        }
    }
}
