//! Areas, which are intervals or boxes, and which of them hold a point.
//!
//! A treap in an order of areas in which those near each other stand near each other. Every node knows what its branch encloses, so
//! branches that do not hold the point are left out. A point costs as many steps as there are answers, and the logarithm of how many
//! areas there are: in one dimension always, in several if the areas have similar sizes.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A part of a space.
pub(crate) trait Area: Clone {
    type Point: ?Sized;

    fn holds(&self, point: &Self::Point) -> bool;

    /// Grows until it encloses another one.
    fn enclose(&mut self, other: &Self);

    /// Equal areas alone are equal. The nearer two are in space, the nearer they should be in this order.
    fn order(&self, other: &Self) -> Ordering;
}

/// A box: the points from `low` to `high`, both included, in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent<const D: usize> {
    pub low: [u128; D],
    pub high: [u128; D],
}

impl<const D: usize> Extent<D> {
    /// All points.
    pub const ALL: Extent<D> = Extent {
        low: [0; D],
        high: [u128::MAX; D],
    };
}

impl<const D: usize> Area for Extent<D> {
    type Point = [u128; D];

    #[inline]
    fn holds(&self, point: &[u128; D]) -> bool {
        (0..D).all(|d| self.low[d] <= point[d] && point[d] <= self.high[d])
    }

    fn enclose(&mut self, other: &Self) {
        for d in 0..D {
            self.low[d] = self.low[d].min(other.low[d]);
            self.high[d] = self.high[d].max(other.high[d]);
        }
    }

    /// By the low corners along a Z-curve.
    fn order(&self, other: &Self) -> Ordering {
        compare_points(&self.low, &other.low).then_with(|| self.high.cmp(&other.high))
    }
}

/// A half-open interval of byte strings. Without an end, it holds all from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub start: Arc<[u8]>,
    pub end: Option<Arc<[u8]>>,
}

impl Area for Interval {
    type Point = [u8];

    fn holds(&self, point: &[u8]) -> bool {
        *self.start <= *point && self.end.as_ref().is_none_or(|end| *point < **end)
    }

    fn enclose(&mut self, other: &Self) {
        if other.start < self.start {
            self.start = other.start.clone();
        }
        if compare_ends(other, self) == Ordering::Greater {
            self.end = other.end.clone();
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let by_start = self.start.cmp(&other.start);
        by_start.then_with(|| compare_ends(self, other))
    }
}

/// An interval without an end ends last.
fn compare_ends(one: &Interval, other: &Interval) -> Ordering {
    match (&one.end, &other.end) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(one), Some(other)) => one.cmp(other),
    }
}

type NodeIndex = u32;
const NONE: NodeIndex = NodeIndex::MAX;

/// Areas with values. The same area with the same value may be there several times.
pub(crate) struct AreaTree<A, V> {
    nodes: Vec<Node<A, V>>,
    free: Vec<NodeIndex>,
    root: NodeIndex,
    random: u64,
}

struct Node<A, V> {
    area: A,
    value: V,
    priority: u64,
    left: NodeIndex,
    right: NodeIndex,
    /// What encloses the areas of this branch.
    hull: A,
}

/// The order of points along the Z-curve: the dimension in which the highest bit differs decides.
fn compare_points<const D: usize>(one: &[u128; D], other: &[u128; D]) -> Ordering {
    let (mut deciding, mut difference) = (0, 0);
    for d in 0..D {
        let here = one[d] ^ other[d];
        // Whether its highest bit is above that of the difference so far.
        if difference < here && difference < (difference ^ here) {
            (deciding, difference) = (d, here);
        }
    }
    one[deciding].cmp(&other[deciding])
}

impl<A: Area, V: Copy + Ord> Default for AreaTree<A, V> {
    fn default() -> Self {
        AreaTree {
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            // No client can guess it, so none can make the tree deep.
            random: RandomState::new().hash_one(0) | 1,
        }
    }
}

impl<A: Area, V: Copy + Ord> AreaTree<A, V> {
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    pub fn insert(&mut self, area: A, value: V) {
        let node = Node {
            hull: area.clone(),
            area,
            value,
            priority: self.next_random(),
            left: NONE,
            right: NONE,
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
        let (before, behind) = self.split(self.root, index);
        let before = self.merge(before, index);
        self.root = self.merge(before, behind);
    }

    /// Removes the area with this value once, if it is there.
    pub fn remove(&mut self, area: &A, value: V) {
        let mut path = Vec::new();
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            let next = match compare((area, &value), (&node.area, &node.value)) {
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
        let (left, right) = (self.nodes[at as usize].left, self.nodes[at as usize].right);
        let merged = self.merge(left, right);
        match path.last() {
            None => self.root = merged,
            Some(&parent) => {
                let parent = &mut self.nodes[parent as usize];
                match parent.left == at {
                    true => parent.left = merged,
                    false => parent.right = merged,
                }
            }
        }
        for &node in path.iter().rev() {
            self.update(node);
        }
        self.free.push(at);
    }

    /// Calls `visit` with the values of the areas that hold a point. Gives how many nodes were looked at.
    pub fn containing(&self, point: &A::Point, mut visit: impl FnMut(V)) -> usize {
        let mut looked_at = 0;
        // A branch is left for later at each level only, and the tree is not deep.
        let mut pending = Vec::with_capacity(64);
        let mut at = self.root;
        loop {
            if at == NONE {
                match pending.pop() {
                    Some(next) => at = next,
                    None => return looked_at,
                }
                continue;
            }
            looked_at += 1;
            let node = &self.nodes[at as usize];
            if !node.hull.holds(point) {
                at = NONE;
                continue;
            }
            if node.area.holds(point) {
                visit(node.value);
            }
            pending.push(node.right);
            at = node.left;
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
        compare((&a.area, &a.value), (&b.area, &b.value)) == Ordering::Less
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
        let mut hull = node.area.clone();
        for branch in [node.left, node.right] {
            if branch != NONE {
                hull.enclose(&self.nodes[branch as usize].hull);
            }
        }
        self.nodes[at as usize].hull = hull;
    }
}

/// The order of nodes.
fn compare<A: Area, V: Ord>(one: (&A, &V), other: (&A, &V)) -> Ordering {
    one.0.order(other.0).then_with(|| one.1.cmp(other.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent() -> impl Strategy<Value = Extent<3>> {
        let side = || prop_oneof![4 => (0_u128..8, 0_u128..8), 1 => Just((0, u128::MAX)), 1 => (0_u128..8).prop_map(|low| (low, u128::MAX))];
        (side(), side(), side()).prop_map(|(x, y, z)| Extent {
            low: [x.0, y.0, z.0],
            high: [x.1, y.1, z.1],
        })
    }

    fn interval() -> impl Strategy<Value = Interval> {
        let key = || prop::collection::vec(0_u8..4, 0..3);
        (key(), prop::option::of(key())).prop_map(|(start, end)| Interval {
            start: start.into(),
            end: end.map(Into::into),
        })
    }

    /// Areas that come and go in a tree and in a list, and whether both find the same.
    fn check<A: Area>(steps: Vec<(A, u32, bool)>, points: &[&A::Point]) {
        let mut tree = AreaTree::default();
        let mut list: Vec<(A, u32)> = Vec::new();
        for (area, value, is_removal) in steps {
            // Something that is there, if there is something.
            let known = list.get(value as usize * list.len() / 4).cloned();
            match known {
                Some((area, value)) if is_removal => {
                    tree.remove(&area, value);
                    let is_it = |other: &(A, u32)| {
                        compare((&other.0, &other.1), (&area, &value)) == Ordering::Equal
                    };
                    list.swap_remove(list.iter().position(is_it).expect("it is there"));
                }
                _ if is_removal => tree.remove(&area, value),
                _ => {
                    tree.insert(area.clone(), value);
                    list.push((area, value));
                }
            }
        }
        assert_eq!(tree.is_empty(), list.is_empty());
        for point in points {
            let mut found = Vec::new();
            tree.containing(point, |value| found.push(value));
            let holding = list.iter().filter(|(area, _)| area.holds(point));
            let mut expected: Vec<u32> = holding.map(|(_, value)| *value).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_list_finds(
            boxes in prop::collection::vec((extent(), 0_u32..4, any::<bool>()), 0..60),
            intervals in prop::collection::vec((interval(), 0_u32..4, any::<bool>()), 0..60),
            points in prop::collection::vec([0_u128..9, 0_u128..9, 0_u128..9], 1..10),
            keys in prop::collection::vec(prop::collection::vec(0_u8..4, 0..3), 1..10),
        ) {
            check(boxes, &points.iter().collect::<Vec<_>>());
            check(intervals, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_point_costs_what_it_concerns() {
        let mut looked_at = Vec::new();
        for side in [32_u128, 100, 316] {
            let mut map = AreaTree::default();
            for (x, y) in (0..side * side).map(|n| (n % side, n / side)) {
                let (low, high) = (
                    [x * 100, y * 100, 0],
                    [x * 100 + 99, y * 100 + 99, u128::MAX],
                );
                map.insert(Extent { low, high }, x);
            }
            let mut steps = 0;
            for n in 0..100 {
                let mut found = 0;
                let point = [n * 7919 % (side * 100), n * 104_729 % (side * 100), 5];
                steps += map.containing(&point, |_| found += 1);
                assert_eq!(found, 1);
            }
            looked_at.push(steps / 100);
        }
        // Of 1,000, of 10,000 and of 100,000.
        assert!(
            looked_at[2] < 3 * looked_at[0] && looked_at[2] < 200,
            "{looked_at:?}"
        );
    }

    #[test]
    fn a_removed_place_is_used_again() {
        let mut map = AreaTree::<Extent<3>, _>::default();
        for round in 0..1000_u32 {
            map.insert(Extent::ALL, round);
            map.remove(&Extent::ALL, round);
        }
        assert!(map.is_empty());
        assert_eq!(map.nodes.len(), 1);
    }
}
