//! An environment of host calls without a module.

use std::sync::Arc;

use lightcone_host::{lend, HoldsEnv, HostConfig, HostEnv, HostLimits, Lent, NullConsole};
use lightcone_types::Identity;

pub struct Host(HostEnv);

impl HoldsEnv for Host {
    fn env(&mut self) -> &mut HostEnv {
        &mut self.0
    }
}

impl Host {
    #[allow(dead_code, reason = "not every test does")]
    pub fn new(limits: HostLimits) -> Host {
        Host::of(HostConfig::new(
            Identity::ZERO,
            Arc::new(NullConsole),
            limits,
        ))
    }

    #[allow(dead_code, reason = "not every test does")]
    pub fn of(config: HostConfig) -> Host {
        Host(HostEnv::new(config))
    }

    /// Makes host calls as a module would that is called with `lent`.
    pub fn call<R>(&mut self, lent: Lent<'_>, body: impl FnOnce(&mut HostEnv) -> R) -> R {
        lend(self, lent, |host| {
            host.0.begin_call(&"test".into(), &[]).expect("no bound");
            let result = body(&mut host.0);
            host.0.end_call();
            result
        })
    }

    /// Makes host calls with what is lent already.
    #[allow(dead_code, reason = "not every test does")]
    pub fn call_again<R>(&mut self, body: impl FnOnce(&mut HostEnv) -> R) -> R {
        body(&mut self.0)
    }
}
