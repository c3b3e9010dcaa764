//! All instances at once: a new program, and tables that are not what they were.

use lightcone_engine::Datastore;

use super::query::ViewQuery;
use super::runner::Runner;
use super::{ViewHost, ViewMessage, Views};

impl Views {
    /// A new program takes over, in the open transaction: evaluates all instances that somebody uses.
    ///
    /// # Errors
    /// One of them fails that did not fail before. The caller rolls back, and calls [`rebuild`](Self::rebuild) with the old program.
    pub fn replace_program(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        messages: &mut Vec<ViewMessage>,
    ) -> Result<(), String> {
        self.runner = Runner::default();
        for number in 0..self.instances.len() as u32 {
            let Some(instance) = &self.instances[number as usize] else {
                continue;
            };
            let was_failing = instance.is_failing;
            if instance.subscribers.is_empty() {
                self.retire(datastore, number);
                continue;
            }
            self.evaluate(host, datastore, number, messages);
            let instance = self.instance(number);
            if instance.is_failing && !was_failing {
                let name = host.name(instance.key.table);
                return Err(format!("the new program's view `{name}` fails for those who are subscribed to it; the module's log says why [LC0331]"));
            }
        }
        Ok(())
    }

    /// Evaluates anew what somebody uses, in the open transaction: the tables are not what they were.
    pub fn rebuild(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        messages: &mut Vec<ViewMessage>,
    ) {
        self.runner = Runner::default();
        self.failures.resume_all();
        for number in 0..self.instances.len() as u32 {
            match &self.instances[number as usize] {
                None => {}
                Some(instance) if instance.subscribers.is_empty() => {
                    self.retire(datastore, number);
                }
                Some(_) => self.evaluate(host, datastore, number, messages),
            }
        }
    }

    /// Holds all indexes for joins and windows again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        self.joins.hold_all_indexes(datastore);
        let instances = self.instances.iter().flatten();
        let queries = instances.filter_map(|instance| instance.query.as_ref());
        for (table, column) in queries.filter_map(ViewQuery::held_index) {
            datastore.hold_index(table, column);
        }
    }
}
