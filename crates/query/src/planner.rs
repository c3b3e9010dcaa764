//! In which order the relations of a fragment are read, and how the rows of each are found.
//!
//! The order is greedy: next comes the relation that has the fewest rows for what is known by then. What is known of a
//! relation changes only when a relation is bound that it is joined with, so planning takes a time that grows with the
//! number of relations times that of the joins of one, however many there are in a hostile text.
//!
//! Relations of a subquery come behind what it reads of the query, unless the query is cheaper from the inside (`leading`).

mod access;
mod conjuncts;
mod cost;
mod leading;
mod samples;

use lightcone_table::{RangeBounds, TableView};
use lightcone_types::{ColId, Identity};

use self::access::Choices;
use self::conjuncts::Conjuncts;
use self::leading::Links;
use crate::condition::{ColumnAt, Condition, NodeId, SubqueryId};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::Fragment;
use crate::scalar::Scalar;

pub(crate) use self::leading::Leading;
pub(crate) use self::samples::Samples;

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
    /// Rows that are looked at for them, and beside that once, for a hash table.
    pub looked_at: f64,
    pub built: f64,
    /// The group that begins here, and those that end here, from the innermost outwards.
    pub opens: Option<usize>,
    pub closes: Vec<usize>,
    /// The step to go back to when there are no more rows here.
    pub back: Option<usize>,
    /// One match is all that is wanted of it.
    pub is_once: bool,
    /// It is the last one, and each row that is found for it is a match.
    pub is_plain_end: bool,
}

/// What a group of relations does with the matches of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// `LEFT JOIN`: all its matches, or one without rows.
    Outer,
    /// Once, if it has a match.
    Exists,
    /// Once, if it has none.
    NotExists,
    /// Once, with rows if it has a match.
    Whether,
}

impl GroupKind {
    pub fn takes_match(self) -> bool {
        self != GroupKind::NotExists
    }

    pub fn takes_none(self) -> bool {
        self != GroupKind::Exists
    }

    /// Its first match settles it.
    pub fn is_once(self) -> bool {
        self != GroupKind::Outer
    }
}

/// Steps behind each other that are a `LEFT JOIN` or a subquery. Groups may stand in groups.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub kind: GroupKind,
    /// Positions of steps.
    pub first: usize,
    pub last: usize,
    /// What must hold when it is known whether there is a match.
    pub after: Option<Predicate>,
}

/// How a fragment is evaluated for one caller, on tables of about the sizes that it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Strategy {
    pub steps: Vec<Step>,
    pub groups: Vec<Group>,
    /// The subquery that the first steps are, if the query begins with one.
    pub leading: Option<Leading>,
    /// The step to go on with behind a match of all.
    pub end: usize,
    /// Nothing can match.
    pub is_never: bool,
}

/// What is planned, for one caller.
#[derive(Clone, Copy)]
pub(crate) struct Planned<'p> {
    pub fragment: &'p Fragment,
    /// Of the fragment, with the caller's values.
    pub condition: &'p Condition,
    /// Those of its relations, in their order.
    pub tables: &'p [&'p TableView],
    /// So many matches are enough, if not all of them are needed.
    pub matches_wanted: Option<u64>,
}

/// Plans a fragment. `tables` are those of its relations, in their order.
pub(crate) fn plan(
    fragment: &Fragment,
    sender: &Identity,
    tables: &[&TableView],
    matches_wanted: Option<u64>,
    samples: &mut Samples,
) -> Strategy {
    let condition = &fragment.condition.bind(sender);
    let planned = Planned {
        fragment,
        condition,
        tables,
        matches_wanted,
    };
    let strategy = plan_from(planned, samples, None, Compiled::Yes);
    leading::cheaper(strategy, planned, samples)
}

/// The subquery that a fragment is planned to begin with.
pub(crate) fn leading_subquery(planned: Planned<'_>, samples: &mut Samples) -> Option<SubqueryId> {
    let strategy = plan_from(planned, samples, None, Compiled::No);
    leading::leader(&strategy, planned, samples).map(|links| links.subquery)
}

/// Are the conditions of a plan compiled? They are not needed to compare plans, and compiling long ones takes most of planning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compiled {
    Yes,
    No,
}

/// Plans a fragment that begins with a subquery, or with none.
fn plan_from(
    planned: Planned<'_>,
    samples: &mut Samples,
    leading: Option<&Links>,
    compiled: Compiled,
) -> Strategy {
    let Planned {
        fragment,
        condition,
        tables,
        ..
    } = planned;
    let layouts = || tables.iter().map(|table| table.layout()).collect();
    let compiler = match compiled {
        Compiled::Yes => Some(PredicateCompiler::new(condition, layouts())),
        Compiled::No => None,
    };
    let conjuncts = Conjuncts::of(condition, fragment, leading.map(|links| links.subquery));
    let mut planner = Planner {
        compiler,
        choices: Choices::new(condition, tables, &conjuncts, fragment, samples),
        conjuncts,
        steps: Vec::with_capacity(tables.len()),
        groups: Vec::new(),
    };
    let constant = planner.compile(&planner.conjuncts.of_none);
    let leading = leading.map(|links| {
        // What reads nothing of the query is settled once, and not for each value that leads.
        planner.place_subqueries(0);
        let first = planner.steps.len();
        planner.plan_block(usize::from(links.subquery) + 1);
        links.lead(&planner.steps, first, tables)
    });
    planner.plan_block(0);
    let is_never = constant.is_some() || planner.never_matches();
    let Planner { steps, groups, .. } = planner;
    finish(steps, groups, leading, is_never)
}

struct Planner<'a> {
    /// None if only the order and the ways are wanted.
    compiler: Option<PredicateCompiler<'a>>,
    choices: Choices<'a>,
    conjuncts: Conjuncts,
    steps: Vec<Step>,
    groups: Vec<Group>,
}

impl Planner<'_> {
    fn compile(&self, conjuncts: &[NodeId]) -> Option<Predicate> {
        self.compiler.as_ref()?.compile(conjuncts)
    }

    /// Appends the steps of a query, or of a subquery. As deep as subqueries stand in each other, it recurses.
    fn plan_block(&mut self, block: usize) {
        let first = self.steps.len();
        loop {
            // A subquery is looked at as soon as what it reads is there: it leaves fewer rows. One that reads nothing of the
            // query comes first of all.
            if block == 0 || self.steps.len() > first {
                self.place_subqueries(block);
            }
            match self.choices.next(block) {
                Some(relation) => self.place(block, relation),
                None => return,
            }
        }
    }

    fn place_subqueries(&mut self, block: usize) {
        while let Some(subquery) = self.conjuncts.next_subquery(block) {
            let first = self.steps.len();
            let matches = self.choices.matches;
            self.plan_block(usize::from(subquery) + 1);
            self.choices.matches = matches;
            let kind = self.conjuncts.kind(subquery);
            let after = self.conjuncts.complete_with_subquery(subquery, block);
            self.close_group(kind, first, &after);
        }
    }

    fn place(&mut self, block: usize, relation: usize) {
        let choice = self.choices.bind(relation);
        let mut own = std::mem::take(&mut self.conjuncts.own[relation]);
        let mut joined = self.conjuncts.complete_with(relation, block);
        let outer = self.choices.is_optional(relation);
        // The rows of `LEFT JOIN` are found by its `ON` alone; conditions are on what comes of it.
        let mut after = Vec::new();
        if outer {
            after.append(&mut own);
            after.append(&mut joined);
        }
        self.steps.push(Step {
            relation: relation as u16,
            access: choice.access,
            own: self.compile(&own),
            joined: self.compile(&joined),
            rows: choice.rows,
            looked_at: choice.looked_at,
            built: choice.built,
            opens: None,
            closes: Vec::new(),
            back: None,
            is_once: false,
            is_plain_end: false,
        });
        if outer {
            self.close_group(GroupKind::Outer, self.steps.len() - 1, &after);
        }
    }

    fn close_group(&mut self, kind: GroupKind, first: usize, after: &[NodeId]) {
        let last = self.steps.len() - 1;
        let group = self.groups.len();
        self.steps[first].opens = Some(group);
        self.steps[last].closes.push(group);
        if kind.is_once() {
            self.steps[first..]
                .iter_mut()
                .for_each(|step| step.is_once = true);
        }
        self.groups.push(Group {
            kind,
            first,
            last,
            after: self.compile(after),
        });
    }

    /// Is there a condition of the query itself that never holds?
    fn never_matches(&self) -> bool {
        let is_never = |predicate: &Option<Predicate>| {
            let predicate = predicate.as_ref();
            predicate.is_some_and(Predicate::is_never)
        };
        let mut own = self.steps.iter().filter(|step| !step.is_once);
        let of_outer = |group: &Group| group.kind == GroupKind::Outer;
        let mut outer = self.groups.iter().filter(|group| of_outer(group));
        own.any(|step| is_never(&step.own) || is_never(&step.joined))
            || outer.any(|group| !self.steps[group.first].is_once && is_never(&group.after))
    }
}

/// Says of each step where to go back to: to the one before it, but not into a group that is settled.
fn finish(
    mut steps: Vec<Step>,
    groups: Vec<Group>,
    leading: Option<Leading>,
    is_never: bool,
) -> Strategy {
    let back = |steps: &[Step], at: usize| {
        let mut before = at.checked_sub(1);
        while let Some(step) = before {
            let closed = steps[step].closes.iter().rev();
            let mut settled = closed.filter(|&&group| groups[group].kind.is_once());
            match settled.next() {
                Some(&group) => before = groups[group].first.checked_sub(1),
                None => break,
            }
        }
        before
    };
    for at in 0..steps.len() {
        steps[at].back = back(&steps, at);
    }
    let end = back(&steps, steps.len());
    if let Some(last) = steps.last_mut() {
        last.is_plain_end = last.joined.is_none() && last.closes.is_empty();
    }
    Strategy {
        end: end.expect("a query reads a relation that is in no group of subqueries"),
        steps,
        groups,
        leading,
        is_never,
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
