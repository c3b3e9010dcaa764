//! What live joins have in common: all that differ in the values of their parameters are one shape, and are kept up to date
//! together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
    /// Equal values of the join column have equal bytes.
    pub joins_bytewise: bool,
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

    /// What a changed row costs that is looked at for this shape.
    pub fn steps(&self, row_bytes: usize) -> usize {
        let predicates = self.sides.iter().map(|side| side.predicate.as_ref());
        let predicates = predicates.chain([self.residual.as_ref()]).flatten();
        LOOK_UP_STEPS + predicates.map(|p| p.steps(row_bytes)).sum::<usize>()
    }
}

/// Joins with equal keys are one shape.
#[derive(PartialEq, Eq, Hash)]
struct ShapeKey {
    tables: [TableId; 2],
    join_columns: [ColId; 2],
    returned: usize,
    parameters: Vec<(usize, ColId)>,
    /// The compiled predicates, written out: these differ if the predicates do.
    predicates: String,
}

/// The shapes of all live joins of one version of a module.
#[derive(Default)]
pub(crate) struct JoinShapes(Mutex<HashMap<ShapeKey, Weak<JoinShape>>>);

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
        let key = ShapeKey {
            tables: [0, 1].map(|side| join.sides[side].table.id),
            join_columns: [0, 1].map(|side| join.sides[side].join_column),
            returned: join.returned,
            predicates: format!(
                "{:?} {:?} {:?} {:?}",
                join.sides[0].predicate, join.sides[1].predicate, join.residual, join.on
            ),
            parameters,
        };
        let mut shapes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = shapes.get(&key).and_then(Weak::upgrade) {
            return (shape, value.into());
        }
        // Each is looked at as often as one is made, on average.
        if shapes.len() == shapes.capacity() {
            shapes.retain(|_, shape| shape.strong_count() > 0);
        }
        let shape = Arc::new(JoinShape::new(join, key.parameters.clone()));
        shapes.insert(key, Arc::downgrade(&shape));
        (shape, value.into())
    }
}

impl JoinShape {
    fn new(join: &LiveJoin, parameters: Vec<(usize, ColId)>) -> JoinShape {
        static NEXT: AtomicU32 = AtomicU32::new(FIRST_SHAPE_ID);
        let side = |side: usize| {
            let side = &join.sides[side];
            let types: Vec<AlgebraicType> =
                side.table.columns.iter().map(|c| c.ty.clone()).collect();
            let joined = side.table.column(side.join_column);
            Side {
                table: side.table.clone(),
                layout: RowLayout::new(&types),
                join_column: side.join_column,
                predicate: side.predicate.clone(),
                joins_bytewise: joined
                    .is_some_and(|c| !matches!(c.ty, AlgebraicType::F32 | AlgebraicType::F64)),
            }
        };
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(id >= FIRST_SHAPE_ID, "ids of shapes are never used up");
        JoinShape {
            id: TableId(id),
            sides: [side(0), side(1)],
            returned: join.returned,
            on: join.on.clone(),
            residual: join.residual.clone(),
            parameters,
        }
    }
}
