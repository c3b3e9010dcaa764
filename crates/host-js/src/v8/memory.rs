//! Limits on memory: of the heap, and of array buffers, which lie outside of it.
//!
//! Isolates that share an account, as those of a database's procedures do, begin with a low limit of the heap. When V8 reaches it,
//! the limit is raised by what the account grants. The young generation is not counted.

use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use lightcone_host::{trap_of, Account, Exceeded, HostTrap, Kind, Reservation, Terms};
use parking_lot::Mutex;

pub(crate) struct MemoryGuard {
    /// The call was ended because the heap is full.
    exceeded: AtomicBool,
    /// The limit was raised, although the heap is not full.
    raised: AtomicBool,
    /// The heap has taken more from the shared account in this call.
    grown: AtomicBool,
    /// It still has more than at the beginning.
    large: AtomicBool,
    isolate: ::v8::IsolateHandle,
    heap_bytes_max: usize,
    /// Used at the last rest.
    rested_bytes: AtomicUsize,
    /// The heap's part of a shared account, if there is one.
    share: Option<HeapShare>,
    buffers: Arc<ArrayBuffers>,
}

impl MemoryGuard {
    /// Guards the heap of the isolate. The result must live as long as the isolate.
    pub(crate) fn install(
        isolate: &mut ::v8::Isolate,
        heap_bytes_max: usize,
        share: Option<HeapShare>,
        buffers: Arc<ArrayBuffers>,
    ) -> Box<MemoryGuard> {
        let guard = MemoryGuard::new(isolate, heap_bytes_max, share, buffers);
        guard.watch(isolate);
        if guard.share.is_some() {
            guard.lower_limit(isolate);
        }
        guard
    }

    /// A guard without limits.
    pub(crate) fn none(isolate: &::v8::Isolate) -> Box<MemoryGuard> {
        let buffers = ArrayBuffers::new(&Account::root(Kind::Instance, 0), 0);
        MemoryGuard::new(isolate, 0, None, buffers)
    }

    fn new(
        isolate: &::v8::Isolate,
        heap_bytes_max: usize,
        share: Option<HeapShare>,
        buffers: Arc<ArrayBuffers>,
    ) -> Box<MemoryGuard> {
        Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            grown: AtomicBool::new(false),
            large: AtomicBool::new(false),
            rested_bytes: AtomicUsize::new(0),
            isolate: isolate.thread_safe_handle(),
            heap_bytes_max,
            share,
            buffers,
        })
    }

    fn watch(&self, isolate: &mut ::v8::Isolate) {
        let data = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        isolate.add_near_heap_limit_callback(near_heap_limit, data);
    }

    /// Whether the heap is full, or there are too many buffers. The isolate should not be used again.
    #[inline]
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed) || self.buffers.account.is_overdrawn()
    }

    /// The trap if the shared account is exhausted.
    pub(crate) fn share_trap(&self) -> Option<HostTrap> {
        self.share.as_ref()?.refused().map(trap_of)
    }

    /// Between calls: takes back what was granted for a failed allocation of an array buffer, and gives back what the heap no
    /// longer uses.
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
            // Garbage of this call would stay as long as the isolate, which may be idle for long. Only after a call that has grown,
            // as this takes a while.
            if grown && share.bytes() >= COLLECTED_BYTES_MIN {
                isolate.low_memory_notification();
            }
            // V8 keeps at least a quarter more than is used.
            let used = isolate.get_heap_statistics().used_heap_size();
            share.shrink(used + used / 4 + SLACK_BYTES);
            let is_large = share.bytes() > HEAP_STEP_BYTES;
            self.large.store(is_large, Ordering::Relaxed);
        }
        self.lower_limit(isolate);
    }

    /// Between calls, after a while without one: collects garbage if there is much more than at the last rest. V8 does so only when
    /// a program needs memory.
    pub(crate) fn rest(&self, isolate: &mut ::v8::Isolate) {
        let rested = self.rested_bytes.load(Ordering::Relaxed);
        if held_bytes(isolate) < rested.saturating_add(REST_BYTES_MIN) {
            return;
        }
        isolate.low_memory_notification();
        self.rested_bytes
            .store(held_bytes(isolate), Ordering::Relaxed);
    }

    /// Sets the limit of the heap to its present bound, or as close to it as V8 can.
    fn lower_limit(&self, isolate: &mut ::v8::Isolate) {
        let bytes = match &self.share {
            Some(share) => share.bytes(),
            None => self.heap_bytes_max,
        };
        isolate.remove_near_heap_limit_callback(near_heap_limit, bytes);
        self.watch(isolate);
    }
}

pub(super) fn held_bytes(isolate: &mut ::v8::Isolate) -> usize {
    let statistics = isolate.get_heap_statistics();
    statistics.total_physical_size() + statistics.external_memory()
}

/// An isolate that rests collects garbage if it has grown by so much.
const REST_BYTES_MIN: usize = 32 << 20;
/// The first part of the shared account that a heap takes, and the least growth of its limit.
const HEAP_STEP_BYTES: usize = 32 << 20;
/// With so much, garbage is collected before the use is measured.
const COLLECTED_BYTES_MIN: usize = 4 * HEAP_STEP_BYTES;
/// Beyond what V8 may use.
const SLACK_BYTES: usize = 1 << 20;

/// The heap's part of a bounded account; given back on drop.
pub(crate) struct HeapShare {
    bytes_max: usize,
    /// The limit of the heap, and the exhausted account.
    taken: Mutex<(Reservation, Option<Exceeded>)>,
}

impl HeapShare {
    /// Takes the first part. Fails if the account has not as much.
    pub(crate) fn new(account: Arc<Account>, heap_bytes_max: usize) -> Result<HeapShare, HostTrap> {
        let first = account.reserve(HEAP_STEP_BYTES.min(heap_bytes_max));
        Ok(HeapShare {
            bytes_max: heap_bytes_max,
            taken: Mutex::new((first.map_err(trap_of)?, None)),
        })
    }

    fn bytes(&self) -> usize {
        self.taken.lock().0.bytes()
    }

    fn refused(&self) -> Option<Exceeded> {
        self.taken.lock().1
    }

    /// A higher limit, if the account grants it. Doubled, as V8 collects garbage as hard as it can before it asks.
    fn grow(&self) -> Option<usize> {
        let (taken, refused) = &mut *self.taken.lock();
        let left = self.bytes_max.saturating_sub(taken.bytes());
        if left == 0 {
            return None;
        }
        for more in [taken.bytes(), HEAP_STEP_BYTES] {
            match taken.grow(more.min(left)) {
                Ok(()) => return Some(taken.bytes()),
                Err(exceeded) => *refused = Some(exceeded),
            }
        }
        None
    }

    /// Gives back all but so much and the first part.
    fn shrink(&self, bytes: usize) {
        self.taken.lock().0.shrink(bytes.max(HEAP_STEP_BYTES));
    }
}

/// What the heap may grow by at least beyond its limit, so that a call can be unwound.
const RESERVE_BYTES_MIN: usize = 256 << 20;
/// Granted when V8 needs memory although the heap is not full.
const RAISE_BYTES: usize = 16 << 20;

/// V8 ends the process when its heap is full. So the call is ended instead, and the heap may grow meanwhile.
///
/// V8 also asks when an array buffer cannot be allocated. That is a RangeError and no reason to end the call, as long as the heap
/// has room.
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
        // It may have been raised for a buffer before; V8 wants more than it has.
        return grown.max(current.saturating_add(SLACK_BYTES));
    }
    guard.exceeded.store(true, Ordering::Relaxed);
    guard.isolate.terminate_execution();
    current.saturating_add(guard.heap_bytes_max.max(RESERVE_BYTES_MIN))
}

/// The array buffers of an isolate, counted in the account of its instance.
pub(crate) struct ArrayBuffers {
    account: Arc<Account>,
    refused: AtomicBool,
}

thread_local! {
    /// The bytes of the host's own next array buffer, which must not fail: V8 would end the process.
    static TAKEN: Cell<Option<usize>> = const { Cell::new(None) };
}

const ALIGNMENT: usize = 16;
/// Buffers are counted in steps, so that the account is rarely touched.
const BUFFERS_STEP_BYTES: usize = 64 << 10;

impl ArrayBuffers {
    pub(crate) fn new(account: &Arc<Account>, bytes_max: usize) -> Arc<ArrayBuffers> {
        let terms = Terms::in_steps(bytes_max, BUFFERS_STEP_BYTES);
        Arc::new(ArrayBuffers {
            account: account.open(Kind::Memory, terms),
            refused: AtomicBool::new(false),
        })
    }

    /// The allocator of array buffers. It refuses beyond the account; the module sees a RangeError.
    pub(crate) fn allocator(self: Arc<Self>) -> ::v8::UniqueRef<::v8::Allocator> {
        // SAFETY: the functions of the table treat the handle as what it is, one count of an `Arc`, which `drop` gives back.
        unsafe { ::v8::new_rust_allocator(Arc::into_raw(self), &VTABLE) }
    }

    /// Whether there is room for a temporary copy of the host.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.account.free_bytes()
    }

    /// Makes an array buffer for the host. `None`: there is no room, even without garbage.
    pub(crate) fn make<'s>(
        &self,
        scope: &mut ::v8::PinScope<'s, '_>,
        bytes: usize,
    ) -> Option<::v8::Local<'s, ::v8::ArrayBuffer>> {
        if self.account.take(bytes.max(1)).is_err() {
            // As V8 does when its allocator refuses.
            scope.low_memory_notification();
            self.account.take(bytes.max(1)).ok()?;
        }
        Some(self.make_taken(scope, bytes))
    }

    /// Makes an array buffer that an isolate cannot do without. It is counted beyond the bound.
    pub(crate) fn make_anyway<'s>(
        &self,
        scope: &mut ::v8::PinScope<'s, '_>,
        bytes: usize,
    ) -> ::v8::Local<'s, ::v8::ArrayBuffer> {
        self.account.take_anyway(bytes.max(1));
        self.make_taken(scope, bytes)
    }

    fn make_taken<'s>(
        &self,
        scope: &mut ::v8::PinScope<'s, '_>,
        bytes: usize,
    ) -> ::v8::Local<'s, ::v8::ArrayBuffer> {
        TAKEN.set(Some(bytes.max(1)));
        let buffer = ::v8::ArrayBuffer::new(scope, bytes);
        // An empty one has no memory.
        if let Some(bytes) = TAKEN.take() {
            self.account.give_back(bytes);
        }
        buffer
    }

    fn take(&self, bytes: usize) -> bool {
        if TAKEN.get() == Some(bytes) {
            TAKEN.set(None);
            return true;
        }
        self.account.take(bytes).is_ok()
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
            self.account.give_back(layout.size());
        }
        data.cast()
    }
}

static VTABLE: ::v8::RustAllocatorVtable<ArrayBuffers> = ::v8::RustAllocatorVtable {
    allocate: {
        unsafe extern "C" fn allocate(buffers: &ArrayBuffers, bytes: usize) -> *mut c_void {
            buffers.allocate(bytes, true)
        }
        allocate
    },
    allocate_uninitialized: {
        unsafe extern "C" fn allocate(buffers: &ArrayBuffers, bytes: usize) -> *mut c_void {
            buffers.allocate(bytes, false)
        }
        allocate
    },
    free: {
        unsafe extern "C" fn free(buffers: &ArrayBuffers, data: *mut c_void, bytes: usize) {
            if data.is_null() {
                return;
            }
            let size = bytes.max(1);
            buffers.account.give_back(size);
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
        unsafe extern "C" fn drop(buffers: *const ArrayBuffers) {
            // SAFETY: the count that `allocator` gave away.
            std::mem::drop(unsafe { Arc::from_raw(buffers) });
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
        let memory = Account::root(Kind::Procedures, MEMORY);
        let one = HeapShare::new(memory.clone(), 1 << 30).expect("room");
        assert_eq!(one.grow(), Some(2 * HEAP_STEP_BYTES));
        let other = HeapShare::new(memory.clone(), 1 << 30).expect("room");
        assert_eq!(one.grow(), Some(3 * HEAP_STEP_BYTES), "a step is left");
        assert_eq!((one.grow(), other.grow()), (None, None));
        assert!(one.refused().is_some());
        assert!(HeapShare::new(memory.clone(), 1 << 30).is_err());
        let buffers = ArrayBuffers::new(&memory, 1 << 30);
        assert!(!buffers.take(1) && !buffers.has_room(1));
        one.shrink(HEAP_STEP_BYTES + 5);
        assert!(buffers.take(HEAP_STEP_BYTES));
        buffers.account.give_back(HEAP_STEP_BYTES);
        drop((one, other));
        assert_eq!(memory.used(), 0);
        let small = HeapShare::new(memory.clone(), HEAP_STEP_BYTES / 2).expect("room");
        assert_eq!(small.grow(), None);
        assert_eq!(small.refused(), None, "its own limit");
    }
}
