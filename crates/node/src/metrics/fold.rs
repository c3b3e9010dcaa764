//! Functions and tables beyond those with series of their own are added up.

use lightcone_database::{FunctionMetrics, ModuleMetrics, TableMetrics};

/// The name of the series that adds up functions, tables or databases beyond those with series of their own. No function, table or
/// database is called so.
pub(super) const OTHER: &str = "(other)";

/// Above all others: what is added up stays so.
const FOLDED: u32 = u32::MAX;

/// Leaves the functions of so many ranks, and adds the others up by kind, with those that have gone.
pub(super) fn fold_functions(module: &mut ModuleMetrics, functions_max: usize) {
    let has_series = |of: &FunctionMetrics| (of.rank as usize) < functions_max;
    let (mut alone, rest): (Vec<_>, Vec<_>) = module.functions.drain(..).partition(has_series);
    let left = module.left_functions.drain(..).filter(|of| !has_series(of));
    let own = alone.len();
    for function in rest.into_iter().chain(left) {
        let mut folded = alone[own..].iter_mut();
        match folded.find(|other| other.kind == function.kind) {
            Some(other) => other.add(&function),
            None => alone.push(FunctionMetrics {
                name: OTHER.into(),
                rank: FOLDED,
                ..function
            }),
        }
    }
    module.functions = alone;
}

/// The same of tables.
pub(super) fn fold_tables(module: &mut ModuleMetrics, tables_max: usize) {
    let has_series = |of: &TableMetrics| (of.rank as usize) < tables_max;
    let (mut alone, rest): (Vec<_>, Vec<_>) = module.tables.drain(..).partition(has_series);
    let left = module.left_tables.drain(..).filter(|of| !has_series(of));
    let folded = rest.into_iter().chain(left).reduce(|mut other, table| {
        other.add(&table);
        other
    });
    alone.extend(folded.map(|table| TableMetrics {
        name: OTHER.into(),
        rank: FOLDED,
        ..table
    }));
    module.tables = alone;
}

#[cfg(test)]
mod tests {
    use lightcone_database::FunctionKind;

    use super::*;

    fn function(kind: FunctionKind, name: &str, rank: u32, recorded: u64) -> FunctionMetrics {
        let mut times = lightcone_database::HistogramSnapshot::default();
        times.buckets[0] = 1;
        FunctionMetrics {
            kind,
            name: name.into(),
            rank,
            sender_errors: 0,
            traps: 0,
            timeouts: 0,
            refused: 0,
            recorded,
            times,
        }
    }

    #[test]
    fn what_is_beyond_the_bound_is_added_up() {
        use FunctionKind::{Reducer, View};
        let mut module = ModuleMetrics {
            functions: vec![
                function(Reducer, "b", 2, 2),
                function(Reducer, "a", 0, 1),
                function(Reducer, "c", 1, 4),
                function(View, "d", 3, 8),
            ],
            // They went with an update: the first had a series, the other was added up.
            left_functions: vec![
                function(Reducer, "", 0, 16),
                function(Reducer, "", FOLDED, 32),
            ],
            ..ModuleMetrics::default()
        };
        let all = module.clone();
        let shown = |module: &ModuleMetrics| -> Vec<(FunctionKind, String, u64, u64)> {
            let shown = module.functions.iter();
            shown
                .map(|of| (of.kind, of.name.to_string(), of.recorded, of.calls()))
                .collect()
        };
        fold_functions(&mut module, 1);
        let expected = [
            (Reducer, "a".to_owned(), 1, 1),
            (Reducer, OTHER.to_owned(), 38, 3),
            (View, OTHER.to_owned(), 8, 1),
        ];
        assert_eq!(shown(&module), expected);
        // Once more changes nothing.
        fold_functions(&mut module, 1);
        assert_eq!(shown(&module), expected);
        fold_functions(&mut module, 0);
        assert_eq!(module.functions.len(), 2);
        // Where no function has a series, all that have gone are in the sum.
        let mut module = all;
        fold_functions(&mut module, 0);
        assert_eq!(shown(&module)[0], (Reducer, OTHER.to_owned(), 55, 5));
    }
}
