//! What unit tests need.

use std::sync::{Arc, LazyLock};

use tokio::runtime::Runtime;

use crate::environment::Machine;

#[path = "../../live/tests/items/mod.rs"]
mod items;

pub(crate) use self::items::Items;

/// The machine, also for tests without a runtime.
pub fn machine() -> Arc<Machine> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
    Machine::new(RUNTIME.handle().clone())
}
