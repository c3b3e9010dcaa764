//! How the rows of a relation would be found, with what is known of it so far.

use lightcone_schema::{IndexAlgorithm, IndexSchema};
use lightcone_table::TableView;
use lightcone_types::ColId;

use super::conjuncts::Conjuncts;
use super::cost::{lookup_cost, FOUND_ROW};
use super::samples::Samples;
use super::strategy::{Access, KeyPart};
use crate::admission::finds_equals;
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId, Test};
use crate::lexer::Comparison;
use crate::query::Fragment;
use crate::scalar::Scalar;

/// What is assumed of conditions of which nothing is known: the part of the rows for which they hold.
const PART_EQUAL: f64 = 0.1;
const PART_RANGE: f64 = 0.3;

/// How a relation would be read next.
pub(super) struct Choice {
    pub access: Access,
    pub rows: f64,
    /// Rows that are looked at for them, and beside that once, for a hash table.
    pub looked_at: f64,
    pub built: f64,
}

/// What is known of a column of a relation.
struct Known {
    column: ColId,
    part: KeyPart,
    scalar: Scalar,
}

/// One end of a range, in BSATN, and whether it belongs to the range.
#[derive(Clone, Debug)]
struct End {
    value: Box<[u8]>,
    inclusive: bool,
}

#[derive(Default)]
struct Bounds {
    start: Option<End>,
    end: Option<End>,
}

/// How each relation would be found that is not bound yet.
pub(super) struct Choices<'a> {
    tables: &'a [&'a TableView],
    /// By relation: its block.
    block_of: Vec<usize>,
    /// By relation: what its columns must equal. Grows as relations are bound.
    known: Vec<Vec<Known>>,
    /// By relation: the bounds of its columns.
    bounds: Vec<Vec<(ColId, Bounds)>>,
    /// By relation: the part of its rows that other conditions leave, about.
    part: Vec<f64>,
    /// By relation: the equalities with columns of others.
    joins: Vec<Vec<(ColId, ColumnAt, Scalar)>>,
    /// The best way so far of reading each relation that is not bound.
    choices: Vec<Option<Choice>>,
    is_bound: Vec<bool>,
    is_optional: Vec<bool>,
    /// By relation: the caller may not learn how many rows its keys have.
    is_guarded: Vec<bool>,
    /// Matches of the relations that are bound, about.
    pub matches: f64,
    samples: &'a mut Samples,
}

impl<'a> Choices<'a> {
    pub fn new(
        condition: &Condition,
        tables: &'a [&'a TableView],
        conjuncts: &Conjuncts,
        fragment: &Fragment,
        samples: &'a mut Samples,
    ) -> Choices<'a> {
        let none = || (0..tables.len()).map(|_| Vec::new());
        let mut choices = Choices {
            tables,
            block_of: conjuncts.block_of.clone(),
            known: none().collect(),
            bounds: (0..tables.len()).map(|_| Vec::new()).collect(),
            part: vec![1.0; tables.len()],
            joins: (0..tables.len()).map(|_| Vec::new()).collect(),
            choices: Vec::new(),
            is_bound: vec![false; tables.len()],
            is_optional: vec![false; tables.len()],
            is_guarded: vec![false; tables.len()],
            matches: 1.0,
            samples,
        };
        for &relation in &fragment.guarded {
            choices.is_guarded[usize::from(relation)] = true;
        }
        for join in &fragment.outer {
            choices.is_optional[usize::from(join.own.relation)] = true;
            let of_other = &mut choices.joins[usize::from(join.other.relation)];
            of_other.push((join.other.column, join.own, join.scalar));
        }
        choices.learn(condition, conjuncts);
        for relation in 0..tables.len() {
            let choice = choices.choose(relation);
            choices.choices.push(Some(choice));
        }
        choices
    }

    pub fn is_optional(&self, relation: usize) -> bool {
        self.is_optional[relation]
    }

    fn learn(&mut self, condition: &Condition, conjuncts: &Conjuncts) {
        for (relation, own) in conjuncts.own.iter().enumerate() {
            if !self.is_optional[relation] {
                self.learn_constants(condition, relation, own);
            }
            let others = own.len() - self.known[relation].len().min(own.len());
            self.part[relation] = PART_RANGE.powi(others.min(4) as i32);
        }
        for open in &conjuncts.open {
            if let Node::Columns(
                left,
                right,
                Test {
                    scalar,
                    comparison: Comparison::Equal,
                },
            ) = &condition.nodes[open.id as usize]
            {
                // What equals a relation around a subquery says nothing of that relation.
                let mut add = |own: &ColumnAt, other: &ColumnAt| {
                    let found = usize::from(other.relation);
                    if !self.is_optional[found] && self.block_of[found] == open.block {
                        self.joins[usize::from(own.relation)].push((own.column, *other, *scalar));
                    }
                };
                add(left, right);
                add(right, left);
            }
        }
    }

    /// What the conjuncts of a relation alone say about its columns.
    fn learn_constants(&mut self, condition: &Condition, relation: usize, own: &[NodeId]) {
        for conjunct in condition.constants_of(own) {
            let Constant::Value(value) = conjunct.constant else {
                unreachable!("conditions are bound before they are planned");
            };
            if conjunct.test.is_equal() && conjunct.is_bytewise {
                self.known[relation].push(Known {
                    column: conjunct.column.column,
                    part: KeyPart::Constant(value.clone()),
                    scalar: conjunct.test.scalar,
                });
            } else {
                self.learn_bound(
                    relation,
                    conjunct.column.column,
                    conjunct.test.comparison,
                    value,
                );
            }
        }
    }

    fn learn_bound(
        &mut self,
        relation: usize,
        column: ColId,
        comparison: Comparison,
        value: &[u8],
    ) {
        let of_relation = &mut self.bounds[relation];
        let place = match of_relation.iter().position(|(known, _)| *known == column) {
            Some(place) => place,
            None => {
                of_relation.push((column, Bounds::default()));
                of_relation.len() - 1
            }
        };
        let bounds = &mut of_relation[place].1;
        let end = |inclusive| {
            Some(End {
                value: value.into(),
                inclusive,
            })
        };
        // Of several bounds, any one will do: all are checked again.
        match comparison {
            Comparison::Less => bounds.end = end(false),
            Comparison::LessOrEqual => bounds.end = end(true),
            Comparison::Greater => bounds.start = end(false),
            Comparison::GreaterOrEqual => bounds.start = end(true),
            Comparison::Equal | Comparison::NotEqual => {}
        }
    }

    /// The relation of a block to be read next.
    pub fn next(&self, block: usize) -> Option<usize> {
        let open = self.choices.iter().enumerate();
        let mut open = open.filter_map(|(relation, choice)| {
            let rows = choice.as_ref()?.rows;
            (self.block_of[relation] == block).then_some((relation, rows))
        });
        // With `LEFT JOIN`, the order counts.
        if self.is_optional.contains(&true) {
            return open.next().map(|(relation, _)| relation);
        }
        open.min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(relation, _)| relation)
    }

    /// Reads a relation next: what it is joined with can be found by it from now on.
    pub fn bind(&mut self, relation: usize) -> Choice {
        self.is_bound[relation] = true;
        self.choices[relation] = None;
        // How it is read best depends on how often.
        let choice = self.choose(relation);
        self.matches *= match self.is_optional[relation] {
            true => choice.rows.max(1.0),
            false => choice.rows,
        };
        let mut changed = Vec::new();
        for (column, other, scalar) in std::mem::take(&mut self.joins[relation]) {
            let other_relation = usize::from(other.relation);
            if self.is_bound[other_relation] {
                continue;
            }
            let at = ColumnAt {
                relation: relation as u16,
                column,
            };
            self.known[other_relation].push(Known {
                column: other.column,
                part: KeyPart::Column(at),
                scalar,
            });
            changed.push(other_relation);
        }
        changed.sort_unstable();
        changed.dedup();
        for other in changed {
            self.choices[other] = Some(self.choose(other));
        }
        choice
    }

    /// The best way of reading a relation with what is known now.
    fn choose(&mut self, relation: usize) -> Choice {
        let table = self.tables[relation];
        let rows = table.rows().row_count() as f64;
        let mut best = Choice {
            access: Access::Scan,
            rows: rows * self.part[relation],
            looked_at: rows,
            built: 0.0,
        };
        let columns: Vec<_> = self.join_columns(relation);
        if !columns.is_empty() {
            let part = PART_EQUAL.powi(columns.len().min(3) as i32);
            let found = (rows * self.part[relation] * part).max(1.0).min(rows);
            best = Choice {
                access: Access::Hash { columns },
                rows: found,
                looked_at: found,
                built: rows,
            };
        } else if !self.known[relation].is_empty() {
            best.rows *= PART_EQUAL;
        }
        for (position, index) in table.schema.indexes.iter().enumerate() {
            let Some((access, found)) = self.by_index(relation, position, index) else {
                continue;
            };
            // An index that the hash table would have to be built beside is better, even if it finds a little more. But one that
            // finds the same rows each time is not, where that is often.
            let is_better = match &mut best.access {
                Access::Hash { columns } if access.is_constant() => {
                    let part = PART_EQUAL.powi(columns.len().min(3) as i32);
                    best.looked_at = best.looked_at.min((found * part).max(1.0));
                    best.rows = best.rows.min(best.looked_at);
                    let hashed =
                        FOUND_ROW * best.built + self.matches * lookup_cost(best.looked_at);
                    self.matches * lookup_cost(found) <= hashed
                }
                Access::Hash { .. } => {
                    !matches!(&access, Access::Range { prefix, .. } if prefix.is_empty())
                }
                _ => found < best.looked_at,
            };
            if is_better {
                best = Choice {
                    access,
                    rows: found * self.part[relation],
                    looked_at: found,
                    built: 0.0,
                };
            }
        }
        best
    }

    fn join_columns(&self, relation: usize) -> Vec<(ColId, Scalar, ColumnAt)> {
        let known = self.known[relation].iter();
        known
            .filter_map(|known| match known.part {
                KeyPart::Column(at) => Some((known.column, known.scalar, at)),
                KeyPart::Constant(_) => None,
            })
            .collect()
    }

    /// Would the number of rows of a key say what the caller must not know? The order of the steps, which all callers see, follows
    /// from it. The rows of a view that keys with its hidden column find are the caller's own.
    fn hides_rows(&self, relation: usize, columns: &[ColId]) -> bool {
        let is_view = self.tables[relation].schema.view.is_some();
        self.is_guarded[relation] || is_view && !columns.contains(&ColId(0))
    }

    /// What an index finds with what is known, and about how many rows that are.
    fn by_index(
        &mut self,
        relation: usize,
        position: usize,
        index: &IndexSchema,
    ) -> Option<(Access, f64)> {
        let table = self.tables[relation];
        if !finds_equals(&table.schema, &index.algorithm) {
            return None;
        }
        let columns = index.algorithm.columns();
        let of_column = |column: &ColId| {
            let mut known = self.known[relation].iter();
            Some(known.find(|known| known.column == *column)?.part.clone())
        };
        let key: Vec<KeyPart> = columns.iter().map_while(of_column).collect();
        let rows = table.rows().row_count() as f64;
        if key.len() == columns.len() {
            let found = match index.unique {
                true => rows.min(1.0),
                false => match constant_key(&key) {
                    Some(key) if !self.hides_rows(relation, columns) => {
                        self.samples.rows_of_key(table, position, key)
                    }
                    _ => self.samples.rows_per_key(table, position),
                },
            };
            let access = Access::Point {
                index: position,
                key,
            };
            return Some((access, found));
        }
        if matches!(index.algorithm, IndexAlgorithm::Hash(_)) {
            return None;
        }
        let bounds = self.bounds[relation].iter();
        let next = columns[key.len()];
        let bounds = bounds.clone().find(|(column, _)| *column == next);
        let (start, end) = match bounds {
            Some((_, bounds)) => (&bounds.start, &bounds.end),
            None => (&None, &None),
        };
        if key.is_empty() && start.is_none() && end.is_none() {
            return None;
        }
        let part = PART_EQUAL.powi(key.len() as i32)
            * PART_RANGE.powi(i32::from(start.is_some()) + i32::from(end.is_some()));
        let access = Access::Range {
            index: position,
            prefix: key,
            start: encoded_end(start),
            end: encoded_end(end),
        };
        Some((access, (rows * part).max(1.0).min(rows)))
    }
}

impl Access {
    /// It finds the same rows whatever the rows of the relations before it are.
    fn is_constant(&self) -> bool {
        match self {
            Access::Scan => true,
            Access::Point { key: parts, .. } | Access::Range { prefix: parts, .. } => {
                let mut parts = parts.iter();
                parts.all(|part| matches!(part, KeyPart::Constant(_)))
            }
            Access::Hash { .. } => false,
        }
    }
}

/// The key in BSATN, if it is known before anything is read.
fn constant_key(parts: &[KeyPart]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for part in parts {
        match part {
            KeyPart::Constant(value) => key.extend_from_slice(value),
            KeyPart::Column(_) => return None,
        }
    }
    Some(key)
}

/// The end of a range as an index takes it.
fn encoded_end(end: &Option<End>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    match end {
        Some(End { value, inclusive }) => {
            bytes.push(u8::from(!inclusive));
            bytes.extend_from_slice(value);
        }
        None => bytes.push(2),
    }
    bytes.into()
}
