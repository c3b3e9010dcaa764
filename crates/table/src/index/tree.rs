//! An ordered set of keys with row ids that can be frozen: a B+ tree whose nodes are shared with its frozen copies.
//!
//! Freezing keeps the root and raises the tree's epoch. A node with an older epoch may belong to a frozen copy: the first
//! write to it looks at its reference count, copies the node if it must, and gives it the new epoch. A node is never newer than
//! the one above it, as it is only reached through that one; so a node of the tree's own epoch is the tree's alone.

use std::ops::Deref;
use std::sync::Arc;

use arrayvec::ArrayVec;

use super::reader::Key;
use crate::row_id::RowId;

/// The most entries of a leaf, and the most children of an inner node.
const NODE_MAX: usize = 32;
/// A node that is left with less is merged with a neighbour, if both together are at most `MERGED_MAX`.
const NODE_MIN: usize = NODE_MAX / 4;
const MERGED_MAX: usize = NODE_MAX * 3 / 4;

/// A key and the row that has it. Entries are ordered by both, so many rows may have one key.
pub(super) type Entry<K> = (K, RowId);

/// Entries in order. Keys lie together, so that a search reads as few cache lines as it can.
#[derive(Clone)]
struct Entries<K> {
    keys: ArrayVec<K, NODE_MAX>,
    rows: ArrayVec<RowId, NODE_MAX>,
}

impl<K> Default for Entries<K> {
    fn default() -> Entries<K> {
        Entries {
            keys: ArrayVec::new(),
            rows: ArrayVec::new(),
        }
    }
}

impl<K: Key> Entries<K> {
    fn of(entry: Entry<K>) -> Entries<K> {
        let mut entries = Entries::default();
        entries.insert(0, entry);
        entries
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn get(&self, at: usize) -> Option<Entry<K>> {
        Some((self.keys.get(at)?.clone(), self.rows[at]))
    }

    /// The number of entries that are less, or that are not greater if `or_equal`.
    #[inline]
    fn position(&self, (key, row): (&K, RowId), or_equal: bool) -> usize {
        let less = K::count_less(&self.keys, key);
        let behind = self.keys[less..].iter().zip(&self.rows[less..]);
        let equal = behind.take_while(|(other, other_row)| {
            *other == key && (**other_row < row || (or_equal && **other_row == row))
        });
        less + equal.count()
    }

    fn insert(&mut self, at: usize, (key, row): Entry<K>) {
        self.keys.insert(at, key);
        self.rows.insert(at, row);
    }

    fn remove(&mut self, at: usize) -> Entry<K> {
        (self.keys.remove(at), self.rows.remove(at))
    }

    /// Moves what lies from `at` on into a list of its own.
    fn split_off(&mut self, at: usize) -> Entries<K> {
        Entries {
            keys: split_off(&mut self.keys, at),
            rows: split_off(&mut self.rows, at),
        }
    }

    fn extend(&mut self, behind: &Entries<K>) {
        self.keys.extend(behind.keys.iter().cloned());
        self.rows.extend(behind.rows.iter().copied());
    }
}

/// Counts how often a tree was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeEpoch(u64);

#[derive(Clone)]
enum Node<K> {
    Leaf(Arc<Shared<Entries<K>>>),
    Inner(Arc<Shared<Inner<K>>>),
}

/// What a node holds, with an epoch, which tells whether a frozen copy may hold it too.
#[derive(Clone)]
struct Shared<T> {
    epoch: TreeEpoch,
    content: T,
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.content
    }
}

#[derive(Clone)]
struct Inner<K> {
    /// One less than children. All entries of the child before a key are less than it, none of the child behind it is.
    keys: Entries<K>,
    children: ArrayVec<Node<K>, NODE_MAX>,
}

/// Counters of the tree beside its nodes.
struct Account {
    epoch: TreeEpoch,
    leaves: usize,
    inners: usize,
    released_bytes: u64,
    /// The entry that is being added was there.
    is_known: bool,
}

impl Account {
    /// What is in a node, for writing, copied first if a frozen copy still holds it.
    #[inline]
    fn exclusive<'n, T: Clone>(&mut self, node: &'n mut Arc<Shared<T>>) -> &'n mut T {
        if node.epoch != self.epoch {
            self.make_exclusive(node);
        }
        debug_assert_eq!(Arc::strong_count(node), 1);
        // SAFETY: a node of the tree's own epoch was made or copied since the tree was last frozen, and reference counts are
        // raised by freezing (of the root) and by copying the node above, which is of another epoch then; so this `Arc` is the
        // only one, and it is borrowed.
        let node = unsafe { &mut *Arc::as_ptr(node).cast_mut() };
        &mut node.content
    }

    #[cold]
    fn make_exclusive<T: Clone>(&mut self, node: &mut Arc<Shared<T>>) {
        let bytes = size_of::<Shared<T>>() as u64;
        if Arc::get_mut(node).is_none() {
            self.released_bytes += bytes;
        }
        Arc::make_mut(node).epoch = self.epoch;
    }
}

/// The set.
pub(super) struct Tree<K> {
    root: Node<K>,
    len: usize,
    account: Account,
}

impl<K: Key> Default for Tree<K> {
    fn default() -> Tree<K> {
        let mut account = Account {
            epoch: TreeEpoch(0),
            leaves: 0,
            inners: 0,
            released_bytes: 0,
            is_known: false,
        };
        Tree {
            root: account.leaf(Entries::default()),
            len: 0,
            account,
        }
    }
}

impl Account {
    fn leaf<K>(&mut self, entries: Entries<K>) -> Node<K> {
        self.leaves += 1;
        Node::Leaf(self.shared(entries))
    }

    fn inner<K>(&mut self, keys: Entries<K>, children: ArrayVec<Node<K>, NODE_MAX>) -> Node<K> {
        self.inners += 1;
        Node::Inner(self.shared(Inner { keys, children }))
    }

    fn shared<T>(&self, content: T) -> Arc<Shared<T>> {
        let epoch = self.epoch;
        Arc::new(Shared { epoch, content })
    }
}

/// Moves what lies from `at` on into an array of its own.
fn split_off<T>(from: &mut ArrayVec<T, NODE_MAX>, at: usize) -> ArrayVec<T, NODE_MAX> {
    from.drain(at..).collect()
}

impl<K: Key> Inner<K> {
    /// The child that has the entry, if any has.
    #[inline]
    fn child_of(&self, (key, row): &Entry<K>) -> usize {
        self.keys.position((key, *row), true)
    }
}

impl<K: Key> Node<K> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    /// Adds an entry. If the node has to be divided, gives what comes behind it, and the first entry that belongs there.
    fn insert(&mut self, entry: Entry<K>, account: &mut Account) -> Option<(Entry<K>, Node<K>)> {
        match self {
            Node::Leaf(leaf) => account.exclusive(leaf).insert_entry(entry, account),
            Node::Inner(inner) => account.exclusive(inner).insert(entry, account),
        }
    }

    /// Removes an entry. False if it is not there.
    fn remove(&mut self, entry: &Entry<K>, account: &mut Account) -> bool {
        match self {
            Node::Leaf(leaf) => {
                let at = leaf.position((&entry.0, entry.1), false);
                if leaf.get(at).as_ref() != Some(entry) {
                    return false;
                }
                account.exclusive(leaf).remove(at);
                true
            }
            Node::Inner(inner) => {
                let at = inner.child_of(entry);
                let inner = account.exclusive(inner);
                let removed = inner.children[at].remove(entry, account);
                if inner.children[at].len() < NODE_MIN {
                    inner.tidy(at, account);
                }
                removed
            }
        }
    }

    /// Appends what is in the node behind, which begins at `key`.
    fn merge(&mut self, key: Entry<K>, behind: Node<K>, account: &mut Account) {
        match (self, behind) {
            (Node::Leaf(leaf), Node::Leaf(behind)) => {
                account.leaves -= 1;
                account.exclusive(leaf).extend(&behind);
            }
            (Node::Inner(inner), Node::Inner(behind)) => {
                account.inners -= 1;
                let inner = account.exclusive(inner);
                inner.keys.insert(inner.keys.len(), key);
                inner.keys.extend(&behind.keys);
                inner.children.extend(behind.children.iter().cloned());
            }
            _ => unreachable!("all leaves are equally deep"),
        }
    }

    /// Calls `visit` with all entries from `start` on, or with all, until it returns false. False if it did.
    fn walk(&self, start: Option<&Entry<K>>, visit: &mut impl FnMut(&K, RowId) -> bool) -> bool {
        match self {
            Node::Leaf(entries) => {
                let from = start.map_or(0, |(key, row)| entries.position((key, *row), false));
                let (keys, rows) = (&entries.keys[from..], &entries.rows[from..]);
                keys.iter().zip(rows).all(|(key, row)| visit(key, *row))
            }
            Node::Inner(inner) => {
                let from = start.map_or(0, |start| inner.child_of(start));
                let mut start = start;
                inner.children[from..]
                    .iter()
                    .all(|child| child.walk(start.take(), visit))
            }
        }
    }
}

impl<K: Key> Node<K> {
    /// Calls `visit` with all entries before `end`, or with all, the last one first, until it returns false. False if it did.
    fn walk_back(&self, end: Option<&Entry<K>>, visit: &mut impl FnMut(&K, RowId) -> bool) -> bool {
        match self {
            Node::Leaf(entries) => {
                let to = end.map_or(entries.len(), |(key, row)| {
                    entries.position((key, *row), false)
                });
                let (keys, rows) = (&entries.keys[..to], &entries.rows[..to]);
                let mut entries = keys.iter().zip(rows).rev();
                entries.all(|(key, row)| visit(key, *row))
            }
            Node::Inner(inner) => {
                let last = inner.children.len().saturating_sub(1);
                let to = end.map_or(last, |end| inner.child_of(end));
                let mut end = end;
                let mut children = inner.children[..=to].iter().rev();
                children.all(|child| child.walk_back(end.take(), visit))
            }
        }
    }
}

impl<K: Key> Entries<K> {
    /// As [`Node::insert`].
    fn insert_entry(
        &mut self,
        entry: Entry<K>,
        account: &mut Account,
    ) -> Option<(Entry<K>, Node<K>)> {
        let at = self.position((&entry.0, entry.1), false);
        account.is_known =
            self.rows.get(at) == Some(&entry.1) && self.keys.get(at) == Some(&entry.0);
        if account.is_known {
            return None;
        }
        if self.len() < NODE_MAX {
            self.insert(at, entry);
            return None;
        }
        // Keys that grow leave full leaves behind.
        let middle = if at == NODE_MAX { at } else { NODE_MAX / 2 };
        let mut behind = self.split_off(middle);
        match at < middle {
            true => self.insert(at, entry),
            false => behind.insert(at - middle, entry),
        }
        let first = behind
            .get(0)
            .expect("a half of the entries, or the new one");
        Some((first, account.leaf(behind)))
    }
}

impl<K: Key> Inner<K> {
    fn insert(&mut self, entry: Entry<K>, account: &mut Account) -> Option<(Entry<K>, Node<K>)> {
        let at = self.child_of(&entry);
        let (key, child) = self.children[at].insert(entry, account)?;
        if !self.children.is_full() {
            self.keys.insert(at, key);
            self.children.insert(at + 1, child);
            return None;
        }
        // The child at `middle` is the first of the new node, so the key before it goes up.
        let middle = match at + 1 == NODE_MAX {
            true => NODE_MAX - 1,
            false => NODE_MAX / 2,
        };
        let mut keys = self.keys.split_off(middle);
        let mut children = split_off(&mut self.children, middle);
        let up = self.keys.remove(middle - 1);
        match at < middle {
            true => {
                self.keys.insert(at, key);
                self.children.insert(at + 1, child);
            }
            false => {
                keys.insert(at - middle, key);
                children.insert(at - middle + 1, child);
            }
        }
        Some((up, account.inner(keys, children)))
    }

    /// Removes a child that is empty, or merges one that is small with a neighbour, if they fit together.
    fn tidy(&mut self, at: usize, account: &mut Account) {
        if self.children[at].len() == 0 {
            match self.children.remove(at) {
                Node::Leaf(_) => account.leaves -= 1,
                Node::Inner(_) => account.inners -= 1,
            }
            if self.keys.len() > 0 {
                self.keys.remove(at.saturating_sub(1));
            }
            return;
        }
        let fits = |left: usize| {
            let pair = self.children.get(left).zip(self.children.get(left + 1));
            pair.is_some_and(|(a, b)| a.len() + b.len() <= MERGED_MAX)
        };
        let left = match at.checked_sub(1) {
            Some(left) if fits(left) => left,
            _ if fits(at) => at,
            _ => return,
        };
        let behind = self.children.remove(left + 1);
        let key = self.keys.remove(left);
        self.children[left].merge(key, behind, account);
    }
}

impl<K: Key> Tree<K> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry, unless it is there.
    pub fn insert(&mut self, key: K, id: RowId) {
        let divided = self.root.insert((key, id), &mut self.account);
        self.len += usize::from(!self.account.is_known);
        let Some((key, behind)) = divided else {
            return;
        };
        let mut children = ArrayVec::new();
        // The root has a place of its own below the new one.
        let before = std::mem::replace(
            &mut self.root,
            Node::Leaf(self.account.shared(Entries::default())),
        );
        children.extend([before, behind]);
        self.root = self.account.inner(Entries::of(key), children);
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, key: K, id: RowId) {
        if !self.root.remove(&(key, id), &mut self.account) {
            return;
        }
        self.len -= 1;
        while let Node::Inner(inner) = &self.root {
            match inner.children.len() {
                0 => self.root = self.account.leaf(Entries::default()),
                1 => self.root = inner.children[0].clone(),
                _ => return,
            }
            self.account.inners -= 1;
        }
    }

    /// The first row with this key.
    #[inline]
    pub fn find(&self, key: K) -> Option<RowId> {
        let mut node = &self.root;
        // The next leaf, in case all entries of this one are less.
        let mut behind: Option<&Node<K>> = None;
        let leaf = loop {
            match node {
                Node::Leaf(leaf) => break leaf,
                Node::Inner(inner) => {
                    let at = K::count_less(&inner.keys.keys, &key);
                    node = &inner.children[at];
                    behind = inner.children.get(at + 1).or(behind);
                }
            }
        };
        let at = K::count_less(&leaf.keys, &key);
        let (leaf, at) = match at < leaf.len() {
            true => (&***leaf, at),
            false => (behind?.first_leaf(), 0),
        };
        let found = leaf.keys.get(at)?;
        (*found == key).then(|| leaf.rows[at])
    }

    /// Calls `visit` with all entries from `start` on, or with all, in order, until it returns false.
    pub fn walk(&self, start: Option<&Entry<K>>, mut visit: impl FnMut(&K, RowId) -> bool) {
        self.root.walk(start, &mut visit);
    }

    /// Calls `visit` with all entries before `end`, or with all, the last one first, until it returns false.
    pub fn walk_back(&self, end: Option<&Entry<K>>, mut visit: impl FnMut(&K, RowId) -> bool) {
        self.root.walk_back(end, &mut visit);
    }

    /// All entries as they are now; costs next to nothing.
    pub fn freeze(&mut self) -> Tree<K> {
        self.account.epoch.0 += 1;
        Tree {
            root: self.root.clone(),
            len: self.len,
            account: Account {
                released_bytes: 0,
                ..self.account
            },
        }
    }

    pub fn clear(&mut self) {
        let (epoch, released_bytes) = (self.account.epoch, self.account.released_bytes);
        let bytes = self.heap_bytes() as u64;
        *self = Tree::default();
        // A frozen copy may have all of them.
        self.account.released_bytes = released_bytes + bytes;
        self.account.epoch = TreeEpoch(epoch.0 + 1);
    }

    /// Bytes that frozen copies may hold alone, since they were copied or left here; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        self.account.released_bytes
    }

    /// Bytes of nodes; what keys have on the heap is not in it.
    pub fn heap_bytes(&self) -> usize {
        self.account.leaves * size_of::<Shared<Entries<K>>>()
            + self.account.inners * size_of::<Shared<Inner<K>>>()
    }
}

impl<K: Key> Node<K> {
    fn first_leaf(&self) -> &Entries<K> {
        let mut node = self;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = &inner.children[0],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Model = BTreeSet<Entry<u64>>;

    #[derive(Clone, Debug)]
    enum Op {
        /// First key, number of keys, and their distance.
        Insert(u64, u64, u64),
        Remove(u64, u64, u64),
        Freeze,
        Forget,
        Clear,
    }

    fn op() -> impl Strategy<Value = Op> {
        let many = || (0..3000_u64, 1..900_u64, 1..5_u64);
        prop_oneof![
            5 => many().prop_map(|(from, count, step)| Op::Insert(from, count, step)),
            5 => many().prop_map(|(from, count, step)| Op::Remove(from, count, step)),
            3 => Just(Op::Freeze),
            2 => Just(Op::Forget),
            1 => Just(Op::Clear),
        ]
    }

    /// Two rows have each key.
    fn entry(number: u64) -> Entry<u64> {
        (number / 2, RowId::from_number(number as u32 % 2))
    }

    fn numbers(from: u64, count: u64, step: u64) -> impl Iterator<Item = u64> {
        // Every other run goes backwards.
        (0..count).map(move |nth| match from % 2 {
            0 => from + nth * step,
            _ => from + (count - nth) * step,
        })
    }

    /// Order, separators, depth and sizes are as they must be.
    fn check_node(node: &Node<u64>, from: Option<&Entry<u64>>, to: Option<&Entry<u64>>) -> usize {
        match node {
            Node::Leaf(entries) => {
                let entries: Vec<_> = (0..).map_while(|at| entries.get(at)).collect();
                assert!(entries.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(from.is_none_or(|from| entries.iter().all(|entry| from <= entry)));
                assert!(to.is_none_or(|to| entries.iter().all(|entry| entry < to)));
                1
            }
            Node::Inner(inner) => {
                let (keys, children) = (&inner.keys, &inner.children);
                assert_eq!(keys.len() + 1, children.len());
                let depths = children.iter().enumerate().map(|(at, child)| {
                    assert!(child.len() > 0, "only a root is empty");
                    let before = at.checked_sub(1).and_then(|at| keys.get(at));
                    let behind = keys.get(at);
                    check_node(child, before.as_ref().or(from), behind.as_ref().or(to))
                });
                let depths: BTreeSet<usize> = depths.collect();
                assert_eq!(depths.len(), 1, "all leaves are equally deep");
                depths.first().expect("one depth") + 1
            }
        }
    }

    fn check(tree: &Tree<u64>, model: &Model) {
        check_node(&tree.root, None, None);
        assert_eq!(tree.len(), model.len());
        let mut found = Vec::new();
        tree.walk(None, |key, row| {
            found.push((*key, row));
            true
        });
        assert!(found.iter().eq(model.iter()));
        for key in (0..4000).step_by(7) {
            let first = model.range((key, RowId::MIN)..).next();
            let row = first.filter(|(found, _)| *found == key).map(|(_, id)| *id);
            assert_eq!(tree.find(key), row);
            let mut next = None;
            tree.walk(Some(&(key, RowId::MIN)), |key, row| {
                next = Some((*key, row));
                false
            });
            assert_eq!(next.as_ref(), first);
            let mut before = Vec::new();
            tree.walk_back(Some(&(key, RowId::MIN)), |key, row| {
                before.push((*key, row));
                before.len() < 40
            });
            let expected = model.range(..(key, RowId::MIN)).rev().take(40);
            assert!(before.iter().eq(expected));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_set_and_frozen_copies_stay(ops in prop::collection::vec(op(), 1..40)) {
            let (mut tree, mut model) = (Tree::default(), Model::new());
            let mut frozen: Vec<(Tree<u64>, Model)> = Vec::new();
            for op in ops {
                match op {
                    Op::Insert(from, count, step) => for number in numbers(from, count, step) {
                        let (key, id) = entry(number);
                        model.insert((key, id));
                        tree.insert(key, id);
                    },
                    Op::Remove(from, count, step) => for number in numbers(from, count, step) {
                        let (key, id) = entry(number);
                        model.remove(&(key, id));
                        tree.remove(key, id);
                    },
                    Op::Freeze => frozen.push((tree.freeze(), model.clone())),
                    Op::Forget => drop(frozen.pop()),
                    Op::Clear => {
                        tree.clear();
                        model.clear();
                    }
                }
                check(&tree, &model);
            }
            for (tree, model) in &frozen {
                check(tree, model);
            }
        }
    }

    #[test]
    fn growing_keys_leave_full_leaves_behind() {
        let mut tree = Tree::default();
        for key in 0..10_000_u64 {
            tree.insert(key, RowId::MIN);
        }
        assert_eq!(tree.account.leaves, 10_000_usize.div_ceil(NODE_MAX));
    }

    #[test]
    fn what_is_not_frozen_is_not_copied() {
        let mut tree = Tree::default();
        for key in 0..1000_u64 {
            tree.insert(key, RowId::MIN);
        }
        drop(tree.freeze());
        tree.insert(5000, RowId::MIN);
        assert_eq!(tree.released_bytes(), 0);
        let frozen = tree.freeze();
        tree.insert(5001, RowId::MIN);
        let one_path = tree.released_bytes();
        assert!(one_path > 0);
        tree.insert(5002, RowId::MIN);
        assert_eq!(tree.released_bytes(), one_path, "the path is copied once");
        assert_eq!(frozen.len(), 1001);
    }
}
