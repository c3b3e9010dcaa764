//! An instance of a module, and the one that takes its place after a trap.

use lightcone_host::{HostConfig, HostEnv, ModuleInstance};
use tokio::sync::oneshot;

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

    /// Has the spare instance take the place of one that has trapped.
    #[cold]
    pub fn replace(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        let loaded = &module.program.loaded;
        let spare = self.spare.take();
        let spare = spare.and_then(|spare| spare.blocking_recv().ok());
        let made = spare.map_or_else(|| loaded.instantiate(HostEnv::new(config.clone())), Ok);
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
        let (made, spare) = oneshot::channel();
        let loaded = loaded.clone();
        let make = move || {
            // Without one, the next trap makes it, and tells why it cannot.
            if let Ok(instance) = loaded.instantiate(HostEnv::new(config)) {
                // The database may have stopped, or have another program.
                let _ = made.send(instance);
            }
        };
        shared.environment().spawn_blocking(Box::new(make));
        self.spare = Some(spare);
    }
}
