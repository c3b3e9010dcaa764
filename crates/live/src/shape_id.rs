//! The ids of shapes.

use lightcone_types::TableId;
use parking_lot::Mutex;

/// Ids from here on are those of shapes: tables never have so many.
const FIRST_SHAPE_ID: u32 = 1 << 31;

/// Ids of shapes that are gone, and the first that was never used.
static FREE_IDS: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), FIRST_SHAPE_ID));

/// The id of one shape. When that is gone, writer and fan-out have forgotten it: both hold it as long as it is used.
pub struct ShapeId(u32);

impl ShapeId {
    pub fn take() -> ShapeId {
        let mut free = FREE_IDS.lock();
        let (free, next) = &mut *free;
        ShapeId(free.pop().unwrap_or_else(|| {
            *next += 1;
            *next - 1
        }))
    }

    pub fn as_table(&self) -> TableId {
        TableId(self.0)
    }
}

impl Drop for ShapeId {
    fn drop(&mut self) {
        FREE_IDS.lock().0.push(self.0);
    }
}
