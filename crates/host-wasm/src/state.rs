//! The state of one instance: the host's side of it, its memory, and its remaining limits.

use lightcone_host::clock::{now, ticks};
use lightcone_host::{trap_of, AbiError, HostEnv, HostTrap, LimitKind, Reservation};
use wasmtime::{Caller, Memory, ResourceLimiter, Trap};

use crate::trap::end_call;

pub(crate) struct State {
    /// Ticks of computing that are left, for a call that may be suspended or ended from outside.
    pub(crate) ticks_left: u64,
    /// The tick at which the transaction of a call that may be suspended has to end, however long its host calls take.
    pub(crate) transaction_end_tick: u64,
    pub(crate) env: HostEnv,
    /// Set once the instance exists; a start function runs before.
    pub(crate) memory: Option<Memory>,
    pub(crate) limiter: Limiter,
}

impl State {
    pub(crate) fn new(env: HostEnv) -> State {
        State {
            ticks_left: 0,
            transaction_end_tick: 0,
            memory: None,
            limiter: Limiter::new(&env),
            env,
        }
    }

    /// At each tick of a computing guest that is watched: fails if the call has to end.
    pub(crate) fn tick(&mut self) -> wasmtime::Result<()> {
        if let Some(trap) = self.env.interrupted() {
            return Err(end_call(trap));
        }
        self.ticks_left = self.ticks_left.saturating_sub(1);
        match self.ticks_left {
            0 => Err(Trap::Interrupt.into()),
            _ => Ok(()),
        }
    }

    /// A procedure begins a transaction, which has its own time.
    pub(crate) fn begin_transaction(&mut self) {
        let ms_max = self.env.limits().procedure_transaction_ms_max;
        self.transaction_end_tick = now().saturating_add(ticks(ms_max));
    }
}

/// Runs `body` on the guest's memory and the host's state. Its error becomes an errno or a trap.
#[inline]
pub(crate) fn host_call(
    caller: &mut Caller<'_, State>,
    body: impl FnOnce(&mut [u8], &mut HostEnv) -> Result<u32, AbiError>,
) -> wasmtime::Result<u32> {
    let Some(memory) = caller.data().memory else {
        return Err(no_memory());
    };
    let (memory, state) = memory.data_and_store_mut(caller);
    match body(memory, &mut state.env) {
        Ok(value) => Ok(value),
        Err(AbiError::Errno(errno)) => Ok(errno.number().into()),
        Err(AbiError::Trap(trap)) => Err(end_call(trap)),
    }
}

#[cold]
fn no_memory() -> wasmtime::Error {
    end_call(HostTrap::Internal(
        "the start function may not call the host".into(),
    ))
}

/// Keeps memory and tables within their limits, and counts them.
pub(crate) struct Limiter {
    memory: Reservation,
    memory_bytes_max: usize,
    /// Why the memory did not grow.
    refused: Option<Refused>,
    /// Bytes of the last growth, in case the system refuses it.
    growing_bytes: usize,
    tables: Reservation,
    table_elements: usize,
    table_elements_max: usize,
}

struct Refused {
    /// The size that was refused.
    bytes: usize,
    limit: HostTrap,
}

/// A pointer.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

impl Limiter {
    fn new(env: &HostEnv) -> Limiter {
        let limits = env.limits();
        Limiter {
            memory: Reservation::none(&env.config().accounts.memory),
            memory_bytes_max: limits.memory_bytes_max,
            refused: None,
            growing_bytes: 0,
            tables: Reservation::none(env.account()),
            table_elements: 0,
            table_elements_max: limits.table_elements_max,
        }
    }

    /// Moves what the instance holds to the account of `env`.
    pub(crate) fn adopt(&mut self, env: &HostEnv) {
        let before = std::mem::replace(self, Limiter::new(env));
        self.memory.hold_anyway(before.memory.bytes());
        self.tables.hold_anyway(before.tables.bytes());
        self.table_elements = before.table_elements;
    }

    pub(crate) fn forget_refusal(&mut self) {
        self.refused = None;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growing = desired.saturating_sub(current);
        let bytes = self.memory.bytes().saturating_add(growing);
        self.growing_bytes = 0;
        let limit = match bytes > self.memory_bytes_max {
            true => Some(HostTrap::limit(LimitKind::Memory, self.memory_bytes_max)),
            false => self.memory.grow(growing).err().map(trap_of),
        };
        if let Some(limit) = limit {
            self.refused = Some(Refused { bytes, limit });
            return Ok(false);
        }
        self.growing_bytes = growing;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let refused = std::mem::take(&mut self.growing_bytes);
        self.memory.shrink(self.memory.bytes() - refused);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growing = desired.saturating_sub(current);
        let total = self.table_elements.saturating_add(growing);
        let bytes = growing.saturating_mul(TABLE_ELEMENT_BYTES);
        if total > self.table_elements_max || self.tables.grow(bytes).is_err() {
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        64
    }
}

/// Languages report a failed allocation in their own way or not at all; the limit explains it.
pub(crate) fn with_refused_memory(message: String, state: &State) -> String {
    match &state.limiter.refused {
        None => message,
        Some(Refused { bytes, limit }) => {
            format!("{limit} (it asked for {bytes}); then: {message}")
        }
    }
}
