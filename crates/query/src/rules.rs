//! Row-level security: rules take the place of the tables that they are for (08 §9.2).

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::TableId;

use crate::condition::Condition;
use crate::error::{SqlError, RELATIONS_MAX};
use crate::plan::{compile_rule, Caller, Catalog};
use crate::query::{Fragment, JoinOn};

/// A query becomes at most so many fragments: the numbers of rules of its relations multiply.
pub const FRAGMENTS_MAX: usize = 256;
/// Conditions of all fragments of a query together have at most so many nodes, as each repeats the query's own.
const NODES_MAX: usize = 1 << 18;
/// Rules draw in the rules of what they read, at most so deep. Expanding them recurses.
const DEPTH_MAX: usize = 64;

/// The query as this caller may see it: for the owner as it is.
pub(crate) fn apply_rules(
    query: Fragment,
    catalog: &dyn Catalog,
    caller: &Caller,
) -> Result<Vec<Fragment>, SqlError> {
    let is_guarded = |table: &Arc<TableSchema>| !catalog.rules(table.id).is_empty();
    if caller.is_owner || !query.tables.iter().any(is_guarded) {
        return Ok(vec![query]);
    }
    let mut expansion = Expansion {
        catalog,
        caller,
        chain: Vec::new(),
        known: HashMap::new(),
    };
    let mut fragments = expansion.expand(&query)?;
    for (number, fragment) in fragments.iter_mut().enumerate() {
        fragment.number = Some(number as u16);
    }
    Ok(fragments)
}

struct Expansion<'a> {
    catalog: &'a dyn Catalog,
    caller: &'a Caller,
    /// The tables whose rules are being expanded.
    chain: Vec<TableId>,
    /// What has taken the place of a table.
    known: HashMap<TableId, Arc<[Fragment]>>,
}

impl Expansion<'_> {
    /// The fragments of a query, or of a rule of the last table in the chain.
    fn expand(&mut self, query: &Fragment) -> Result<Vec<Fragment>, SqlError> {
        let mut choices = Vec::with_capacity(query.tables.len());
        let mut count = 1usize;
        for table in &query.tables {
            let choice = self.instead_of(table)?;
            if let Some(fragments) = &choice {
                count = count.saturating_mul(fragments.len());
            }
            choices.push(choice);
        }
        if count > FRAGMENTS_MAX {
            return Err(too_many());
        }
        let mut fragments = Vec::with_capacity(count);
        let mut nodes = 0;
        for mut number in 0..count {
            let mut chosen = Vec::with_capacity(choices.len());
            for choice in &choices {
                let fragment = choice.as_ref().map(|fragments| {
                    let fragment = &fragments[number % fragments.len()];
                    number /= fragments.len();
                    fragment
                });
                chosen.push(fragment);
            }
            let fragment = substitute(query, &chosen)?;
            nodes += fragment.condition.nodes.len();
            if nodes > NODES_MAX {
                return Err(too_many());
            }
            fragments.push(fragment);
        }
        Ok(fragments)
    }

    /// What stands for all rows of this table: None if the table itself does.
    fn instead_of(
        &mut self,
        table: &Arc<TableSchema>,
    ) -> Result<Option<Arc<[Fragment]>>, SqlError> {
        let rules = self.catalog.rules(table.id);
        // A rule sees all of the table that it is for.
        if rules.is_empty() || self.chain.last() == Some(&table.id) {
            return Ok(None);
        }
        if self.chain.contains(&table.id) {
            return Err(SqlError::CyclicRules(table.id));
        }
        if let Some(known) = self.known.get(&table.id) {
            return Ok(Some(known.clone()));
        }
        if self.chain.len() == DEPTH_MAX {
            return Err(too_many());
        }
        self.chain.push(table.id);
        let mut fragments = Vec::new();
        for rule in rules {
            let rule = compile_rule(rule, self.catalog, self.caller)?;
            fragments.extend(self.expand(&rule)?);
            if fragments.len() > FRAGMENTS_MAX {
                return Err(too_many());
            }
        }
        self.chain.pop();
        let fragments: Arc<[Fragment]> = fragments.into();
        self.known.insert(table.id, fragments.clone());
        Ok(Some(fragments))
    }
}

fn too_many() -> SqlError {
    SqlError::RulesMultiply {
        fragments_max: FRAGMENTS_MAX,
    }
}

/// The query with the chosen fragments in the place of its relations. What a fragment returns is what the relation was.
fn substitute(query: &Fragment, chosen: &[Option<&Fragment>]) -> Result<Fragment, SqlError> {
    let mut tables = Vec::new();
    let mut condition = Condition::default();
    let mut joins = Vec::new();
    // Where the relations of the query are now.
    let mut moved = Vec::with_capacity(query.tables.len());
    for (table, chosen) in query.tables.iter().zip(chosen) {
        let base = tables.len() as u16;
        match chosen {
            None => {
                moved.push(base);
                tables.push(table.clone());
            }
            Some(rule) => {
                moved.push(base + rule.own[0]);
                tables.extend(rule.tables.iter().cloned());
                condition.append(&rule.condition, |relation| base + relation);
                joins.extend(rule.joins.iter().map(|on| on.moved(|at| base + at)));
            }
        }
        if tables.len() > RELATIONS_MAX {
            return Err(SqlError::TooManyRelations);
        }
    }
    let to_moved = |relation: u16| moved[usize::from(relation)];
    condition.append(&query.condition, to_moved);
    joins.extend(query.joins.iter().map(|on| on.moved(to_moved)));
    Ok(Fragment {
        tables,
        condition: Arc::new(condition),
        joins,
        own: query.own.iter().map(|&own| to_moved(own)).collect(),
        number: None,
    })
}

impl JoinOn {
    fn moved(&self, relation: impl Fn(u16) -> u16) -> JoinOn {
        let mut on = *self;
        on.left.relation = relation(on.left.relation);
        on.right.relation = relation(on.right.relation);
        on
    }
}
