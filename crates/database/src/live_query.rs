//! Queries that are registered, as the writer and fan-out have them.

use std::sync::Arc;

use lightcone_query::{Predicate, SelectPlan};
use lightcone_types::{AlgebraicType, ColId, Identity, TableId};

/// Steps of a query for each row that it is checked against, before those of its predicate: finding it, and noting that it
/// matched.
const QUERY_STEPS: usize = 8;
/// Where a predicate's steps depend on the size of a row, which is not known yet, it has so many bytes.
const ROW_BYTES: usize = 512;

/// A query of a query set.
pub(crate) struct LiveQuery {
    pub plan: Arc<SelectPlan>,
    pub key: Arc<QueryKey>,
    pub group: Group,
    /// What is left to check for the rows of the group.
    pub residual: Option<Predicate>,
}

/// Queries with the same key match the same rows: the text, and the caller where the text depends on it.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct QueryKey {
    text: String,
    table: TableId,
    sender_value: Option<Vec<u8>>,
}

/// Queries that a changed row is checked against together: those of a table that need one value in a column, found by it, or
/// those without such a value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub table: TableId,
    pub equality: Option<(ColId, Box<[u8]>)>,
}

impl LiveQuery {
    pub fn new(plan: SelectPlan, caller: &Identity) -> LiveQuery {
        let equality = plan
            .equalities
            .iter()
            .find(|(column, _)| compares_bytewise(&plan, *column))
            .cloned();
        let residual = match &equality {
            Some((column, _)) => plan.residual(&[*column]),
            None => plan.predicate.clone(),
        };
        let key = QueryKey {
            text: plan.text.clone(),
            table: plan.table.id,
            sender_value: plan.reads_sender.then(|| caller.as_le_bytes().to_vec()),
        };
        LiveQuery {
            key: Arc::new(key),
            group: Group {
                table: plan.table.id,
                equality,
            },
            residual,
            plan: Arc::new(plan),
        }
    }

    /// What a changed row costs that the query is checked against: so many steps of a few nanoseconds.
    pub fn steps(&self) -> usize {
        let residual = self.residual.as_ref();
        QUERY_STEPS + residual.map_or(0, |residual| residual.steps(ROW_BYTES))
    }

    /// What counts of these for its connection: none, if finding the query by its value is all there is to do.
    pub fn steps_of_connection(&self) -> usize {
        let is_only_found = self.group.equality.is_some() && self.residual.is_none();
        if is_only_found {
            0
        } else {
            self.steps()
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let value = self.group.equality.as_ref().map_or(0, |(_, v)| v.len());
        // Without a value, this is the plan's own predicate.
        let residual = match &self.group.equality {
            Some(_) => self.residual.as_ref().map_or(0, Predicate::memory_bytes),
            None => 0,
        };
        size_of::<LiveQuery>()
            + size_of::<QueryKey>()
            + self.plan.memory_bytes()
            + self.key.text.len()
            + value
            + residual
    }
}

/// Equal values of the column have equal bytes; not so for floats (-0 and +0, the NaNs).
fn compares_bytewise(plan: &SelectPlan, column: ColId) -> bool {
    fn no_floats(ty: &AlgebraicType) -> bool {
        match ty {
            AlgebraicType::F32 | AlgebraicType::F64 | AlgebraicType::Ref(_) => false,
            AlgebraicType::Array(element) => no_floats(element),
            AlgebraicType::Product(product) => product
                .elements
                .iter()
                .all(|e| no_floats(&e.algebraic_type)),
            AlgebraicType::Sum(sum) => sum.variants.iter().all(|v| no_floats(&v.algebraic_type)),
            _ => true,
        }
    }
    plan.table
        .column(column)
        .is_some_and(|column| no_floats(&column.ty))
}
