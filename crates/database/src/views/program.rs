//! All instances at once: a new program, and tables that are not what they were.

use std::time::Duration;

use lightcone_engine::Datastore;

use super::host::Evaluation;
use super::runner::Runner;
use super::Views;
use crate::error::Refusal;

/// A new program's views are evaluated for so long for those who have looked lately and are not subscribed. The writer does that.
const UNUSED_CHECK_MAX: Duration = Duration::from_secs(1);

impl Views {
    /// A new program takes over, or another environment, in the open transaction: evaluates all instances that have subscribers, and those that
    /// were read lately.
    ///
    /// # Errors
    /// One of them fails that did not fail before. The caller rolls back, and calls [`rebuild`](Self::rebuild) with the old program.
    pub fn replace_program(&mut self, evaluation: &mut Evaluation<'_>) -> Result<(), Refusal> {
        let host = evaluation.host;
        self.runner = Runner::default();
        let is_used = |number: &u32| {
            let instance = self.instances[*number as usize].as_ref();
            instance.is_some_and(|instance| !instance.subscribers.is_empty())
        };
        let numbers = 0..self.instances.len() as u32;
        let (used, others): (Vec<u32>, Vec<u32>) = numbers.partition(is_used);
        for number in used {
            self.evaluate_in_program(evaluation, number)?;
        }
        let lately = self.unused_lately(host.instant());
        // Those that are not looked at any more are evaluated anew when they are read.
        for number in others {
            if self.instances[number as usize].is_some() {
                self.retire(evaluation.datastore, number);
            }
        }
        let started = host.instant();
        for (number, was_failing) in lately {
            if host.instant().saturating_duration_since(started) >= UNUSED_CHECK_MAX {
                break;
            }
            self.instance_mut(number).is_failing = was_failing;
            self.evaluate_in_program(evaluation, number)?;
        }
        Ok(())
    }

    /// # Errors
    /// The instance fails, and did not before.
    fn evaluate_in_program(
        &mut self,
        evaluation: &mut Evaluation<'_>,
        number: u32,
    ) -> Result<(), Refusal> {
        let was_failing = self.instance(number).is_failing;
        let failure = self.evaluate(evaluation, number);
        match failure {
            // Anyone may choose arguments that a view fails for: that must keep no publisher from an update.
            Some(reason) if !was_failing && self.instance(number).arguments.is_none() => {
                let name = evaluation.host.name(self.instance(number).key.table);
                Err(Refusal(format!("view `{name}` fails for a caller who is subscribed to it or has read it lately: {reason} [LC0331]")))
            }
            _ => Ok(()),
        }
    }

    /// Evaluates anew what is used, in the open transaction: the tables are not what they were.
    pub fn rebuild(&mut self, evaluation: &mut Evaluation<'_>) {
        self.runner = Runner::default();
        self.failures.resume_all();
        self.windows.clear(evaluation.datastore);
        for number in 0..self.instances.len() as u32 {
            match &self.instances[number as usize] {
                None => {}
                Some(instance) if instance.subscribers.is_empty() => {
                    self.retire(evaluation.datastore, number);
                }
                Some(_) => {
                    self.evaluate(evaluation, number);
                }
            }
        }
    }

    /// Holds all indexes for joins again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        self.joins.hold_all_indexes(datastore);
    }
}
