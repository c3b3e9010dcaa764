//! What a question reads of a table of the module, as a query of the ad hoc language.

use std::fmt::Write as _;
use std::sync::Arc;

use lightcone_types::AlgebraicType;

use lightcone_database::Reading;

/// A table of the module, while a question is bound.
pub(super) struct Draft {
    /// As it stands in a query.
    pub name: String,
    pub columns: Vec<(String, Arc<AlgebraicType>)>,
    pub is_used: Vec<bool>,
    pub conditions: Vec<String>,
    /// The order of its rows, and how many are wanted.
    pub end: String,
}

/// What is read of a table of the module.
pub(in super::super) struct TableRead {
    pub reading: Reading,
    /// The columns that are read, with their places in a row.
    pub columns: Vec<(usize, Arc<AlgebraicType>)>,
    pub width: usize,
}

impl Draft {
    /// The columns that are read.
    pub fn read(&self) -> Vec<usize> {
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
        let columns = self
            .read()
            .into_iter()
            .map(|at| quoted(&self.columns[at].0));
        let columns = match self.columns.is_empty() {
            true => "*".to_owned(),
            false => columns.collect::<Vec<_>>().join(", "),
        };
        let mut text = format!("SELECT {columns} FROM {}", self.name);
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

/// A name as it stands in a query.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
