//! What live joins have in common: all that differ in the values of their parameters are one shape, and are kept up to date
//! together.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use lightcone_query::{LiveJoin, Predicate, Tuple};
use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, TableId};

/// Ids from here on are those of shapes: tables never have so many.
const FIRST_SHAPE_ID: u32 = 1 << 31;
/// Steps of a shape for each changed row, before those of its predicates: looking the row's partners up.
const LOOK_UP_STEPS: usize = 32;

/// A join of two relations, but for the values of its parameters.
pub(crate) struct JoinShape {
    /// Stands in the place of a table: changes of the join's rows are those of this "table".
    pub id: TableId,
    pub sides: [Side; 2],
    /// Which side's rows come out.
    pub returned: usize,
    on: Predicate,
    residual: Option<Predicate>,
    /// Side and column of each parameter, in the order of the values in keys.
    pub parameters: Vec<(usize, ColId)>,
}

/// One of the two relations.
pub(crate) struct Side {
    pub table: Arc<TableSchema>,
    pub layout: RowLayout,
    pub join_column: ColId,
    predicate: Option<Predicate>,
}

impl Side {
    /// Whether a row may be part of a pair.
    pub fn admits(&self, row: &[u8]) -> bool {
        let predicate = self.predicate.as_ref();
        predicate.is_none_or(|predicate| predicate.matches(&self.layout, row))
    }

    /// The value that is joined on.
    pub fn join_value<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        self.layout.column(row, usize::from(self.join_column.0))
    }
}

/// A row of each side.
struct Pair<'p> {
    sides: &'p [Side; 2],
    rows: [&'p [u8]; 2],
}

impl Tuple for Pair<'_> {
    fn row(&self, relation: u16) -> Option<(&RowLayout, &[u8])> {
        let side = self.sides.get(usize::from(relation))?;
        Some((&side.layout, self.rows[usize::from(relation)]))
    }
}

impl JoinShape {
    /// Whether two rows with one join value are a match.
    pub fn admits_pair(&self, rows: [&[u8]; 2]) -> bool {
        let sides = &self.sides;
        let residual = self.residual.as_ref();
        residual.is_none_or(|residual| residual.matches_tuple(&Pair { sides, rows }))
    }

    /// Whether two rows have one join value.
    pub fn joins(&self, rows: [&[u8]; 2]) -> bool {
        let sides = &self.sides;
        self.on.matches_tuple(&Pair { sides, rows })
    }

    /// Writes what the parameters are for a pair. Without one of the rows, false if one of them is a value of its.
    pub fn write_key(&self, rows: [Option<&[u8]>; 2], key: &mut Vec<u8>) -> bool {
        key.clear();
        self.parameters.iter().all(|&(side, column)| {
            let value = rows[side].map(|row| {
                let layout = &self.sides[side].layout;
                layout.column(row, usize::from(column.0))
            });
            key.extend_from_slice(value.unwrap_or_default());
            value.is_some()
        })
    }

    pub fn returned_table(&self) -> &Arc<TableSchema> {
        &self.sides[self.returned].table
    }

    /// Whether a row of this side matters to the result only by its join value and its parameters, if it is admitted.
    pub fn only_joins(&self, side: usize) -> bool {
        side != self.returned && self.residual.is_none()
    }

    /// What a row of a side is to the join, if that [`only_joins`](Self::only_joins).
    pub fn signature(&self, side: usize, row: &[u8]) -> Vec<u8> {
        let of_side = self.parameters.iter().filter(|(of, _)| *of == side);
        let columns = of_side.map(|(_, column)| *column);
        let columns = columns.chain([self.sides[side].join_column]);
        let layout = &self.sides[side].layout;
        columns
            .flat_map(|column| layout.column(row, usize::from(column.0)).iter().copied())
            .collect()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let predicates = self.sides.iter().map(|side| side.predicate.as_ref());
        let predicates = predicates.chain([self.residual.as_ref(), Some(&self.on)]);
        let predicates = predicates.flatten().map(Predicate::memory_bytes);
        size_of::<JoinShape>()
            + self.parameters.capacity() * size_of::<(usize, ColId)>()
            + predicates.sum::<usize>()
    }

    /// What a changed row costs that is looked at for this shape.
    pub fn steps(&self, row_bytes: usize) -> usize {
        let predicates = self.sides.iter().map(|side| side.predicate.as_ref());
        let predicates = predicates.chain([self.residual.as_ref()]).flatten();
        LOOK_UP_STEPS + predicates.map(|p| p.steps(row_bytes)).sum::<usize>()
    }
}

/// The shapes of all live joins of one version of a module.
#[derive(Default)]
pub(crate) struct JoinShapes(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    /// By a hash of all that makes a shape, with a secret: nobody finds two with one hash.
    shapes: HashMap<u128, Weak<JoinShape>>,
    /// Those that are gone are removed when there are so many.
    sweep_at: usize,
}

/// A hash of a join without the values of its parameters.
fn hash_of(join: &LiveJoin, parameters: &[(usize, ColId)]) -> u128 {
    static SECRETS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    // Compiled predicates are written out: the texts differ if the predicates do.
    let predicates = format!(
        "{:?} {:?} {:?} {:?}",
        join.sides[0].predicate, join.sides[1].predicate, join.residual, join.on
    );
    let side = |side: usize| (join.sides[side].table.id, join.sides[side].join_column);
    let content = (side(0), side(1), join.returned, parameters, predicates);
    let half = |number: usize| u128::from(SECRETS[number].hash_one(&content));
    half(0) << 64 | half(1)
}

impl JoinShapes {
    /// The shape of a join, and the key that its parameters have.
    pub fn shape_of(&self, join: &LiveJoin) -> (Arc<JoinShape>, Box<[u8]>) {
        let of_side = |side: usize| join.sides[side].parameters.iter().map(move |p| (side, p));
        let parameters = of_side(0).chain(of_side(1));
        let value: Vec<u8> = parameters
            .clone()
            .flat_map(|(_, (_, value))| value.iter().copied())
            .collect();
        let parameters: Vec<_> = parameters
            .map(|(side, (column, _))| (side, *column))
            .collect();
        let hash = hash_of(join, &parameters);
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Registry { shapes, sweep_at } = &mut *registry;
        if let Some(shape) = shapes.get(&hash).and_then(Weak::upgrade) {
            return (shape, value.into());
        }
        if shapes.len() >= *sweep_at {
            shapes.retain(|_, shape| shape.strong_count() > 0);
            *sweep_at = 2 * shapes.len() + 64;
        }
        let shape = Arc::new(JoinShape::new(join, parameters));
        shapes.insert(hash, Arc::downgrade(&shape));
        (shape, value.into())
    }
}

/// Ids of shapes that are gone, and the first that was never used.
static FREE_IDS: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), FIRST_SHAPE_ID));

fn take_id() -> TableId {
    let mut free = FREE_IDS.lock().unwrap_or_else(PoisonError::into_inner);
    let (free, next) = &mut *free;
    TableId(free.pop().unwrap_or_else(|| {
        *next += 1;
        *next - 1
    }))
}

impl Drop for JoinShape {
    /// Writer and fan-out have forgotten it: both hold it as long as somebody is subscribed.
    fn drop(&mut self) {
        let mut free = FREE_IDS.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.push(self.id.0);
    }
}

impl JoinShape {
    fn new(join: &LiveJoin, parameters: Vec<(usize, ColId)>) -> JoinShape {
        let side = |side: usize| {
            let side = &join.sides[side];
            let types: Vec<AlgebraicType> =
                side.table.columns.iter().map(|c| c.ty.clone()).collect();
            Side {
                table: side.table.clone(),
                layout: RowLayout::new(&types),
                join_column: side.join_column,
                predicate: side.predicate.clone(),
            }
        };
        JoinShape {
            id: take_id(),
            sides: [side(0), side(1)],
            returned: join.returned,
            on: join.on.clone(),
            residual: join.residual.clone(),
            parameters,
        }
    }
}
