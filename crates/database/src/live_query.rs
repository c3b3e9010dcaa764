//! Queries that are registered, as the writer and fan-out have them.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

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
    pub group: Arc<Group>,
    /// What is left to check for the rows of the group.
    pub residual: Option<Predicate>,
}

/// Queries with the same key match the same rows: the text, the rules that are drawn in, and the caller where these depend on
/// him. All callers but the owner have the same rules.
#[derive(PartialEq, Eq)]
pub(crate) struct QueryKey {
    hash: u64,
    text: String,
    table: TableId,
    /// Where row-level security rules make several queries of a text, or one that is not the owner's.
    fragment: Option<u16>,
    sender_value: Option<Vec<u8>>,
}

/// Queries that a changed row is checked against together: those of a table that need one value in a column, found by it, or
/// those without such a value.
#[derive(PartialEq, Eq)]
pub(crate) struct Group {
    hash: u64,
    pub table: TableId,
    pub equality: Option<(ColId, Box<[u8]>)>,
}

/// Clients choose texts and values, also long ones: they are hashed once, when they are compiled, and with a secret, so that
/// nobody makes them meet in one place.
fn hash_of(value: &impl Hash) -> u64 {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SECRET.hash_one(value)
}

impl Hash for QueryKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl QueryKey {
    fn of(plan: &SelectPlan, caller: &Identity) -> QueryKey {
        let sender_value = plan.reads_sender.then(|| caller.as_le_bytes().to_vec());
        QueryKey {
            hash: hash_of(&(&plan.text, plan.table.id, plan.fragment, &sender_value)),
            text: plan.text.clone(),
            table: plan.table.id,
            fragment: plan.fragment,
            sender_value,
        }
    }
}

impl Group {
    fn of(table: TableId, equality: Option<(ColId, Box<[u8]>)>) -> Group {
        Group {
            hash: hash_of(&(table, &equality)),
            table,
            equality,
        }
    }
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
        LiveQuery {
            key: Arc::new(QueryKey::of(&plan, caller)),
            group: Arc::new(Group::of(plan.table.id, equality)),
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
            + size_of::<Group>()
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

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, DefaultHasher};

    use super::*;
    use crate::testing::Items;

    #[test]
    fn texts_and_values_are_hashed_with_a_secret() {
        let query = LiveQuery::new(Items::new(0, 0).plan("id = 1"), &Identity::ZERO);
        let key = (&query.key.text, query.key.table, &query.key.sender_value);
        let group = (query.group.table, &query.group.equality);
        let without = BuildHasherDefault::<DefaultHasher>::default();
        assert_ne!(query.key.hash, without.hash_one(key));
        assert_ne!(query.group.hash, without.hash_one(group));
        let fast = rustc_hash::FxBuildHasher;
        assert_ne!(query.key.hash, fast.hash_one(key));
        assert_ne!(query.group.hash, fast.hash_one(group));
    }
}
