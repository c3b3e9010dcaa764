//! What a question reads of a table of the module, as a query of the ad hoc language.

use std::fmt::Write as _;
use std::sync::Arc;

use lightcone_types::AlgebraicType;

use crate::words::quoted;

/// A table of the module, or several that are joined, while a question is bound.
pub(super) struct Draft {
    /// What stands behind FROM.
    pub from: String,
    /// As they stand in a query.
    pub columns: Vec<(String, Arc<AlgebraicType>)>,
    pub is_used: Vec<bool>,
    pub conditions: Vec<String>,
    /// The order of its rows, and how many are wanted.
    pub end: String,
    /// It is read as a part of another.
    pub is_joined: bool,
    /// Its rows are changed: behind their columns stands their number.
    pub is_target: bool,
}

/// What is read of a table of the module, or of several.
pub struct TableRead {
    /// By this number a plan names it.
    pub number: usize,
    /// The query that reads it, and one that reads the whole table, if the first is refused.
    pub query: String,
    pub whole: String,
    /// The columns that are read, with their places in a row.
    pub columns: Vec<(usize, Arc<AlgebraicType>)>,
    pub width: usize,
    /// The last column of its rows is their number.
    pub is_target: bool,
}

impl Draft {
    /// A table, by its number among those of a question.
    pub fn new(number: usize, name: &str, columns: Vec<(String, Arc<AlgebraicType>)>) -> Draft {
        let place = |(name, ty): (String, _)| (format!("t{number}.{}", quoted(&name)), ty);
        Draft {
            from: format!("{} AS t{number}", quoted(name)),
            is_used: vec![false; columns.len()],
            columns: columns.into_iter().map(place).collect(),
            conditions: Vec::new(),
            end: String::new(),
            is_joined: false,
            is_target: false,
        }
    }

    /// Rows of both that are equal in these columns.
    pub fn joined(&self, other: &Draft, equal: &[(usize, usize)]) -> Draft {
        let mut equal = equal
            .iter()
            .map(|(own, of)| format!("{} = {}", self.columns[*own].0, other.columns[*of].0));
        let on = equal.next().unwrap_or_default();
        let conditions = self.conditions.iter().chain(&other.conditions).cloned();
        Draft {
            from: format!("{} JOIN {} ON {on}", self.from, other.from),
            columns: [&self.columns[..], &other.columns].concat(),
            is_used: [&self.is_used[..], &other.is_used].concat(),
            conditions: conditions.chain(equal).collect(),
            end: String::new(),
            is_joined: false,
            is_target: false,
        }
    }

    pub fn table(&self, number: usize) -> TableRead {
        let columns = self.read().into_iter();
        let columns = columns.map(|at| (at, self.columns[at].1.clone()));
        TableRead {
            number,
            query: self.text(false),
            whole: self.text(true),
            columns: columns.collect(),
            width: self.columns.len() + usize::from(self.is_target),
            is_target: self.is_target,
        }
    }

    /// The columns that are read.
    fn read(&self) -> Vec<usize> {
        let mut used: Vec<usize> = (0..self.columns.len())
            .filter(|at| self.is_used[*at])
            .collect();
        if used.is_empty() && !self.columns.is_empty() {
            // That there is a row matters.
            used.push(0);
        }
        used
    }

    /// The query; of the whole table, without conditions and what stands behind them.
    pub fn text(&self, is_whole: bool) -> String {
        let columns = self.read().into_iter();
        let columns = columns.map(|at| format!("{} AS c{at}", self.columns[at].0));
        let columns = match self.columns.is_empty() {
            true => "*".to_owned(),
            false => columns.collect::<Vec<_>>().join(", "),
        };
        let mut text = format!("SELECT {columns} FROM {}", self.from);
        if is_whole {
            return text;
        }
        for (nth, condition) in self.conditions.iter().enumerate() {
            let word = if nth == 0 { "WHERE" } else { "AND" };
            let _ = write!(text, " {word} {condition}");
        }
        text + &self.end
    }
}
