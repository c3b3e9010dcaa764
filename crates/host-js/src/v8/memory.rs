//! Limits on memory: the heap's, and that of array buffers, which lie outside of the heap.
//!
//! Isolates that have a memory together, as those of a database's procedures do, begin with a low limit of their heaps. V8 asks when
//! a heap is at its limit, which is raised by what can be had of that memory. What lies in the young generation is not counted.

use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use lightcone_host::{HostTrap, LimitKind, SharedMemory};

/// Guards the heap of an isolate.
pub(crate) struct MemoryGuard {
    /// The call was ended because the heap is full.
    exceeded: AtomicBool,
    /// The limit was raised, though the heap is not full.
    raised: AtomicBool,
    /// The heap has got more of what several have, in this call.
    grown: AtomicBool,
    /// It still has more than it began with.
    large: AtomicBool,
    isolate: ::v8::IsolateHandle,
    heap_bytes_max: usize,
    /// What it had when it rested last.
    rested_bytes: AtomicUsize,
    /// What the heap has of the memory of several, if there is such.
    share: Option<HeapShare>,
    buffers: Arc<BufferBudget>,
}

impl MemoryGuard {
    /// Guards the isolate's heap. The result must live as long as the isolate.
    pub(crate) fn install(
        isolate: &mut ::v8::Isolate,
        heap_bytes_max: usize,
        share: Option<HeapShare>,
        buffers: Arc<BufferBudget>,
    ) -> Box<MemoryGuard> {
        let guard = Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            grown: AtomicBool::new(false),
            large: AtomicBool::new(false),
            rested_bytes: AtomicUsize::new(0),
            isolate: isolate.thread_safe_handle(),
            heap_bytes_max,
            share,
            buffers,
        });
        guard.watch(isolate);
        if guard.share.is_some() {
            guard.lower_limit(isolate);
        }
        guard
    }

    /// A guard that guards nothing.
    pub(crate) fn none(isolate: &::v8::Isolate) -> Box<MemoryGuard> {
        Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            grown: AtomicBool::new(false),
            large: AtomicBool::new(false),
            rested_bytes: AtomicUsize::new(0),
            isolate: isolate.thread_safe_handle(),
            heap_bytes_max: 0,
            share: None,
            buffers: BufferBudget::new(0, None),
        })
    }

    fn watch(&self, isolate: &mut ::v8::Isolate) {
        let data = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        isolate.add_near_heap_limit_callback(near_heap_limit, data);
    }

    /// The heap was full. The isolate should not be used any more.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// The heap is full because others have too much of what they have together.
    pub(crate) fn share_trap(&self) -> Option<HostTrap> {
        let share = self.share.as_ref()?;
        share
            .refused
            .load(Ordering::Relaxed)
            .then(|| limit_of(&share.memory))
    }

    /// Takes back what was granted for a failed allocation of an array buffer, and gives back what the heap does not use any
    /// more. Between calls.
    #[inline]
    pub(crate) fn settle(&self, isolate: &mut ::v8::Isolate) {
        let flags = [&self.raised, &self.grown, &self.large];
        if flags.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            self.settle_raised(isolate);
        }
    }

    #[cold]
    fn settle_raised(&self, isolate: &mut ::v8::Isolate) {
        self.raised.store(false, Ordering::Relaxed);
        let grown = self.grown.swap(false, Ordering::Relaxed);
        if let Some(share) = &self.share {
            // What the call has left behind would be kept for as long as the isolate lives, which nobody ends while it is idle.
            // Once for a call that has grown: this takes a while.
            if grown && share.taken_bytes.load(Ordering::Relaxed) >= COLLECTED_BYTES_MIN {
                isolate.low_memory_notification();
            }
            // V8 keeps a quarter more than what is used, at least.
            let used = isolate.get_heap_statistics().used_heap_size();
            share.shrink(used + used / 4 + SLACK_BYTES);
            let is_large = share.taken_bytes.load(Ordering::Relaxed) > HEAP_STEP_BYTES;
            self.large.store(is_large, Ordering::Relaxed);
        }
        self.lower_limit(isolate);
    }

    /// Collects garbage if much has come since this was done last. Between calls, when none has come for a while: V8 does so when a
    /// program needs more, and of itself never.
    pub(crate) fn rest(&self, isolate: &mut ::v8::Isolate) {
        let rested = self.rested_bytes.load(Ordering::Relaxed);
        if held_bytes(isolate) < rested.saturating_add(REST_BYTES_MIN) {
            return;
        }
        isolate.low_memory_notification();
        self.rested_bytes
            .store(held_bytes(isolate), Ordering::Relaxed);
    }

    /// Sets the limit of the heap to what it may have now, or as close to that as V8 can.
    fn lower_limit(&self, isolate: &mut ::v8::Isolate) {
        let bytes = match &self.share {
            Some(share) => share.taken_bytes.load(Ordering::Relaxed),
            None => self.heap_bytes_max,
        };
        isolate.remove_near_heap_limit_callback(near_heap_limit, bytes);
        self.watch(isolate);
    }
}

/// Memory of the machine that an isolate has.
pub(super) fn held_bytes(isolate: &mut ::v8::Isolate) -> usize {
    let statistics = isolate.get_heap_statistics();
    statistics.total_physical_size() + statistics.external_memory()
}

/// An isolate that rests collects garbage if it has so much more than the last time.
const REST_BYTES_MIN: usize = 32 << 20;
/// What the heap of an isolate has at first of the memory of several, and with what its limit grows at least.
const HEAP_STEP_BYTES: usize = 32 << 20;
/// From so much on garbage is collected before what is used is measured.
const COLLECTED_BYTES_MIN: usize = 4 * HEAP_STEP_BYTES;
/// Kept beyond what V8 may use.
const SLACK_BYTES: usize = 1 << 20;

/// The part of one heap of a memory that several have together; given back when dropped.
pub(crate) struct HeapShare {
    memory: Arc<SharedMemory>,
    /// The limit of the heap.
    taken_bytes: AtomicUsize,
    bytes_max: usize,
    /// There was no more.
    refused: AtomicBool,
}

impl HeapShare {
    /// Takes what a heap begins with.
    ///
    /// # Errors
    /// There is not as much left.
    pub(crate) fn new(
        memory: Arc<SharedMemory>,
        heap_bytes_max: usize,
    ) -> Result<HeapShare, HostTrap> {
        let first = HEAP_STEP_BYTES.min(heap_bytes_max);
        if !memory.take(first) {
            return Err(limit_of(&memory));
        }
        Ok(HeapShare {
            memory,
            taken_bytes: AtomicUsize::new(first),
            bytes_max: heap_bytes_max,
            refused: AtomicBool::new(false),
        })
    }

    /// A higher limit, if there is one to be had. Doubled, as V8 collects garbage with all its might before it asks.
    fn grow(&self) -> Option<usize> {
        let taken = self.taken_bytes.load(Ordering::Relaxed);
        if taken >= self.bytes_max {
            return None;
        }
        for more in [taken, HEAP_STEP_BYTES] {
            let more = more.min(self.bytes_max - taken);
            if self.memory.take(more) {
                self.taken_bytes.store(taken + more, Ordering::Relaxed);
                return Some(taken + more);
            }
        }
        self.refused.store(true, Ordering::Relaxed);
        None
    }

    /// Gives back all but so much, and what a heap begins with.
    fn shrink(&self, bytes: usize) {
        let taken = self.taken_bytes.load(Ordering::Relaxed);
        let kept = bytes.max(HEAP_STEP_BYTES).min(taken);
        self.taken_bytes.store(kept, Ordering::Relaxed);
        self.memory.give_back(taken - kept);
    }
}

impl Drop for HeapShare {
    fn drop(&mut self) {
        self.memory
            .give_back(self.taken_bytes.load(Ordering::Relaxed));
    }
}

fn limit_of(memory: &SharedMemory) -> HostTrap {
    HostTrap::Limit {
        kind: LimitKind::ProcedureMemory,
        limit: memory.bytes_max() as u64,
    }
}

/// What the heap may grow by at least beyond its limit, so that a call can be unwound.
const RESERVE_BYTES_MIN: usize = 256 << 20;
/// Granted when V8 is in need though the heap is not full.
const RAISE_BYTES: usize = 16 << 20;

/// V8 ends the process when its heap is full. So the call is ended instead, and the heap may grow meanwhile.
///
/// V8 asks as well when an array buffer can't be allocated, as its last resort; that is a RangeError and no reason to end the
/// call, as long as the heap has room.
unsafe extern "C" fn near_heap_limit(data: *mut c_void, current: usize, _initial: usize) -> usize {
    // SAFETY: `watch` passed a guard that outlives the isolate.
    let guard = unsafe { &*data.cast::<MemoryGuard>() };
    if guard.buffers.refused.swap(false, Ordering::Relaxed)
        && !guard.raised.swap(true, Ordering::Relaxed)
    {
        return current.saturating_add(RAISE_BYTES);
    }
    if let Some(grown) = guard.share.as_ref().and_then(HeapShare::grow) {
        guard.grown.store(true, Ordering::Relaxed);
        // It may have been raised for a buffer besides; V8 wants more than it has.
        return grown.max(current.saturating_add(SLACK_BYTES));
    }
    guard.exceeded.store(true, Ordering::Relaxed);
    guard.isolate.terminate_execution();
    current.saturating_add(guard.heap_bytes_max.max(RESERVE_BYTES_MIN))
}

/// What the array buffers of an isolate may use together.
pub(crate) struct BufferBudget {
    used: AtomicUsize,
    bytes_max: usize,
    /// What several isolates have together, if they do.
    shared: Option<Arc<SharedMemory>>,
    /// The last allocation failed.
    refused: AtomicBool,
}

thread_local! {
    /// The host itself allocates, which must not fail: V8 would end the process.
    static AS_HOST: Cell<bool> = const { Cell::new(false) };
}

/// Makes an array buffer that the budget may not refuse. What it takes counts all the same.
pub(crate) fn as_host<R>(make: impl FnOnce() -> R) -> R {
    /// Ends the exception also if making it panics.
    struct AsHost;
    impl Drop for AsHost {
        fn drop(&mut self) {
            AS_HOST.set(false);
        }
    }
    AS_HOST.set(true);
    let _as_host = AsHost;
    make()
}

const ALIGNMENT: usize = 16;

impl BufferBudget {
    pub(crate) fn new(bytes_max: usize, shared: Option<Arc<SharedMemory>>) -> Arc<BufferBudget> {
        Arc::new(BufferBudget {
            used: AtomicUsize::new(0),
            bytes_max,
            shared,
            refused: AtomicBool::new(false),
        })
    }

    /// An allocator for array buffers that answers no when the budget is spent; the module sees a RangeError.
    pub(crate) fn allocator(self: Arc<Self>) -> ::v8::UniqueRef<::v8::Allocator> {
        // SAFETY: the functions of the table treat the handle as what it is, one count of an `Arc`, which `drop` gives back.
        unsafe { ::v8::new_rust_allocator(Arc::into_raw(self), &VTABLE) }
    }

    fn take(&self, bytes: usize) -> bool {
        if !self.take_own(bytes) {
            return false;
        }
        match &self.shared {
            Some(shared) if AS_HOST.get() => shared.take_anyway(bytes),
            Some(shared) if !shared.take(bytes) => {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
                return false;
            }
            _ => {}
        }
        true
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(shared) = &self.shared {
            shared.give_back(bytes);
        }
    }

    fn take_own(&self, bytes: usize) -> bool {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            match used.checked_add(bytes) {
                Some(after) if after <= self.bytes_max || AS_HOST.get() => {
                    match self.used.compare_exchange_weak(
                        used,
                        after,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => return true,
                        Err(now) => used = now,
                    }
                }
                _ => return false,
            }
        }
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> *mut c_void {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGNMENT) else {
            return std::ptr::null_mut();
        };
        let taken = self.take(layout.size());
        self.refused.store(!taken, Ordering::Relaxed);
        if !taken {
            return std::ptr::null_mut();
        }
        // SAFETY: the layout is not empty.
        let data = unsafe {
            match zeroed {
                true => alloc_zeroed(layout),
                false => alloc(layout),
            }
        };
        if data.is_null() {
            self.give_back(layout.size());
        }
        data.cast()
    }
}

static VTABLE: ::v8::RustAllocatorVtable<BufferBudget> = ::v8::RustAllocatorVtable {
    allocate: {
        unsafe extern "C" fn allocate(budget: &BufferBudget, bytes: usize) -> *mut c_void {
            budget.allocate(bytes, true)
        }
        allocate
    },
    allocate_uninitialized: {
        unsafe extern "C" fn allocate(budget: &BufferBudget, bytes: usize) -> *mut c_void {
            budget.allocate(bytes, false)
        }
        allocate
    },
    free: {
        unsafe extern "C" fn free(budget: &BufferBudget, data: *mut c_void, bytes: usize) {
            if data.is_null() {
                return;
            }
            let size = bytes.max(1);
            budget.give_back(size);
            // SAFETY: V8 gives back what `allocate` made, with the length that it asked for.
            unsafe {
                dealloc(
                    data.cast(),
                    Layout::from_size_align_unchecked(size, ALIGNMENT),
                );
            }
        }
        free
    },
    drop: {
        unsafe extern "C" fn drop(budget: *const BufferBudget) {
            // SAFETY: the count that `allocator` gave away.
            std::mem::drop(unsafe { Arc::from_raw(budget) });
        }
        drop
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_and_buffers_have_one_memory() {
        const MEMORY: usize = 4 * HEAP_STEP_BYTES;
        let memory = SharedMemory::new(MEMORY);
        let one = HeapShare::new(memory.clone(), 1 << 30).expect("room");
        assert_eq!(one.grow(), Some(2 * HEAP_STEP_BYTES));
        let other = HeapShare::new(memory.clone(), 1 << 30).expect("room");
        assert_eq!(one.grow(), Some(3 * HEAP_STEP_BYTES), "a step is left");
        assert_eq!((one.grow(), other.grow()), (None, None));
        assert!(one.refused.load(Ordering::Relaxed));
        assert!(HeapShare::new(memory.clone(), 1 << 30).is_err());
        let buffers = BufferBudget::new(1 << 30, Some(memory.clone()));
        assert!(!buffers.take(1));
        as_host(|| assert!(buffers.take(100), "the host's are made in any case"));
        assert_eq!(memory.bytes(), MEMORY + 100);
        buffers.give_back(100);
        one.shrink(HEAP_STEP_BYTES + 5);
        assert!(buffers.take(HEAP_STEP_BYTES));
        buffers.give_back(HEAP_STEP_BYTES);
        drop((one, other));
        assert_eq!(memory.bytes(), 0);
        let small = HeapShare::new(memory.clone(), HEAP_STEP_BYTES / 2).expect("room");
        assert_eq!(small.grow(), None);
        assert!(!small.refused.load(Ordering::Relaxed), "its own limit");
    }
}
