//! An instance of a module, and the one that takes its place after a trap.

use lightcone_host::{HostConfig, HostError, ModuleInstance};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::module::Module;
use crate::shared::Shared;

type Made = Result<Box<dyn ModuleInstance>, HostError>;

/// An instance, on the thread that it stays on.
pub(crate) struct Guest {
    pub instance: Box<dyn ModuleInstance>,
    /// It has trapped, and refuses calls.
    is_down: bool,
    /// Since its first trap another instance is always there, or being made on another thread: the load phase may take long.
    spare: Option<oneshot::Receiver<Made>>,
}

impl Guest {
    pub fn new(instance: Box<dyn ModuleInstance>) -> Guest {
        Guest {
            instance,
            is_down: false,
            spare: None,
        }
    }

    /// Lets go of what an instance that has nothing to do does not need.
    pub fn rest(&mut self) {
        self.instance.rest();
        self.spare = None;
    }

    /// The instance has trapped: the spare one takes its place, now or when it is made.
    #[cold]
    pub fn replace(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        self.is_down = true;
        match self.spare {
            Some(_) => self.take_spare(shared, module, config),
            None => self.make_spare(shared, module, config),
        }
    }

    /// The other instance that is being made, if nothing takes calls before it is there.
    pub fn awaited(&mut self) -> Option<&mut oneshot::Receiver<Made>> {
        self.spare.as_mut().filter(|_| self.is_down)
    }

    /// Puts the instance that is awaited into its place, if it is there.
    #[cold]
    pub fn take_spare(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        let Some(spare) = self.awaited() else { return };
        let made = match spare.try_recv() {
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Closed) => Err(HostError::Engine("its thread failed".to_owned())),
            Ok(made) => made,
        };
        self.spare = None;
        self.put(shared, made);
        if !self.is_down {
            self.make_spare(shared, module, config);
        }
    }

    /// Before a call, which does not wait: an instance is made here, if there is none that takes calls.
    #[inline]
    pub fn make_ready(
        &mut self,
        shared: &Shared,
        module: &Module,
        config: impl FnOnce() -> HostConfig,
    ) {
        if self.is_down {
            self.make_here(shared, module, config());
        }
    }

    #[cold]
    fn make_here(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        self.take_spare(shared, module, config.clone());
        if self.is_down {
            self.put(shared, module.program.instantiate(config));
        }
    }

    /// Of one that was not made the poisoned instance refuses calls, and the next one tries again.
    fn put(&mut self, shared: &Shared, made: Made) {
        match made {
            Ok(instance) => {
                self.instance = instance;
                self.instance.prepare();
                self.is_down = false;
            }
            Err(error) => {
                tracing::error!(database = %shared.options.identity, %error, "the module cannot be instantiated again");
            }
        }
    }

    fn make_spare(&mut self, shared: &Shared, module: &Module, config: HostConfig) {
        let (made, spare) = oneshot::channel();
        let program = module.program.clone();
        // The database may have stopped, or have another program.
        let make = move || drop(made.send(program.instantiate(config)));
        // A thread of its own: those for such work may be busy with that of other databases.
        let environment = shared.environment();
        let spawned = environment.spawn_thread("load", shared.stack_bytes(), Box::new(make));
        // Without a thread the next call makes it.
        self.spare = spawned.is_ok().then_some(spare);
    }
}
