//! In which order the relations of a fragment are read, and how the rows of each are found.
//!
//! The order is greedy: next comes the relation that has the fewest rows for what is known by then. What is known of a
//! relation changes only when a relation is bound that it is joined with, so planning takes a time that grows with the
//! number of relations times that of the joins of one, however many there are in a hostile text.

use lightcone_schema::{IndexAlgorithm, IndexSchema};
use lightcone_table::{RangeBounds, RowLayout, TableView};
use lightcone_types::{ColId, Identity};

use crate::admission::finds_equals;
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId};
use crate::lexer::Comparison;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::Fragment;
use crate::scalar::Scalar;

/// Rows of a table that are looked up again to learn how many rows a key has.
const SAMPLES: usize = 8;
/// Rows of one key that are counted at most.
const SAMPLE_ROWS_MAX: usize = 64;
/// What is assumed of conditions of which nothing is known: the part of the rows for which they hold.
const PART_EQUAL: f64 = 0.1;
const PART_RANGE: f64 = 0.3;

/// A part of the key of an index.
#[derive(Clone, Debug)]
pub(crate) enum KeyPart {
    /// In BSATN.
    Constant(Box<[u8]>),
    /// Of a relation that is read before.
    Column(ColumnAt),
}

/// One end of a range, in BSATN, and whether it belongs to the range.
#[derive(Clone, Debug)]
pub(crate) struct End {
    value: Box<[u8]>,
    inclusive: bool,
}

/// How the rows of a relation are found.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    Scan,
    /// All rows with a key.
    Point {
        index: usize,
        key: Vec<KeyPart>,
    },
    /// The rows whose keys begin with some values, and may have bounds behind them.
    Range {
        index: usize,
        prefix: Vec<KeyPart>,
        /// Of the next column, as [`RangeBounds`] wants it.
        start: Box<[u8]>,
        end: Box<[u8]>,
    },
    /// All rows are put into a hash table once, and found there by these columns: own ones, and those that they must equal.
    Hash {
        columns: Vec<(ColId, Scalar, ColumnAt)>,
    },
}

/// One relation, in the order in which they are read.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub relation: u16,
    pub access: Access,
    /// What must hold of the row alone.
    pub own: Option<Predicate>,
    /// What must hold of the row with those of the relations before it.
    pub joined: Option<Predicate>,
    /// How many rows there are for the rows of the relations before it, about.
    pub rows: f64,
}

/// How a fragment is evaluated for one caller, on tables of about the sizes that it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Strategy {
    pub steps: Vec<Step>,
    /// Nothing can match.
    pub is_never: bool,
}

/// Plans a fragment. `tables` are those of its relations, in their order.
pub(crate) fn plan(fragment: &Fragment, sender: &Identity, tables: &[&TableView]) -> Strategy {
    let condition = fragment.condition.bind(sender);
    let layouts: Vec<&RowLayout> = tables.iter().map(|table| table.layout()).collect();
    let compiler = PredicateCompiler::new(&condition, layouts);
    let mut conjuncts = Conjuncts::of(&condition, tables.len());
    let constant = compiler.compile(&conjuncts.of_none);
    let mut planner = Planner::new(&condition, tables, &conjuncts);
    let mut steps = Vec::with_capacity(tables.len());
    while let Some(relation) = planner.next() {
        let Choice { access, rows } = planner.bind(relation);
        let own = std::mem::take(&mut conjuncts.own[relation]);
        let joined = conjuncts.complete_with(relation);
        steps.push(Step {
            relation: relation as u16,
            access,
            own: compiler.compile(&own),
            joined: compiler.compile(&joined),
            rows,
        });
    }
    Strategy {
        is_never: constant.is_some() || steps.iter().any(never_matches),
        steps,
    }
}

fn never_matches(step: &Step) -> bool {
    let is_never = |predicate: &Option<Predicate>| {
        let predicate = predicate.as_ref();
        predicate.is_some_and(Predicate::is_never)
    };
    is_never(&step.own) || is_never(&step.joined)
}

/// The conjuncts by the relations that they read.
struct Conjuncts {
    of_none: Vec<NodeId>,
    own: Vec<Vec<NodeId>>,
    /// Those of several relations, by each of them.
    shared: Vec<Vec<usize>>,
    /// Of each of these, how many relations are still to be bound.
    open: Vec<(NodeId, usize)>,
}

impl Conjuncts {
    fn of(condition: &Condition, relations: usize) -> Conjuncts {
        let mut conjuncts = Conjuncts {
            of_none: Vec::new(),
            own: vec![Vec::new(); relations],
            shared: vec![Vec::new(); relations],
            open: Vec::new(),
        };
        let read = condition.relations_of_conjuncts();
        for (&id, relations) in condition.conjuncts.iter().zip(read) {
            match relations[..] {
                [] => conjuncts.of_none.push(id),
                [relation] => conjuncts.own[usize::from(relation)].push(id),
                _ => {
                    for &relation in &relations {
                        conjuncts.shared[usize::from(relation)].push(conjuncts.open.len());
                    }
                    conjuncts.open.push((id, relations.len()));
                }
            }
        }
        conjuncts
    }

    /// The conjuncts of which this was the last relation to be bound.
    fn complete_with(&mut self, relation: usize) -> Vec<NodeId> {
        let mut complete = Vec::new();
        for &shared in &self.shared[relation] {
            let (id, open) = &mut self.open[shared];
            *open -= 1;
            if *open == 0 {
                complete.push(*id);
            }
        }
        complete
    }
}

/// How a relation would be read next.
struct Choice {
    access: Access,
    rows: f64,
}

/// What is known of a column of a relation.
struct Known {
    column: ColId,
    part: KeyPart,
    scalar: Scalar,
}

#[derive(Default)]
struct Bounds {
    start: Option<End>,
    end: Option<End>,
}

struct Planner<'a> {
    tables: &'a [&'a TableView],
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
    samples: Vec<Vec<Option<f64>>>,
}

impl<'a> Planner<'a> {
    fn new(
        condition: &'a Condition,
        tables: &'a [&'a TableView],
        conjuncts: &Conjuncts,
    ) -> Planner<'a> {
        let none = || (0..tables.len()).map(|_| Vec::new());
        let mut planner = Planner {
            tables,
            known: none().collect(),
            bounds: (0..tables.len()).map(|_| Vec::new()).collect(),
            part: vec![1.0; tables.len()],
            joins: (0..tables.len()).map(|_| Vec::new()).collect(),
            choices: Vec::new(),
            is_bound: vec![false; tables.len()],
            samples: tables
                .iter()
                .map(|table| vec![None; table.indexes().len()])
                .collect(),
        };
        planner.learn(condition, conjuncts);
        for relation in 0..tables.len() {
            let choice = planner.choose(relation);
            planner.choices.push(Some(choice));
        }
        planner
    }

    fn learn(&mut self, condition: &Condition, conjuncts: &Conjuncts) {
        for conjunct in condition.constant_conjuncts() {
            let relation = usize::from(conjunct.column.relation);
            let Constant::Value(value) = conjunct.constant else {
                unreachable!("conditions are bound before they are planned");
            };
            if conjunct.comparison == Comparison::Equal && conjunct.is_bytewise {
                self.known[relation].push(Known {
                    column: conjunct.column.column,
                    part: KeyPart::Constant(value.clone()),
                    scalar: conjunct.scalar,
                });
            } else {
                self.learn_bound(relation, conjunct.column.column, conjunct.comparison, value);
            }
        }
        for (relation, own) in conjuncts.own.iter().enumerate() {
            let others = own.len() - self.known[relation].len().min(own.len());
            self.part[relation] = PART_RANGE.powi(others.min(4) as i32);
        }
        for (id, _) in &conjuncts.open {
            if let Node::Columns {
                left,
                right,
                scalar,
                comparison: Comparison::Equal,
            } = &condition.nodes[*id as usize]
            {
                let mut add = |own: &ColumnAt, other: &ColumnAt| {
                    self.joins[usize::from(own.relation)].push((own.column, *other, *scalar));
                };
                add(left, right);
                add(right, left);
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

    /// The relation to be read next.
    fn next(&self) -> Option<usize> {
        let open = self.choices.iter().enumerate();
        let open = open.filter_map(|(relation, choice)| Some((relation, choice.as_ref()?.rows)));
        open.min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(relation, _)| relation)
    }

    /// Reads a relation next: what it is joined with can be found by it from now on.
    fn bind(&mut self, relation: usize) -> Choice {
        self.is_bound[relation] = true;
        let choice = self.choices[relation]
            .take()
            .expect("only relations that are open are bound");
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
        };
        let columns: Vec<_> = self.join_columns(relation);
        if !columns.is_empty() {
            let part = PART_EQUAL.powi(columns.len().min(3) as i32);
            best = Choice {
                access: Access::Hash { columns },
                rows: (rows * self.part[relation] * part).max(1.0).min(rows),
            };
        } else if !self.known[relation].is_empty() {
            best.rows *= PART_EQUAL;
        }
        let mut best_work = match &best.access {
            Access::Hash { .. } => best.rows,
            _ => rows,
        };
        for (position, index) in table.schema.indexes.iter().enumerate() {
            let Some((access, found)) = self.by_index(relation, position, index) else {
                continue;
            };
            // An index that the hash table would have to be built beside is better, even if it finds a little more.
            let is_better = match &best.access {
                Access::Hash { .. } => {
                    !matches!(&access, Access::Range { prefix, .. } if prefix.is_empty())
                }
                _ => found < best_work,
            };
            if is_better {
                best_work = found;
                best = Choice {
                    access,
                    rows: found * self.part[relation],
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
                false => self.rows_per_key(relation, position),
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

    /// How many rows a key of an index has, about: some keys are looked up.
    fn rows_per_key(&mut self, relation: usize, position: usize) -> f64 {
        if let Some(known) = self.samples[relation][position] {
            return known;
        }
        let sampled = rows_per_key(self.tables[relation], position);
        self.samples[relation][position] = Some(sampled);
        sampled
    }
}

/// How many rows a key of an index has, about: some keys are looked up.
pub(crate) fn rows_per_key(table: &TableView, position: usize) -> f64 {
    let (rows, layout) = (table.rows(), table.layout());
    let index = &table.indexes()[position];
    let (mut keys, mut found) = (0usize, 0usize);
    let mut key = Vec::new();
    let page_count = rows.page_count();
    // From pages all over the table, as neighbours often have the same key.
    let step = page_count.div_ceil(SAMPLES).max(1);
    for page in (0..page_count).step_by(step) {
        let mut sample = None;
        rows.for_each_of_page(page, |id, _| sample = sample.or(Some(id)));
        let Some(id) = sample else { continue };
        key.clear();
        index.point_of_row(layout, table.row(id), &mut key);
        let mut count = 0;
        let walked = index.walk_point(rows, layout, &key, None, |_| {
            count += 1;
            count < SAMPLE_ROWS_MAX
        });
        if walked.is_ok() {
            keys += 1;
            found += count;
        }
    }
    match keys {
        0 => 0.0,
        _ => found as f64 / keys as f64,
    }
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

impl Access {
    /// The range of an index, if its prefix is this.
    pub fn range<'r>(&'r self, key: &'r [u8]) -> Option<RangeBounds<'r>> {
        match self {
            Access::Range {
                prefix, start, end, ..
            } => Some(RangeBounds {
                prefix: key,
                prefix_columns: prefix.len(),
                start,
                end,
            }),
            _ => None,
        }
    }
}
