//! Half-open intervals of byte strings, and which of them hold a key: as many steps as there are answers, and the logarithm of
//! how many intervals there are for each.
//!
//! A treap by the intervals' starts. Every node knows the latest end below it, so whole branches that end too early are left out.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

type NodeIndex = u32;
const NONE: NodeIndex = NodeIndex::MAX;

/// Intervals with values. The same interval with the same value may be there several times.
pub(super) struct IntervalMap<V> {
    nodes: Vec<Node<V>>,
    free: Vec<NodeIndex>,
    root: NodeIndex,
    random: u64,
}

struct Node<V> {
    start: Box<[u8]>,
    /// Excluded; none is above every key.
    end: Option<Box<[u8]>>,
    value: V,
    priority: u64,
    left: NodeIndex,
    right: NodeIndex,
    /// The node with the latest end in this branch.
    latest: NodeIndex,
}

/// The order of ends: none is last.
fn compare_ends(a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(b),
    }
}

impl<V: Copy + Ord> Default for IntervalMap<V> {
    fn default() -> Self {
        IntervalMap {
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            // Nobody can guess it, so nobody can make the tree deep.
            random: RandomState::new().hash_one(0) | 1,
        }
    }
}

impl<V: Copy + Ord> IntervalMap<V> {
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    pub fn insert(&mut self, start: &[u8], end: Option<&[u8]>, value: V) {
        let priority = self.next_random();
        let node = Node {
            start: start.into(),
            end: end.map(Into::into),
            value,
            priority,
            left: NONE,
            right: NONE,
            latest: NONE,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeIndex
            }
        };
        self.nodes[index as usize].latest = index;
        let (before, behind) = self.split(self.root, index);
        let before = self.merge(before, index);
        self.root = self.merge(before, behind);
    }

    /// Removes the interval with this value once, if it is there.
    pub fn remove(&mut self, start: &[u8], end: Option<&[u8]>, value: V) {
        let mut path = Vec::new();
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            let order = (start.cmp(&node.start))
                .then_with(|| value.cmp(&node.value))
                .then_with(|| compare_ends(end, node.end.as_deref()));
            let next = match order {
                Ordering::Equal => break,
                Ordering::Less => node.left,
                Ordering::Greater => node.right,
            };
            path.push(at);
            at = next;
        }
        if at == NONE {
            return;
        }
        let node = &mut self.nodes[at as usize];
        let (left, right) = (node.left, node.right);
        (node.start, node.end) = Default::default();
        let merged = self.merge(left, right);
        match path.last() {
            None => self.root = merged,
            Some(&parent) => {
                let parent = &mut self.nodes[parent as usize];
                let place = match parent.left == at {
                    true => &mut parent.left,
                    false => &mut parent.right,
                };
                *place = merged;
            }
        }
        for &node in path.iter().rev() {
            self.update(node);
        }
        self.free.push(at);
    }

    /// Calls `visit` with the values of the intervals that hold `key`.
    pub fn containing(&self, key: &[u8], mut visit: impl FnMut(V)) {
        let mut pending = vec![self.root];
        while let Some(at) = pending.pop() {
            if at == NONE {
                continue;
            }
            let node = &self.nodes[at as usize];
            let latest = self.nodes[node.latest as usize].end.as_deref();
            if latest.is_some_and(|end| end <= key) {
                continue;
            }
            pending.push(node.left);
            if *node.start <= *key {
                if node.end.as_deref().is_none_or(|end| key < end) {
                    visit(node.value);
                }
                pending.push(node.right);
            }
        }
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Whether one node stands before another.
    fn is_before(&self, a: NodeIndex, b: NodeIndex) -> bool {
        let (a, b) = (&self.nodes[a as usize], &self.nodes[b as usize]);
        let order = (a.start.cmp(&b.start))
            .then_with(|| a.value.cmp(&b.value))
            .then_with(|| compare_ends(a.end.as_deref(), b.end.as_deref()));
        order == Ordering::Less
    }

    /// A branch as what stands before `at` and the rest.
    fn split(&mut self, branch: NodeIndex, at: NodeIndex) -> (NodeIndex, NodeIndex) {
        if branch == NONE {
            return (NONE, NONE);
        }
        if self.is_before(branch, at) {
            let (before, behind) = self.split(self.nodes[branch as usize].right, at);
            self.nodes[branch as usize].right = before;
            self.update(branch);
            (branch, behind)
        } else {
            let (before, behind) = self.split(self.nodes[branch as usize].left, at);
            self.nodes[branch as usize].left = behind;
            self.update(branch);
            (before, branch)
        }
    }

    /// Two branches as one; all of the first stands before the second.
    fn merge(&mut self, first: NodeIndex, second: NodeIndex) -> NodeIndex {
        if first == NONE || second == NONE {
            return if first == NONE { second } else { first };
        }
        let (a, b) = (first as usize, second as usize);
        if self.nodes[a].priority > self.nodes[b].priority {
            self.nodes[a].right = self.merge(self.nodes[a].right, second);
            self.update(first);
            first
        } else {
            self.nodes[b].left = self.merge(first, self.nodes[b].left);
            self.update(second);
            second
        }
    }

    fn update(&mut self, at: NodeIndex) {
        let node = &self.nodes[at as usize];
        let mut latest = at;
        for branch in [node.left, node.right] {
            if branch == NONE {
                continue;
            }
            let candidate = self.nodes[branch as usize].latest;
            let (a, b) = (
                &self.nodes[candidate as usize],
                &self.nodes[latest as usize],
            );
            if compare_ends(a.end.as_deref(), b.end.as_deref()) == Ordering::Greater {
                latest = candidate;
            }
        }
        self.nodes[at as usize].latest = latest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..4, 0..3)
    }

    proptest! {
        #[test]
        fn finds_what_a_list_finds(
            steps in prop::collection::vec((key(), prop::option::of(key()), 0_u32..4, any::<bool>()), 0..60),
            asked in prop::collection::vec(key(), 1..10),
        ) {
            let mut map = IntervalMap::default();
            let mut list: Vec<(Vec<u8>, Option<Vec<u8>>, u32)> = Vec::new();
            for (start, end, value, is_removal) in steps {
                let entry = (start, end, value);
                let (start, end) = (&entry.0, entry.1.as_deref());
                if is_removal {
                    map.remove(start, end, value);
                    if let Some(at) = list.iter().position(|other| *other == entry) {
                        list.swap_remove(at);
                    }
                } else {
                    map.insert(start, end, value);
                    list.push(entry);
                }
            }
            prop_assert_eq!(map.is_empty(), list.is_empty());
            for key in asked {
                let mut found = Vec::new();
                map.containing(&key, |value| found.push(value));
                let holds = |(start, end, _): &&(Vec<u8>, Option<Vec<u8>>, u32)| {
                    *start <= key && end.as_ref().is_none_or(|end| key < *end)
                };
                let mut expected: Vec<u32> = list.iter().filter(holds).map(|entry| entry.2).collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_removed_place_is_used_again() {
        let mut map = IntervalMap::default();
        for round in 0..1000_u32 {
            map.insert(&round.to_be_bytes(), None, round);
            map.remove(&round.to_be_bytes(), None, round);
        }
        assert!(map.is_empty());
        assert_eq!(map.nodes.len(), 1);
    }
}
