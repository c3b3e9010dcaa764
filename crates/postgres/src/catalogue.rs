//! The catalogue that a session of PostgreSQL's protocol sees, and questions to it and to tables of the module (08 §19).
//!
//! What is asked is read and answered by `lightcone_query::postgresql`. Here are the tables and functions of PostgreSQL's catalogue,
//! and the readings of tables of the module: queries of the ad hoc language.

mod functions;
mod relations;
mod seen;

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_query::postgresql::{
    is_large, is_word, name, state, tokens, Changed, Question, Session, Store, TableRead, Target,
    Token, Type, Unread, Value, VirtualTable, Write, STEPS_MAX,
};
use lightcone_schema::ModuleDef;
use lightcone_types::ProductType;

use self::seen::Seen;
use super::cancelled::Cancelled;
use super::commands::Names;
use super::failure::{of_statement, Failure};
use super::table::SmallTable;
use lightcone_database::{Compiler, HeldBytes, Reading, Rights, SqlError};

/// A question of so few words and signs, to no table, is answered where it is read: it may ask whether the server lives.
const BRIEF_TOKENS_MAX: usize = 64;
const BRIEF_STEPS_MAX: usize = 1_000;
/// The stack for a large question: what reads it, and what drops its tree, calls itself. 48 floors of the parser take 1.5 MiB, a
/// chain of operators that is as long as it may be 0.7 MiB, with little optimization.
const STACK_BYTES: usize = 16 << 20;
/// What a question may take of a thread for reads, whatever its steps cost.
const TIME_MAX: Duration = Duration::from_secs(5);

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
#[derive(Clone)]
pub(super) struct Catalogue {
    module: Arc<ModuleDef>,
    rights: Rights,
    names: Names,
    /// None: no tables of the module are asked for.
    compiler: Option<Compiler>,
}

/// A question, or a statement that changes rows, that was read, with what it reads of the module.
pub(super) struct Read<T> {
    pub statement: T,
    pub readings: Vec<Reading>,
    is_large: bool,
}

/// A question, to be answered in the writer's transaction.
impl From<Read<Question>> for Read<Write> {
    fn from(read: Read<Question>) -> Read<Write> {
        Read {
            statement: Write::from(read.statement),
            readings: read.readings,
            is_large: read.is_large,
        }
    }
}

impl Catalogue {
    pub fn new(
        module: Arc<ModuleDef>,
        rights: Rights,
        names: Names,
        compiler: Option<Compiler>,
    ) -> Catalogue {
        Catalogue {
            module,
            rights,
            names,
            compiler,
        }
    }

    /// One that is kept with what it has read: it compiles no more, and keeps no module.
    pub fn for_later(self) -> Catalogue {
        Catalogue {
            compiler: None,
            ..self
        }
    }

    fn seen(&self) -> Seen<'_> {
        Seen::new(
            &self.module,
            self.rights,
            &self.names,
            self.compiler.as_ref(),
        )
    }

    /// Reads a question; if it is only described, with parameters in it.
    pub fn read(&self, text: &str, is_described: bool) -> Result<Read<Question>, Unread> {
        let read =
            |tokens: Vec<Token>, seen: &Seen<'_>| Question::read(text, tokens, seen, is_described);
        self.understood(text, read, |question| &question.tables)
    }

    /// Reads a statement that changes rows; if it is only described, with parameters in it.
    pub fn read_write(&self, text: &str, is_described: bool) -> Result<Read<Write>, Unread> {
        let read =
            |tokens: Vec<Token>, seen: &Seen<'_>| Write::read(text, tokens, seen, is_described);
        self.understood(text, read, |write| &write.question.tables)
    }

    /// What a text is, and what it reads of the module.
    fn understood<T: Send>(
        &self,
        text: &str,
        read: impl FnOnce(Vec<Token>, &Seen<'_>) -> Result<T, Unread> + Send,
        tables: impl Fn(&T) -> &[TableRead],
    ) -> Result<Read<T>, Unread> {
        let unclosed = || Failure::unsupported("a quote or comment does not end");
        let tokens = tokens(text).ok_or_else(|| Unread::Text(unclosed()))?;
        let seen = self.seen();
        let is_large = is_large(&tokens);
        let statement = on_stack(is_large, || read(tokens, &seen)).map_err(Unread::Failed)??;
        let readings = tables(&statement).iter().map(|table| {
            let reading = seen.reading(&table.query);
            reading.or_else(|_| seen.reading(&table.whole))
        });
        Ok(Read {
            readings: readings.collect::<Result<_, _>>().map_err(Unread::Failed)?,
            statement,
            is_large,
        })
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
        if !read.statement.is_brief() || read.is_large {
            return None;
        }
        let answer = self.answer_within(BRIEF_STEPS_MAX, &read, &[], &|| Ok(()));
        answer.ok()
    }

    /// Answers a question with the rows of what it reads, in pieces.
    pub fn answer(
        &self,
        read: &Read<Question>,
        rows: &[Vec<HeldBytes>],
        cancelled: &Cancelled,
    ) -> Result<SmallTable, Failure> {
        let until = Instant::now() + TIME_MAX;
        self.answer_within(STEPS_MAX, read, rows, &|| look(cancelled, until))
    }

    /// Carries out a statement that changes rows, in the writer's transaction.
    pub fn change(
        &self,
        read: &Read<Write>,
        rows: &[Vec<u8>],
        look: &(dyn Fn() -> Result<(), Failure> + Sync),
        store: &mut dyn Store,
    ) -> Result<Changed, Failure> {
        let pieces: Vec<_> = rows.iter().map(|rows| vec![&rows[..]]).collect();
        let (write, seen) = (&read.statement, self.seen());
        let run = || write.run(&seen, &pieces, look, STEPS_MAX, store);
        on_stack(read.is_large, run)?
    }

    fn answer_within(
        &self,
        steps_max: usize,
        read: &Read<Question>,
        rows: &[Vec<HeldBytes>],
        look: &(dyn Fn() -> Result<(), Failure> + Sync),
    ) -> Result<SmallTable, Failure> {
        let pieces = rows
            .iter()
            .map(|table| table.iter().map(AsRef::as_ref).collect());
        let pieces: Vec<_> = pieces.collect();
        let (question, seen) = (&read.statement, self.seen());
        let answer = || question.answer(&seen, &pieces, look, steps_max);
        Ok(SmallTable {
            columns: question.columns(),
            rows: on_stack(read.is_large, answer)??,
        })
    }
}

/// Ends the work on a question when it is cancelled, or takes too long.
fn look(cancelled: &Cancelled, until: Instant) -> Result<(), Failure> {
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::cancelled());
    }
    if until < Instant::now() {
        let seconds = TIME_MAX.as_secs();
        let message = format!("the question takes more than {seconds} s: ask for less at once");
        return Err(Failure::new(state::LIMIT_REACHED, message));
    }
    Ok(())
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

impl Seen<'_> {
    fn reading(&self, query: &str) -> Result<Reading, Failure> {
        let compiled = match self.compiler {
            Some(compiler) => compiler.compile(query),
            None => Err(SqlError::ModuleGone),
        };
        compiled.map_err(of_statement)
    }
}

impl Session for Seen<'_> {
    fn table(&self, name: &[String]) -> Option<VirtualTable> {
        relations::table(name)
    }

    fn rows(&self, table: &VirtualTable, wanted: Option<(usize, &Value)>) -> Vec<Vec<Value>> {
        relations::rows(self, table, wanted)
    }

    fn columns(&self, query: &str) -> Result<ProductType, Failure> {
        self.reading(query).map(|reading| reading.columns())
    }

    fn target(&self, name: &str) -> Result<Target, Failure> {
        let target = match self.compiler {
            Some(compiler) => compiler.target(name),
            None => Err(SqlError::ModuleGone),
        };
        let schema = target.map_err(of_statement)?;
        let mut relations = self.relations.iter();
        let declared = relations.find(|of| of.name == schema.name && !of.is_view);
        let columns = declared.map_or(&[][..], |of| of.columns).iter();
        Ok(Target {
            defaults: columns.map(|column| column.default.clone()).collect(),
            schema,
        })
    }

    fn function(&self, name: &str, count: usize) -> Option<(usize, Type)> {
        functions::function(name, count)
    }

    fn call(&self, function: usize, arguments: &[Value]) -> Value {
        functions::call(function, self, arguments)
    }

    fn relation(&self, oid: i64) -> Option<String> {
        self.relation_name(oid)
    }

    fn oid(&self, name: &str) -> Option<i64> {
        self.relation_oid(name)
    }
}

fn is_schema(name: &str) -> bool {
    name == "pg_catalog" || name.eq_ignore_ascii_case("information_schema")
}

#[cfg(test)]
mod tests {
    use super::super::cancelled::CancelOnDrop;
    use super::*;
    use lightcone_schema::raw::RawModuleDefV10;
    use lightcone_schema::RawModuleDef;

    fn catalogue() -> Catalogue {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let module = ModuleDef::validate(raw).expect("a module");
        Catalogue::new(Arc::new(module), Rights::default(), Names::default(), None)
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
        let late = catalogue.answer_within(STEPS_MAX, &read, &[], &|| {
            look(&Cancelled::new(false), Instant::now())
        });
        let failure = late.expect_err("its time is over");
        assert_eq!(failure.state, state::LIMIT_REACHED);
        assert!(failure.message.contains("more than 5 s"), "{failure:?}");
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
