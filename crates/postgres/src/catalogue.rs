//! Questions in PostgreSQL's language, to tables of the module and to its catalogue (08 §19).
//!
//! ```text
//! text ─▶ read ─▶ tree of sqlparser ─▶ bind ─▶ plan ─────────▶ run ─▶ rows
//!                                      relations, functions     ▲
//!                                        └▶ tables ─▶ database ─┘ rows of the module's tables
//! ```
//!
//! psql, drivers and programs for reports ask in PostgreSQL's full language: joins, questions in questions, arrays. The tables of
//! its catalogue are made for the question. Those of the module are read by queries of the ad hoc language, which decides who
//! sees what. What is not understood is refused: no answer is a guess. Depth, work and memory of every question are bounded.

mod bind;
mod cancelled;
mod columns;
mod functions;
mod patterns;
mod plan;
mod read;
mod relations;
mod run;
mod seen;
mod stored;
mod values;

use std::sync::Arc;

use lightcone_schema::ModuleDef;
use lightcone_types::AlgebraicType;

use self::bind::{Question, Unbound};
pub(super) use self::cancelled::CancelOnDrop;
use self::cancelled::Cancelled;
use self::plan::Body;
pub(super) use self::run::Pieces;
use self::run::Runner;
use self::seen::Seen;
use self::values::Value;
use super::commands::Asker;
use super::failure::{state, Failure};
use super::parameters::has_literal;
use super::table::{check_size, SmallTable};
use super::tokens::{is_word, name, Token};
use lightcone_database::{Compiler, Reading, Rights, SqlError};

/// At most so many characters of a question come back in a refusal.
const SHOWN_CHARS_MAX: usize = 2_000;
/// The stack for a large question: what reads it, and what drops its tree, calls itself. 48 floors of the parser take 1.5 MiB, a
/// chain of operators that is as long as it may be 0.7 MiB, with little optimization.
const STACK_BYTES: usize = 16 << 20;
/// An answer of the catalogue has at most so many bytes, before it is written as messages.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A question of so few words and signs, to no table, is answered where it is read: it may ask whether the server lives.
const BRIEF_TOKENS_MAX: usize = 64;
const BRIEF_STEPS_MAX: usize = 1_000;

/// Is a statement a question?
pub(super) fn is_question(tokens: &[Token]) -> bool {
    let mut rest = tokens.iter().skip_while(|token| **token == Token::LParen);
    let words = ["select", "with", "values"];
    rest.next()
        .is_some_and(|first| words.iter().any(|word| is_word(first, word)))
}

/// Can it be a question only to tables of the module, which the ad hoc language may have, too?
pub(super) fn may_be_ad_hoc(tokens: &[Token]) -> bool {
    let is_of_catalogue = |token: &Token| {
        let Token::Word(word) = token else {
            return false;
        };
        let start = word.value.get(..3).unwrap_or_default();
        let is_alike = start.eq_ignore_ascii_case("pg_") || start.eq_ignore_ascii_case("inf");
        let is_known = |name: String| is_schema(&name) || relations::is_known(&name);
        is_alike && name(token).is_some_and(is_known)
    };
    tokens.iter().any(|token| is_word(token, "from")) && !tokens.iter().any(is_of_catalogue)
}

/// What one caller sees of a database.
pub(super) struct Catalogue {
    module: Arc<ModuleDef>,
    rights: Rights,
    asker: Asker,
    /// None: no tables of the module are asked for.
    compiler: Option<Compiler>,
}

/// Why a text is no question that is answered.
pub(super) enum Unread {
    /// It is not of the language.
    Text(Failure),
    Failed(Failure),
}

/// A question that was read.
pub(super) struct Read {
    question: Question,
    is_large: bool,
}

impl Read {
    /// What it reads of the module.
    pub fn readings(&self) -> Vec<Reading> {
        let tables = self.question.tables.iter();
        tables.map(|table| table.reading.clone()).collect()
    }

    /// The types of its parameters, so many.
    pub fn parameters(&self, count: usize) -> Vec<AlgebraicType> {
        let question = &self.question;
        let ty = |nth| {
            let ty = question.parameters.get(&nth);
            let ty = ty.map(|ty| ty.algebraic(&question.types));
            // What has no literal is sent as text.
            ty.filter(has_literal).unwrap_or(AlgebraicType::String)
        };
        (0..count as u16).map(ty).collect()
    }

    /// Its columns, without rows.
    pub fn columns(&self) -> SmallTable {
        let columns = self.question.plan.columns.iter();
        let columns = columns.map(|(name, ty)| (name.clone(), ty.algebraic(&self.question.types)));
        SmallTable {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }
}

impl Catalogue {
    pub fn new(
        module: Arc<ModuleDef>,
        rights: Rights,
        asker: Asker,
        compiler: Option<Compiler>,
    ) -> Catalogue {
        Catalogue {
            module,
            rights,
            asker,
            compiler,
        }
    }

    /// Reads a question; if it is only described, without what it reads.
    pub fn read(&self, text: &str, is_described: bool) -> Result<Read, Unread> {
        let unread = |reason: String| Unread::Text(not_answered(text, &reason));
        let tokens = super::tokens::tokens(text);
        let tokens = tokens.ok_or_else(|| unread("a quote or comment does not end".to_owned()))?;
        if tokens.len() > read::TOKENS_MAX {
            let message = format!(
                "the question has more than {} words and signs",
                read::TOKENS_MAX
            );
            return Err(Unread::Failed(Failure::new(state::LIMIT_REACHED, message)));
        }
        let is_large = read::is_large(&tokens);
        let question = on_stack(is_large, || {
            let query = read::read(tokens).map_err(unread)?;
            let seen = Seen::new(&self.module, self.rights, self.asker.clone());
            let compile = |query: &str| match &self.compiler {
                Some(compiler) => compiler.compile(query),
                None => Err(SqlError::ModuleGone),
            };
            bind::bind(&query, &seen, &compile, is_described).map_err(|unbound| match unbound {
                Unbound::Refused(reason) => Unread::Failed(not_answered(text, &reason)),
                Unbound::Failed(failure) => Unread::Failed(failure),
            })
        });
        let question = question.map_err(Unread::Failed)??;
        let columns = check_size(0, question.plan.columns.len());
        columns.map_err(Unread::Failed)?;
        Ok(Read { question, is_large })
    }

    /// The answer to a question that takes no time. None: it may take some, or is none.
    pub fn brief_answer(&self, text: &str, tokens: &[Token]) -> Option<SmallTable> {
        // Not signs of patterns.
        let is_plain = |token: &Token| {
            use Token::{Comma, DoubleColon, LParen, Minus, Number, Period, Plus, RParen};
            use Token::{SingleQuotedString, Word};
            matches!(
                token,
                Word(_) | Number(..) | SingleQuotedString(_) | Comma | Period
            ) || matches!(token, DoubleColon | LParen | RParen | Plus | Minus)
        };
        let is_brief = tokens.len() <= BRIEF_TOKENS_MAX && tokens.iter().all(is_plain);
        if !is_brief || tokens.iter().any(|token| is_word(token, "from")) {
            return None;
        }
        let read = self.read(text, false).ok()?;
        let Body::Core(core) = &read.question.plan.body else {
            return None;
        };
        if !core.extras.is_empty() || read.is_large {
            return None;
        }
        let cancelled = Cancelled::new(false);
        self.answer_within(BRIEF_STEPS_MAX, &read, &[], &cancelled)
            .ok()
    }

    /// Answers a question with the rows of what it reads.
    pub fn answer(
        &self,
        read: &Read,
        rows: &[Pieces],
        cancelled: &Cancelled,
    ) -> Result<SmallTable, Failure> {
        on_stack(read.is_large, || {
            self.answer_within(run::STEPS_MAX, read, rows, cancelled)
        })?
    }

    fn answer_within(
        &self,
        steps_max: usize,
        read: &Read,
        rows: &[Pieces],
        cancelled: &Cancelled,
    ) -> Result<SmallTable, Failure> {
        let question = &read.question;
        let seen = Seen::new(&self.module, self.rights, self.asker.clone());
        let mut table = read.columns();
        let runner = Runner::new(&seen, question, rows, cancelled).within(steps_max);
        let rows = runner.rows(&question.plan, None)?;
        check_size(rows.len(), question.plan.columns.len())?;
        let mut left = ANSWER_BYTES_MAX;
        for row in rows {
            let weight: usize = row.iter().map(Value::weight).sum();
            // A step of weight is 16 bytes.
            let rest = left.checked_sub(weight.saturating_mul(16));
            left = rest.ok_or_else(too_many_bytes)?;
            let values = row.iter().zip(&question.plan.columns);
            let values = values.map(|(value, (name, ty))| {
                let cell = value.cell(*ty, &question.types, &seen);
                cell.ok_or_else(|| out_of_range(name))
            });
            table.rows.push(values.collect::<Result<_, _>>()?);
        }
        Ok(table)
    }
}

/// Does work, on a stack of its own if it may need one.
fn on_stack<T: Send>(is_large: bool, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    if !is_large {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).map_err(|error| {
            let message = format!("the system has no thread for the question: {error}");
            Failure::new(state::INTERNAL, message)
        })?;
        let done = thread.join();
        Ok(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
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
        format!("this question is not supported ({reason}): {shown}"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;
    use lightcone_schema::raw::RawModuleDefV10;
    use lightcone_schema::RawModuleDef;

    fn catalogue() -> Catalogue {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let module = ModuleDef::validate(raw).expect("a module");
        Catalogue::new(Arc::new(module), Rights::default(), Asker::default(), None)
    }

    #[test]
    fn a_question_ends_when_it_is_cancelled() {
        let catalogue = catalogue();
        let (guard, cancelled) = CancelOnDrop::new();
        let text = "SELECT count(*) FROM generate_series(1, 1000) x WHERE x % 2 = 0";
        let Ok(read) = catalogue.read(text, false) else {
            panic!("it is read");
        };
        assert!(catalogue.answer(&read, &[], &cancelled).is_ok());
        drop(guard);
        let ended = catalogue.answer(&read, &[], &cancelled);
        assert_eq!(ended.map(|_| ()), Err(Failure::cancelled()));
    }

    #[test]
    fn questions_to_no_table_are_answered_at_once() {
        let catalogue = catalogue();
        let brief = |text: &str| {
            let answer = catalogue.brief_answer(text, &tokens(text).expect("tokens"));
            answer.map(|table| (table.columns[0].0.clone(), table.rows.len()))
        };
        assert_eq!(brief("SELECT 1"), Some(("?column?".to_owned(), 1)));
        assert_eq!(brief("SELECT TRUE"), Some(("bool".to_owned(), 1)));
        assert_eq!(brief("SELECT version()"), Some(("version".to_owned(), 1)));
        for text in [
            "SELECT generate_series(1, 100000)",
            "SELECT 'a' ~ 'b'",
            "SELECT 1 FROM pg_class",
            "SELECT nothing",
            &format!("SELECT 1{}", ", 1".repeat(32)),
        ] {
            assert_eq!(brief(text), None, "{text}");
        }
    }

    #[test]
    fn questions_are_recognised() {
        let of = |text: &str| tokens(text).expect("tokens");
        for text in ["SELECT 1", "with x AS (SELECT 1) SELECT 2", "(VALUES (1))"] {
            assert!(is_question(&of(text)), "{text}");
        }
        assert!(!is_question(&of("DELETE FROM pg_tables")) && !is_question(&of("(")));
        for text in ["SELECT * FROM page", "SELECT pg_x FROM t, pg_y"] {
            assert!(may_be_ad_hoc(&of(text)), "{text}");
        }
        for text in [
            "SELECT * FROM page, pg_tables",
            "select 1 from information_schema.tables",
            "SELECT pg_catalog.format_type(1, 2) FROM t",
            "SELECT 1",
        ] {
            assert!(!may_be_ad_hoc(&of(text)), "{text}");
        }
    }
}
