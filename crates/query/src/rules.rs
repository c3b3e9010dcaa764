//! Row-level security: rules take the place of the tables that they are for (08 §9.2).

mod substitute;

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::TableId;

use self::substitute::{combinations, substitute, too_many, NODES_MAX};
use crate::block::Names;
use crate::error::{Result, SqlError};
use crate::query::{Fragment, OuterJoin, Query};
use crate::select::compile_rule;

pub use self::substitute::FRAGMENTS_MAX;

/// Rules draw in the rules of what they read, at most so deep. Expanding them recurses.
const DEPTH_MAX: usize = 64;

impl Query {
    /// A query without rules, as this caller may see it.
    pub(crate) fn with_rules(mut self, names: Names<'_>) -> Result<Query> {
        let fragment = self.fragments.remove(0);
        self.fragments = apply_rules(fragment, names)?;
        Ok(self)
    }
}

/// The fragments of a query as this caller may see it: for the owner one, the query as it is.
fn apply_rules(query: Fragment, names: Names<'_>) -> Result<Vec<Fragment>> {
    let is_guarded = |table: &Arc<TableSchema>| !names.catalog.rules(table.id).is_empty();
    if names.caller.is_owner || !query.tables.iter().any(is_guarded) {
        return Ok(vec![query]);
    }
    let mut expansion = Expansion {
        names,
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
    names: Names<'a>,
    /// The tables whose rules are being expanded.
    chain: Vec<TableId>,
    /// What has taken the place of a table.
    known: HashMap<TableId, Arc<[Fragment]>>,
}

impl Expansion<'_> {
    /// The fragments of a query, or of a rule of the last table in the chain.
    fn expand(&mut self, query: &Fragment) -> Result<Vec<Fragment>> {
        let mut choices = Vec::with_capacity(query.tables.len());
        for (relation, table) in query.tables.iter().enumerate() {
            let choice = self.instead_of(table)?;
            let is_it = |outer: &OuterJoin| usize::from(outer.own.relation) == relation;
            if choice.is_some() && query.outer.iter().any(is_it) {
                return Err(SqlError::Inconsistent(
                    "a table with row-level security rules cannot stand on the right of LEFT JOIN",
                ));
            }
            choices.push(choice);
        }
        let own = query.relations_of_no_subquery();
        let count = combinations(&choices, &own)?;
        let mut fragments = Vec::with_capacity(count);
        let mut nodes = 0;
        for number in 0..count {
            let fragment = substitute(query, &choices, &own, number)?;
            nodes += fragment.condition.nodes.len();
            if nodes > NODES_MAX {
                return Err(too_many());
            }
            fragments.push(fragment);
        }
        Ok(fragments)
    }

    /// What stands for all rows of this table: None if the table itself does.
    fn instead_of(&mut self, table: &Arc<TableSchema>) -> Result<Option<Arc<[Fragment]>>> {
        let rules = self.names.catalog.rules(table.id);
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
            let rule = compile_rule(rule, self.names)?;
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
