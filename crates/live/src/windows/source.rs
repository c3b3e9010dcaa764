//! What gives the rows of a window where row-level security rules decide by several queries, or by joins (08 §13.7).

use std::sync::Arc;

use lightcone_query::{Predicate, WindowSource};
use lightcone_table::RowLayout;
use lightcone_types::{ColId, TableId};

use crate::joins::{JoinShape, JoinShapes, Reading};

/// A source, but for the values of its parameters.
pub(super) enum Source {
    /// The table's rows that are such ones.
    Rows {
        parameters: Vec<ColId>,
        predicate: Option<Predicate>,
    },
    /// Those that have a match, once for each; that depends on these columns.
    Join {
        shape: Arc<JoinShape>,
        decisive: Vec<ColId>,
    },
}

#[derive(PartialEq, Eq, Hash)]
pub(super) enum SourcePlan {
    Join(TableId),
    Rows(Vec<ColId>, Option<Predicate>),
}

impl Source {
    /// The source, and the key that its parameters have.
    pub fn new(source: &WindowSource, joins: &JoinShapes) -> (Source, Box<[u8]>) {
        match source {
            WindowSource::Join(join) => {
                let (shape, key) = joins.shape_of(join);
                let decisive = shape.decisive_columns();
                (Source::Join { shape, decisive }, key)
            }
            WindowSource::Rows {
                parameters,
                predicate,
            } => {
                let values = parameters.iter().flat_map(|(_, value)| value.iter());
                let key = values.copied().collect();
                let source = Source::Rows {
                    parameters: parameters.iter().map(|(column, _)| *column).collect(),
                    predicate: predicate.clone(),
                };
                (source, key)
            }
        }
    }

    pub fn join(&self) -> Option<&Arc<JoinShape>> {
        match self {
            Source::Join { shape, .. } => Some(shape),
            Source::Rows { .. } => None,
        }
    }

    /// What tells it from others. The join's id is its own as long as this source is there.
    pub fn plan(&self) -> SourcePlan {
        match self {
            Source::Join { shape, .. } => SourcePlan::Join(shape.id),
            Source::Rows {
                parameters,
                predicate,
            } => SourcePlan::Rows(parameters.clone(), predicate.clone()),
        }
    }

    /// Writes the key for which it gives a row, if it is one of rows and gives it at all.
    pub fn write_key(&self, layout: &RowLayout, row: &[u8], key: &mut Vec<u8>) -> bool {
        let Source::Rows {
            parameters,
            predicate,
        } = self
        else {
            return false;
        };
        if predicate.as_ref().is_some_and(|p| !p.matches(layout, row)) {
            return false;
        }
        key.clear();
        for column in parameters {
            key.extend_from_slice(layout.column(row, usize::from(column.0)));
        }
        true
    }

    /// How often it gives a row of the table for a key, as far as that is counted. None: there would be more to look at than may be.
    pub fn weight(
        &self,
        layout: &RowLayout,
        reading: &mut Reading<'_>,
        (row, key): (&[u8], &[u8]),
    ) -> Option<u64> {
        match self {
            Source::Join { shape, decisive } => shape.count_matches(reading, (row, decisive), key),
            Source::Rows {
                parameters,
                predicate,
            } => {
                let values = parameters.iter().flat_map(|column| {
                    let column = usize::from(column.0);
                    layout.column(row, column).iter()
                });
                let has_values = values.eq(key);
                let Some(predicate) = predicate.as_ref().filter(|_| has_values) else {
                    return Some(u64::from(has_values));
                };
                reading.spend_on(predicate, row.len())?;
                Some(u64::from(predicate.matches(layout, row)))
            }
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let own = match self {
            Source::Join { shape, decisive } => {
                shape.memory_bytes() + decisive.len() * size_of::<ColId>()
            }
            Source::Rows {
                parameters,
                predicate,
            } => {
                let predicate = predicate.as_ref().map_or(0, Predicate::memory_bytes);
                predicate + parameters.len() * size_of::<ColId>()
            }
        };
        size_of::<Source>() + own
    }

    /// What a changed row costs that is looked at for it.
    pub fn steps(&self, row_bytes: usize) -> usize {
        match self {
            Source::Join { shape, .. } => shape.steps(row_bytes),
            Source::Rows { predicate, .. } => {
                let predicate = predicate.as_ref();
                1 + predicate.map_or(0, |predicate| predicate.steps(row_bytes))
            }
        }
    }
}

/// The keys of a window's sources, one behind the other: each behind its length.
pub(super) struct SourceKeys<'k>(pub &'k [u8]);

impl SourceKeys<'_> {
    pub fn push(key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
    }
}

impl<'k> Iterator for SourceKeys<'k> {
    type Item = &'k [u8];

    fn next(&mut self) -> Option<&'k [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (key, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        self.0 = rest;
        Some(key)
    }
}
