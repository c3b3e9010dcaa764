//! The variables of the environment: rows of `st_env`.

use std::collections::BTreeMap;

use lightcone_types::bsatn::{Decode, Encode};

use crate::datastore::Datastore;
use crate::error::Result;
use crate::system::ST_ENV_ID;

impl Datastore {
    /// All variables, by key.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let table = &self.state(ST_ENV_ID).expect("system tables exist").table;
        table.rows().for_each(|_, row| {
            variables.extend(<(String, String)>::from_slice(row).ok());
        });
        variables
    }

    /// The value of one.
    pub fn environment_variable(&self, key: &str) -> Option<String> {
        let row = self.catalog_row(ST_ENV_ID, &key.to_vec())?;
        let (_, value): (String, String) = Decode::from_slice(row).ok()?;
        Some(value)
    }

    /// Makes these the variables, in the open transaction. Rows that stay are not written.
    ///
    /// # Errors
    /// No transaction, or the change is over its size limit.
    pub fn set_environment(&mut self, variables: &BTreeMap<String, String>) -> Result<()> {
        let stored = self.environment();
        let is_gone = |(key, value): &(&String, &String)| variables.get(*key) != Some(*value);
        let gone: Vec<_> = stored.iter().filter(is_gone).collect();
        self.delete_all_by_eq(ST_ENV_ID, &Encode::to_vec(&gone))?;
        let is_new = |(key, value): &(&String, &String)| stored.get(*key) != Some(*value);
        for variable in variables.iter().filter(is_new) {
            self.insert(ST_ENV_ID, &variable.to_vec(), &mut Vec::new())?;
        }
        Ok(())
    }
}
