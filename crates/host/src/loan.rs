//! Lending an environment what a call may touch, while the call runs.

use crate::access::Access;
use crate::env::HostEnv;
use crate::lent::Lent;

/// Contains the environment of host calls, where `env` always finds the same one.
pub trait HoldsEnv {
    fn env(&mut self) -> &mut HostEnv;
}

/// Lends what a call may touch to the environment of `host` while `body` runs. The process ends if `host` has another environment
/// afterwards, as the loan would outlive what was lent.
#[inline]
pub fn lend<H: HoldsEnv, R>(host: &mut H, lent: Lent<'_>, body: impl FnOnce(&mut H) -> R) -> R {
    let mut loan = Loan {
        before: Access::NOTHING,
        host,
    };
    // SAFETY: the loan takes it out of the environment again, before what is lent ends.
    let access = unsafe { Access::to(lent, loan.address()) };
    loan.before = std::mem::replace(&mut loan.host.env().access, access);
    body(loan.host)
}

/// Takes back what was lent, also after a panic.
struct Loan<'h, H: HoldsEnv> {
    host: &'h mut H,
    /// What the environment had before: a call can run inside of another one (spec 03 §11.8).
    before: Access,
}

impl<H: HoldsEnv> Loan<'_, H> {
    #[inline]
    fn address(&self) -> usize {
        (&raw const *self).addr()
    }
}

impl<H: HoldsEnv> Drop for Loan<'_, H> {
    #[inline]
    fn drop(&mut self) {
        let lost = AbortOnDrop;
        let address = self.address();
        let access = &mut self.host.env().access;
        if access.is_of(address) {
            std::mem::swap(access, &mut self.before);
            std::mem::forget(lost);
        }
    }
}

/// A loan that is not found again would be used after its end.
struct AbortOnDrop;

impl Drop for AbortOnDrop {
    #[cold]
    fn drop(&mut self) {
        std::process::abort();
    }
}
