//! A database whose tables are taken from one definition to another.

use std::ops::{Deref, DerefMut};

use lightcone_engine::{Datastore, MigrationError, MigrationWork};
use lightcone_schema::{plan, ModuleDef, Step};
use lightcone_types::TableId;

use crate::definitions::{definition, row_of, Tables};
use crate::history::History;

pub const NO_LIMIT: u64 = u64::MAX;

/// A database with the records of all its transactions, and the tables that it should have.
pub struct World {
    history: History,
    pub tables: Tables,
}

impl Deref for World {
    type Target = History;

    fn deref(&self) -> &History {
        &self.history
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut History {
        &mut self.history
    }
}

impl World {
    pub fn new(tables: &Tables) -> World {
        World {
            history: History::new(&definition(tables)),
            tables: tables.clone(),
        }
    }

    /// From the log, which begins anew.
    pub fn opened_again(&self) -> World {
        World {
            history: History::of(self.replayed()),
            tables: self.tables.clone(),
        }
    }

    pub fn id(&self, table: &str) -> TableId {
        crate::common::table_id(&self.datastore, table)
    }

    /// One transaction: rows come, and some go.
    pub fn write(&mut self, writes: &[(u8, u32, bool)]) {
        self.datastore.begin();
        let names: Vec<String> = self.tables.keys().cloned().collect();
        for (table, seed, is_put) in writes {
            let name = &names[usize::from(*table) % names.len()];
            let table = &self.tables[name];
            let id = self.id(name);
            let row = row_of(table, *seed);
            if *is_put || table.is_event {
                // A key that is taken.
                let _ = self.datastore.insert(id, &row, &mut Vec::new());
            } else {
                let mut list = 1_u32.to_le_bytes().to_vec();
                list.extend(&row);
                self.datastore.delete_all_by_eq(id, &list).expect("rows");
            }
        }
        self.commit();
    }

    /// Takes the steps to other tables, or so many of them, in an open transaction.
    pub fn take_steps(&mut self, new: &Tables, count: usize) -> Result<usize, MigrationError> {
        let (old, new) = (definition(&self.tables), definition(new));
        let plan = plan(&old, &new).unwrap_or_else(|refused| panic!("{refused}"));
        take(
            &mut self.history.datastore,
            &old,
            &new,
            &plan.steps[..count.min(plan.steps.len())],
        )
    }

    pub fn migrate(&mut self, new: &Tables) -> Result<(), MigrationError> {
        self.datastore.begin();
        match self.take_steps(new, usize::MAX) {
            Ok(_) => {
                self.commit();
                self.tables = new.clone();
                Ok(())
            }
            Err(error) => {
                self.datastore.rollback();
                Err(error)
            }
        }
    }
}

/// Takes these steps, after what must hold before the first one.
pub fn take(
    datastore: &mut Datastore,
    old: &ModuleDef,
    new: &ModuleDef,
    steps: &[Step],
) -> Result<usize, MigrationError> {
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(NO_LIMIT, &mut may_go_on);
    datastore.check_tables(old)?;
    for step in steps {
        datastore.precheck(step, new, &mut work)?;
    }
    for step in steps {
        datastore.migrate(step, new, &mut work)?;
    }
    Ok(steps.len())
}
