//! A question from its text to its answer.

use lightcone_types::AlgebraicType;
use sqlparser::tokenizer::Token;

use super::bind::{bind, Question};
use super::cells::{check_size, Cell};
use super::failure::{state, Done, Failure};
use super::literals::has_literal;
use super::plan::{Body, Columns};
use super::read::{read, TOKENS_MAX};
use super::run::{Look, Pieces, Runner};
use super::session::Session;
use super::value::Value;

/// At most so many characters of a question come back in a refusal.
const SHOWN_CHARS_MAX: usize = 2_000;
/// An answer has at most so many bytes, before it is written as messages.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Why a text is no question that is answered.
#[derive(Debug)]
pub enum Unread {
    /// It is not of the language.
    Text(Failure),
    Failed(Failure),
}

impl Question {
    /// Reads a question; if it is only described, with parameters in it. A large one needs more stack than others.
    ///
    /// # Errors
    /// It is no question, or one that is not supported or too large, or it names what the session does not see.
    pub fn read(
        text: &str,
        tokens: Vec<Token>,
        session: &dyn Session,
        is_described: bool,
    ) -> Result<Question, Unread> {
        understood("question", text, tokens, read, |query| {
            let question = bind(query, session, is_described)?;
            check_size(0, question.plan.columns.len())?;
            Ok(question)
        })
    }

    /// The types of its parameters, so many.
    pub fn parameters(&self, count: usize) -> Vec<AlgebraicType> {
        let ty = |nth| {
            let ty = self.parameters.get(&nth);
            let ty = ty.map(|ty| ty.algebraic());
            // What has no literal is sent as text.
            ty.filter(has_literal).unwrap_or(AlgebraicType::String)
        };
        (0..count as u16).map(ty).collect()
    }

    /// Names and types of its columns.
    pub fn columns(&self) -> Vec<(String, AlgebraicType)> {
        let columns = self.plan.columns.iter();
        columns
            .map(|(name, ty)| (name.clone(), ty.algebraic()))
            .collect()
    }

    /// It gives one row, unless one of its functions takes long.
    pub fn is_brief(&self) -> bool {
        match &self.plan.body {
            Body::Core(core) => core.extras.is_empty(),
            _ => false,
        }
    }

    /// The rows of its answer, within so many steps. `pieces` are the rows of the tables that it reads, in their order.
    ///
    /// # Errors
    /// A value cannot be made, `look` says so, or the answer or the work for it is too large.
    pub fn answer(
        &self,
        session: &dyn Session,
        pieces: &[Pieces<'_>],
        look: Look<'_>,
        steps_max: usize,
    ) -> Done<Vec<Vec<Cell>>> {
        let runner = Runner::new(session, self, pieces, look, steps_max);
        cells_of(&self.plan.columns, &runner.rows(&self.plan, None)?, session)
    }
}

/// Rows as those of an answer with these columns.
pub fn cells_of(
    columns: &Columns,
    rows: &[Vec<Value>],
    session: &dyn Session,
) -> Done<Vec<Vec<Cell>>> {
    check_size(rows.len(), columns.len())?;
    // A step of weight is 16 bytes.
    let weight: usize = rows.iter().flatten().map(Value::weight).sum();
    if weight.saturating_mul(16) > ANSWER_BYTES_MAX {
        let message = format!("the answer would have more than {ANSWER_BYTES_MAX} bytes: ask for fewer columns, or for some of the tables");
        return Err(Failure::new(state::LIMIT_REACHED, message));
    }
    let cells = rows.iter().map(|row| {
        let values = row.iter().zip(columns);
        let cells = values.map(|(value, (name, ty))| {
            value.cell(ty, session).ok_or_else(|| {
                let message = format!("a value of \"{name}\" is not of the column's type");
                Failure::new(state::OUT_OF_RANGE, message)
            })
        });
        cells.collect()
    });
    cells.collect()
}

/// What a text is, when its tokens were read and the names in it are bound.
pub fn understood<S, T>(
    what: &str,
    text: &str,
    tokens: Vec<Token>,
    read: impl FnOnce(Vec<Token>) -> Result<S, String>,
    bind: impl FnOnce(&S) -> Done<T>,
) -> Result<T, Unread> {
    if tokens.len() > TOKENS_MAX {
        let message = format!("the {what} has more than {TOKENS_MAX} words and signs");
        return Err(Unread::Failed(Failure::new(state::LIMIT_REACHED, message)));
    }
    let refused = |reason: &str| {
        let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        Failure::unsupported(format!("this {what} is not supported ({reason}): {shown}"))
    };
    let tree = read(tokens).map_err(|reason| Unread::Text(refused(&reason)))?;
    bind(&tree).map_err(|failure| match failure.state {
        state::FEATURE_NOT_SUPPORTED => Unread::Failed(refused(&failure.message)),
        _ => Unread::Failed(failure),
    })
}
