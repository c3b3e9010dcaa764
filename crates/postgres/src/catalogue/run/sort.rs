//! Sorting by comparisons that cost work, any of which may end the question.

use std::cmp::Ordering;

use super::super::super::failure::Failure;

/// Sorts; what is equal stays in its order. Values of kinds that have no order between them end up anywhere.
pub(super) fn sorted<T>(
    mut items: Vec<T>,
    compare: &mut dyn FnMut(&T, &T) -> Result<Ordering, Failure>,
) -> Result<Vec<T>, Failure> {
    if items.len() < 2 {
        return Ok(items);
    }
    let count = items.len();
    let right = sorted(items.split_off(count / 2), compare)?;
    let left = sorted(items, compare)?;
    let mut merged = Vec::with_capacity(count);
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = match compare(a, b)? {
            Ordering::Greater => right.next(),
            Ordering::Less | Ordering::Equal => left.next(),
        };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_sort_of_the_standard_library(items in prop::collection::vec((0_i32..6, 0_i32..6), 0..60)) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let found = sorted(items, &mut |a, b| Ok(a.0.cmp(&b.0)));
            prop_assert_eq!(found, Ok(expected));
        }

        #[test]
        fn no_order_is_too_strange_for_it(items in prop::collection::vec(0..9, 0..60), orders in prop::collection::vec(-1..2, 1..9)) {
            let mut orders = orders.into_iter().cycle();
            let mut expected = items.clone();
            expected.sort_unstable();
            let mut found = sorted(items, &mut |_, _| Ok(orders.next().unwrap_or(0).cmp(&0))).expect("no comparison fails");
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_comparison_ends_it() {
        let mut left = 3;
        let ended = sorted(vec![3, 2, 1, 0, 5, 4], &mut |a, b| {
            left -= 1;
            match left {
                0 => Err(Failure::cancelled()),
                _ => Ok(a.cmp(b)),
            }
        });
        assert_eq!((ended, left), (Err(Failure::cancelled()), 0));
    }
}
