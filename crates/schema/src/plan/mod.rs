//! Plans from one definition to another (02 §14): the steps, or the reasons why there are none.
//!
//! Objects are matched by canonical name, namespace included, columns by canonical name. Functions never count: a module whose
//! reducers, procedures or handlers changed can replace the old one as it is.

mod bounded;
mod compatible;
mod planner;
mod refused;
mod set_aside;
mod step;
mod tables;
mod text;
mod token;
mod views;

use self::planner::Planner;
use crate::def::ModuleDef;

pub use compatible::{upgradable, Incompatible, Layout, Mismatch};
pub use refused::{Refusal, Refused};
pub use step::{MigrationPlan, Step, StepKind};
pub use text::PlanStyle;
pub use token::migration_token;

/// The plan from `old` to `new`, or all reasons why there is none.
pub fn plan(old: &ModuleDef, new: &ModuleDef) -> Result<MigrationPlan, Refused> {
    let mut planner = Planner::new(old, new);
    planner.find_set_aside();
    planner.tables();
    planner.views();
    planner.row_level_security();
    planner.finish()
}
