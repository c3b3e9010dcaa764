//! Boxes in a few dimensions, and which of them hold a point. An interval is a box in one dimension.
//!
//! A treap in the order of the boxes' low corners along a Z-curve, so that what is near each other in space is near each other in the
//! tree. Every node knows what its branch encloses, so branches that do not hold the point are left out. Boxes of similar sizes cost
//! as many steps as there are answers, and the logarithm of how many boxes there are; in one dimension any ranges do.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

pub(crate) type Point<const D: usize> = [u128; D];

/// The points from `low` to `high`, both included, in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent<const D: usize> {
    pub low: Point<D>,
    pub high: Point<D>,
}

type NodeIndex = u32;
const NONE: NodeIndex = NodeIndex::MAX;

/// Boxes with values. The same box with the same value may be there several times.
pub(crate) struct BoxMap<V, const D: usize> {
    nodes: Vec<Node<V, D>>,
    free: Vec<NodeIndex>,
    root: NodeIndex,
    random: u64,
}

struct Node<V, const D: usize> {
    extent: Extent<D>,
    value: V,
    priority: u64,
    left: NodeIndex,
    right: NodeIndex,
    /// What the boxes of this branch are in.
    hull: Extent<D>,
}

impl<const D: usize> Extent<D> {
    /// All points.
    pub const ALL: Extent<D> = Extent {
        low: [0; D],
        high: [u128::MAX; D],
    };

    #[inline]
    fn holds(&self, point: &Point<D>) -> bool {
        (0..D).all(|d| self.low[d] <= point[d] && point[d] <= self.high[d])
    }

    fn join(&mut self, other: &Extent<D>) {
        for d in 0..D {
            self.low[d] = self.low[d].min(other.low[d]);
            self.high[d] = self.high[d].max(other.high[d]);
        }
    }
}

/// The order of points along the Z-curve: the dimension in which the highest bit differs decides.
fn compare_points<const D: usize>(one: &Point<D>, other: &Point<D>) -> Ordering {
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

impl<V: Copy + Ord, const D: usize> Default for BoxMap<V, D> {
    fn default() -> Self {
        BoxMap {
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            // Nobody can guess it, so nobody can make the tree deep.
            random: RandomState::new().hash_one(0) | 1,
        }
    }
}

impl<V: Copy + Ord, const D: usize> BoxMap<V, D> {
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    pub fn insert(&mut self, extent: Extent<D>, value: V) {
        let node = Node {
            extent,
            value,
            priority: self.next_random(),
            left: NONE,
            right: NONE,
            hull: extent,
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

    /// Removes the box with this value once, if it is there.
    pub fn remove(&mut self, extent: &Extent<D>, value: V) {
        let mut path = Vec::new();
        let mut at = self.root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            let next = match compare((extent, &value), (&node.extent, &node.value)) {
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

    /// Calls `visit` with the values of the boxes that hold a point. Gives how many nodes were looked at.
    pub fn containing(&self, point: &Point<D>, mut visit: impl FnMut(V)) -> usize {
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
            if node.extent.holds(point) {
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
        compare((&a.extent, &a.value), (&b.extent, &b.value)) == Ordering::Less
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
        let mut hull = node.extent;
        for branch in [node.left, node.right] {
            if branch != NONE {
                hull.join(&self.nodes[branch as usize].hull);
            }
        }
        self.nodes[at as usize].hull = hull;
    }
}

/// The order of nodes.
fn compare<V: Ord, const D: usize>(one: (&Extent<D>, &V), other: (&Extent<D>, &V)) -> Ordering {
    compare_points(&one.0.low, &other.0.low)
        .then_with(|| one.0.high.cmp(&other.0.high))
        .then_with(|| one.1.cmp(other.1))
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

    proptest! {
        #[test]
        fn finds_what_a_list_finds(
            steps in prop::collection::vec((extent(), 0_u32..4, any::<bool>()), 0..60),
            asked in prop::collection::vec((0_u128..9, 0_u128..9, 0_u128..9), 1..10),
        ) {
            let mut map = BoxMap::default();
            let mut list: Vec<(Extent<3>, u32)> = Vec::new();
            for (extent, value, is_removal) in steps {
                // Something that is there, if there is something.
                let known = list.get(value as usize * list.len() / 4).copied();
                match known {
                    Some((extent, value)) if is_removal => {
                        map.remove(&extent, value);
                        let at = list.iter().position(|other| *other == (extent, value));
                        list.swap_remove(at.expect("it is there"));
                    }
                    _ if is_removal => map.remove(&extent, value),
                    _ => {
                        map.insert(extent, value);
                        list.push((extent, value));
                    }
                }
            }
            prop_assert_eq!(map.is_empty(), list.is_empty());
            for (x, y, z) in asked {
                let point = [x, y, z];
                let mut found = Vec::new();
                map.containing(&point, |value| found.push(value));
                let mut expected: Vec<u32> =
                    list.iter().filter(|(extent, _)| extent.holds(&point)).map(|(_, value)| *value).collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_point_costs_what_it_concerns() {
        let mut looked_at = Vec::new();
        for side in [32_u128, 100, 316] {
            let mut map = BoxMap::default();
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
        let mut map = BoxMap::<_, 3>::default();
        for round in 0..1000_u32 {
            map.insert(Extent::ALL, round);
            map.remove(&Extent::ALL, round);
        }
        assert!(map.is_empty());
        assert_eq!(map.nodes.len(), 1);
    }
}
