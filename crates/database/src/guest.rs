//! An instance of a module, and the one that takes its place after a trap.

use lightcone_host::{HostConfig, ModuleInstance};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::module::Module;
use crate::shared::Shared;

/// An instance, on the thread that it stays on.
pub(crate) struct Guest {
    pub instance: Box<dyn ModuleInstance>,
    /// Since its first trap another instance is always there, or being made on another thread: the load phase may take long.
    spare: Option<oneshot::Receiver<Box<dyn ModuleInstance>>>,
}

impl Guest {
    pub fn new(instance: Box<dyn ModuleInstance>) -> Guest {
        Guest {
            instance,
            spare: None,
        }
    }

    /// Lets go of what an instance that has nothing to do does not need.
    pub fn rest(&mut self) {
        self.instance.rest();
        self.spare = None;
    }

    /// Has the spare instance take the place of one that has trapped.
    #[cold]
    pub fn replace(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        let program = &module.program;
        // One that is still being made is not waited for: its thread may be busy with the work of other databases.
        let made = match self.spare.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Ok(instance)) => {
                self.spare = None;
                Ok(instance)
            }
            Some(Err(TryRecvError::Empty)) => program.instantiate(config.clone()),
            None | Some(Err(TryRecvError::Closed)) => {
                self.spare = None;
                program.instantiate(config.clone())
            }
        };
        match made {
            Ok(instance) => {
                self.instance = instance;
                self.instance.prepare();
            }
            // The poisoned instance refuses calls; the next trap of a call tries again.
            Err(error) => {
                tracing::error!(database = %shared.options.identity, %error, "the module cannot be instantiated again");
                return;
            }
        }
        if self.spare.is_some() {
            return;
        }
        let (made, spare) = oneshot::channel();
        let program = program.clone();
        let make = move || {
            // Without one, the next trap makes it, and tells why it cannot.
            if let Ok(instance) = program.instantiate(config) {
                // The database may have stopped, or have another program.
                let _ = made.send(instance);
            }
        };
        shared.environment().spawn_blocking(Box::new(make));
        self.spare = Some(spare);
    }
}
