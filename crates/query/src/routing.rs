//! By what rows the rows of a live query are told from those of others: values that single columns must have, and ranges that they
//! must be in. Fan-out finds the queries that a changed row concerns by them.

use std::collections::HashSet;

use lightcone_table::key::ordered_bits_64;
use lightcone_table::RowLayout;
use lightcone_types::{with_integer, ColId};

use crate::condition::{Condition, Constant, Node, NodeId};
use crate::lexer::Comparison;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::scalar::Scalar;
use crate::select_plan::SelectPlan;

/// Combinations of values by which one query is found at most. With more, the longer lists of values are checked row by row.
const KEYS_MAX: usize = 64;

/// What a place takes where a query is found, about.
const KEY_BYTES: usize = 160;

/// See [`SelectPlan::routing`].
#[derive(Clone, Debug)]
pub struct Routing {
    /// Columns that must have one of these values, which are in BSATN; ascending, each column once, as each value of one. All
    /// combinations together are no more than 64.
    pub equal: Vec<(ColId, Vec<Box<[u8]>>)>,
    /// Columns that must be in a range; ascending, each once.
    pub between: Vec<ColumnRange>,
    /// What is left to check of rows that have such values and are in the ranges.
    pub residual: Option<Predicate>,
}

/// A range of a column's values, as numbers in their order. What is outside is not in the query's range; what is inside may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRange {
    pub column: ColId,
    pub order: ColumnOrder,
    pub low: u128,
    pub high: u128,
}

/// Gives the values of a column numbers in their order. Different values may have one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrder(Scalar);

impl ColumnOrder {
    /// The number of a value in BSATN. 0 if it is too short for one.
    #[inline]
    pub fn number(self, value: &[u8]) -> u128 {
        self.0.number(value).unwrap_or(0)
    }
}

impl Routing {
    /// Bytes of memory, with those of the places where the query is found.
    pub fn memory_bytes(&self) -> usize {
        let of_values = |(_, values): &(ColId, Vec<Box<[u8]>>)| {
            let bytes = values.iter().map(|value| size_of_val(value) + value.len());
            bytes.sum::<usize>()
        };
        let keys: usize = self.equal.iter().map(|(_, values)| values.len()).product();
        let key_bytes = KEY_BYTES + self.equal.iter().map(of_values).sum::<usize>();
        let residual = self.residual.as_ref().map_or(0, Predicate::memory_bytes);
        size_of::<Routing>()
            + self.equal.iter().map(of_values).sum::<usize>()
            + size_of_val(&self.between[..])
            + keys * key_bytes
            + residual
    }
}

impl SelectPlan {
    /// What single columns of a row must be for it to match.
    pub fn routing(&self) -> Routing {
        let condition = self.condition();
        let mut routing = Routing {
            equal: Vec::new(),
            between: Vec::new(),
            residual: None,
        };
        let mut handled = HashSet::new();
        let mut lists = Vec::new();
        for (position, id) in condition.conjuncts.iter().enumerate() {
            if let Some((column, values)) = values_of(condition, *id) {
                lists.push((position, column, values));
            } else {
                add_range(condition, *id, &mut routing.between);
            }
        }
        // Single values first, as they add no combinations.
        lists.sort_by_key(|(_, _, values)| values.len());
        let mut keys = 1;
        for (position, column, values) in lists {
            let is_new = routing.equal.iter().all(|(other, _)| *other != column);
            if is_new && keys * values.len() <= KEYS_MAX {
                keys *= values.len();
                routing.equal.push((column, values));
                handled.insert(position);
            }
        }
        routing.equal.sort_by_key(|(column, _)| *column);
        let is_found = |range: &ColumnRange| routing.equal.iter().any(|(c, _)| *c == range.column);
        routing.between.retain(|range| !is_found(range));
        routing.between.sort_by_key(|range| range.column);
        let conjuncts = condition.conjuncts.iter().enumerate();
        let rest = conjuncts.filter(|(position, _)| !handled.contains(position));
        let rest: Vec<NodeId> = rest.map(|(_, id)| *id).collect();
        let layout = RowLayout::of(&self.table.columns);
        routing.residual = PredicateCompiler::new(condition, vec![&layout]).compile(&rest);
        routing
    }
}

/// The values of which a column must have one, if that is what a conjunct says.
fn values_of(condition: &Condition, conjunct: NodeId) -> Option<(ColId, Vec<Box<[u8]>>)> {
    let (mut pending, mut values) = (vec![conjunct], Vec::<Box<[u8]>>::new());
    let mut of = None;
    while let Some(id) = pending.pop() {
        let node = &condition.nodes[id as usize];
        match (node, node.equal_value()) {
            (Node::Or(left, right), _) => pending.extend([*right, *left]),
            (_, Some((column, Constant::Value(value))))
                if of.is_none_or(|of| of == column.column) =>
            {
                of = Some(column.column);
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            _ => return None,
        }
        if values.len() > KEYS_MAX {
            return None;
        }
    }
    of.map(|column| (column, values))
}

/// Narrows the range of a column that a conjunct compares with a constant.
fn add_range(condition: &Condition, conjunct: NodeId, ranges: &mut Vec<ColumnRange>) {
    let Node::ColumnConstant(column, test, Constant::Value(value)) =
        &condition.nodes[conjunct as usize]
    else {
        return;
    };
    let Some(number) = test.scalar.number(value) else {
        return;
    };
    let (low, high) = match test.comparison {
        Comparison::Less | Comparison::LessOrEqual => (0, number),
        Comparison::Greater | Comparison::GreaterOrEqual => (number, u128::MAX),
        Comparison::Equal => (number, number),
        Comparison::NotEqual => return,
    };
    let column = column.column;
    match ranges.iter_mut().find(|range| range.column == column) {
        Some(range) => {
            range.low = range.low.max(low);
            range.high = range.high.min(high);
        }
        None => ranges.push(ColumnRange {
            column,
            order: ColumnOrder(test.scalar),
            low,
            high,
        }),
    }
}

impl Scalar {
    /// The number of a value in BSATN: never less for a value that is not less. `None` if the bytes are too short.
    fn number(self, bytes: &[u8]) -> Option<u128> {
        const SIGN: u128 = 1 << 127;
        // Little endian: the last bytes are the greatest part.
        let greatest = |of: usize| -> Option<u128> {
            let (mut part, count) = ([0; 16], of.min(16));
            part[16 - count..].copy_from_slice(bytes.get(of - count..of)?);
            Some(u128::from_le_bytes(part))
        };
        Some(match self {
            Scalar::Integer(integer) => {
                let number = with_integer!(integer, N => greatest(size_of::<N>())?);
                number ^ if integer.is_signed() { SIGN } else { 0 }
            }
            Scalar::F32 | Scalar::F64 => ordered_bits_64(self.float(bytes)?).into(),
            Scalar::Bytes => {
                let content = crate::scalar::content(bytes)?;
                let mut first = [0; 16];
                let count = content.len().min(16);
                first[..count].copy_from_slice(&content[..count]);
                u128::from_be_bytes(first)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use lightcone_types::IntegerType;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_in_the_order_of_the_values(one in prop::collection::vec(any::<u8>(), 32), other in prop::collection::vec(any::<u8>(), 32), share in 0_usize..33) {
            let mut other = other;
            other[..share].copy_from_slice(&one[..share]);
            let integers = IntegerType::ALL.iter().map(|integer| Scalar::Integer(*integer));
            for scalar in integers.chain([Scalar::F32, Scalar::F64]) {
                let numbers = scalar.number(&one).cmp(&scalar.number(&other));
                let values = scalar.compare(&one, &other).expect("long enough");
                prop_assert!(numbers == values || numbers == Ordering::Equal, "{scalar:?}");
            }
            let text = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
            let (one, other) = (text(&one[..share]), text(&other));
            let numbers = Scalar::Bytes.number(&one).cmp(&Scalar::Bytes.number(&other));
            let values = Scalar::Bytes.compare(&one, &other).expect("long enough");
            prop_assert!(numbers == values || numbers == Ordering::Equal);
        }
    }
}
