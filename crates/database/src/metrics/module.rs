//! Counters of the functions and tables of a module, from one version of it to the next.

use std::sync::Arc;

use lightcone_engine::{Datastore, TableCounters};
use lightcone_limits::DatabaseLimits;
use lightcone_schema::ModuleDef;
use lightcone_types::TableId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::functions::{FunctionCounters, FunctionKind, FunctionMetrics};

/// Of what has gone and had no series of its own.
const BEYOND: u32 = u32::MAX;

/// How many functions and tables of a module have series of their own: [`FunctionMetrics::rank`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesMax {
    pub functions: usize,
    pub tables: usize,
}

impl SeriesMax {
    pub fn of(limits: &DatabaseLimits) -> SeriesMax {
        SeriesMax {
            functions: limits.metrics_functions_max,
            tables: limits.metrics_tables_max,
        }
    }
}

/// A table of the module, or the table that holds the rows of a view.
#[derive(Clone, Debug)]
pub struct TableMetrics {
    pub id: TableId,
    /// The canonical name.
    pub name: Arc<str>,
    /// As [`FunctionMetrics::rank`].
    pub rank: u32,
    pub rows: u64,
    /// Memory of the pages that hold the rows, without indexes.
    pub bytes: u64,
    /// Rows that came since the database was opened. A row that was replaced came and went.
    pub inserted: u64,
    pub deleted: u64,
}

impl TableMetrics {
    /// Adds what another table has.
    pub fn add(&mut self, other: &TableMetrics) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.inserted += other.inserted;
        self.deleted += other.deleted;
    }
}

/// What functions and tables have counted.
#[derive(Clone, Debug, Default)]
pub struct ModuleMetrics {
    pub functions: Vec<FunctionMetrics>,
    pub tables: Vec<TableMetrics>,
    /// Of functions that went with an update, added up by kind. Their rank is 0 if they had series of their own, and as high as can be
    /// if they had not: a server that told of them in a sum goes on to do so, and no other begins to.
    pub left_functions: Vec<FunctionMetrics>,
    /// The same of tables, which have no rows any more.
    pub left_tables: Vec<TableMetrics>,
}

impl ModuleMetrics {
    pub(crate) fn add(&mut self, other: &ModuleMetrics) {
        self.functions.extend(other.functions.iter().cloned());
        self.tables.extend(other.tables.iter().cloned());
        self.left_functions
            .extend(other.left_functions.iter().cloned());
        self.left_tables.extend(other.left_tables.iter().cloned());
    }
}

/// A function of a module.
#[derive(Clone)]
pub(crate) struct CountedFunction {
    /// The canonical name.
    pub name: Arc<str>,
    rank: u32,
    pub counters: Arc<FunctionCounters>,
}

#[derive(Clone)]
struct NamedTable {
    id: TableId,
    name: Arc<str>,
    rank: u32,
    counters: Arc<TableCounters>,
}

impl NamedTable {
    fn read(&self) -> TableMetrics {
        TableMetrics {
            id: self.id,
            name: self.name.clone(),
            rank: self.rank,
            rows: self.counters.rows.get(),
            bytes: self.counters.bytes.get(),
            inserted: self.counters.inserted.get(),
            deleted: self.counters.deleted.get(),
        }
    }
}

/// A module's functions by kind, each by its position in the definition, and tables, with their counters.
#[derive(Default)]
pub(crate) struct ModuleCounters {
    functions: [Vec<CountedFunction>; FunctionKind::ALL.len()],
    tables: Vec<NamedTable>,
    left: Left,
}

/// What went with updates.
#[derive(Default)]
struct Left {
    functions: Vec<FunctionMetrics>,
    tables: Vec<TableMetrics>,
    /// With the last update: while that ends, they may still count.
    last_functions: Vec<(FunctionKind, CountedFunction)>,
    last_tables: Vec<NamedTable>,
}

impl Left {
    fn read(&self, series_max: SeriesMax) -> Left {
        let mut all = Left {
            functions: self.functions.clone(),
            tables: self.tables.clone(),
            ..Left::default()
        };
        let rank = |rank: u32, max: usize| match (rank as usize) < max {
            true => 0,
            false => BEYOND,
        };
        for (kind, named) in &self.last_functions {
            let rank = rank(named.rank, series_max.functions);
            let gone = named.counters.read(*kind, "".into(), rank);
            let mut sums = all.functions.iter_mut();
            match sums.find(|sum| (sum.kind, sum.rank) == (*kind, rank)) {
                Some(sum) => sum.add(&gone),
                None => all.functions.push(gone),
            }
        }
        for table in &self.last_tables {
            let gone = TableMetrics {
                rank: rank(table.rank, series_max.tables),
                name: "".into(),
                rows: 0,
                bytes: 0,
                ..table.read()
            };
            match all.tables.iter_mut().find(|sum| sum.rank == gone.rank) {
                Some(sum) => sum.add(&gone),
                None => all.tables.push(gone),
            }
        }
        all
    }
}

/// Gives the lowest ranks that are free.
struct Ranks {
    taken: FxHashSet<u32>,
    next: u32,
}

impl Ranks {
    fn beside(taken: impl Iterator<Item = u32>) -> Ranks {
        Ranks {
            taken: taken.collect(),
            next: 0,
        }
    }

    fn take(&mut self) -> u32 {
        while self.taken.contains(&self.next) {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }
}

impl ModuleCounters {
    /// Functions and tables that the module before had too go on counting, and keep their ranks.
    pub fn new(
        def: &ModuleDef,
        datastore: &Datastore,
        before: Option<&ModuleCounters>,
        series_max: SeriesMax,
    ) -> ModuleCounters {
        let nothing = ModuleCounters::default();
        let before = before.unwrap_or(&nothing);
        let names = FunctionKind::ALL.map(|kind| names(def, kind));
        let sets = names
            .each_ref()
            .map(|names| names.iter().copied().collect());
        let sets: [FxHashSet<&str>; 4] = sets;
        let old = before.functions.iter().enumerate();
        let (kept, gone): (Vec<_>, Vec<_>) = old
            .flat_map(|(kind, old)| old.iter().map(move |named| (kind, named)))
            .partition(|(kind, named)| sets[*kind].contains(&*named.name));
        let mut ranks = Ranks::beside(kept.iter().map(|(_, named)| named.rank));
        let functions = std::array::from_fn(|kind| {
            let kept = kept.iter().filter(|(of, _)| *of == kind);
            let kept: FxHashMap<&str, &CountedFunction> =
                kept.map(|(_, named)| (&*named.name, *named)).collect();
            let named = |name: &&str| match kept.get(name) {
                Some(named) => {
                    named.counters.pace.reset();
                    (*named).clone()
                }
                None => CountedFunction {
                    name: (*name).into(),
                    rank: ranks.take(),
                    counters: Arc::default(),
                },
            };
            names[kind].iter().map(named).collect()
        });
        let (tables, last_tables) = before.tables_of(def, datastore);
        let gone = gone.into_iter();
        let gone = gone.map(|(kind, named)| (FunctionKind::ALL[kind], named.clone()));
        ModuleCounters {
            functions,
            tables,
            left: Left {
                last_functions: gone.collect(),
                last_tables,
                ..before.left.read(series_max)
            },
        }
    }

    /// The tables of the next definition, and those of this one that are not among them.
    fn tables_of(
        &self,
        def: &ModuleDef,
        datastore: &Datastore,
    ) -> (Vec<NamedTable>, Vec<NamedTable>) {
        let names = def.tables.iter().map(|table| &table.name);
        let names = names.chain(def.views.iter().map(|view| &view.name));
        let found = names.filter_map(|name| {
            let id = datastore.table_id_from_name(name)?;
            Some((id, name, datastore.counters(id)?))
        });
        let found: Vec<_> = found.collect();
        let ids: FxHashSet<TableId> = found.iter().map(|(id, ..)| *id).collect();
        let (kept, gone): (Vec<_>, Vec<_>) = self
            .tables
            .iter()
            .partition(|table| ids.contains(&table.id));
        let mut ranks = Ranks::beside(kept.iter().map(|table| table.rank));
        let kept: FxHashMap<TableId, u32> = kept
            .into_iter()
            .map(|table| (table.id, table.rank))
            .collect();
        let tables = found.into_iter().map(|(id, name, counters)| NamedTable {
            id,
            name: name.as_str().into(),
            rank: kept.get(&id).copied().unwrap_or_else(|| ranks.take()),
            counters,
        });
        (tables.collect(), gone.into_iter().cloned().collect())
    }

    /// By the position in the definition.
    #[inline]
    pub fn function(&self, kind: FunctionKind, position: usize) -> &CountedFunction {
        &self.functions[kind as usize][position]
    }

    /// Of functions and tables, in the order of the definition.
    pub fn read(&self, series_max: SeriesMax) -> ModuleMetrics {
        let of = |kind: FunctionKind| {
            let named = self.functions[kind as usize].iter();
            named.map(move |named| {
                let counters = &named.counters;
                counters.read(kind, named.name.clone(), named.rank)
            })
        };
        let left = self.left.read(series_max);
        ModuleMetrics {
            functions: FunctionKind::ALL.into_iter().flat_map(of).collect(),
            tables: self.tables.iter().map(NamedTable::read).collect(),
            left_functions: left.functions,
            left_tables: left.tables,
        }
    }
}

fn names(def: &ModuleDef, kind: FunctionKind) -> Vec<&str> {
    fn of<T>(functions: &[T], name: impl Fn(&T) -> &String) -> Vec<&str> {
        functions.iter().map(|each| name(each).as_str()).collect()
    }
    match kind {
        FunctionKind::Reducer => of(&def.reducers, |f| &f.name),
        FunctionKind::Procedure => of(&def.procedures, |f| &f.name),
        FunctionKind::HttpHandler => of(&def.http_handlers, |f| &f.name),
        FunctionKind::View => of(&def.views, |f| &f.name),
    }
}
