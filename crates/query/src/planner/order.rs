//! The order of relations: next comes the one that has the fewest rows for what is known by then.

use lightcone_table::TableView;

use super::access::Choices;
use super::conjuncts::Conjuncts;
use super::links::Links;
use super::samples::Samples;
use super::strategy::{Group, GroupKind, Leading, Step, Strategy};
use crate::condition::{Condition, NodeId};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::Fragment;

/// What is planned, for one caller.
#[derive(Clone, Copy)]
pub(crate) struct PlanInput<'p> {
    pub fragment: &'p Fragment,
    /// Of the fragment, with the caller's values.
    pub condition: &'p Condition,
    /// Those of its relations, in their order.
    pub tables: &'p [&'p TableView],
    /// So many matches are enough, if not all of them are needed.
    pub matches_wanted: Option<u64>,
}

/// Plans a fragment that begins with a subquery, or with none. Conditions need not be compiled to compare plans, and compiling long
/// ones takes most of planning.
pub(super) fn plan_from(
    planned: PlanInput<'_>,
    samples: &mut Samples,
    leading: Option<&Links>,
    is_compiled: bool,
) -> Strategy {
    let (fragment, condition, tables) = (planned.fragment, planned.condition, planned.tables);
    let layouts = || tables.iter().map(|table| table.layout()).collect();
    let compiler = is_compiled.then(|| PredicateCompiler::new(condition, layouts()));
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
